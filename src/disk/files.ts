import fs from 'node:fs';
import path from 'node:path';
import { ioError, RunlockError, systemCode } from '../errors.ts';

const { O_RDONLY, O_RDWR, O_WRONLY, O_APPEND, O_CREAT, O_EXCL } = fs.constants;
// Windows has neither; a link is looked for there before the file is opened.
const O_NOFOLLOW = fs.constants.O_NOFOLLOW ?? 0;
const O_NONBLOCK = fs.constants.O_NONBLOCK ?? 0;

/** What link(2) says on a file system without hard links. Windows says EPERM of a file that another has open, too. */
const NO_LINKS =
  process.platform === 'win32'
    ? ['EISDIR', 'ENOTSUP', 'ENOSYS']
    : ['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS'];

/** The read and write bits and the owner that files of a directory get. */
export interface Ownership {
  readonly mode: number;
  /** Set only for root, whose files would otherwise shut the directory's owner out. */
  readonly owner: { readonly uid: number; readonly gid: number } | null;
}

export function ownershipOf(dir: string): Ownership {
  // Windows has no such bits: "read-only" on a folder means that its icon was changed, on a file that it can't be replaced.
  if (process.platform === 'win32') return { mode: 0o777, owner: null };
  const stat = fs.statSync(dir);
  const root = process.geteuid?.() === 0;
  return { mode: stat.mode & 0o777, owner: root ? { uid: stat.uid, gid: stat.gid } : null };
}

/** What a file gets that is the user's own, and no state of ours: as if the user had made it, or root for the user. */
export function ownershipOfNew(file: string): Ownership {
  const { owner } = ownershipOf(path.dirname(file));
  return { mode: 0o666 & ~process.umask(), owner };
}

/** How long a refusal that may pass is waited for on Windows, ms. */
const PATIENCE_MS = 2_000;
const PAUSE_MS = 10;

/**
 * On Windows a file that anybody has open can't be replaced, and a name whose file was removed may stay taken until
 * the last reader closes it. Readers of ours, virus scanners and indexers have files open for moments only.
 */
export function patiently<T>(act: () => T): T {
  if (process.platform !== 'win32') return act();
  const deadline = performance.now() + PATIENCE_MS;
  for (;;) {
    try {
      return act();
    } catch (error) {
      const passing = ['EPERM', 'EACCES', 'EBUSY'].includes(systemCode(error) ?? '');
      if (!passing || performance.now() > deadline) throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, PAUSE_MS);
    }
  }
}

/**
 * Opens a state file that must be a plain one. Never follows a link and never waits for the other end of a FIFO.
 *
 * @returns null if there is none
 * @throws RunlockError `corrupt` for a link or anything but a file, `io` if the system refuses
 */
export function openPlain(file: string, access: 'read' | 'write' | 'append'): number | null {
  const flags = { read: O_RDONLY, write: O_RDWR, append: O_WRONLY | O_APPEND }[access];
  try {
    if (O_NOFOLLOW === 0 && fs.lstatSync(file).isSymbolicLink()) throw notPlain(file, 'a symbolic link');
    const fd = patiently(() => fs.openSync(file, flags | O_NOFOLLOW | O_NONBLOCK));
    return plainOrClose(fd, file);
  } catch (error) {
    if (error instanceof RunlockError) throw error;
    const code = systemCode(error);
    if (code === 'ENOENT') return null;
    if (code === 'ELOOP') throw notPlain(file, 'a symbolic link');
    if (code === 'EISDIR') throw notPlain(file, 'a directory');
    if (code === 'ENXIO') throw notPlain(file, 'a FIFO or socket');
    throw refused('open', file, error);
  }
}

/**
 * Opens a plain state file, and makes it with the directory's bits and owner if there is none. Always opened by its
 * own name: on some FUSE mounts each name of a file has kernel locks of its own.
 */
export function openOrCreate(file: string, access: 'write' | 'append', ownership: Ownership): number {
  for (;;) {
    const fd = openPlain(file, access);
    if (fd !== null) return fd;
    create(file, ownership);
  }
}

/** Under another name first: a kill before it has its bits and owner must not leave a file that shuts others out. */
function create(file: string, ownership: Ownership): void {
  const temporary = temporaryName(file);
  try {
    const fd = fs.openSync(temporary, O_WRONLY | O_CREAT | O_EXCL, 0o600);
    try {
      own(fd, ownership);
      linkNew(temporary, file);
    } finally {
      fs.closeSync(fd);
      discardTemporary(temporary);
    }
  } catch (error) {
    if (error instanceof RunlockError) throw error;
    // Whoever has the guard sweeps temporary files, and could not know that this one is in use.
    const swept = error instanceof Error && 'syscall' in error && error.syscall === 'link';
    if (systemCode(error) === 'ENOENT' && swept) return;
    throw refused('create', file, error);
  }
}

/**
 * Gives a file that was written under another name its own.
 *
 * @returns false if something has that name
 * @throws RunlockError `io` where the file system makes no hard links (exFAT, FAT, some FUSE mounts), else the
 *   system's own error
 */
export function linkNew(temporary: string, file: string): boolean {
  try {
    patiently(() => fs.linkSync(temporary, file));
    return true;
  } catch (error) {
    const code = systemCode(error) ?? '';
    if (code === 'EEXIST') return false;
    // Between two directories it may be the other one that can't be changed.
    if (!NO_LINKS.includes(code) || path.dirname(temporary) !== path.dirname(file)) throw error;
    throw new RunlockError(
      'io',
      `the file system of ${file} makes no hard links (${code}): use a disk that does (ext4, xfs, btrfs, NTFS)`,
      { path: file, cause: error },
    );
  }
}

function plainOrClose(fd: number, file: string): number {
  const stat = fs.fstatSync(fd);
  if (stat.isFile()) return fd;
  fs.closeSync(fd);
  throw notPlain(file, stat.isDirectory() ? 'a directory' : 'no regular file');
}

function notPlain(file: string, what: string): RunlockError {
  return new RunlockError('corrupt', `${file} must be a plain file, but is ${what}: move it away`, {
    path: file,
  });
}

/** An I/O error that, where permission is missing, also says whose the file is. */
function refused(doing: string, file: string, error: unknown): RunlockError {
  const plain = ioError(doing, file, error);
  if (systemCode(error) !== 'EACCES' && systemCode(error) !== 'EPERM') return plain;
  const whose = [file, path.dirname(file)].map(describeOwner).filter((text) => text !== '');
  return new RunlockError('io', `${plain.message}${whose.length > 0 ? ` (${whose.join('; ')})` : ''}`, {
    path: file,
    cause: error,
  });
}

function describeOwner(file: string): string {
  try {
    const stat = fs.lstatSync(file);
    return `${file} belongs to user ${stat.uid}, mode ${(stat.mode & 0o7777).toString(8).padStart(4, '0')}`;
  } catch {
    return '';
  }
}

/** Gives a new file the directory's bits and owner, where the file system knows such things at all. */
export function own(fd: number, ownership: Ownership): void {
  try {
    fs.fchmodSync(fd, ownership.mode & 0o666);
    if (ownership.owner !== null) fs.fchownSync(fd, ownership.owner.uid, ownership.owner.gid);
  } catch (error) {
    if (!['EPERM', 'ENOTSUP', 'ENOSYS', 'EINVAL'].includes(systemCode(error) ?? '')) throw error;
  }
}

/**
 * Whether a directory is there, and not by way of a link.
 *
 * @throws RunlockError `corrupt` if something else has its name
 */
export function isOwnDirectory(dir: string): boolean {
  const stat = fs.lstatSync(dir, { throwIfNoEntry: false });
  if (stat === undefined || stat.isDirectory()) return stat !== undefined;
  const what = stat.isSymbolicLink()
    ? 'a symbolic link'
    : stat.isFile()
      ? 'a file'
      : 'a device, FIFO or socket';
  throw new RunlockError('corrupt', `${dir} must be a directory, but is ${what}: move it away`, {
    path: dir,
  });
}

/** Makes one directory with its parent's bits and owner; the parent must be there. */
export function makeDirectory(dir: string, ownership: Ownership): void {
  try {
    fs.mkdirSync(dir, 0o700);
  } catch (error) {
    if (systemCode(error) === 'EEXIST' && isOwnDirectory(dir)) return;
    throw refused('make the directory', dir, error);
  }
  fs.chmodSync(dir, ownership.mode);
  if (ownership.owner !== null) fs.chownSync(dir, ownership.owner.uid, ownership.owner.gid);
}

/** Reads a whole open file as bytes, or null if it is larger than `max`. */
export function readAll(fd: number, max: number): Buffer | null {
  const { size } = fs.fstatSync(fd);
  if (size > max) return null;
  const buffer = Buffer.alloc(size);
  let length = 0;
  while (length < size) {
    const count = fs.readSync(fd, buffer, length, size - length, length);
    if (count === 0) break;
    length += count;
  }
  return buffer.subarray(0, length);
}

/** Writes all of it: one call may write a part and report success, on a nearly full disk above all. */
export function writeAll(fd: number, bytes: Uint8Array, position: number | null): void {
  let done = 0;
  while (done < bytes.length) {
    const at = position === null ? null : position + done;
    done += fs.writeSync(fd, bytes, done, bytes.length - done, at);
  }
}

/** Makes names in a directory survive a power cut. Windows can't open a directory for that, and needs not. */
export function syncDirectory(dir: string): void {
  if (process.platform === 'win32') return;
  const fd = fs.openSync(dir, O_RDONLY);
  try {
    fs.fsyncSync(fd);
  } finally {
    fs.closeSync(fd);
  }
}

/**
 * Makes the name of a file survive a power cut. Where its directory may be written but not read, by way of the file:
 * journals keep its new name with it, which is the best there is then.
 */
function syncName(file: string): void {
  try {
    syncDirectory(path.dirname(file));
  } catch (error) {
    if (systemCode(error) !== 'EACCES') throw error;
    const fd = fs.openSync(file, O_RDONLY);
    try {
      fs.fsyncSync(fd);
    } finally {
      fs.closeSync(fd);
    }
  }
}

/** Whether a path still names the file that a descriptor has open. */
export function isSameFile(fd: number, file: string): boolean {
  try {
    const open = fs.fstatSync(fd, { bigint: true });
    const named = fs.lstatSync(file, { bigint: true });
    return open.ino === named.ino && open.dev === named.dev;
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return false;
    throw ioError('look at', file, error);
  }
}

/** Sets the modification time of an open file to now. */
export function touch(fd: number, now: number): void {
  try {
    fs.futimesSync(fd, now / 1000, now / 1000);
  } catch (error) {
    if (systemCode(error) !== 'EPERM') throw error;
    // Who may write but does not own it: cutting to the same length refreshes the time as well.
    fs.ftruncateSync(fd, fs.fstatSync(fd).size);
  }
}

export function remove(file: string): void {
  try {
    patiently(() => fs.unlinkSync(file));
  } catch (error) {
    if (systemCode(error) !== 'ENOENT') throw refused('remove', file, error);
  }
}

/** The end of every temporary name, by which one that a kill left is known. */
export const TEMPORARY = '.tmp';

/** A name beside a file. Need not be secret, and O_EXCL sees to a clash: node:crypto would cost 2 ms to load. */
export function temporaryName(file: string): string {
  return `${file}.${process.pid}${Math.random().toString(36).slice(1)}${TEMPORARY}`;
}

/** A temporary file that can't be removed now is swept by a later taker, and no reason to fail. */
export function discardTemporary(file: string): void {
  try {
    fs.unlinkSync(file);
  } catch {
    // Not there, or left for the sweep.
  }
}

/** A file written whole under a temporary name, to be put in place at one stroke. */
export class Staged {
  readonly #file: string;
  readonly #temporary: string;
  #there = true;

  private constructor(file: string, temporary: string) {
    this.#file = file;
    this.#temporary = temporary;
  }

  /**
   * @param ownership the bits and owner of the new file, or what gives them to it while it is still empty
   * @param options.in the directory of the temporary file, where it is not the file's own
   * @throws RunlockError `io`; nothing is left behind then
   */
  static write(
    file: string,
    content: string | Uint8Array,
    ownership: Ownership | ((fd: number) => void),
    options: { sync: boolean; in?: string },
  ): Staged {
    const temporary = temporaryName(
      options.in === undefined ? file : path.join(options.in, path.basename(file)),
    );
    const staged = new Staged(file, temporary);
    try {
      const fd = fs.openSync(temporary, O_WRONLY | O_CREAT | O_EXCL, 0o600);
      try {
        if (typeof ownership === 'function') ownership(fd);
        else own(fd, ownership);
        writeAll(fd, typeof content === 'string' ? Buffer.from(content) : content, null);
        if (options.sync) fs.fsyncSync(fd);
      } finally {
        fs.closeSync(fd);
      }
      return staged;
    } catch (error) {
      staged.discard();
      if (error instanceof RunlockError) throw error;
      throw refused('write', file, error);
    }
  }

  /**
   * Puts it in place if nothing has that name. Returns false if something has.
   *
   * @throws RunlockError `io`; it is not in place then
   */
  createFile(options: { sync: boolean }): boolean {
    try {
      if (!linkNew(this.#temporary, this.#file)) return false;
      if (options.sync) this.#syncOrTakeBack();
      return true;
    } catch (error) {
      if (error instanceof RunlockError) throw error;
      throw refused('create', this.#file, error);
    } finally {
      this.discard();
    }
  }

  #syncOrTakeBack(): void {
    try {
      syncName(this.#file);
    } catch (error) {
      fs.unlinkSync(this.#file);
      throw error;
    }
  }

  /** Puts it in place of what has that name. */
  replaceFile(options: { sync: boolean }): void {
    try {
      patiently(() => fs.renameSync(this.#temporary, this.#file));
      this.#there = false;
    } catch (error) {
      throw refused('replace', this.#file, error);
    }
    if (options.sync) syncName(this.#file);
  }

  discard(): void {
    if (this.#there) discardTemporary(this.#temporary);
    this.#there = false;
  }
}
