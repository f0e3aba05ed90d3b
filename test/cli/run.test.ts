import fs from 'node:fs';
import { describe, expect, test } from 'vitest';
import { eventually, Sandbox } from './harness.ts';
import { gone, isAlive, Job, kill, lines, pidFrom, SIGNAL_TELLER, startRun } from './jobs.ts';

describe('a signal to run reaches the command once, and the lock is kept until its tree is gone', () => {
  test.each(['SIGTERM', 'SIGINT', 'SIGHUP'] as const)('%s', async (signal) => {
    const box = new Sandbox();
    const run = startRun(box, ['--item', 'ep', '--', ...SIGNAL_TELLER]);
    await run.says('ready');
    run.kill(signal);
    await run.says(signal);
    expect((await box.runlock(['status'])).code).toBe(3);
    // A second one is a second one.
    run.kill(signal);
    await run.says(new RegExp(`${signal}\\n${signal}\\n`));
    run.child.stdin?.end();
    const { code, stdout } = await run.result;
    expect([code, stdout]).toEqual([0, `ready\n${signal}\n${signal}\n`]);
    expect((await box.runlock(['run', 'true'])).code).toBe(0);
  });

  test('a job that takes its time to tidy up keeps the lock in that time, and its own exit code', async () => {
    const box = new Sandbox();
    const job = 'trap "echo tidying; read line; exit 7" TERM; echo begun; while :; do sleep 0.02; done';
    const run = startRun(box, ['--', 'bash', '-c', job]);
    await run.says('begun');
    run.kill('SIGTERM');
    await run.says('tidying');
    expect((await box.runlock(['run', 'echo', 'began'])).code).toBe(3);
    run.tell('done');
    expect((await run.result).code).toBe(7);
    expect((await box.runlock(['run', 'true'])).code).toBe(0);
  });

  test('a child that outlives the command in its session keeps the lock', async () => {
    const box = new Sandbox();
    const child = `trap '' TERM; echo child=$BASHPID; while [ ! -e go ]; do sleep 0.02; done`;
    const run = startRun(box, ['--', 'bash', '-c', `(${child}) & wait`]);
    await pidFrom(run, 'child');
    run.kill('SIGTERM');
    const { commandPid } = await box.status();
    await gone(Number(commandPid));
    expect((await box.runlock(['run', 'echo', 'began'])).code).toBe(3);
    box.write('go', '');
    expect((await run.result).code).toBe(143);
    expect((await box.runlock(['run', 'true'])).code).toBe(0);
  });

  test('a signal that comes when only children are left reaches them', async () => {
    const box = new Sandbox();
    const child = `trap 'echo told; exit' TERM; echo child=$BASHPID; while :; do sleep 0.02; done`;
    const run = startRun(box, ['--', 'bash', '-c', `(${child}) & exit 3`]);
    await pidFrom(run, 'child');
    await gone(Number((await box.status()).commandPid));
    run.kill('SIGTERM');
    const { code, stdout } = await run.result;
    expect(stdout.match(/told/g)).toHaveLength(1);
    expect(code).toBe(3);
  });
});

describe('a signal at any moment of the start leaves a lock that can be taken at once', () => {
  // 60 tries at 0 to 300 ms.
  test.each(['SIGTERM', 'SIGINT', 'SIGHUP'] as const)(
    '%s',
    async (signal) => {
      const box = new Sandbox();
      for (let n = 0; n < 20; n += 1) {
        const run = startRun(box, ['--item', `ep-${n}`, '--', 'sleep', '50']);
        await new Promise((resolve) => setTimeout(resolve, (300 * n) / 19));
        run.kill(signal);
        const { code, signal: by, stderr } = await run.result;
        expect([`${signal}`, 128 + { SIGHUP: 1, SIGINT: 2, SIGTERM: 15 }[signal]]).toContain(by ?? code);
        expect(stderr).not.toMatch(/^\s+at /m);
        // Its own end, or a death that the next one sees: nobody waits.
        expect((await box.runlock(['status'])).code).toBe(0);
      }
      const { code, stderr } = await box.runlock(['run', 'true']);
      expect([code, lines(stderr).length < 2]).toEqual([0, true]);
    },
    300_000,
  );
});

describe('a daemon that the job left behind keeps nothing', () => {
  test.each([
    ['setsid', 'setsid sleep 50 & echo daemon=$!'],
    ['setsid twice, its output closed', 'setsid sh -c "setsid sleep 50 >/dev/null 2>&1 & echo daemon=\\$!"'],
    ['nohup in a session of its own', 'setsid nohup sleep 50 >/dev/null 2>&1 & echo daemon=$!'],
  ])('%s', async (_, start) => {
    const box = new Sandbox();
    const run = startRun(box, ['--', 'sh', '-c', `${start}; exit 5`]);
    const daemon = await pidFrom(run, 'daemon');
    // `setsid` must have got away before the command ends; the daemon may hold the pipes open, so not `result`.
    await eventually('the end of run', () => run.child.exitCode !== null);
    expect(run.child.exitCode).toBe(5);
    expect((await box.runlock(['run', 'true'])).code).toBe(0);
    expect(isAlive(daemon)).toBe(true);
    kill(daemon);
  });
});

describe('the exit code is that of the command', () => {
  const TABLE: [what: string, code: number, command: string[]][] = [
    ...[0, 1, 3, 42, 255].map((code): [string, number, string[]] => [
      `exit ${code}`,
      code,
      ['sh', '-c', `exit ${code}`],
    ]),
    ['TERM', 143, ['sh', '-c', 'kill -TERM $$']],
    ['KILL', 137, ['sh', '-c', 'kill -KILL $$']],
    ['SEGV', 139, ['sh', '-c', 'kill -SEGV $$']],
  ];

  test.each(TABLE)('%s: %i', async (_, code, command) => {
    const box = new Sandbox();
    const result = await box.runlock(['run', '--item', 'ep', ...command]);
    expect(result.code).toBe(code);
    if (code < 128)
      expect(lines(result.stderr)).toEqual([expect.stringContaining('made the state directory')]);
    expect(await box.status()).toMatchObject({
      state: 'free',
      marker: code === 0 ? [] : [{ item: 'ep', state: 'unknown' }],
    });
    expect(JSON.parse(box.read('records', '1.json'))).toMatchObject({
      outcome: code === 0 ? 'finished' : 'failed',
      exitCode: code,
    });
  });

  test.each([
    ['not found', 127, ['no-such-program']],
    ['not found by path', 127, ['./absent/program']],
    ['not executable', 126, ['./plain']],
    ['a directory', 126, ['./']],
  ])('%s: %i, one line says why, and the item is as it was', async (_, code, command) => {
    const box = new Sandbox();
    box.makeRuns();
    box.write('plain', 'x');
    await box.runlock(['run', '--item', 'ep-0', 'false']);
    const before = box.read('current.json');
    const result = await box.runlock(['run', '--item', 'ep', ...command]);
    expect(result.code).toBe(code);
    expect(lines(result.stderr)).toEqual([expect.stringContaining(command[0] ?? '')]);
    expect(box.read('current.json')).toBe(before);
    expect((await box.runlock(['status'])).code).toBe(0);
  });

  test('where runlock itself was misused: 125, and no command begins', async () => {
    const box = new Sandbox();
    for (const args of [
      [],
      ['--'],
      ['--no-such', 'echo', 'began'],
      ['--timeout', 'x', 'echo', 'began'],
      ['--hold', '0s', 'echo', 'began'],
    ]) {
      const { code, stdout } = await box.runlock(['run', ...args]);
      expect([args, code, stdout]).toEqual([args, 125, '']);
    }
    expect(fs.existsSync(box.file('lock.json'))).toBe(false);
  });
});

describe('a run that finds the lock held', () => {
  test('says in one line which run, whose, since when and where', async () => {
    const box = new Sandbox();
    const run = startRun(box, ['--item', 'ep-42', '--', 'sh', '-c', 'echo begun; read line']);
    await run.says('begun');
    const { commandPid } = await box.status();
    const { code, stdout, stderr } = await box.runlock(['run', 'echo', 'began']);
    expect([code, stdout]).toEqual([3, '']);
    expect(lines(stderr)).toHaveLength(1);
    for (const fact of ['run 1', 'ep-42', `pid ${commandPid}`, 'sh -c', 'since', 'heartbeat', box.runs]) {
      expect(stderr).toContain(fact);
    }
    expect(box.history().at(-1)).toMatchObject({ event: 'skipped', code: 3 });
    expect(await box.runlock(['run', '--quiet', 'true'])).toMatchObject({ code: 3, stderr: '' });
    expect(await box.runlock(['run', '--skip-code', '75', 'true'])).toMatchObject({ code: 75 });
  });

  test('says so too where the holder is a script', async () => {
    const box = new Sandbox();
    const job = new Job(box);
    expect(await job.do('runlock acquire ep-42')).toBe(0);
    const { stderr } = await box.runlock(['run', 'true']);
    for (const fact of ['run 1', 'ep-42', `pid ${job.running.pid}`, 'bash', 'since', 'heartbeat', box.runs]) {
      expect(stderr).toContain(fact);
    }
  });
});
