import { readdirSync } from 'node:fs';
import { afterEach, expect, test } from 'vitest';
import { sightProcess, startOf, validPid } from '../../src/evidence/process.ts';
import { becomeZombie, endAll, has, LINUX, ROOT, start, ZOMBIE } from './fixtures/processes.ts';

afterEach(endAll);

const SELF = { pid: process.pid, started: await startOf(process.pid) };

test.each([0, -1, '', '1', true, [], {}, 1.5, Number.NaN, 2 ** 31, 2 ** 32 + 1, null, undefined])(
  'a pid that means something else to the system is none: %j',
  async (pid) => {
    expect(validPid(pid)).toBe(false);
    expect(await sightProcess({ pid: pid as number, started: null })).toBe('unsure');
    expect(await startOf(pid as number)).toBeNull();
  },
);

test.each([1, 4121, 2 ** 31 - 1])('%d may be a pid', (pid) => {
  expect(validPid(pid)).toBe(true);
});

test('a living process with its own start is alive', async () => {
  if (LINUX) expect(SELF.started).toMatch(/^\d+$/);
  expect(await sightProcess(SELF)).toBe(process.platform === 'win32' ? 'unsure' : 'alive');
});

test('the same number started at another time is another process', async (ctx) => {
  if (!LINUX) ctx.skip('start times need /proc');
  expect(await sightProcess({ pid: process.pid, started: '1' })).toBe('reused');
});

test('without a start on record nobody can tell, and that is not dead', async () => {
  expect(await sightProcess({ pid: process.pid, started: null })).toBe('unsure');
});

test('a process that has ended and was reaped is gone', async () => {
  const { pid, end } = await start('sh', ['-c', 'echo ready; read x']);
  const started = await startOf(pid);
  await end();
  expect(await sightProcess({ pid, started })).toBe('gone');
  expect(await sightProcess({ pid, started: null })).toBe('gone');
});

test('a number never given out is gone', async () => {
  expect(await sightProcess({ pid: 2 ** 31 - 1, started: '5' })).toBe('gone');
});

test('a zombie is one, with and without a start on record', async (ctx) => {
  if (!LINUX) ctx.skip('zombies are told by /proc');
  const parent = await start('bash', ['-c', ZOMBIE]);
  const pid = Number(parent.line);
  await becomeZombie(pid);
  expect(await sightProcess({ pid, started: await startOf(pid) })).toBe('zombie');
  expect(await sightProcess({ pid, started: null })).toBe('zombie');
  expect(await sightProcess({ pid, started: '1' })).toBe('reused');
});

test('a process whose first thread has ended but whose others work is alive', async (ctx) => {
  if (!LINUX || !has('python3', '-c', '0')) ctx.skip('needs /proc and python3');
  const { pid } = await start('python3', [
    '-c',
    'import ctypes, threading, time\n' +
      'threading.Thread(target=time.sleep, args=(60,)).start()\n' +
      'print("ready", flush=True)\n' +
      'ctypes.CDLL(None).pthread_exit(None)',
  ]);
  await becomeZombie(pid);
  expect(await sightProcess({ pid, started: await startOf(pid) })).toBe('alive');
});

test("a thread's number is not a process", async (ctx) => {
  if (!LINUX) ctx.skip('thread ids are told by /proc');
  const thread =
    readdirSync('/proc/self/task')
      .map(Number)
      .find((id) => id !== process.pid) ?? 0;
  expect(await sightProcess({ pid: thread, started: null })).toBe('thread');
  expect(await sightProcess({ pid: thread, started: await startOf(thread) })).toBe('thread');
});

test('a process of another user is alive', async (ctx) => {
  if (!LINUX || !ROOT) ctx.skip('needs root');
  const { pid } = await start('setpriv', ['--reuid=65534', 'sh', '-c', 'echo ready; read x']);
  expect(await sightProcess({ pid, started: await startOf(pid) })).toBe('alive');
});
