import type { Clock } from '../clock.ts';
import { RunlockError } from '../errors.ts';
import { nearest } from '../guess.ts';
import { sameText } from '../names.ts';
import { printable } from '../printable.ts';
import { addEntry, placeMissing, type StampOutcome } from './add-entry.ts';
import { decodeLedger } from './encoding.ts';
import { createLedgerFile, LockedLedger, readLedgerFile, realFile, type Snapshot } from './file.ts';
import type { LedgerReference } from './reference.ts';
import { isSameJson } from './same.ts';
import { objectsOnTheWay } from './scan.ts';

/** How often an add begins anew because somebody who doesn't ask for the lock has changed the file meanwhile. */
const TRIES = 8;

/** A file that can't be read as JSON may be in the middle of being written by another program: a look later, ms. */
const HALF_WRITTEN_MS = 20;

export interface EntryToAdd {
  readonly key: string;
  /** Valid JSON. */
  readonly entry: string;
  /** The key of a time to refresh; null for the ledger's own, if it has one. */
  readonly stamp: string | null;
  /** Makes the file, or the place in it, if there is none. */
  readonly create: boolean;
}

export type AddOutcome =
  | {
      readonly outcome: 'added';
      /** How many keys there are now. */
      readonly count: number;
      readonly stamp: StampOutcome | null;
    }
  | {
      readonly outcome: 'exists';
      readonly count: number;
      /** Whether its entry is equal: a retry of what was done. */
      readonly same: boolean;
    };

/**
 * Whether a ledger has a key, in any Unicode form.
 *
 * @throws RunlockError `io` or `corrupt` if that can't be told: a missing file or place is not an empty ledger
 */
export function hasKey(ledger: LedgerReference, key: string): boolean {
  return listKeys(ledger).some((one) => sameText(one, key));
}

/**
 * The keys of a ledger, in order.
 *
 * @throws RunlockError `io`, `corrupt`
 */
export function listKeys({ file, place, configured }: LedgerReference): string[] {
  const real = realFile(file);
  const snapshot = real === null ? null : readLedgerFile(real);
  if (snapshot === null) throw missing(file, configured);
  const { text } = decodeLedger(snapshot.bytes, file);
  const chain = objectsOnTheWay(text, place, file);
  if (chain.length <= place.length) throw placeMissing(place, file);
  return (chain.at(-1) ?? chain[0]).members.map((member) => member.key);
}

/**
 * Makes an empty ledger where there is no file; what is there is left as it is.
 *
 * @returns whether it was made
 * @throws RunlockError `io`, `corrupt` for a link to what is not there
 */
export function makeLedger(ledger: LedgerReference): boolean {
  if (realFile(ledger.file) !== null) return false;
  return createLedgerFile(ledger.file, Buffer.from(emptyLedger(ledger, ledger.stamp)));
}

/**
 * Adds a key to a ledger and nothing else, under a kernel lock.
 *
 * @throws RunlockError `io`, `corrupt`, `guardBusy`, `noKernelLock`; the old file stands
 */
export async function addToLedger(
  ledger: LedgerReference,
  toAdd: EntryToAdd,
  clock: Clock,
): Promise<AddOutcome> {
  for (let tries = 0; tries < TRIES; tries += 1) {
    const locked = await LockedLedger.open(ledger.file, clock);
    if (locked === null) {
      if (!toAdd.create) throw missing(ledger.file, ledger.configured);
      const created = createLedger(ledger, toAdd, clock.now());
      if (created !== null) return created;
    } else {
      try {
        const outcome = await addLocked(locked, ledger, toAdd, clock);
        if (outcome !== null) return outcome;
      } finally {
        locked.close();
      }
    }
    await clock.sleep((1 + tries * 5) * (0.5 + Math.random()));
  }
  throw new RunlockError(
    'io',
    `could not add to ${ledger.file}: another program changed it ${TRIES} times meanwhile; it stands as that program left it`,
    { path: ledger.file },
  );
}

/** Null if the file was changed meanwhile: again. */
async function addLocked(
  locked: LockedLedger,
  ledger: LedgerReference,
  toAdd: EntryToAdd,
  clock: Clock,
): Promise<AddOutcome | null> {
  locked.sweep(clock.now());
  const before = locked.read();
  if (before === null) return null;
  try {
    const { text, encode } = decodeLedger(before.bytes, ledger.file);
    const edited = addEntry(text, additionOf(ledger, toAdd, clock.now()), ledger.file);
    if (edited.outcome === 'exists') {
      return { outcome: 'exists', count: edited.count, same: isSameJson(edited.entry, toAdd.entry) };
    }
    if (!locked.replace(before, encode(edited.text))) return null;
    return { outcome: 'added', count: edited.count, stamp: edited.stamp };
  } catch (error) {
    if (await isHalfWritten(error, locked, before, clock)) return null;
    throw error;
  }
}

async function isHalfWritten(
  error: unknown,
  locked: LockedLedger,
  before: Snapshot,
  clock: Clock,
): Promise<boolean> {
  if (!(error instanceof RunlockError) || error.code !== 'corrupt') return false;
  await clock.sleep(HALF_WRITTEN_MS);
  return !locked.isUnchanged(before);
}

/** Null if another has made it meanwhile. */
function createLedger(ledger: LedgerReference, toAdd: EntryToAdd, now: number): AddOutcome | null {
  const addition = additionOf(ledger, toAdd, now);
  const first = addEntry(emptyLedger(ledger, addition.stamp), addition, ledger.file);
  if (first.outcome !== 'added') throw new RangeError('a first ledger can not have the key');
  if (!createLedgerFile(ledger.file, Buffer.from(first.text))) return null;
  return { outcome: 'added', count: first.count, stamp: first.stamp };
}

/** Any time does for the stamp: adding refreshes it. In a ledger that is the whole document it would be an entry. */
function emptyLedger({ place }: LedgerReference, stamp: string | null): string {
  if (place.length === 0) return '{}\n';
  const nested = place.reduceRight<object>((inner, step) => Object.fromEntries([[step, inner]]), {});
  const top = stamp === null || stamp === place[0] ? {} : { [stamp]: new Date(0).toISOString() };
  return `${JSON.stringify({ ...nested, ...top }, null, 2)}\n`;
}

function additionOf(ledger: LedgerReference, toAdd: EntryToAdd, now: number) {
  return { ...toAdd, place: ledger.place, stamp: toAdd.stamp ?? ledger.stamp, now };
}

function missing(file: string, configured: readonly string[]): RunlockError {
  const name = file.slice(Math.max(file.lastIndexOf('/'), file.lastIndexOf('\\')) + 1);
  const guess = nearest(name, configured);
  const hint =
    guess === null ? 'ledger add --create makes a first one' : `did you mean ${printable(guess, 60)}?`;
  return new RunlockError('io', `there is no ledger ${printable(file, 4096)}: ${hint}`, { path: file });
}
