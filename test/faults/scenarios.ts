import { Sandbox } from '../cli/harness.ts';
import type { CommandLine } from './command.ts';

/** A command that changes state, and what stood there before. */
export interface Scenario extends CommandLine {
  readonly name: string;
  /** What it answers where nothing fails. */
  readonly code: number;
  /** What it may answer where the disk fails. */
  readonly failure: readonly number[];
  /** The lock is held before it, and is held still if it fails. */
  readonly holds: boolean;
  readonly prepare: () => Promise<Sandbox>;
}

const TOKEN = 'token-of-the-test';

async function empty(): Promise<Sandbox> {
  const box = new Sandbox();
  box.makeRuns();
  return box;
}

/** A lock that its holder, a process that lives, has with an item. */
async function held(): Promise<Sandbox> {
  const box = new Sandbox();
  const holder = box.start('sleep', ['600'], { detached: true });
  await must(box, ['acquire', 'ep-1', '--pid', String(holder.pid), '--token', TOKEN]);
  return box;
}

/** The lock of a dead holder with an item. */
async function stale(): Promise<Sandbox> {
  const box = new Sandbox();
  const dead = box.start('sleep', ['600'], { detached: true });
  await must(box, ['acquire', 'ep-0', '--pid', String(dead.pid), '--token', 'token-of-the-dead']);
  dead.kill();
  await dead.ended;
  return box;
}

async function must(box: Sandbox, args: readonly string[]): Promise<void> {
  const { code, stderr } = await box.runlock(args);
  if (code !== 0) throw new Error(stderr);
}

const FAILS = { code: 0, failure: [0, 1], holds: false };
const ACQUIRE = ['acquire', 'ep-1', '--no-pid', '--token', TOKEN];

export const SCENARIOS: readonly Scenario[] = [
  {
    ...FAILS,
    name: 'acquire, in a directory that is not there yet',
    args: ACQUIRE,
    prepare: async () => new Sandbox(),
  },
  { ...FAILS, name: 'acquire, over a stale lock', args: ACQUIRE, prepare: stale },
  {
    ...FAILS,
    name: 'acquire, with an item from a list',
    args: ['acquire', '--from', 'list', '--no-pid', '--token', TOKEN],
    prepare: async () => {
      const box = await stale();
      box.write('list', 'ep-0\nep-1\n');
      return box;
    },
  },
  {
    ...FAILS,
    name: 'acquire, asking a gate',
    args: [...ACQUIRE, '--gate', 'item'],
    prepare: stale,
  },
  { ...FAILS, name: 'hb', args: ['hb', '--token', TOKEN], prepare: held, holds: true },
  {
    ...FAILS,
    name: 'finish, with a result',
    args: ['finish', '--token', TOKEN, '-'],
    input: '{"id":7440123456789012345}',
    prepare: held,
    holds: true,
  },
  { ...FAILS, name: 'release', args: ['release', '--token', TOKEN], prepare: held, holds: true },
  {
    ...FAILS,
    name: 'settle',
    args: ['settle', 'ep-0', '--done'],
    prepare: async () => {
      const box = await stale();
      await must(box, ['acquire', 'ep-1', '--no-pid', '--token', TOKEN]);
      await must(box, ['release', '--token', TOKEN]);
      return box;
    },
  },
  {
    ...FAILS,
    name: 'run, over a stale lock',
    args: ['run', '--item', 'ep-1', '--', 'true'],
    failure: [0, 125],
    prepare: stale,
  },
  {
    ...FAILS,
    name: 'finish, inside a run',
    inside: ['run', '--item', 'ep-1'],
    args: ['finish', '-'],
    input: '{"id":7440123456789012345}',
    prepare: empty,
  },
];

/** Commands that look before they do anything, and what stood there. */
export const LOOKS: readonly Scenario[] = [
  { ...FAILS, name: 'status of a free lock', args: ['status'], prepare: empty },
  { ...FAILS, name: 'status of a held lock', args: ['status'], code: 3, prepare: held },
  { ...FAILS, name: 'status of a stale lock', args: ['status'], prepare: stale },
  { ...FAILS, name: 'acquire of a held lock', args: ACQUIRE.with(-1, 'another'), code: 3, prepare: held },
  { ...FAILS, name: 'acquire of a stale lock', args: ACQUIRE, prepare: stale },
  { ...FAILS, name: 'hb', args: ['hb', '--token', TOKEN], prepare: held },
  { ...FAILS, name: 'finish', args: ['finish', '--token', TOKEN], prepare: held },
  { ...FAILS, name: 'release', args: ['release', '--token', TOKEN], prepare: held },
];
