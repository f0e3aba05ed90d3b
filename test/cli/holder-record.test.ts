import fs from 'node:fs';
import { expect, test } from 'vitest';
import { MINUTE, Sandbox } from './harness.ts';
import {
  bystander,
  deadPid,
  look,
  needs,
  needsNamespaces,
  needsRoot,
  startOf,
  thisMachine,
  tryAcquire,
} from './processes.ts';

// What a lock file says of its holder, against what the system says.

const AGED = 46 * MINUTE;

test('a number that another process has now does not hold', async () => {
  const box = new Sandbox();
  const pid = await bystander(box);
  box.putLock({ pid, job: 'x.json', run: 4, ...thisMachine(), pidStarted: '1' });
  const { state, reason } = await look(box);
  expect([state, reason]).toEqual(['stale', expect.stringContaining('in use by another process')]);
  expect(await tryAcquire(box)).toBe(0);
});

test('the survivors of another process that has the number now do not hold either', async () => {
  const box = new Sandbox();
  const leader = box.start('sh', ['-c', 'sleep 1000 & echo up; wait'], { detached: true });
  await leader.says('up');
  box.putLock({ pid: leader.pid, run: 4, ...thisMachine(), pidStarted: '1' });
  expect((await look(box)).state).toBe('stale');
});

test('a living number without a start time holds until the hold ends', async () => {
  const box = new Sandbox();
  const file = box.putLock({ pid: await bystander(box), job: 'x.json' });
  expect(await tryAcquire(box)).toBe(3);
  box.age(file, AGED);
  expect(await tryAcquire(box)).toBe(0);
});

test('a number that the system has given out anew does not hold', async (ctx) => {
  needsRoot(ctx);
  needsNamespaces(ctx);
  const box = new Sandbox();
  const holder = box.write('holder.sh', 'runlock acquire x; kill -9 $$\n');
  const { stdout } = await box.exec('unshare', [
    '--pid',
    '--fork',
    '--mount-proc',
    'bash',
    '-c',
    `bash '${holder}' & wait $!; old=$!
     echo $((old - 1)) >/proc/sys/kernel/ns_last_pid; sleep 1000 & new=$!
     [ $old = $new ] && echo same; runlock status; echo "status $?"; kill $new`,
  ]);
  expect(stdout).toContain('same');
  expect(stdout).toContain('in use by another process');
  expect(stdout).toContain('status 0');
});

test('a number that is a thread of something else does not hold', async () => {
  const box = new Sandbox();
  const other = box.start('node', ['-e', 'setInterval(() => {}, 1e6); console.log("up")'], {
    detached: true,
  });
  await other.says('up');
  const thread = Number(fs.readdirSync(`/proc/${other.pid}/task`).find((id) => Number(id) !== other.pid));
  box.putLock({ pid: thread, job: 'x.json' });
  expect(await tryAcquire(box)).toBe(0);
});

test.for(['with', 'without'])('a zombie %s its start time on record does not hold', async (how, ctx) => {
  needs(ctx, 'perl');
  const box = new Sandbox();
  const parent = box.start(
    'perl',
    ['-e', '$| = 1; my $p = fork // die; exit 0 if !$p; print "$p\\n"; <STDIN>;'],
    { detached: true },
  );
  const pid = Number(await parent.says('\n'));
  while (!/\) Z /.test(fs.readFileSync(`/proc/${pid}/stat`, 'utf8')));
  box.putLock({
    pid,
    job: 'x.json',
    ...(how === 'with' ? { ...thisMachine(), pidStarted: startOf(pid) } : {}),
  });
  expect((await look(box)).state).toBe('stale');
  expect(await tryAcquire(box)).toBe(0);
});

test('a holder that ended and is not reaped does not hold', async (ctx) => {
  needs(ctx, 'perl');
  const box = new Sandbox();
  const script = box.write('job.sh', 'runlock acquire x; echo taken; read -r line\n');
  const parent = box.start(
    'perl',
    ['-e', '$| = 1; my $p = fork // die; exec "bash", $ARGV[0] if !$p; sleep 1000;', script],
    { detached: true },
  );
  await parent.says('taken');
  const { pid } = await look(box);
  expect((await look(box)).state).toBe('held');
  process.kill(pid ?? 0, 'SIGKILL');
  const { state, reason } = await look(box);
  expect([state, reason]).toEqual(['stale', expect.stringContaining('has ended')]);
  expect(parent.child.exitCode).toBeNull();
});

test('a process whose first thread has ended holds while another of its threads works', async (ctx) => {
  needs(ctx, 'python3');
  if (process.arch !== 'x64' && process.arch !== 'arm64') ctx.skip('needs a known system call number');
  const box = new Sandbox();
  const exit = process.arch === 'x64' ? 60 : 93;
  const code = `import ctypes, os, sys, threading
threading.Thread(target=lambda: (print(os.getpid(), flush=True), sys.stdin.readline(), os._exit(0))).start()
ctypes.CDLL(None).syscall(${exit}, 0)`;
  const threads = box.start('python3', ['-c', code], { detached: true });
  const pid = Number(await threads.says('\n'));
  while (!/\) Z /.test(fs.readFileSync(`/proc/${pid}/stat`, 'utf8')));
  box.putLock({ pid, job: 'x.json', ...thisMachine(), pidStarted: startOf(pid) });
  expect(await tryAcquire(box)).toBe(3);
  threads.tell('end');
  await threads.ended;
  expect(await tryAcquire(box)).toBe(0);
});

const ODD_PIDS = [
  ...[
    '0',
    '-1',
    '-0',
    '""',
    '"1"',
    '"abc"',
    'true',
    'false',
    '[]',
    '[1]',
    '{}',
    '1.5',
    '2147483648',
    '4294967297',
  ],
  ...['1e999', '-1e999', '12345678901234567890', '1e-7', 'NaN', 'null'],
];

test.each(ODD_PIDS)(
  'a lock whose pid is %s holds until it is old, then not, and never breaks the command',
  async (pid) => {
    const box = new Sandbox();
    const file = box.putLock(`{"pid":${pid},"job":"x.json"}`);
    const held = await box.runlock(['status']);
    expect([held.code, held.stderr]).toEqual([3, '']);
    box.age(file, AGED);
    const taken = await box.runlock(['acquire', 'x', '--no-pid', '--token', 'id-1']);
    expect([taken.code, taken.stderr]).toEqual([0, expect.stringMatching(/^runlock: took over .*\n$/)]);
  },
);

test('a lock without a pid holds until it is old', async () => {
  const box = new Sandbox();
  const file = box.putLock({ job: 'x.json' });
  expect(await tryAcquire(box)).toBe(3);
  box.age(file, AGED);
  expect(await tryAcquire(box)).toBe(0);
});

test('the largest number a system can give out, which nobody has, does not hold', async () => {
  const box = new Sandbox();
  box.putLock({ pid: 2 ** 31 - 1 });
  expect(await tryAcquire(box)).toBe(0);
});

const OTHER_BOOT = { ...thisMachine(), bootId: '11111111-2222-3333-4444-555555555555' };
const LONG = 365 * 24 * 60 * MINUTE;
const bootedMs = () => Number(fs.readFileSync('/proc/uptime', 'utf8').split(' ')[0]) * 1000;

test.each([
  ['for a year', LONG],
  ['for ever', null],
])('a lock that holds %s does not outlive a restart of its machine', async (_, holdMs) => {
  const box = new Sandbox();
  box.putLock(
    { pid: process.pid, run: 3, ...OTHER_BOOT, pidStarted: startOf(process.pid), holdMs },
    bootedMs() + MINUTE,
  );
  const { state, reason } = await look(box);
  expect([state, reason]).toEqual(['stale', 'the machine restarted']);
  expect(await tryAcquire(box)).toBe(0);
});

test('a run does not outlive a restart of its machine, whatever lives under its numbers', async () => {
  const box = new Sandbox();
  const pid = await bystander(box);
  const run = {
    pid,
    pidStarted: startOf(pid),
    commandPid: pid,
    commandPidStarted: startOf(pid),
    live: true,
    run: 3,
  };
  box.putLock({ ...OTHER_BOOT, ...run, command: ['x'], holdMs: LONG }, bootedMs() + MINUTE);
  expect(await tryAcquire(box)).toBe(0);
});

test('a lock of another boot that has beaten since this one is of another machine of that name: it holds until it is old', async () => {
  const box = new Sandbox();
  const file = box.putLock({ pid: deadPid(), run: 3, ...OTHER_BOOT, pidStarted: '1', holdMs: MINUTE }, 1_000);
  const { state, reason } = await look(box);
  expect([state, reason]).toEqual(['held', expect.stringContaining('another machine of this name')]);
  expect(await tryAcquire(box)).toBe(3);
  box.age(file, 2 * MINUTE);
  expect(await tryAcquire(box)).toBe(0);
});

test.each([
  ['host', { host: 'elsewhere', bootId: OTHER_BOOT.bootId }],
  ['host that names no boot', { host: 'elsewhere', bootId: null }],
  ['platform', { platform: 'win32', bootId: null, pidNamespace: null }],
  ['container', { pidNamespace: 'pid:[1]' }],
])('a lock of another %s holds until it is old, though its number is dead here', async (_, place) => {
  const box = new Sandbox();
  const lock = { pid: deadPid(), run: 3, ...thisMachine(), ...place, pidStarted: '1' };
  const file = box.putLock(lock);
  expect(await tryAcquire(box)).toBe(3);
  box.age(file, 44 * MINUTE);
  expect(await tryAcquire(box)).toBe(3);
  box.age(file, AGED);
  expect(await tryAcquire(box)).toBe(0);
});

test('another host whose heartbeat is older than this boot still holds until its hold ends', async () => {
  const box = new Sandbox();
  box.putLock(
    { pid: deadPid(), run: 3, ...OTHER_BOOT, host: 'elsewhere', pidStarted: '1', holdMs: LONG },
    bootedMs() + MINUTE,
  );
  expect(await tryAcquire(box)).toBe(3);
});

test('the same boot is the same machine, whatever the host is called now', async (ctx) => {
  needsRoot(ctx);
  needs(ctx, 'unshare', 'hostname');
  const box = new Sandbox();
  const renamed = (command: string) =>
    box.exec('unshare', ['--uts', 'sh', '-c', `hostname elsewhere; ${command}`]);
  const pid = await bystander(box);
  expect((await box.runlock(['acquire', 'x', '--pid', String(pid)])).code).toBe(0);
  expect((await renamed('runlock status')).code).toBe(3);
  process.kill(pid, 'SIGKILL');
  expect((await renamed('runlock status')).code).toBe(0);
});
