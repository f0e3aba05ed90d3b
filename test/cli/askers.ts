import path from 'node:path';
import { expect } from 'vitest';
import { type Result, Sandbox } from './harness.ts';
import { lines } from './jobs.ts';

/** The history file of this month, in its lock's directory. */
export const MONTH = path.join('history', `${new Date().toISOString().slice(0, 7)}.jsonl`);

/** Everything that one may ask of a lock; nobody who holds it by token `a` may be told anything wrong. */
export const COMMANDS: readonly (readonly string[])[] = [
  ['status'],
  ['status', '--all'],
  ['acquire', 'next', '--no-pid', '--token', 'b'],
  ['hb', '--token', 'a'],
  ['finish', '-', '--token', 'a'],
  ['release', '--token', 'a'],
  ['run', 'echo', 'began'],
  ['settle', 'ep-0'],
  ['pick'],
  ['history'],
];

/** A lock with a past, held by token `a`. */
export async function held(): Promise<Sandbox> {
  const box = new Sandbox();
  await box.runlock(['run', '--item', 'ep-0', 'false']);
  await box.runlock(['run', '--name', 'video', 'true']);
  expect((await box.runlock(['acquire', 'ep-1', '--no-pid', '--token', 'a'])).code).toBe(0);
  return box;
}

/** Runs a command that has 20 s: one that hangs is killed, and that is its code then. */
export async function ask(box: Sandbox, args: readonly string[]): Promise<Result> {
  const running = box.start('runlock', args, { input: args[0] === 'pick' ? 'ep-2\n' : '{"a":1}' });
  const timer = setTimeout(() => running.kill(), 20_000);
  const result = await running.result;
  clearTimeout(timer);
  expect([args.join(' '), result.signal]).toEqual([args.join(' '), null]);
  expect(result.stderr).not.toMatch(/unexpected failure|^\s+at /m);
  return result;
}

/** An error with the path on one line; no job begins. */
export async function expectError(box: Sandbox, args: readonly string[], file: string): Promise<void> {
  const { code, stdout, stderr } = await ask(box, args);
  expect([args.join(' '), code, stdout]).toEqual([args.join(' '), args[0] === 'run' ? 125 : 1, '']);
  expect(lines(stderr)).toHaveLength(1);
  expect(stderr).toContain(file);
}
