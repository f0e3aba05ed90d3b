import fs from 'node:fs';
import { isSameFile, type Ownership, openPlain, readAll, remove, Staged, touch } from '../../disk/files.ts';
import { type LockRecord, parseRecord, serializeRecord } from '../../record.ts';
import type { LockSight } from '../../rules.ts';
import { withReplacedFile } from './replaced-file.ts';

/** Far more than a lock needs; anything larger is no lock. */
const MAX_BYTES = 256 * 1024;

/** `lock.json` as it stands there. */
export interface LockFileSight extends Omit<LockSight, 'ended'> {
  /** The same for the same file with the same content, whatever its heartbeat. */
  readonly identity: string;
}

export function readLockFile(file: string): LockFileSight | null {
  const fd = openPlain(file, 'read');
  if (fd === null) return null;
  try {
    return sight(fd, file);
  } finally {
    fs.closeSync(fd);
  }
}

function sight(fd: number, file: string): LockFileSight {
  const stat = fs.fstatSync(fd);
  const bytes = readAll(fd, MAX_BYTES);
  const text = bytes?.toString('utf8') ?? '';
  const parsed =
    bytes === null
      ? { type: 'unreadable' as const, problem: `it is larger than ${MAX_BYTES} bytes` }
      : parseRecord(text, file);
  return {
    content: parsed.type === 'record' ? { record: parsed.record } : { problem: parsed.problem },
    heartbeatAt: stat.mtimeMs,
    source: 'lock',
    identity: `${stat.ino} ${stat.size} ${text}`,
  };
}

/**
 * Takes a free lock by link(2), which fails if someone is there.
 *
 * @returns false if someone is
 */
export function createLockFile(file: string, record: LockRecord, ownership: Ownership): boolean {
  return Staged.write(file, `${serializeRecord(record)}\n`, ownership, { sync: false }).createFile({
    sync: false,
  });
}

/**
 * Keeps `lock.json` from being replaced or removed by anyone else.
 *
 * @param act is given the file's sight, or null where there is none
 * @returns null if somebody else is changing it or has changed it: look again
 */
export function withLockFile<T>(
  file: string,
  act: (current: LockFileSight | null) => T,
): { value: T } | null {
  // On Windows a file that is open can't be replaced, nor can the guard be removed while it is open.
  if (process.platform === 'win32') return { value: act(readLockFile(file)) };
  return withReplacedFile(file, (fd) => act(fd === null ? null : sight(fd, file)));
}

/** Puts another record in place of the one that stands there. Call inside `withLockFile`. */
export function replaceLockFile(file: string, record: LockRecord, ownership: Ownership): void {
  Staged.write(file, `${serializeRecord(record)}\n`, ownership, { sync: false }).replaceFile({ sync: false });
}

/** Call inside `withLockFile`. */
export function removeLockFile(file: string): void {
  remove(file);
}

/**
 * Refreshes the heartbeat on the file that was read, so that a successor's lock is never refreshed.
 *
 * @param mine whether the record is the one to refresh
 */
export function beatLockFile(
  file: string,
  now: number,
  mine: (record: LockRecord) => boolean,
): 'ok' | 'missing' | 'other' {
  const fd = openPlain(file, 'write');
  if (fd === null) return 'missing';
  try {
    const { content } = sight(fd, file);
    if (!('record' in content) || !mine(content.record)) return 'other';
    touch(fd, now);
    return isSameFile(fd, file) ? 'ok' : beatLockFile(file, now, mine);
  } finally {
    fs.closeSync(fd);
  }
}
