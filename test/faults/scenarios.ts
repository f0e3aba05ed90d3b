import fs from 'node:fs';
import type { Running, Sandbox } from '../cli/harness.ts';

/** A command that changes state, and what stood there before. */
export interface Scenario {
  readonly name: string;
  readonly args: (holder: Running) => string[];
  readonly input?: string;
  readonly prepare: (box: Sandbox, holder: Running) => Promise<void>;
}

export const TOKEN = 'token-of-the-test';

/** A process that lives until it is killed: the holder. */
export function startHolder(box: Sandbox): Running {
  return box.start('sleep', ['600'], { detached: true });
}

async function acquire(box: Sandbox, holder: Running, item = 'ep-1'): Promise<void> {
  const { code, stderr } = await box.runlock([
    'acquire',
    item,
    '--pid',
    String(holder.pid),
    '--token',
    TOKEN,
  ]);
  if (code !== 0) throw new Error(stderr);
}

/** Leaves a lock of a dead holder with an item. */
async function leaveStale(box: Sandbox): Promise<void> {
  const dead = startHolder(box);
  const { code, stderr } = await box.runlock([
    'acquire',
    'ep-0',
    '--pid',
    String(dead.pid),
    '--token',
    'token-of-the-dead',
  ]);
  if (code !== 0) throw new Error(stderr);
  dead.kill();
  await dead.ended;
}

export const SCENARIOS: readonly Scenario[] = [
  {
    name: 'acquire, in a directory that is not there yet',
    args: (holder) => ['acquire', 'ep-1', '--pid', String(holder.pid), '--token', TOKEN],
    prepare: async () => {},
  },
  {
    name: 'acquire, over a stale lock',
    args: (holder) => ['acquire', 'ep-1', '--pid', String(holder.pid), '--token', TOKEN],
    prepare: leaveStale,
  },
  {
    name: 'acquire, asking a gate',
    args: (holder) => ['acquire', 'ep-1', '--pid', String(holder.pid), '--token', TOKEN, '--gate', 'item'],
    prepare: leaveStale,
  },
  { name: 'hb', args: () => ['hb', '--token', TOKEN], prepare: acquire },
  {
    name: 'finish, with a result',
    args: () => ['finish', '--token', TOKEN, '-'],
    input: '{"id":7440123456789012345}',
    prepare: acquire,
  },
  { name: 'release', args: () => ['release', '--token', TOKEN], prepare: acquire },
  {
    name: 'settle',
    args: () => ['settle', 'ep-0', '--done'],
    prepare: async (box, holder) => {
      await leaveStale(box);
      await acquire(box, holder, 'ep-1');
    },
  },
  {
    name: 'run, over a stale lock',
    args: () => ['run', '--item', 'ep-1', '--', 'true'],
    prepare: leaveStale,
  },
];

/** What every step must leave behind: a state from which the next command goes on, with nothing lost. */
export async function nextGoesOn(box: Sandbox, holder: Running): Promise<string[]> {
  const wrong: string[] = [];
  const look = await box.runlock(['status']);
  if (look.code !== 0 && look.code !== 3) wrong.push(`status answers ${look.code}: ${look.stderr}`);
  holder.kill();
  await holder.ended;

  const used = usedNumbers(box);
  const next = await box.runlock(['acquire', 'ep-2', '--no-pid', '--token', 'token-of-the-next']);
  if (next.code !== 0) wrong.push(`the next acquire answers ${next.code}: ${next.stderr}`);
  if (Number(next.stdout) <= Math.max(0, ...used))
    wrong.push(`run ${next.stdout.trim()} is given out after ${used.join(', ')}`);
  const end = await box.runlock(['finish', '--token', 'token-of-the-next']);
  if (end.code !== 0) wrong.push(`its finish answers ${end.code}: ${end.stderr}`);

  wrong.push(...historyAgrees(box), ...nothingForgotten(box), ...nothingLeftBehind(box));
  return wrong;
}

interface Event {
  readonly event: string;
  readonly run?: number;
  readonly item?: string;
  readonly outcome?: string;
  readonly settled?: boolean;
}

function events(box: Sandbox): Event[] {
  return box.history() as unknown as Event[];
}

function usedNumbers(box: Sandbox): number[] {
  return events(box).flatMap(({ run }) => (run === undefined || run === null ? [] : [run]));
}

function firstEnds(box: Sandbox): Map<number, Event> {
  const ends = new Map<number, Event>();
  for (const event of events(box)) {
    if (event.event === 'ended' && event.run !== undefined && !ends.has(event.run))
      ends.set(event.run, event);
  }
  return ends;
}

/** Record and history say the same, each run ends once, and no line is torn. */
function historyAgrees(box: Sandbox): string[] {
  const wrong: string[] = [];
  const files = fs.readdirSync(box.file('history')).map((name) => box.read('history', name));
  for (const line of files.flatMap((text) => text.split('\n')).filter((text) => text !== '')) {
    try {
      JSON.parse(line);
    } catch {
      wrong.push(`a torn line: ${line}`);
    }
  }
  const ends = firstEnds(box);
  for (const run of new Set(usedNumbers(box))) {
    const count = events(box).filter((event) => event.event === 'ended' && event.run === run).length;
    if (count !== 1) wrong.push(`run ${run} has ${count} ends`);
  }
  for (const name of fs.readdirSync(box.file('records'))) {
    if (!/^\d+\.json$/.test(name)) continue;
    const record = JSON.parse(box.read('records', name)) as Event;
    if (ends.get(record.run ?? 0)?.outcome !== record.outcome)
      wrong.push(`record ${name} and history disagree`);
  }
  return wrong;
}

/** An item that was begun and not settled is in the marker. */
function nothingForgotten(box: Sandbox): string[] {
  const marked = fs.existsSync(box.file('current.json'))
    ? (JSON.parse(box.read('current.json')) as { items: { item: string }[] }).items.map((entry) => entry.item)
    : [];
  const ends = firstEnds(box);
  const settledByHand = events(box)
    .filter((event) => event.event === 'settled')
    .map((event) => event.item);
  return events(box)
    .filter((event) => event.event === 'taken' && event.item !== undefined && event.item !== null)
    .filter(
      ({ run = 0, item = '' }) =>
        ends.get(run)?.settled !== true && !settledByHand.includes(item) && !marked.includes(item),
    )
    .map(({ item, run }) => `item ${item} of run ${run} is forgotten`);
}

/** After the next run, no temporary, live or lock file of the killed one is left. */
function nothingLeftBehind(box: Sandbox): string[] {
  const names = [
    ...fs.readdirSync(box.runs),
    ...fs.readdirSync(box.file('records')),
    ...fs.readdirSync(box.file('live')),
  ];
  return names
    .filter((name) => name.endsWith('.tmp') || name === 'lock.json')
    .map((name) => `${name} is left behind`)
    .concat(fs.readdirSync(box.file('live')).map((name) => `live/${name} is left behind`));
}
