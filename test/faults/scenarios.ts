import { Sandbox } from '../cli/harness.ts';
import type { CommandLine } from './command.ts';
import { hasRecord, inHistory, ledgerIs, marked, numberIsKept } from './durable.ts';

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
  /** What is missing on the disk of what the command promises once it has answered with success. */
  readonly keeps: (box: Sandbox, stdout: string) => string[];
  /** What is wrong with the disk whatever the command has come to. */
  readonly always?: (box: Sandbox) => string[];
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

const FAILS = { code: 0, failure: [0, 1], holds: false, keeps: () => [] };
const TAKES = {
  ...FAILS,
  keeps: (box: Sandbox, stdout: string) => [
    ...numberIsKept(box, Number.parseInt(stdout, 10)),
    ...marked(box, 'ep-1'),
  ],
};
const OLD_LEDGER = '{\n  "published": {}\n}\n';
const NEW_LEDGER = '{\n  "published": {\n    "ep-1": {}\n  }\n}\n';
const ACQUIRE = ['acquire', 'ep-1', '--no-pid', '--token', TOKEN];

export const SCENARIOS: readonly Scenario[] = [
  {
    ...TAKES,
    name: 'acquire, in a directory that is not there yet',
    args: ACQUIRE,
    prepare: async () => new Sandbox(),
  },
  { ...TAKES, name: 'acquire, over a stale lock', args: ACQUIRE, prepare: stale },
  {
    ...TAKES,
    name: 'acquire, with an item from a list',
    args: ['acquire', '--from', 'list', '--no-pid', '--token', TOKEN],
    prepare: async () => {
      const box = await stale();
      box.write('list', 'ep-0\nep-1\n');
      return box;
    },
  },
  {
    ...TAKES,
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
    keeps: (box) => hasRecord(box, '7440123456789012345'),
  },
  {
    ...FAILS,
    name: 'release',
    args: ['release', '--token', TOKEN],
    prepare: held,
    holds: true,
    keeps: (box) => inHistory(box, '"outcome":"released"'),
  },
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
    keeps: (box) => inHistory(box, '"event":"settled"'),
  },
  {
    ...FAILS,
    name: 'run, over a stale lock',
    args: ['run', '--item', 'ep-1', '--', 'true'],
    failure: [0, 125],
    prepare: stale,
    keeps: (box) => hasRecord(box, '"outcome"'),
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

/** Changes no lock: its own tests see to kills and errors. */
export const LEDGER: Scenario = {
  ...FAILS,
  name: 'ledger add',
  args: ['ledger', 'add', 'ledger.json#published', 'ep-1'],
  prepare: async () => {
    const box = await empty();
    box.write('ledger.json', OLD_LEDGER);
    return box;
  },
  keeps: (box) => ledgerIs(box, NEW_LEDGER),
  always: (box) => ledgerIs(box, OLD_LEDGER, NEW_LEDGER),
};

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
