import { describe, expect, test } from 'vitest';
import { Sandbox } from './harness.ts';
import { gone, isAlive, needs, pidFrom, startRun } from './jobs.ts';

const SHOW = [process.execPath, '-e', 'process.stdout.write(JSON.stringify(process.argv.slice(1)))', '--'];

describe('the command gets what it is given, as it is', () => {
  const HARD = [
    'a b',
    '$X',
    '*',
    '',
    '-v',
    '--help',
    '--',
    '`id`',
    '"',
    "'",
    '\\',
    'a\nb',
    '%PATH%',
    'ü',
    '👍',
    '--json',
    'true',
  ];
  test.each([[['--']], [[]]])('arguments, %j before the command', async (before) => {
    const box = new Sandbox();
    const { stdout, code } = await box.runlock(['run', ...before, ...SHOW, ...HARD]);
    expect(JSON.parse(stdout)).toEqual(HARD);
    expect(code).toBe(0);
  });

  test.each(['true', 'false', '0', '1'])(
    'a command named %s right after an option without a value',
    async (name) => {
      const box = new Sandbox();
      const file = box.write(name, '#!/bin/sh\necho began "$@"\n');
      (await import('node:fs')).chmodSync(file, 0o755);
      const { code, stdout } = await box.runlock(['run', '--quiet', name, '--json', 'x'], {
        env: { PATH: `${box.dir}:${process.env.PATH}` },
      });
      expect([code, stdout]).toEqual([0, 'began --json x\n']);
    },
  );

  test('bytes that are no UTF-8, in an argument and in the environment', async () => {
    const box = new Sandbox();
    const script = String.raw`export ODD=$'\xff\xc3'
      runlock run -- sh -c 'printf "%s|%s" "$1" "$ODD" | od -An -tx1' sh $'\xfe\x80\xe4'`;
    const { stdout } = await box.script('bash', script);
    expect(stdout.trim()).toBe('fe 80 e4 7c ff c3');
  });

  test('stdin, stdout and stderr, byte for byte; run itself says nothing', async () => {
    const box = new Sandbox();
    box.makeRuns();
    const bytes = Uint8Array.from({ length: 256 }, (_, n) => n);
    const { stdout, stderr, code } = await box.exec(
      'bash',
      ['-c', 'runlock run -- sh -c "tee /dev/stderr" 2>err | od -An -v -tx1 && od -An -v -tx1 err'],
      { input: bytes },
    );
    const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, '0'));
    expect(stdout.trim().split(/\s+/)).toEqual([...hex, ...hex]);
    expect([stderr, code]).toEqual(['', 0]);
  });

  test('no descriptor beyond these but the one that ties it to the lock', async () => {
    const box = new Sandbox();
    const show = "sh -c 'ls -l /proc/$$/fd'";
    const { stdout } = await box.exec('bash', ['-c', `${show}; echo; runlock run -- ${show}`]);
    const [before, inside] = stdout
      .split('\n\n')
      .map((list) => [...list.matchAll(/ (\d+ -> .*)$/gm)].map((match) => match[1]));
    const more = inside?.filter((line) => !before?.includes(line)) ?? [];
    expect(more).toEqual([expect.stringContaining(box.file('live', '1'))]);
  });
});

describe('Ctrl-C on a terminal', () => {
  /** Counts INTs, and gives a second one that comes by mistake time to arrive. */
  const COUNT = `let n = 0; process.on('SIGINT', () => { n += 1; setTimeout(() => { console.log('count=' + n); process.exit(0); }, 1000); });
    setInterval(() => {}, 1000); console.log('ready')`;

  test('reaches the command once', async (ctx) => {
    needs(ctx, 'script');
    const box = new Sandbox();
    box.write('count.cjs', COUNT);
    // dash would end by the INT itself, and give 130 whatever the command's code is.
    const terminal = box.start('script', ['-qec', 'runlock run node count.cjs', '/dev/null'], {
      detached: true,
      env: { SHELL: '/bin/bash' },
    });
    await terminal.says('ready');
    terminal.child.stdin?.write('\x03');
    await terminal.says(/count=\d+/);
    expect(terminal.stdout).toMatch(/count=1\r?\n/);
    expect((await terminal.result).code).toBe(0);
    expect((await box.runlock(['run', 'true'])).code).toBe(0);
  });

  test('ends a command that does not mind it, with 130, and frees the lock', async (ctx) => {
    needs(ctx, 'script');
    const box = new Sandbox();
    box.write('idle.cjs', `setInterval(() => {}, 1000); console.log('ready')`);
    const terminal = box.start(
      'script',
      // No shell: dash that is interrupted just before it forks dies only when its child has ended.
      ['-qec', 'runlock run node idle.cjs', '/dev/null'],
      { detached: true },
    );
    await terminal.says('ready');
    terminal.child.stdin?.write('\x03');
    expect((await terminal.result).code).toBe(130);
    expect((await box.runlock(['run', 'true'])).code).toBe(0);
  });

  test('an INT sent to run alone, in the background of a terminal, reaches the command', async (ctx) => {
    needs(ctx, 'script');
    const box = new Sandbox();
    box.write('count.cjs', COUNT);
    const inBackground = "bash -mc 'runlock run node count.cjs & echo run=$!; wait $!'";
    const terminal = box.start('script', ['-qec', inBackground, '/dev/null'], { detached: true });
    const pid = Number(/run=(\d+)/.exec(await terminal.says(/run=\d+/))?.[1]);
    await terminal.says('ready');
    process.kill(pid, 'SIGINT');
    await terminal.says(/count=\d+/);
    expect(terminal.stdout).toMatch(/count=1\r?\n/);
    await terminal.ended;
  });
});

/** Ignores TERM, and so does whatever it starts: one plain, one of another session, one with nothing inherited. */
const STUBBORN = `trap '' TERM
  sleep 50 & echo plain=$!
  setsid sleep 50 & echo apart=$!
  env -i PATH="$PATH" bash -c 'trap "" TERM; exec 97>&- 98>&-; while :; do sleep 0.1; done' & echo bare=$!
  echo self=$$; wait; wait; while :; do sleep 0.1; done`;

describe('a tree that has had its time is ended whole', () => {
  async function expectEnded(box: Sandbox, args: string[], job: string): Promise<void> {
    const run = startRun(box, ['--item', 'ep', ...args, '--kill-after', '300ms', '--', 'bash', '-c', job]);
    const names = [...job.matchAll(/echo (\w+)=\$/g)].map((match) => match[1] ?? '');
    const pids = await Promise.all(names.map((name) => pidFrom(run, name)));
    const { code, stderr } = await run.result;
    expect(code).toBe(124);
    expect(stderr).toMatch(/^runlock: [^\n]*\n/m);
    expect(pids.filter(isAlive)).toEqual([]);
    expect(await box.status()).toMatchObject({ state: 'free', marker: [{ item: 'ep', state: 'unknown' }] });
    expect(box.history().at(-1)).toMatchObject({ outcome: 'timedOut', exitCode: 124 });
  }

  test('after --timeout, though it ignores TERM and has children', async () => {
    await expectEnded(new Sandbox(), ['--timeout', '1s'], STUBBORN);
  });

  test('after --timeout, though it is stopped', async () => {
    await expectEnded(new Sandbox(), ['--timeout', '1s'], 'echo self=$$; kill -STOP $$');
  });

  test('after --timeout, though what is left lost its parent and its environment', async () => {
    const job = `(env -i PATH="$PATH" setsid bash -c 'while :; do sleep 0.1; done' & echo child=$!); sleep 50 & echo self=$$; wait`;
    await expectEnded(new Sandbox(), ['--timeout', '1s'], job);
  });

  test('after --timeout, though the command itself has ended', async () => {
    await expectEnded(
      new Sandbox(),
      ['--timeout', '1s'],
      `(trap '' TERM; while :; do sleep 0.1; done) & echo child=$!`,
    );
  });

  test('when it calls no hb for longer than --watchdog', async () => {
    await expectEnded(new Sandbox(), ['--watchdog', '1s'], STUBBORN);
  });

  test('when its hb came at first, and then no more', async () => {
    await expectEnded(
      new Sandbox(),
      ['--watchdog', '2s'],
      'runlock hb; echo self=$$; while :; do sleep 0.1; done',
    );
  });

  test('a job that calls hb in time goes on for longer than --watchdog', async () => {
    const box = new Sandbox();
    const job = 'while [ $SECONDS -lt 5 ]; do runlock hb || exit 9; done';
    expect(await box.runlock(['run', '--watchdog', '3s', '--', 'bash', '-c', job])).toMatchObject({
      code: 0,
    });
  });

  test('the hb of a stranger does not keep it', async () => {
    const box = new Sandbox();
    const run = startRun(box, [
      '--watchdog',
      '1500ms',
      '--kill-after',
      '0s',
      '--',
      'sh',
      '-c',
      'echo self=$$; exec sleep 50',
    ]);
    const pid = await pidFrom(run, 'self');
    const codes = [];
    while (run.child.exitCode === null) codes.push((await box.runlock(['hb'])).code);
    expect(run.child.exitCode).toBe(124);
    expect(codes).toContain(4);
    expect(codes).not.toContain(0);
    await gone(pid);
  });
});
