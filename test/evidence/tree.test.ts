import { closeSync, mkdtempSync, openSync, rmSync, symlinkSync, unlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, type TestContext, test } from 'vitest';
import { startOf } from '../../src/evidence/process.ts';
import { ownSession, type TreeRef, treeOf } from '../../src/evidence/tree.ts';
import { becomeZombie, endAll, has, LINUX, start, ZOMBIE } from './fixtures/processes.ts';

const LIVE_INDEX = 97;
let dir: string;
let livePath: string;
const strays: number[] = [];

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'runlock-tree-'));
  livePath = join(dir, '17');
});
afterEach(async () => {
  await endAll();
  for (const pid of strays.splice(0)) kill(pid);
  rmSync(dir, { recursive: true });
});

/** Starts a command as `run` does, with its environment and, if wanted, its live file; the text prints pids. */
async function command(text: string, options: { live?: boolean } = {}) {
  const live = options.live === true ? `exec ${LIVE_INDEX}>>"$LIVE"; ` : '';
  // Before its exec a child still shows the environment of the shell.
  const settled =
    'settled() { until grep -qx sleep /proc/$1/comm; do :; done; echo $*; }; export -f settled; ';
  const env = { ...process.env, ...IDENTITY(dir), LIVE: livePath };
  const started = await start('bash', ['-c', `${settled}${live}${text}`], { env });
  const pids = started.line.split(' ').map(Number);
  strays.push(...pids.filter((pid) => pid !== started.pid));
  return {
    ...started,
    pids,
    ref: refOf({ command: { pid: started.pid, started: await startOf(started.pid) } }),
  };
}

const IDENTITY = (lock: string) => ({ RUNLOCK_LOCK: lock, RUNLOCK_RUN: '17' });

function refOf(ref: Partial<TreeRef>): TreeRef {
  return { lock: dir, run: 17, livePath, liveIndex: LIVE_INDEX, command: null, ...ref };
}

async function pidsOf(ref: TreeRef): Promise<number[]> {
  return (await treeOf(ref)).map(({ pid }) => pid).sort((a, b) => a - b);
}

test('the command and all below it are the tree, with pid, start, session and name', async (ctx) => {
  need(ctx);
  const { ref, pid, pids } = await command('sleep 300 & settled $!; read x');
  const members = await treeOf(ref);
  expect(members).toHaveLength(2);
  expect(members).toContainEqual({ ...ref.command, session: ownSession(), name: 'bash -c …' });
  expect(members.map((member) => member.pid).sort()).toEqual([pid, ...pids].sort());
});

test('who lost its parent is known by its environment', async (ctx) => {
  need(ctx);
  const { ref, end, pids } = await command('sleep 300 <&- & settled $!; read x');
  await end();
  expect(await pidsOf({ ...ref, liveIndex: null })).toEqual(pids);
  expect(await pidsOf({ ...ref, liveIndex: null, command: null })).toEqual(pids);
});

test('who lost its parent and its environment is known by the live file', async (ctx) => {
  need(ctx);
  const { ref, end, pids } = await command('env -i sleep 300 & settled $!; read x', { live: true });
  await end();
  expect(await pidsOf(ref)).toEqual(pids);
  unlinkSync(livePath);
  expect(await pidsOf(ref)).toEqual(pids);
  expect(await pidsOf({ ...ref, liveIndex: LIVE_INDEX + 1 })).toEqual([]);
});

test('the live file is known behind a symbolic link too', async (ctx) => {
  need(ctx);
  const { ref, end, pids } = await command('env -i sleep 300 & settled $!; read x', { live: true });
  await end();
  symlinkSync(dir, `${dir}.link`);
  expect(await pidsOf({ ...ref, livePath: join(`${dir}.link`, '17') })).toEqual(pids);
  unlinkSync(`${dir}.link`);
});

test('who has neither is known by its parents, through a member that has', async (ctx) => {
  need(ctx);
  const { ref, pid, end, pids } = await command(
    `bash -c 'env -i sleep 300 & settled $! $$; read x; exec sleep 300' & wait`,
  );
  expect(await pidsOf(ref)).toEqual([pid, ...pids].sort((a, b) => a - b));
  await end();
  expect(await pidsOf(ref)).toEqual([...pids].sort((a, b) => a - b));
});

test('a daemon is of the tree, and its session shows that it left', async (ctx) => {
  need(ctx);
  const { ref, end } = await command("setsid bash -c 'echo $$; exec sleep 300' & wait");
  await end();
  const [daemon, ...others] = await treeOf(ref);
  expect(others).toEqual([]);
  expect(daemon?.session).toBe(daemon?.pid);
});

test('another run, another lock and half an entry are not this one', async (ctx) => {
  need(ctx);
  const { ref, end } = await command('sleep 300 & settled $!; read x');
  await end();
  for (const other of [
    { run: 1 },
    { run: 7 },
    { run: 170 },
    { lock: `${dir}x` },
    { lock: dir.slice(0, -1) },
    { lock: dir.slice(1) },
  ])
    expect(await pidsOf({ ...ref, ...other })).toEqual([]);
});

test("a stranger with the command's old number is not the command", async (ctx) => {
  need(ctx);
  const { pid } = await start('bash', ['-c', 'sleep 300 & echo $!; read x'], { detached: true });
  expect(await pidsOf(refOf({ command: { pid, started: '1' } }))).toEqual([]);
});

test('neither ourselves nor who stands above us is of the tree, nor a zombie', async (ctx) => {
  need(ctx);
  expect(
    await pidsOf(refOf({ command: { pid: process.ppid, started: await startOf(process.ppid) } })),
  ).not.toContain(process.pid);
  const live = openSync(livePath, 'a');
  expect(await pidsOf(refOf({ liveIndex: live }))).not.toContain(process.pid);
  closeSync(live);
  const { ref, pid, pids } = await command(ZOMBIE);
  await becomeZombie(pids[0] ?? 0);
  expect(await pidsOf(ref)).toEqual([pid]);
});

test('what we started for ourselves is not of the tree, though we have the live file open', async (ctx) => {
  need(ctx);
  const live = openSync(livePath, 'a');
  await start('sh', ['-c', 'echo ready; read x']);
  expect(await pidsOf(refOf({ liveIndex: live }))).toEqual([]);
  closeSync(live);
});

test('a run with no process left has an empty tree', async () => {
  expect(await treeOf(refOf({}))).toEqual([]);
});

function kill(pid: number): void {
  try {
    if (pid > 0) process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended by itself.
  }
}

function need(ctx: TestContext): void {
  if (!LINUX) ctx.skip('needs /proc');
  if (!has('setsid', '--version')) ctx.skip('needs setsid');
}
