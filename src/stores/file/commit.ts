import { type Ownership, remove, Staged } from '../../disk/files.ts';
import { numberOf } from '../../endings.ts';
import { endedMarks, type HistoryEvent, unknownMarks } from '../../history.ts';
import { type MarkerEdit, unmark } from '../../marker.ts';
import type { LockRecord } from '../../record.ts';
import { recordIn } from '../../rules.ts';
import type { Change, Ending, LastRun } from '../../store.ts';
import type { Guard } from './guard.ts';
import { collectHandedIn, keepRejected } from './handed-in.ts';
import { appendEvent, findEnd } from './history-file.ts';
import { endOf } from './last-run.ts';
import { appendCopy, LiveFileHandle, readCopy, removeLive, sweepLive, touchFile } from './live.ts';
import {
  createLockFile,
  type LockFileSight,
  readLockFile,
  removeLockFile,
  replaceLockFile,
  withLockFile,
} from './lock-file.ts';
import { stageMarker } from './marker-file.ts';
import { type LockPaths, livePath, recordPath, resultPath } from './paths.ts';

/**
 * Someone else has changed the lock although we have the guard (a cleaner has removed one of the files), or a
 * number turned out to be used: look again.
 */
export class Collision extends Error {}

/** What a commit works on. */
export interface Place {
  readonly paths: LockPaths;
  readonly guard: Guard;
  readonly ownership: Ownership;
  /** The live file of the run that this process supervises. */
  readonly live: LiveFileHandle | null;
  readonly markerSetAside: (to: string) => void;
  /** Told what failed after a change was committed: the next one completes it. */
  readonly leftToNext: (error: unknown) => void;
}

/**
 * Makes a change in the order in which a kill at any point leaves something that the next one can complete:
 *
 *   taking   (old run's end) ▸ number ▸ live file ▸ lock.json ▸ own marker ▸ own history
 *   ending   record ▸ history ▸ marker ▸ live file unlocked ▸ guard "ended" ▸ lock.json removed ▸ live files removed
 *
 * The old run's end comes first: its lock.json may be missing or unreadable, and then only the number that the new
 * one replaces tells which run it was.
 *
 * What needs room on the disk is written under temporary names before the first step, so that a full disk
 * changes nothing. What fails after the commit (`lock.json`, the record, the history line of a release) is left to
 * the next one, as after a kill: the change stands.
 */
export function commit(
  place: Place,
  change: Change,
  last: LastRun | null,
  now: number,
): LiveFileHandle | null {
  switch (change.type) {
    case 'take':
      return take(place, change);
    case 'begin':
      // The item may have been chosen only now, under the lock.
      amend(place, change.record);
      begin(place, change.begin.marker, change.begin.event);
      return null;
    case 'cancel':
      cancel(place, change.run, last, change.event);
      return null;
    case 'amend':
      amend(place, change.record);
      return null;
    case 'end':
      end(place, change.run, change.ending, last);
      return null;
    case 'refresh':
      touchFile(place.paths.lock, now);
      return null;
    case 'handIn':
      handIn(place, change.record, change.result);
      return null;
    case 'late':
      late(place, change.run, change.record, change.event);
      return null;
    case 'settle':
      settle(place, change.marker, change.event);
      return null;
  }
}

function take(place: Place, change: Extract<Change, { type: 'take' }>): LiveFileHandle | null {
  const { paths, guard, ownership } = place;
  const { record, seen } = change;
  const run = numberOf(record);
  sweepLive(paths, change.after?.event.run ?? null);
  if (change.after !== null) writeEnd(place, adopted(place, change.after));
  guard.write({ run, ended: false, tokenHash: record.tokenHash });
  const live = record.live ? LiveFileHandle.create(paths, record, run, ownership) : null;
  if (record.live && live === null) throw new Collision();
  try {
    const placed = withLockFile(paths.lock, (current) => {
      if (current === null) return createLockFile(paths.lock, record, ownership);
      // Only the very lock that was judged stale is replaced; anyone else who stands there came in between.
      if (current.identity !== seen.identity) return false;
      replaceLockFile(paths.lock, record, ownership);
      return true;
    });
    if (placed?.value !== true) throw new Collision();
    if (change.begin !== null) begin(place, change.begin.marker, change.begin.event);
    else stageMarker(paths, (items) => items, ownership, place.markerSetAside)?.put();
  } catch (error) {
    live?.unlock();
    if (live !== null) removeLive(paths, run);
    // Nothing but the number stays of a run that could not be taken whole.
    if (!(error instanceof Collision))
      cancel(place, run, { run, ended: false, tokenHash: record.tokenHash }, null);
    throw error;
  }
  const former = change.after?.event.run;
  if (former !== undefined) afterCommit(place, () => removeLive(paths, former));
  return live;
}

function runIn(sight: LockFileSight): number | null {
  return recordIn(sight)?.run ?? null;
}

function begin(place: Place, marker: MarkerEdit, event: HistoryEvent): void {
  const staged = stageMarker(place.paths, marker, place.ownership, place.markerSetAside);
  staged?.put();
  appendEvent(place.paths, event, place.ownership, { sync: false });
}

/** The history line first: a kill in between leaves the item marked, not forgotten. */
function settle(place: Place, marker: MarkerEdit, event: HistoryEvent): void {
  const staged = stageMarker(place.paths, marker, place.ownership, place.markerSetAside);
  try {
    appendEvent(place.paths, event, place.ownership, { sync: true });
  } catch (error) {
    staged?.discard();
    throw error;
  }
  staged?.put();
}

function afterCommit(place: Place, act: () => void): void {
  try {
    act();
  } catch (error) {
    place.leftToNext(error);
  }
}

/** Nothing of this is a commit that could fail: the run takes nothing with it but its number. */
function cancel(place: Place, run: number, last: LastRun | null, event: HistoryEvent | null): void {
  const { paths, ownership } = place;
  // No room even for a shorter marker? The mark of a run that never began counts for a while, and that is safe.
  afterCommit(place, () => stageMarker(paths, unmark(run), ownership, place.markerSetAside)?.put());
  clear(place, run, last);
  if (event !== null) afterCommit(place, () => appendEvent(paths, event, ownership, { sync: false }));
}

function amend(place: Place, amended: LockRecord): void {
  const { paths, ownership } = place;
  const copy = amended.live ? readCopy(paths, numberOf(amended)) : null;
  // The command may have said how it went already; that stands in the copy only.
  const record = { ...amended, handedIn: recordIn(copy)?.handedIn ?? null };
  if (copy !== null) appendCopy(livePath(paths, numberOf(record)), record);
  const replaced = withLockFile(paths.lock, (current) => {
    if (current === null) return createLockFile(paths.lock, record, ownership);
    // What can't be read as a lock is put right; another run's lock is not.
    if (recordIn(current) !== null && runIn(current) !== record.run) return false;
    replaceLockFile(paths.lock, record, ownership);
    return true;
  });
  if (replaced?.value !== true) throw new Collision();
}

function end(place: Place, run: number, ending: Ending, last: LastRun | null): void {
  writeEnd(place, adopted(place, ending));
  clear(place, run, last);
}

/** Commits the end of a run: record, history, marker. */
function writeEnd(place: Place, ending: Pick<Ending, 'event' | 'marker' | 'record'>): void {
  const { paths, ownership } = place;
  const marker = stageMarker(paths, ending.marker, ownership, place.markerSetAside);
  let recorded = false;
  try {
    if (ending.record !== null) {
      const file = recordPath(paths, ending.event.run);
      recorded = createRecord(place, file, ending.record);
      // A record is never overwritten, and what was handed in is not lost: it stands beside the first.
      if (!recorded) keepRejected(paths, ending.event.run, Buffer.from(ending.record), ownership);
    }
    appendEvent(paths, ending.event, ownership, { sync: true });
  } catch (error) {
    // Without the history line the end is not told: take the record back, the lock stays as it was.
    if (recorded) remove(recordPath(paths, ending.event.run));
    marker?.discard();
    throw error;
  }
  afterCommit(place, () => marker?.put());
}

/** Written where takers sweep what a kill left; the records of years are not looked through for that. */
function createRecord({ paths, ownership }: Place, file: string, text: string): boolean {
  return Staged.write(file, text, ownership, { sync: true, in: paths.dir }).createFile({ sync: true });
}

/** Takes away what says that the run holds the lock; its end is committed. */
function clear(place: Place, run: number, last: LastRun | null): void {
  const { paths, guard, live } = place;
  if (live?.path === livePath(paths, run)) live.unlock();
  afterCommit(place, () => {
    if (last?.run === run) guard.write({ ...last, ended: true });
    // Somebody else changing the file finds there that the run has ended, and removes it.
    withLockFile(paths.lock, (current) => {
      if (current !== null && runIn(current) === run) removeLockFile(paths.lock);
    });
    removeLive(paths, run);
  });
}

/** What the command of a run has handed in decides how it ended. */
function adopted(place: Place, ending: Ending): Pick<Ending, 'event' | 'marker' | 'record'> {
  return ending.adopt === null ? ending : ending.adopt(collectHandedIn(place.paths, ending.event.run));
}

/** Without a result, one that the command has written itself stays. */
function handIn(place: Place, record: LockRecord, result: string | null): void {
  const live = livePath(place.paths, numberOf(record));
  if (result !== null) {
    Staged.write(resultPath(live), result, place.ownership, { sync: true }).replaceFile({ sync: true });
  }
  appendCopy(live, record);
}

function late(place: Place, run: number, record: string, event: HistoryEvent): void {
  const file = recordPath(place.paths, run);
  // The first counts; a second one is kept beside it, and changes nothing.
  if (createRecord(place, file, record)) appendEvent(place.paths, event, place.ownership, { sync: true });
  else keepRejected(place.paths, run, Buffer.from(record), place.ownership);
}

/**
 * Completes the end of a run that a kill has cut short: whoever finds its lock, or its number not ended in the
 * guard, writes what is missing. The run is not called interrupted.
 *
 * @returns the run, or null where there was nothing to complete
 */
export function completeEnd(place: Place, last: LastRun | null): number | null {
  const current = readLockFile(place.paths.lock);
  const given = last !== null && !last.ended ? last.run : null;
  // After a power cut the content of lock.json may be lost, and the end of its run be told by the record.
  const run = (current === null ? null : runIn(current)) ?? given;
  if (run === null) return null;
  const end = last?.run === run && last.ended ? findEnd(place.paths, run) : endOf(place.paths, run);
  if (end === null && !(last?.run === run && last.ended)) return null;
  if (end?.event === 'ended') {
    if (findEnd(place.paths, run) === null) appendEvent(place.paths, end, place.ownership, { sync: true });
    stageMarker(
      place.paths,
      end.settled ? endedMarks(end) : unknownMarks(end),
      place.ownership,
      place.markerSetAside,
    )?.put();
  }
  clear(place, run, last);
  return run;
}
