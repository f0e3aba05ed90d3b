import fs from 'node:fs';
import { openPlain, readAll } from '../../disk/files.ts';
import type { HistoryEvent } from '../../history.ts';
import { eventOfRecord } from '../../records.ts';
import { recordIn } from '../../rules.ts';
import type { LastRun } from '../../store.ts';
import { findEnd, lastNumber, readEvents } from './history-file.ts';
import { listNames } from './live.ts';
import { readLockFile } from './lock-file.ts';
import { readMarker } from './marker-file.ts';
import { type LockPaths, livePath, recordPath } from './paths.ts';

const MAX_RECORD_BYTES = 1 << 28;

/**
 * The last run given out, where the guard does not tell (it was removed, or was never written): the largest number
 * in the lock, the marker, the live files, the history and the records. Null if there is none at all.
 */
export function findLastRun(paths: LockPaths): LastRun | null {
  const lock = readLockFile(paths.lock);
  const held = recordIn(lock);
  const marker = readMarker(paths.marker);
  const { events } = readEvents(paths);
  const run = Math.max(
    0,
    held?.run ?? 0,
    ...('items' in marker ? marker.items.map((entry) => entry.run) : []),
    ...namedRuns(paths.liveDir),
    ...namedRuns(paths.recordsDir),
    events.reduce(
      (largest, event) => ('run' in event && event.run !== null ? Math.max(largest, event.run) : largest),
      0,
    ),
  );
  if (run === 0) return null;
  const taken = events.find((event) => event.event === 'taken' && event.run === run);
  const tokenHash = held?.run === run ? held.tokenHash : taken?.event === 'taken' ? taken.tokenHash : null;
  return { run, ended: endOf(paths, run) !== null, tokenHash };
}

/** The numbers that a directory's names begin with: `17`, `17.json`, `17.result`. */
function namedRuns(dir: string): number[] {
  return listNames(dir).map((name) => Number(/^(\d{1,15})(\.|$)/.exec(name)?.[1] ?? 0));
}

/** Whether a number was used although the guard says otherwise. A look takes the guard's word for the history. */
export function isUsed(paths: LockPaths, run: number, historyBytes: number): boolean {
  if (fs.existsSync(recordPath(paths, run)) || fs.existsSync(livePath(paths, run))) return true;
  return historyBytes === Number.POSITIVE_INFINITY && lastNumber(paths) >= run;
}

/** How a run ended, by its record or else the history; null if it has not. */
export function endOf(paths: LockPaths, run: number, maxHistoryBytes?: number): HistoryEvent | null {
  return recordedEnd(paths, run) ?? findEnd(paths, run, maxHistoryBytes);
}

function recordedEnd(paths: LockPaths, run: number): HistoryEvent | null {
  const fd = openPlain(recordPath(paths, run), 'read');
  if (fd === null) return null;
  try {
    return eventOfRecord(readAll(fd, MAX_RECORD_BYTES)?.toString('utf8') ?? '');
  } finally {
    fs.closeSync(fd);
  }
}
