import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, type TestContext } from 'vitest';
import { isRoot, type Options, type Running, type Sandbox, which } from './harness.ts';

/** Skips the test, visibly, where a program is not installed. */
export function needs(ctx: TestContext, ...programs: string[]): void {
  const missing = programs.filter((program) => which(program) === null);
  if (missing.length > 0) ctx.skip(`needs ${missing.join(' and ')}`);
}

export function needsRoot(ctx: TestContext): void {
  if (!isRoot()) ctx.skip('needs root');
}

/** Containers, as far as processes see each other. */
export function needsNamespaces(ctx: TestContext): void {
  needs(ctx, 'unshare');
  if (spawnSync('unshare', ['--pid', '--fork', '--mount-proc', 'true']).status !== 0) {
    ctx.skip('needs the right to unshare');
  }
}

/** `unshare` with a pid namespace of its own, which ends with it. */
export const NAMESPACE = ['--pid', '--fork', '--kill-child', '--mount-proc'] as const;

const FAKETIME = [
  '/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1',
  '/usr/lib/aarch64-linux-gnu/faketime/libfaketime.so.1',
].find((file) => fs.existsSync(file));

/**
 * An environment whose wall clock is wrong, the monotonic one left alone: `+50m`, a time at which it stands still,
 * or `@` and a file that says so.
 */
export function wrongClock(ctx: TestContext, by: string): NodeJS.ProcessEnv {
  if (FAKETIME === undefined) return ctx.skip('needs faketime');
  const clock: NodeJS.ProcessEnv = by.startsWith('@')
    ? { FAKETIME_TIMESTAMP_FILE: by.slice(1) }
    : { FAKETIME: by };
  return { LD_PRELOAD: FAKETIME, DONT_FAKE_MONOTONIC: '1', FAKETIME_NO_CACHE: '1', TZ: 'UTC', ...clock };
}

/** An environment whose wall clock stands still at a time (epoch ms), in a zone. */
export function clockAt(ctx: TestContext, ms: number, zone = 'UTC'): NodeJS.ProcessEnv {
  return { ...wrongClock(ctx, String(Math.floor(ms / 1000))), FAKETIME_FMT: '%s', TZ: zone };
}

/** What a lock of this machine says about where it was taken. */
export function thisMachine() {
  return {
    platform: process.platform,
    host: os.hostname(),
    bootId: fs.readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim(),
    pidNamespace: fs.readlinkSync('/proc/self/ns/pid'),
  };
}

/** The kernel's own start value of a process. */
export function startOf(pid: number): string {
  const stat = fs.readFileSync(`/proc/${pid}/stat`, 'utf8');
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? '';
}

/** A number that belonged to a process a moment ago. */
export function deadPid(): number {
  return spawnSync('true').pid;
}

/** A living process that has nothing to do with any lock. */
export async function bystander(box: Sandbox): Promise<number> {
  const running = box.start('sh', ['-c', 'echo up; exec sleep 1000'], { detached: true });
  await running.says('up');
  return running.pid;
}

/** Starts a script in a group of its own, by a shell that takes arguments (`busybox sh`). */
export function startShell(
  box: Sandbox,
  shell: readonly string[],
  text: string,
  options: Options = {},
): Running {
  const [program = 'sh', ...args] = shell;
  const file = box.write(`script-${Math.random().toString(36).slice(2)}.sh`, text);
  return box.start(program, [...args, file], { detached: true, ...options });
}

/** A pipe with a name, for those who have no stdin to read from; opened so that nobody waits for anybody. */
export function fifo(box: Sandbox, name: string): { tell(line: string): void } {
  const file = path.join(box.dir, name);
  spawnSync('mkfifo', [file]);
  const descriptor = fs.openSync(file, 'r+');
  return { tell: (line) => fs.writeSync(descriptor, `${line}\n`) };
}

/** Ends with the test also those that leave the group they were started in: they are still in the sandbox. */
export function endStrays(box: Sandbox): void {
  onTestFinished(() => {
    for (const pid of fs.readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
      try {
        if (fs.readlinkSync(`/proc/${pid}/cwd`) === box.dir) process.kill(Number(pid), 'SIGKILL');
      } catch {
        // Gone already, or not to be seen.
      }
    }
  });
}

/** What `status` tells a program. */
export interface Status {
  readonly state: 'free' | 'held' | 'stale';
  readonly run: number | null;
  readonly pid: number | null;
  readonly reason: string | null;
  readonly heartbeatAgeMs: number | null;
  readonly staleInMs: number | null;
  readonly marker: readonly { readonly item: string; readonly state: string; readonly fresh: boolean }[];
}

export async function look(box: Sandbox): Promise<Status> {
  return (await box.status()) as unknown as Status;
}

/** The state of every named lock, by name. */
export async function states(box: Sandbox): Promise<Record<string, unknown>> {
  const { locks } = (await box.status('--all')) as { locks: { name: string; state: string }[] };
  const named = locks.filter(({ name }) => name !== 'default');
  return Object.fromEntries(named.map(({ name, state }) => [name, state]));
}

/** The same state for each of some names. */
export function allOf(names: readonly string[], state: string): Record<string, string> {
  return Object.fromEntries(names.map((name) => [name, state]));
}

/** The script has said `taken` and waits for a line: held while it lives, to be had once it is gone. */
export async function expectHeldUntilGone(box: Sandbox, script: Running): Promise<void> {
  await script.says('taken');
  expect((await box.runlock(['status'])).code).toBe(3);
  script.tell('end');
  await script.ended;
  const { state, reason } = await look(box);
  expect([state, reason]).toEqual(['stale', expect.stringMatching(/ is gone$|has ended$/)]);
}

/** `acquire` on nobody's behalf, so that it says nothing but whether the lock can be had. */
export async function tryAcquire(box: Sandbox, options: Options = {}): Promise<number | null> {
  const token = Math.random().toString(36).slice(2);
  return (await box.runlock(['acquire', 'next', '--no-pid', '--token', token], options)).code;
}

/** Bytes and heartbeat of the lock, to see that nobody has touched it. */
export function lockAsItIs(box: Sandbox): { text: string; mtimeMs: number } {
  const file = box.file('lock.json');
  return { text: fs.readFileSync(file, 'utf8'), mtimeMs: fs.statSync(file).mtimeMs };
}
