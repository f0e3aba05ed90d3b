import fs from 'node:fs';
import path from 'node:path';
import { type Ownership, openOrCreate, openPlain, syncDirectory } from '../../disk/files.ts';
import { linesBackward, linesForward } from '../../disk/lines.ts';
import { ioError, RunlockError } from '../../errors.ts';
import { type HistoryEvent, parseEvent, type TornLine } from '../../history.ts';
import { listNames } from './live.ts';
import type { LockPaths } from './paths.ts';

const MONTH = /^\d{4}-\d{2}\.jsonl$/;

/**
 * Appends one line, after all that stand there. A line that a power cut has torn stays as it is: a new one is
 * begun after it.
 *
 * @throws RunlockError `io`; nothing of the line stands there then
 */
export function appendEvent(
  paths: LockPaths,
  event: HistoryEvent,
  ownership: Ownership,
  options: { sync: boolean },
): void {
  const file = fileFor(paths, event.at);
  const fd = openOrCreate(file, 'append', ownership);
  try {
    const { size } = fs.fstatSync(fd);
    // Before the line: when that is written, nothing may fail any more.
    if (size === 0 && options.sync) syncDirectory(paths.historyDir);
    const line = Buffer.from(`${endsInLine(file, size) ? '' : '\n'}${JSON.stringify(event)}\n`);
    let written = 0;
    try {
      while (written < line.length) written += fs.writeSync(fd, line, written);
      if (options.sync) fs.fsyncSync(fd);
    } catch (error) {
      // Takes back the part that a full disk had room for, unless somebody has appended since.
      if (written > 0 && fs.fstatSync(fd).size === size + written) fs.ftruncateSync(fd, size);
      throw error;
    }
  } catch (cause) {
    throw cause instanceof RunlockError ? cause : ioError('append to', file, cause);
  } finally {
    fs.closeSync(fd);
  }
}

/**
 * The file of a time's month (UTC); or the next month's, where that is begun: the clock was set back since, and
 * the end of a run must not stand before its beginning.
 */
function fileFor(paths: LockPaths, at: string): string {
  const time = new Date(at);
  const ahead = monthFile(paths, new Date(Date.UTC(time.getUTCFullYear(), time.getUTCMonth() + 1)));
  return fs.existsSync(ahead) ? ahead : monthFile(paths, time);
}

function monthFile(paths: LockPaths, time: Date): string {
  return path.join(paths.historyDir, `${time.toISOString().slice(0, 7)}.jsonl`);
}

function endsInLine(file: string, size: number): boolean {
  if (size === 0) return true;
  const fd = openPlain(file, 'read');
  if (fd === null) return true;
  try {
    const last = Buffer.alloc(1);
    return fs.readSync(fd, last, 0, 1, size - 1) === 1 && last[0] === 0x0a;
  } finally {
    fs.closeSync(fd);
  }
}

/** Reads the history, oldest first; lines that can't be read come apart, each with its place in time. */
export function readEvents(paths: LockPaths): { events: HistoryEvent[]; torn: TornLine[] } {
  const events: HistoryEvent[] = [];
  const torn: { text: string; next: number }[] = [];
  for (const name of monthNames(paths)) {
    withFile(path.join(paths.historyDir, name), (fd) => {
      for (const line of linesForward(fd)) {
        if (line === '') continue;
        const event = line === null ? null : parseEvent(line);
        if (event === null) torn.push({ text: line ?? '', next: events.length });
        else events.push(event);
      }
    });
  }
  return {
    events,
    torn: torn.map(({ text, next }) => ({
      text,
      after: events[next - 1]?.at ?? null,
      before: events[next]?.at ?? null,
    })),
  };
}

/** How much of the end of a file tells the largest number. */
const TAIL_BYTES = 64 * 1024;

/**
 * Looks backward for the first end of a run, no further than its beginning.
 *
 * @param maxBytes how much to read at most: a look must be quick, a change reads all it needs
 */
export function findEnd(
  paths: LockPaths,
  run: number,
  maxBytes = Number.POSITIVE_INFINITY,
): HistoryEvent | null {
  let left = maxBytes;
  for (const name of monthNames(paths).reverse()) {
    const found = withFile(path.join(paths.historyDir, name), (fd) => {
      const within = left;
      left -= fs.fstatSync(fd).size;
      return searchBackward(linesBackward(fd, within), run);
    });
    if (found !== null && (found.began || found.end !== null)) return found.end;
    if (left <= 0) return null;
  }
  return null;
}

/** The largest run number near the end of the history; 0 where there is none. */
export function lastNumber(paths: LockPaths): number {
  const newest = monthNames(paths).at(-1);
  if (newest === undefined) return 0;
  const events = withFile(path.join(paths.historyDir, newest), (fd) =>
    [...linesBackward(fd, TAIL_BYTES)].map((line) => (line === null ? null : parseEvent(line))),
  );
  return (events ?? []).reduce(
    (most, event) => Math.max(most, (event !== null && 'run' in event && event.run) || 0),
    0,
  );
}

/** The first end of the run in the lines, and whether its beginning is there, so that no earlier end can be. */
function searchBackward(
  lines: Iterable<string | null>,
  run: number,
): { end: HistoryEvent | null; began: boolean } {
  let end: HistoryEvent | null = null;
  for (const line of lines) {
    if (line?.includes(`"run":${run},`) !== true) continue;
    const event = parseEvent(line);
    if (event === null || !('run' in event) || event.run !== run) continue;
    if (event.event === 'ended' || event.event === 'skipped') end = event;
    if (event.event === 'taken') return { end, began: true };
  }
  return { end, began: false };
}

function monthNames(paths: LockPaths): string[] {
  return listNames(paths.historyDir)
    .filter((name) => MONTH.test(name))
    .sort();
}

/** Null where there is no such file. */
function withFile<T>(file: string, act: (fd: number) => T): T | null {
  const fd = openPlain(file, 'read');
  if (fd === null) return null;
  try {
    return act(fd);
  } catch (cause) {
    throw ioError('read', file, cause);
  } finally {
    fs.closeSync(fd);
  }
}
