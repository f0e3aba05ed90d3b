import fs from 'node:fs';
import path from 'node:path';
import { systemClock } from '../../src/clock.ts';
import { systemWitness } from '../../src/evidence/witness.ts';
import { Lock, type Witness } from '../../src/lock.ts';
import { FileStore } from '../../src/stores/file/file-store.ts';
import { candidate, claimOf } from '../stores/fakes.ts';

const HOLD_MS = 45 * 60_000;
const NEXT = { pid: 999_999_999, started: null };
const NEXT_TOKEN = 'token-of-the-next';

/** Whose eyes and clock see what was left, and how much of it must be there. */
export interface Looking {
  readonly witness: Witness;
  readonly now: () => number;
  /** Each run has one end in the history. Where files were removed, readers take the first, and may find none. */
  readonly endsOnce: boolean;
}

const HERE_AND_NOW: Looking = { witness: systemWitness, now: systemClock.now, endsOnce: true };

/**
 * What every fault must leave behind in a state directory: a state from which the next one goes on, and files that
 * tell one story.
 *
 * @returns what is wrong
 */
export async function nextGoesOn(dir: string, looking: Looking = HERE_AND_NOW): Promise<string[]> {
  try {
    return [...(await takesAndFinishes(dir, looking)), ...tellsOneStory(dir, looking)];
  } catch (error) {
    return [`afterwards: ${error}`];
  }
}

/** What `status` would answer. */
export async function isHeld(dir: string): Promise<boolean> {
  const { verdict } = await lockAt(dir, HERE_AND_NOW).lock.look();
  return verdict.state === 'held';
}

function lockAt(dir: string, { witness, now }: Looking): { lock: Lock; store: FileStore } {
  const clock = { ...systemClock, now };
  const store = new FileStore({ base: dir, folder: null, clock, singleMachine: true, notice: () => {} });
  return { lock: new Lock(store, witness, clock), store };
}

async function takesAndFinishes(dir: string, looking: Looking): Promise<string[]> {
  const { now } = looking;
  const { lock, store } = lockAt(dir, looking);
  await lock.look();
  const { torn } = await store.events();
  const wrong = torn.length > 0 ? [`${torn.length} torn lines in the history`] : [];

  // Whoever has it has not beaten for too long.
  const file = path.join(dir, 'lock.json');
  const then = (now() - 2 * HOLD_MS) / 1000;
  if (fs.existsSync(file)) fs.utimesSync(file, then, then);

  const used = fs.existsSync(path.join(dir, 'history')) ? events(dir).flatMap(({ run }) => run ?? []) : [];
  const wanted = candidate(NEXT, { item: 'ep-next', pid: null }, NEXT_TOKEN);
  const acquired = await lock.acquire(wanted);
  if (acquired.outcome !== 'acquired') return [...wrong, `the next acquire answers ${acquired.outcome}`];
  if (acquired.run <= Math.max(0, ...used))
    wrong.push(`run ${acquired.run} is given out after ${used.join(', ')}`);
  const { tokenHash } = acquired.record;
  const { outcome } = await lock.finish(claimOf(NEXT, tokenHash), null, '{"next":true}', 'finished');
  return outcome === 'ok' ? wrong : [...wrong, `its finish answers ${outcome}`];
}

export interface Event {
  readonly event: string;
  readonly run?: number | null;
  readonly item?: string | null;
  readonly outcome?: string;
  readonly settled?: boolean;
  readonly lost?: boolean;
}

export function events(dir: string): Event[] {
  const lines = fs
    .readdirSync(path.join(dir, 'history'))
    .sort()
    .flatMap((name) => fs.readFileSync(path.join(dir, 'history', name), 'utf8').split('\n'));
  return lines.filter((line) => line !== '').map((line) => JSON.parse(line) as Event);
}

function tellsOneStory(dir: string, { endsOnce }: Looking): string[] {
  const all = events(dir);
  const ends = all.filter(({ event }) => event === 'ended');
  return [
    ...numbersAreUnique(all),
    ...(endsOnce ? eachEndsOnce(all, ends) : []),
    ...recordsAgree(dir, ends),
    ...nothingForgotten(dir, all, ends),
    ...nothingLeftBehind(dir),
  ];
}

function numbersAreUnique(all: readonly Event[]): string[] {
  const taken = all.filter(({ event }) => event === 'taken').map(({ run }) => run);
  return new Set(taken).size === taken.length ? [] : [`a number was given to two runs: ${taken}`];
}

function eachEndsOnce(all: readonly Event[], ends: readonly Event[]): string[] {
  const wrong: string[] = [];
  const runs = new Set(all.flatMap(({ event, run }) => (event === 'skipped' || run == null ? [] : [run])));
  for (const run of runs) {
    const count = ends.filter((end) => end.run === run).length;
    if (count !== 1) wrong.push(`run ${run} has ${count} ends`);
  }
  return wrong;
}

function recordsAgree(dir: string, ends: readonly Event[]): string[] {
  const names = fs.readdirSync(path.join(dir, 'records')).filter((name) => /^\d+\.json$/.test(name));
  return names.flatMap((name) => {
    const record = JSON.parse(fs.readFileSync(path.join(dir, 'records', name), 'utf8')) as Event;
    // Handed in late, after another had taken over.
    if (record.lost === true) return [];
    const end = ends.find(({ run }) => run === record.run);
    return end?.outcome === record.outcome
      ? []
      : [`record ${name} says ${record.outcome}, the history ${end?.outcome}`];
  });
}

/** An item that was begun and not settled is in the marker. */
function nothingForgotten(dir: string, all: readonly Event[], ends: readonly Event[]): string[] {
  const file = path.join(dir, 'current.json');
  const marked = fs.existsSync(file)
    ? (JSON.parse(fs.readFileSync(file, 'utf8')) as { items: { item: string; run: number }[] }).items
    : [];
  const byHand = all.filter(({ event }) => event === 'settled').map(({ item }) => item);
  return all
    .filter(({ event, item }) => event === 'taken' && item != null && !byHand.includes(item))
    .filter(({ run }) => ends.find((end) => end.run === run)?.settled !== true)
    .filter(({ run, item }) => !marked.some((entry) => entry.item === item && entry.run === run))
    .map(({ item, run }) => `item ${item} of run ${run} is forgotten`);
}

/** After the next run, no temporary, live or lock file of the killed one is left. */
function nothingLeftBehind(dir: string): string[] {
  const list = (name: string) => fs.readdirSync(path.join(dir, name)).map((entry) => path.join(name, entry));
  return [...list('.'), ...list('records'), ...list('live')]
    .filter((name) => name.endsWith('.tmp') || name === 'lock.json' || name.startsWith('live/'))
    .map((name) => `${name} is left behind`);
}
