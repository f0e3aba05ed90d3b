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

/** What a commit works on: a lock whose guard this process has. */
export interface GuardedLock {
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
  lock: GuardedLock,
  change: Change,
  last: LastRun | null,
  now: number,
): LiveFileHandle | null {
  switch (change.type) {
    case 'take':
      return take(lock, change);
    case 'begin':
      // The item may have been chosen only now, under the lock.
      amend(lock, change.record);
      begin(lock, change.begin.marker, change.begin.event);
      return null;
    case 'cancel':
      cancel(lock, change.run, last, change.event);
      return null;
    case 'amend':
      amend(lock, change.record);
      return null;
    case 'end':
      end(lock, change.run, change.ending, last);
      return null;
    case 'refresh':
      touchFile(lock.paths.lock, now);
      return null;
    case 'handIn':
      handIn(lock, change.record, change.result);
      return null;
    case 'late':
      late(lock, change.run, change.record, change.event);
      return null;
    case 'settle':
      settle(lock, change.marker, change.event);
      return null;
  }
}

function take(lock: GuardedLock, change: Extract<Change, { type: 'take' }>): LiveFileHandle | null {
  const { paths, guard, ownership } = lock;
  const { record, seen } = change;
  const run = numberOf(record);
  sweepLive(paths, change.after?.event.run ?? null);
  if (change.after !== null) writeEnd(lock, adopted(lock, change.after));
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
    if (change.begin !== null) begin(lock, change.begin.marker, change.begin.event);
    else stageMarker(paths, (items) => items, ownership, lock.markerSetAside)?.put();
  } catch (error) {
    live?.unlock();
    if (live !== null) removeLive(paths, run);
    // Nothing but the number stays of a run that could not be taken whole.
    if (!(error instanceof Collision))
      cancel(lock, run, { run, ended: false, tokenHash: record.tokenHash }, null);
    throw error;
  }
  const former = change.after?.event.run;
  if (former !== undefined) afterCommit(lock, () => removeLive(paths, former));
  return live;
}

function runIn(sight: LockFileSight): number | null {
  return recordIn(sight)?.run ?? null;
}

function begin(lock: GuardedLock, marker: MarkerEdit, event: HistoryEvent): void {
  const staged = stageMarker(lock.paths, marker, lock.ownership, lock.markerSetAside);
  staged?.put();
  appendEvent(lock.paths, event, lock.ownership, { sync: false });
}

/** The history line first: a kill in between leaves the item marked, not forgotten. */
function settle(lock: GuardedLock, marker: MarkerEdit, event: HistoryEvent): void {
  const staged = stageMarker(lock.paths, marker, lock.ownership, lock.markerSetAside);
  try {
    appendEvent(lock.paths, event, lock.ownership, { sync: true });
  } catch (error) {
    staged?.discard();
    throw error;
  }
  staged?.put();
}

function afterCommit(lock: GuardedLock, act: () => void): void {
  try {
    act();
  } catch (error) {
    lock.leftToNext(error);
  }
}

/** Nothing of this is a commit that could fail: the run takes nothing with it but its number. */
function cancel(lock: GuardedLock, run: number, last: LastRun | null, event: HistoryEvent | null): void {
  const { paths, ownership } = lock;
  // No room even for a shorter marker? The mark of a run that never began counts for a while, and that is safe.
  afterCommit(lock, () => stageMarker(paths, unmark(run), ownership, lock.markerSetAside)?.put());
  clear(lock, run, last);
  if (event !== null) afterCommit(lock, () => appendEvent(paths, event, ownership, { sync: false }));
}

function amend(lock: GuardedLock, amended: LockRecord): void {
  const { paths, ownership } = lock;
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

function end(lock: GuardedLock, run: number, ending: Ending, last: LastRun | null): void {
  writeEnd(lock, adopted(lock, ending));
  clear(lock, run, last);
}

/** Commits the end of a run: record, history, marker. */
function writeEnd(lock: GuardedLock, ending: Pick<Ending, 'event' | 'marker' | 'record'>): void {
  const { paths, ownership } = lock;
  const marker = stageMarker(paths, ending.marker, ownership, lock.markerSetAside);
  let recorded = false;
  try {
    if (ending.record !== null) {
      const file = recordPath(paths, ending.event.run);
      recorded = createRecord(lock, file, ending.record);
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
  afterCommit(lock, () => marker?.put());
}

/** Written where takers sweep what a kill left; the records of years are not looked through for that. */
function createRecord({ paths, ownership }: GuardedLock, file: string, text: string): boolean {
  return Staged.write(file, text, ownership, { sync: true, in: paths.dir }).createFile({ sync: true });
}

/** Takes away what says that the run holds the lock; its end is committed. */
function clear(lock: GuardedLock, run: number, last: LastRun | null): void {
  const { paths, guard, live } = lock;
  if (live?.path === livePath(paths, run)) live.unlock();
  afterCommit(lock, () => {
    if (last?.run === run) guard.write({ ...last, ended: true });
    // Somebody else changing the file finds there that the run has ended, and removes it.
    withLockFile(paths.lock, (current) => {
      if (current !== null && runIn(current) === run) removeLockFile(paths.lock);
    });
    removeLive(paths, run);
  });
}

/** What the command of a run has handed in decides how it ended. */
function adopted(lock: GuardedLock, ending: Ending): Pick<Ending, 'event' | 'marker' | 'record'> {
  return ending.adopt === null ? ending : ending.adopt(collectHandedIn(lock.paths, ending.event.run));
}

/** Without a result, one that the command has written itself stays. */
function handIn(lock: GuardedLock, record: LockRecord, result: string | null): void {
  const live = livePath(lock.paths, numberOf(record));
  if (result !== null) {
    Staged.write(resultPath(live), result, lock.ownership, { sync: true }).replaceFile({ sync: true });
  }
  appendCopy(live, record);
}

function late(lock: GuardedLock, run: number, record: string, event: HistoryEvent): void {
  const file = recordPath(lock.paths, run);
  // The first counts; a second one is kept beside it, and changes nothing.
  if (createRecord(lock, file, record)) appendEvent(lock.paths, event, lock.ownership, { sync: true });
  else keepRejected(lock.paths, run, Buffer.from(record), lock.ownership);
}

/**
 * Completes the end of a run that a kill has cut short: whoever finds its lock, or its number not ended in the
 * guard, writes what is missing. The run is not called interrupted.
 *
 * @returns the run, or null where there was nothing to complete
 */
export function completeEnd(lock: GuardedLock, last: LastRun | null): number | null {
  const current = readLockFile(lock.paths.lock);
  const given = last !== null && !last.ended ? last.run : null;
  // After a power cut the content of lock.json may be lost, and the end of its run be told by the record.
  const run = (current === null ? null : runIn(current)) ?? given;
  if (run === null) return null;
  const end = last?.run === run && last.ended ? findEnd(lock.paths, run) : endOf(lock.paths, run);
  if (end === null && !(last?.run === run && last.ended)) return null;
  if (end?.event === 'ended') {
    if (findEnd(lock.paths, run) === null) appendEvent(lock.paths, end, lock.ownership, { sync: true });
    stageMarker(
      lock.paths,
      end.settled ? endedMarks(end) : unknownMarks(end),
      lock.ownership,
      lock.markerSetAside,
    )?.put();
  }
  clear(lock, run, last);
  return run;
}
