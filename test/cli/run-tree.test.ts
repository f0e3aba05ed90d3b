import { expect, test } from 'vitest';
import { isRoot, Sandbox, which } from './harness.ts';

/** A child that shows nothing of where it comes from: no descriptor, no environment, no parent. */
const HIDDEN = (seconds: string) =>
  `import subprocess; subprocess.Popen(["sleep", "${seconds}"], env={"PATH": "/usr/bin:/bin"})`;

async function runs(box: Sandbox, pattern: string): Promise<boolean> {
  return (await box.exec('pgrep', ['-f', pattern])).code === 0;
}

test('a child that hides all its traces and outlives its parent still keeps the lock', async (ctx) => {
  if (which('python3') === null) ctx.skip('needs python3');
  const box = new Sandbox();
  const script = box.write('hidden.py', HIDDEN('2.123'));
  expect((await box.runlock(['run', '--', 'python3', script], { detached: true })).code).toBe(0);
  expect(await runs(box, 'sleep 2.123')).toBe(false);
});

test('a time limit ends a child that hides all its traces too', async (ctx) => {
  if (which('python3') === null) ctx.skip('needs python3');
  const box = new Sandbox();
  const script = box.write('hidden.py', HIDDEN('77.123'));
  const args = [
    'run',
    '--timeout',
    '2s',
    '--kill-after',
    '1s',
    '--',
    'sh',
    '-c',
    `python3 ${script}; sleep 78`,
  ];
  expect((await box.runlock(args, { detached: true })).code).toBe(124);
  expect(await runs(box, 'sleep 77.123')).toBe(false);
});

test('a time limit does not end what the script around the run has left behind', async () => {
  const box = new Sandbox();
  const script = box.startScript(
    'bash',
    `( sleep 79.123 & ) ; sleep 79.456 & runlock run --timeout 1s --kill-after 1s -- sleep 80; echo "code $?"; read -r line`,
  );
  await script.says('code 124');
  expect(await runs(box, 'sleep 79.123')).toBe(true);
  expect(await runs(box, 'sleep 79.456')).toBe(true);
});

test.each(['100', '64', '32'])(
  'with %s open files at most a command runs, tied to the lock',
  async (limit) => {
    const box = new Sandbox();
    const command = `ulimit -n ${limit}; runlock run -- sh -c 'ls -l /proc/self/fd'; echo "code $?"`;
    const { stdout } = await box.exec('bash', ['-c', command]);
    expect(stdout).toContain('code 0');
    expect(stdout).toMatch(/live\/1/);
  },
);

test('a command in a directory that was deleted may ask and hand in', async () => {
  const box = new Sandbox();
  const job = `mkdir x; cd x; rmdir ../x; runlock hb; echo "hb $?"; echo '{"n":1}' | runlock finish -; echo "finish $?"`;
  const { stdout, code } = await box.runlock(['run', '--', 'sh', '-c', job]);
  expect(code).toBe(0);
  expect(stdout).toBe('hb 0\nfinish 0\n');
  expect(box.read('records', '1.json')).toContain('"result": {"n":1}');
});

test('a command that has dropped its privileges may ask', async (ctx) => {
  if (!isRoot() || which('setpriv') === null) ctx.skip('needs root and setpriv');
  const box = new Sandbox();
  const drop = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups'];
  await box.exec('chmod', ['755', box.dir]);
  const { stdout } = await box.runlock(['run', '--', ...drop, 'sh', '-c', 'runlock hb; echo "hb $?"']);
  expect(stdout).toBe('hb 0\n');
});

test('a run past its time limit that starts itself again is told where it is, and is not ended by itself', async () => {
  const box = new Sandbox();
  const job = `read -r line; runlock run -- echo inner; echo "inner $?"; read -r line`;
  const run = box.start('runlock', ['run', '--timeout', '2s', '--', 'sh', '-c', `echo up; ${job}`], {
    detached: true,
  });
  await run.says('up');
  const lock = await box.status();
  process.kill(Number(lock.pid), 'SIGKILL');
  await new Promise((resolve) =>
    setTimeout(resolve, Math.max(0, Date.parse(String(lock.deadline)) - Date.now() + 10)),
  );
  run.tell('go on');
  await run.says('inner 3');
});

test('a watchdog that can not be set up starts no command, leaves the item as it was, and frees the lock', async () => {
  const box = new Sandbox();
  expect((await box.runlock(['run', 'true'])).code).toBe(0);
  box.write('runs/live/2.hb/in-the-way', '');
  const args = ['run', '--item', 'ep-1', '--watchdog', '10s', '--', 'echo', 'began'];
  const { code, stdout, stderr } = await box.runlock(args);
  expect([code, stdout]).toEqual([125, '']);
  expect(stderr).toContain('2.hb');
  const { state, marker } = await box.status();
  expect([state, marker]).toEqual(['free', []]);
  expect(box.history().at(-1)).toMatchObject({ event: 'ended', outcome: 'error', exitCode: 125 });
});
