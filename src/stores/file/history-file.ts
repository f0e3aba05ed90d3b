import fs from 'node:fs';
import path from 'node:path';
import { type Ownership, openOrCreate, openPlain, readAll, syncDirectory } from '../../disk/files.ts';
import { ioError, RunlockError } from '../../errors.ts';
import { type HistoryEvent, parseEvent, type TornLine } from '../../history.ts';
import { listNames } from './live.ts';
import type { LockPaths } from './paths.ts';

const MONTH = /^\d{4}-\d{2}\.jsonl$/;
const MAX_BYTES = 1 << 30;

/**
 * Appends one line to the file of its month (UTC). A line that a power cut has torn stays as it is: a new one is
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
  const file = path.join(paths.historyDir, `${event.at.slice(0, 7)}.jsonl`);
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
    for (const line of readFile(path.join(paths.historyDir, name)).split('\n')) {
      if (line === '') continue;
      const event = parseEvent(line);
      if (event === null) torn.push({ text: line, next: events.length });
      else events.push(event);
    }
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

/** How much of a month's file is read first when looking for a run's end; most ends are near it. */
const TAIL_BYTES = 64 * 1024;

/**
 * Looks backward for the end of a run, no further than its beginning.
 *
 * @param maxBytes how much of the newest file to read at most: a look must be quick, a change reads all it needs
 */
export function findEnd(
  paths: LockPaths,
  run: number,
  maxBytes = Number.POSITIVE_INFINITY,
): HistoryEvent | null {
  for (const name of monthNames(paths).reverse()) {
    const file = path.join(paths.historyDir, name);
    for (let bytes = Math.min(TAIL_BYTES, maxBytes); ; bytes = Math.min(bytes * 16, maxBytes)) {
      const { text, whole } = readTail(file, bytes);
      const { end, began } = searchBackward(text, run);
      if (began || (end !== null && whole)) return end;
      if (bytes >= maxBytes) return end;
      if (whole) break;
    }
  }
  return null;
}

/** The largest run number near the end of the history; 0 where there is none. */
export function lastNumber(paths: LockPaths): number {
  const newest = monthNames(paths).at(-1);
  if (newest === undefined) return 0;
  const { text } = readTail(path.join(paths.historyDir, newest), TAIL_BYTES);
  const events = text.split('\n').map(parseEvent);
  return events.reduce(
    (most, event) => Math.max(most, (event !== null && 'run' in event && event.run) || 0),
    0,
  );
}

/** The first end of the run in the text, and whether its beginning is there, so that no earlier end can be. */
function searchBackward(text: string, run: number): { end: HistoryEvent | null; began: boolean } {
  let end: HistoryEvent | null = null;
  for (const line of text.split('\n').reverse()) {
    if (!line.includes(`"run":${run},`)) continue;
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

function readFile(file: string): string {
  return readTail(file, Number.POSITIVE_INFINITY).text;
}

function readTail(file: string, maxBytes: number): { text: string; whole: boolean } {
  const fd = openPlain(file, 'read');
  if (fd === null) return { text: '', whole: true };
  try {
    const { size } = fs.fstatSync(fd);
    if (size <= maxBytes) {
      const bytes = readAll(fd, MAX_BYTES);
      if (bytes === null)
        throw new RunlockError('corrupt', `${file} is larger than ${MAX_BYTES} bytes: move it away`, {
          path: file,
        });
      return { text: bytes.toString('utf8'), whole: true };
    }
    const tail = Buffer.alloc(maxBytes);
    const count = fs.readSync(fd, tail, 0, maxBytes, size - maxBytes);
    return { text: tail.subarray(0, count).toString('utf8'), whole: false };
  } finally {
    fs.closeSync(fd);
  }
}
