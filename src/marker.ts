import { RunlockError } from './errors.ts';
import { sameText } from './names.ts';
import type { LockRecord } from './record.ts';

/** One entry of `current.json`: an item in progress, or left in an unknown state. One an item and run. */
export interface MarkerItem {
  readonly item: string;
  readonly run: number;
  readonly job: string | null;
  readonly pid: number | null;
  readonly state: 'running' | 'unknown';
  /** Since when it is in this state, ISO 8601 UTC. */
  readonly since: string;
  /** When its run was last known to work, ISO 8601 UTC. */
  readonly lastKnown: string;
}

export type MarkerSight =
  | { readonly items: readonly MarkerItem[] }
  /** The file can't be read as a marker: nobody knows which items it named. */
  | { readonly problem: string };

export type MarkerEdit = (items: readonly MarkerItem[]) => readonly MarkerItem[];

/** One item however its name is composed: a queue on macOS spells `é` in two characters. */
function isSame(one: string, other: string | null): boolean {
  return other !== null && sameText(one, other);
}

/** The entries of an item. */
export function entriesOf(items: readonly MarkerItem[], item: string | null): MarkerItem[] {
  return items.filter((entry) => isSame(entry.item, item));
}

/** What a mark is made from. */
export type Marked = Pick<LockRecord, 'item' | 'run' | 'job' | 'pid'>;

/** Marks the item of a run that begins; none without an item. */
export function markRunning(record: Marked, at: string): MarkerEdit {
  const { item, run, job, pid } = record;
  if (item === null || run === null) return (items) => items;
  return (items) => [
    ...items.filter((entry) => entry.run !== run || entry.item !== item),
    { item, run, job, pid, state: 'running', since: at, lastKnown: at },
  ];
}

/**
 * Leaves the item of an ended run in an unknown state. What older runs left of the same item is covered by this
 * entry, the later one; without that a job that fails every minute would fill the file.
 */
export function markUnknown(record: Marked, lastKnown: string): MarkerEdit {
  const { item, run, job, pid } = record;
  if (item === null || run === null) return (items) => items;
  return (items) => [
    ...items.filter((entry) => !isSame(entry.item, item) || entry.run > run),
    { item, run, job, pid, state: 'unknown', since: lastKnown, lastKnown },
  ];
}

/** The same for a run that is found dead: only if its mark is still there. */
export function turnUnknown(record: Marked, lastKnown: string): MarkerEdit {
  const { item, run } = record;
  return (items) =>
    items.some((entry) => entry.item === item && entry.run === run)
      ? markUnknown(record, lastKnown)(items)
      : items;
}

/**
 * The outcome of the item is known: no mark of it is needed any more.
 *
 * @param upTo the run that tells; what a later run is doing with the item is not for it to say
 */
export function settleItem(item: string | null, upTo = Infinity): MarkerEdit {
  return (items) => items.filter((entry) => !isSame(entry.item, item) || entry.run > upTo);
}

/** Takes back the mark of a run that began nothing; what earlier runs left stays. */
export function unmark(run: number): MarkerEdit {
  return (items) => items.filter((entry) => entry.run !== run);
}

/** How long marks count, ms; `unknownForMs` null: until settled. */
export interface MarkerBounds {
  readonly freshMs: number;
  readonly unknownForMs: number | null;
}

/** Until when an entry counts, epoch ms; Infinity while its run holds the lock or until it is settled. */
export function countsUntil(entry: MarkerItem, bounds: MarkerBounds, holder: Holder | null): number {
  if (entry.state === 'running' && holder?.held === true && holder.run === entry.run) return Infinity;
  const bound = entry.state === 'running' ? bounds.freshMs : bounds.unknownForMs;
  if (bound === null) return Infinity;
  const beat = holder?.run === entry.run ? holder.heartbeatAt : 0;
  return Math.max(Date.parse(entry.since), Date.parse(entry.lastKnown), beat) + bound;
}

/** Who has the lock now, as far as a mark is concerned. */
export interface Holder {
  readonly run: number | null;
  readonly held: boolean;
  readonly heartbeatAt: number;
}

/** Whether an entry still counts. Exactly at its bound it does. */
export function counts(entry: MarkerItem, bounds: MarkerBounds, holder: Holder | null, now: number): boolean {
  return now <= countsUntil(entry, bounds, holder);
}

/** While nobody knows what is marked, nothing may be picked, settled or let through a gate. */
export function unreadableMarker(problem: string, where: string): RunlockError {
  const path = `${where}/current.json`;
  return new RunlockError(
    'corrupt',
    `the marker ${path} can't be read (${problem}), so nobody knows what is in progress: the next acquire rebuilds it from the history`,
    { path },
  );
}

/**
 * Reads the content of `current.json`. Fields that are not known are dropped, an entry that is none spoils it.
 *
 * @throws RunlockError `corrupt` for a version that is not known
 */
export function parseMarker(text: string): MarkerSight {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    return { problem: text.trim() === '' ? 'it is empty' : 'it is not JSON' };
  }
  if (typeof json === 'object' && json !== null && 'version' in json && json.version !== 1) {
    throw new RunlockError(
      'corrupt',
      `the marker current.json is of a version that this runlock does not know: use the one that wrote it`,
    );
  }
  const list: unknown = typeof json === 'object' && json !== null && 'items' in json ? json.items : undefined;
  if (!Array.isArray(list)) return { problem: 'expected an object with a list "items"' };
  const items: MarkerItem[] = [];
  for (const value of list) {
    const entry = parseItem(value);
    if (entry === null)
      return { problem: `entry ${items.length + 1} of "items" is not an item with its run, state and times` };
    items.push(entry);
  }
  return { items };
}

export function serializeMarker(items: readonly MarkerItem[]): string {
  return `${JSON.stringify({ version: 1, items }, null, 2)}\n`;
}

function parseItem(value: unknown): MarkerItem | null {
  if (typeof value !== 'object' || value === null) return null;
  const { item, run, job, pid, state, since, lastKnown } = value as Record<string, unknown>;
  if (typeof item !== 'string' || typeof run !== 'number' || !Number.isSafeInteger(run)) return null;
  if (state !== 'running' && state !== 'unknown') return null;
  const times = [since, lastKnown ?? since];
  if (!times.every((time): time is string => typeof time === 'string' && !Number.isNaN(Date.parse(time))))
    return null;
  return {
    item,
    run,
    job: typeof job === 'string' ? job : null,
    pid: typeof pid === 'number' ? pid : null,
    state,
    since: times[0] ?? '',
    lastKnown: times[1] ?? '',
  };
}
