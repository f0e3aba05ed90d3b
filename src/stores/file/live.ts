import fs from 'node:fs';
import path from 'node:path';
import {
  discardTemporary,
  linkNew,
  type Ownership,
  openPlain,
  own,
  remove,
  Staged,
  TEMPORARY,
  temporaryName,
  touch,
  writeAll,
} from '../../disk/files.ts';
import { tryLock, unlock } from '../../disk/kernel-lock.ts';
import { ioError, RunlockError, systemCode } from '../../errors.ts';
import { type LockRecord, parseRecord, serializeRecord } from '../../record.ts';
import type { LiveFile, LockSight } from '../../rules.ts';
import { type LockPaths, livePath, pingPath, resultPath, treePath } from './paths.ts';
import { openTreeFile, probeTree } from './tree-file.ts';

/** More than a lock can hold, a few times over: lines are appended, and the last whole one counts. */
const TAIL_BYTES = 1 << 20;

/** The live file of the run that this process supervises: locked from before it has its name. */
export class LiveFileHandle {
  readonly path: string;
  readonly #locked: number;
  readonly #tree: number | null;
  #open = true;

  private constructor(file: string, locked: number, tree: number | null) {
    this.path = file;
    this.#locked = locked;
    this.#tree = tree;
  }

  /** What the command's tree is to have open, so that it keeps the lock when this process is killed. */
  get descriptor(): number {
    return this.#tree ?? this.#locked;
  }

  /**
   * Makes, locks and fills `live/<run>`, in this order and under another name, so that nobody ever sees it
   * unlocked.
   *
   * @returns null if a run of that number has left one
   */
  static create(
    paths: LockPaths,
    record: LockRecord,
    run: number,
    ownership: Ownership,
  ): LiveFileHandle | null {
    const file = livePath(paths, run);
    const text = `${serializeRecord(record)}\n`;
    return process.platform === 'win32'
      ? LiveFileHandle.#createBesideTree(file, text, ownership)
      : LiveFileHandle.#createLocked(file, text, ownership);
  }

  static #createLocked(file: string, text: string, ownership: Ownership): LiveFileHandle | null {
    const temporary = temporaryName(file);
    const fd = openNew(temporary, file);
    try {
      own(fd, ownership);
      tryLock(fd, 'exclusive', temporary);
      writeAll(fd, Buffer.from(text), null);
      if (!linkNew(temporary, file)) {
        fs.closeSync(fd);
        return null;
      }
      return new LiveFileHandle(file, lockedByName(fd, file), null);
    } catch (error) {
      fs.closeSync(fd);
      throw error;
    } finally {
      discardTemporary(temporary);
    }
  }

  /** While the tree file is open nobody takes the live file for unlocked, so that can be locked by its own name. */
  static #createBesideTree(file: string, text: string, ownership: Ownership): LiveFileHandle | null {
    const tree = openTreeFile(treePath(file));
    try {
      if (Staged.write(file, text, ownership, { sync: false }).createFile({ sync: false })) {
        const fd = openPlain(file, 'write');
        if (fd === null) throw new RunlockError('io', `the live file ${file} was deleted`, { path: file });
        tryLock(fd, 'exclusive', file);
        return new LiveFileHandle(file, fd, tree);
      }
    } catch (error) {
      fs.closeSync(tree);
      throw error;
    }
    fs.closeSync(tree);
    return null;
  }

  /** Frees the lock although daemons that the command left behind have the descriptor. */
  unlock(): void {
    if (!this.#open) return;
    this.#open = false;
    unlock(this.#locked);
    fs.closeSync(this.#locked);
    if (this.#tree !== null) fs.closeSync(this.#tree);
  }
}

/** How often a lock that others share for a moment is asked for, and how long between, ms. */
const TRIES = 200;
const PAUSE_MS = 5;

/**
 * On some FUSE mounts each name of a file has kernel locks of its own: what was locked before it had its name is not
 * seen to be locked by those who look at that name, and a killed run would be taken for gone while its tree lives.
 *
 * @returns the descriptor whose lock they see; the other one is closed
 * @throws RunlockError; the file is removed then
 */
function lockedByName(fd: number, file: string): number {
  let named: number | null = null;
  try {
    named = openPlain(file, 'write');
    if (named === null) throw new RunlockError('io', `the live file ${file} was deleted`, { path: file });
    for (let tries = 0; tries < TRIES; tries += 1) {
      // Only an exclusive lock refuses a shared one, and nobody but its own run locks a live file so.
      if (!tryLock(named, 'shared', file)) {
        fs.closeSync(named);
        return fd;
      }
      if (tryLock(named, 'exclusive', file)) {
        fs.closeSync(fd);
        return named;
      }
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, PAUSE_MS);
    }
    throw new RunlockError('guardBusy', `${file} is kept by another process`, { path: file });
  } catch (error) {
    if (named !== null) fs.closeSync(named);
    remove(file);
    throw error;
  }
}

function openNew(temporary: string, file: string): number {
  try {
    return fs.openSync(temporary, fs.constants.O_RDWR | fs.constants.O_CREAT | fs.constants.O_EXCL, 0o600);
  } catch (cause) {
    throw ioError('create', file, cause);
  }
}

/** Appends a fuller copy of the lock; the last whole line counts. */
export function appendCopy(file: string, record: LockRecord): void {
  const fd = openPlain(file, 'append');
  if (fd === null) throw new RunlockError('io', `the live file ${file} was deleted`, { path: file });
  try {
    // A line end first: an earlier append may have been cut by a full disk.
    writeAll(fd, Buffer.from(`\n${serializeRecord(record)}\n`), null);
  } finally {
    fs.closeSync(fd);
  }
}

/** The copy of the lock in `live/<run>`, or null where there is none. */
export function readCopy(paths: LockPaths, run: number): Omit<LockSight, 'ended'> | null {
  const file = livePath(paths, run);
  const fd = openPlain(file, 'read');
  if (fd === null) return null;
  try {
    const { mtimeMs: heartbeatAt, size } = fs.fstatSync(fd);
    const tail = Buffer.alloc(Math.min(size, TAIL_BYTES));
    const length = fs.readSync(fd, tail, 0, tail.length, size - tail.length);
    const lines = tail.toString('utf8', 0, length).split('\n').reverse();
    for (const line of lines) {
      if (line === '') continue;
      const parsed = parseRecord(line, file);
      if (parsed.type === 'record')
        return { content: { record: parsed.record }, heartbeatAt, source: 'live' };
    }
    return { content: { problem: `${file} has no whole line` }, heartbeatAt, source: 'live' };
  } finally {
    fs.closeSync(fd);
  }
}

/**
 * Whether the tree of a run has its live file locked. Asked with a shared lock, and without making the file: an
 * exclusive probe would be taken for a holder by others who look at the same moment.
 */
export function probe(paths: LockPaths, run: number): LiveFile {
  const file = livePath(paths, run);
  const tree = process.platform === 'win32' ? probeTree(treePath(file)) : 'unlocked';
  if (tree === 'locked') return 'locked';
  let fd: number | null;
  try {
    fd = openPlain(file, 'read');
  } catch {
    return 'unknown';
  }
  if (fd === null) return 'unknown';
  try {
    return tryLock(fd, 'shared', file) ? tree : 'locked';
  } finally {
    fs.closeSync(fd);
  }
}

export function touchFile(file: string, now: number): void {
  const fd = openPlain(file, 'write');
  if (fd === null) return;
  try {
    touch(fd, now);
  } finally {
    fs.closeSync(fd);
  }
}

/** Removes what a run that is over has in `live/`. */
export function removeLive(paths: LockPaths, run: number): void {
  const file = livePath(paths, run);
  for (const name of [file, resultPath(file), pingPath(file)]) remove(name);
  // A daemon that the command left behind may have it open still.
  if (process.platform === 'win32') discardTemporary(treePath(file));
}

/**
 * Removes what killed commands left: temporary files, and live files of runs that never came to hold the lock.
 * Only under the guard, where nobody else is writing one.
 *
 * @param keep the run whose lock is being taken over
 */
export function sweepLive(paths: LockPaths, keep: number | null): void {
  for (const dir of [paths.dir, paths.liveDir, paths.historyDir]) {
    for (const name of listNames(dir)) {
      if (name.endsWith(TEMPORARY)) discardTemporary(path.join(dir, name));
    }
  }
  for (const name of listNames(paths.liveDir)) {
    if (isLeftTree(paths, name)) discardTemporary(path.join(paths.liveDir, name));
    const run = Number(name);
    if (
      Number.isSafeInteger(run) &&
      run !== keep &&
      probe(paths, run) === 'unlocked' &&
      !fs.existsSync(resultPath(livePath(paths, run)))
    )
      removeLive(paths, run);
  }
}

/** Whether a name is a tree file whose live file is gone. Where something of that tree lives, it can't be removed. */
function isLeftTree(paths: LockPaths, name: string): boolean {
  const live = /^(\d+)\.tree$/.exec(name)?.[1];
  return live !== undefined && !fs.existsSync(path.join(paths.liveDir, live));
}

/** The names in a directory; none if there is no such directory. */
export function listNames(dir: string): string[] {
  try {
    return fs.readdirSync(dir);
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return [];
    throw error;
  }
}
