import fs from 'node:fs';
import { describe, expect, test } from 'vitest';
import { eventually, MINUTE, Sandbox } from './harness.ts';
import { gone, isAlive, kill, needs, pidFrom, startRun } from './jobs.ts';

/** Waits until the command's number stands in the lock. */
async function commandOf(box: Sandbox): Promise<number> {
  const read = () => JSON.parse(box.read('lock.json')) as { commandPid: number | null };
  await eventually('the pid of the command in the lock', () => read().commandPid !== null);
  return Number(read().commandPid);
}

/** Closes all it inherited beyond stdio, as ssh and daemons do, and goes on. */
const CLOSED = `python3 -c "import os, time; os.closerange(3, 4096); print('left=%d' % os.getpid(), flush=True); time.sleep(50)"`;
/** Starts another without its descriptors, as subprocess does by default, and waits for it. */
const POPEN = `python3 -c "import subprocess, os
p = subprocess.Popen(['sleep', '50'], close_fds=True); print('child=%d' % p.pid); print('left=%d' % os.getpid(), flush=True); p.wait()"`;

describe('when run is killed with SIGKILL, the lock stays held while the job lives, and no longer', () => {
  const JOBS: [what: string, command: string[]][] = [
    ['the command', ['sh', '-c', 'echo left=$$; exec sleep 50']],
    ['only its grandchild', ['sh', '-c', 'sh -c "sleep 50 & echo left=\\$!" ; exit 0']],
    ['a command that closed all its descriptors', ['sh', '-c', `exec ${CLOSED}`]],
    ["a command whose child has none of them, by python's subprocess", ['sh', '-c', `exec ${POPEN}`]],
    [
      'a command with an empty environment',
      ['env', '-i', '/bin/sh', '-c', 'echo left=$$; exec /bin/sleep 50'],
    ],
    ['a command that has left the session', ['setsid', '-w', 'sh', '-c', 'echo left=$$; exec sleep 50']],
  ];

  test.for(JOBS)('%s', async ([, command], ctx) => {
    if (command.join().includes('python3')) needs(ctx, 'python3');
    const box = new Sandbox();
    const run = startRun(box, ['--item', 'ep', '--', ...command]);
    const left = await pidFrom(run, 'left');
    const started = await commandOf(box);
    run.kill('SIGKILL');
    await eventually('the end of run', () => run.child.signalCode !== null);

    expect((await box.runlock(['acquire', '--no-pid', '--token', 'a'])).code).toBe(3);
    expect((await box.runlock(['run', 'echo', 'began'])).stdout).toBe('');
    if (isAlive(started)) {
      // No clock frees what a command works on.
      for (const file of ['lock.json', 'live/1', 'lock.guard']) box.age(box.file(file), 46 * MINUTE);
      expect((await box.runlock(['run', 'echo', 'began'])).code).toBe(3);
    }
    for (const pid of [left, started]) kill(pid);
    await Promise.all([gone(left), gone(started)]);
    const next = await box.runlock(['run', 'true']);
    expect(next.code).toBe(0);
    expect(next.stderr).toMatch(/^runlock: took over from run 1: [^\n]*\n$/);
    expect(await box.status()).toMatchObject({ marker: [{ item: 'ep', run: 1, state: 'unknown' }] });
  });

  test('what a command left behind when it ended keeps the lock for the hold, not for ever', async () => {
    const box = new Sandbox();
    const run = startRun(box, ['--', 'sh', '-c', 'sleep 50 & echo left=$!; exit 0']);
    const left = await pidFrom(run, 'left');
    await gone(await commandOf(box));
    run.kill('SIGKILL');
    await eventually('the end of run', () => run.child.signalCode !== null);
    box.age(box.file('lock.json'), 44 * MINUTE);
    expect((await box.runlock(['run', 'echo', 'began'])).code).toBe(3);
    box.age(box.file('lock.json'), 46 * MINUTE);
    expect((await box.runlock(['run', 'true'])).code).toBe(0);
    expect(isAlive(left)).toBe(true);
  });

  test('killed with its whole group it is free at once', async () => {
    const box = new Sandbox();
    const run = startRun(box, ['--item', 'ep', '--hold', 'never', '--', 'sh', '-c', 'echo begun; sleep 50']);
    await run.says('begun');
    run.killGroup();
    await run.ended;
    expect((await box.runlock(['run', 'true'])).code).toBe(0);
  });

  test('an orphan past its --timeout is ended by the next run, which then takes over', async () => {
    const box = new Sandbox();
    const job = 'trap "" TERM; echo left=$$; while :; do sleep 0.1; done';
    const run = startRun(box, ['--timeout', '2s', '--kill-after', '200ms', '--', 'bash', '-c', job]);
    const left = await pidFrom(run, 'left');
    await commandOf(box);
    run.kill('SIGKILL');
    // Before its time is over it is held, after that it is ended; never is it run beside.
    await eventually('the time limit', async () => {
      const { code, stdout } = await box.runlock(['run', 'echo', 'began']);
      expect([3, 0]).toContain(code);
      if (code === 0) expect([stdout, isAlive(left)]).toEqual(['began\n', false]);
      return code === 0;
    });
  });
});

describe('a cleaner that deletes files in mid-run does not let a second run in', () => {
  test.each([
    ['lock.json', ['lock.json']],
    ['the guard', ['lock.guard']],
    ['the live file', ['live/1']],
    ['all of live/', ['live']],
    ['lock.json and the guard', ['lock.json', 'lock.guard']],
    ['lock.json and the history', ['lock.json', 'history']],
  ])('%s; lock.json is back within a beat', async (_, names) => {
    const box = new Sandbox();
    await box.runlock(['run', 'true']);
    const run = startRun(box, ['--item', 'ep', '--hold', '3s', '--', 'sh', '-c', 'echo begun; read line']);
    await run.says('begun');
    await commandOf(box);
    for (const name of names) {
      const number = name === 'live/1' ? 'live/2' : name;
      fs.rmSync(box.file(number), { recursive: true });
    }
    const second = await box.runlock(['run', 'echo', 'began']);
    expect([second.code, second.stdout]).toEqual([3, '']);
    await eventually('lock.json', () => fs.existsSync(box.file('lock.json')), 5_000);
    expect(JSON.parse(box.read('lock.json'))).toMatchObject({ run: 2, item: 'ep' });
    expect((await box.runlock(['run', 'echo', 'began'])).code).toBe(3);
    run.tell('go on');
    expect((await run.result).code).toBe(0);
    expect((await box.runlock(['acquire', '--no-pid', '--token', 'a'])).stdout).toBe('3\n');
    expect(JSON.parse(box.read('records', '2.json'))).toMatchObject({ outcome: 'finished' });
  });

  test('while its supervisor is stopped, and the lock is back when it goes on', async () => {
    const box = new Sandbox();
    const run = startRun(box, ['--hold', '3s', '--', 'sh', '-c', 'echo begun; read line']);
    await run.says('begun');
    await commandOf(box);
    run.kill('SIGSTOP');
    fs.rmSync(box.file('lock.json'));
    expect((await box.runlock(['run', 'echo', 'began'])).code).toBe(3);
    run.kill('SIGCONT');
    await eventually('lock.json', () => fs.existsSync(box.file('lock.json')), 5_000);
    run.tell('go on');
    expect((await run.result).code).toBe(0);
  });

  test('everything: then the lock is lost, and the command is ended before long', async () => {
    const box = new Sandbox();
    const run = startRun(box, ['--hold', '1500ms', '--', 'sh', '-c', 'echo self=$$; exec sleep 50']);
    const command = await pidFrom(run, 'self');
    await commandOf(box);
    for (const name of fs.readdirSync(box.runs)) fs.rmSync(box.file(name), { recursive: true });
    const { code, stderr } = await run.result;
    expect(code).toBe(4);
    expect(stderr).toMatch(/lost|taken over/);
    expect(isAlive(command)).toBe(false);
  });
});

describe('run inside run', () => {
  test('on the same lock: the inner one is told where it is, and nothing hangs', async () => {
    const box = new Sandbox();
    const { code, stdout, stderr } = await box.runlock([
      'run',
      '--',
      'sh',
      '-c',
      'runlock run echo inner; echo "inner $?"',
    ]);
    expect([code, stdout]).toEqual([0, 'inner 3\n']);
    expect(stderr).toContain('inside');
  });

  test('on another lock: both are held while the job lives, though both supervisors are killed', async () => {
    const box = new Sandbox();
    const inner = ['runlock', 'run', '--name', 'inner', '--', 'sh', '-c', 'echo job=$$; exec sleep 50'];
    const run = startRun(box, ['--name', 'outer', '--', ...inner]);
    const job = await pidFrom(run, 'job');
    const supervisor = Number((await box.status('--name', 'inner')).pid);
    expect((await box.status('--name', 'outer')).pid).toBe(run.pid);
    run.kill('SIGKILL');
    kill(supervisor);
    await gone(supervisor);
    for (const name of ['inner', 'outer']) {
      expect([name, (await box.runlock(['run', '--name', name, 'echo', 'began'])).code]).toEqual([name, 3]);
    }
    expect(await box.runlock(['status', '--all'])).toMatchObject({ code: 3 });
    kill(job);
    await gone(job);
    for (const name of ['inner', 'outer']) {
      expect([name, (await box.runlock(['run', '--name', name, 'true'])).code]).toEqual([name, 0]);
    }
  });

  test('on another lock: both are freed when it ends', async () => {
    const box = new Sandbox();
    const inner =
      'runlock run --name inner -- sh -c "exit 9"; code=$?; runlock status --name outer >/dev/null; exit $code$?';
    expect((await box.runlock(['run', '--name', 'outer', '--', 'sh', '-c', inner])).code).toBe(93);
    expect((await box.runlock(['status', '--all'])).code).toBe(0);
  });
});

describe('what the command handed in counts, though everything is killed before its run ends', () => {
  const WAYS: [what: string, handIn: string, outcome: string, record: string][] = [
    [
      'by finish',
      `echo '{"id":7440123456789012345}' | runlock finish -`,
      'finished',
      '{"id":7440123456789012345}',
    ],
    [
      'by finish, a second time',
      `echo 1 | runlock finish -; echo '{"id":2}' | runlock finish -`,
      'finished',
      '{"id":2}',
    ],
    ['as a failure', `echo '{"why":"x"}' | runlock finish - --failed`, 'failed', '{"why":"x"}'],
    ['without a result', 'runlock finish', 'finished', '"run": 1'],
  ];

  test.each(WAYS)('%s', async (_, handIn, outcome, record) => {
    const box = new Sandbox();
    const run = startRun(box, ['--item', 'ep', '--', 'sh', '-c', `${handIn}; echo handed-in; sleep 50`]);
    await run.says('handed-in');
    await commandOf(box);
    run.killGroup();
    await run.ended;
    expect((await box.runlock(['run', 'true'])).code).toBe(0);
    expect(box.read('records', '1.json')).toContain(record);
    const ends = box.history().filter((event) => event.event === 'ended' && event.run === 1);
    expect(ends).toMatchObject([{ outcome, settled: true }]);
    expect((await box.status()).marker).toEqual([]);
  });

  test('a result file that it wrote without a word is kept, but nobody knows whether it was done', async () => {
    const box = new Sandbox();
    const write = `echo '{"progress":3}' > "$RUNLOCK_RESULT"; echo written; sleep 50`;
    const run = startRun(box, ['--item', 'ep', '--', 'sh', '-c', write]);
    await run.says('written');
    await commandOf(box);
    run.killGroup();
    await run.ended;
    expect((await box.runlock(['run', 'true'])).code).toBe(0);
    expect(box.read('records', '1.json')).toContain('{"progress":3}');
    const ends = box.history().filter((event) => event.event === 'ended' && event.run === 1);
    expect(ends).toMatchObject([{ outcome: 'interrupted', settled: false }]);
    expect((await box.status()).marker).toMatchObject([{ item: 'ep', state: 'unknown' }]);
  });

  test.each(['{"cut', ''])('but a result file with %j is no result', async (content) => {
    const box = new Sandbox();
    const run = startRun(box, [
      '--item',
      'ep',
      '--',
      'sh',
      '-c',
      `printf %s '${content}' > "$RUNLOCK_RESULT"; echo done; sleep 50`,
    ]);
    await run.says('done');
    await commandOf(box);
    run.killGroup();
    await run.ended;
    expect((await box.runlock(['run', 'true'])).code).toBe(0);
    expect((await box.status()).marker).toMatchObject([{ item: 'ep', state: 'unknown' }]);
    expect(box.history().filter((event) => event.outcome === 'interrupted')).toHaveLength(1);
    if (content !== '') expect(box.read('records', '1.rejected')).toBe(content);
  });
});
