import fs from 'node:fs';
import path from 'node:path';
import type { Clock } from '../clock.ts';
import {
  discardTemporary,
  isSameFile,
  type Ownership,
  openOrCreate,
  openPlain,
  ownershipOf,
  ownershipOfNew,
  readAll,
  Staged,
  TEMPORARY,
} from '../disk/files.ts';
import { tryLock } from '../disk/kernel-lock.ts';
import { ioError, RunlockError, systemCode } from '../errors.ts';

/** How long an add waits for others, ms. Each takes milliseconds; who stops in the middle must not hang the rest. */
const DEADLINE_MS = 10_000;

/** Age of a temporary file that nobody can be writing any more, ms. */
const LEFTOVER_MS = 60_000;

/** What node can hold as one text. */
const MAX_BYTES = 2 ** 28;

/** A ledger's bytes, and what tells whether they still stand there. */
export interface Snapshot {
  readonly bytes: Buffer;
  readonly stat: fs.BigIntStats;
}

/**
 * The file that a ledger's path leads to: a link stays a link, and who names the file by another link locks the same one.
 *
 * @returns null if there is nothing of that name
 * @throws RunlockError `corrupt` for a link to nowhere, `io` if the system refuses
 */
export function realFile(file: string): string | null {
  try {
    return fs.realpathSync(file);
  } catch (cause) {
    if (systemCode(cause) !== 'ENOENT') throw ioError('open the ledger', file, cause);
    if (fs.lstatSync(file, { throwIfNoEntry: false }) === undefined) return null;
    throw new RunlockError('corrupt', `the ledger ${file} is a link to what is not there`, {
      path: file,
      cause,
    });
  }
}

/**
 * Reads a ledger as it is now. Needs no lock: writers put a whole file in place.
 *
 * @returns null if there is none
 * @throws RunlockError `io`, `corrupt`
 */
export function readLedgerFile(real: string): Snapshot | null {
  const fd = openPlain(real, 'read');
  if (fd === null) return null;
  try {
    const stat = fs.fstatSync(fd, { bigint: true });
    const bytes = readAll(fd, MAX_BYTES);
    if (bytes !== null) return { bytes, stat };
    throw new RunlockError(
      'corrupt',
      `the ledger ${real} is too large: expected at most ${MAX_BYTES} bytes`,
      {
        path: real,
      },
    );
  } catch (error) {
    throw error instanceof RunlockError ? error : ioError('read', real, error);
  } finally {
    fs.closeSync(fd);
  }
}

/**
 * A ledger that no other runlock changes meanwhile. The lock is on the very file that is replaced, and whoever gets
 * one looks whether the file is still in place: so there is no second file that could go missing, or stay behind.
 * Only on Windows, where an open file can't be replaced, one beside it is locked.
 */
export class LockedLedger {
  readonly #named: string;
  readonly #real: string;
  readonly #fd: number;
  readonly #locked: string;

  private constructor(named: string, real: string, fd: number, locked: string) {
    this.#named = named;
    this.#real = real;
    this.#fd = fd;
    this.#locked = locked;
  }

  /**
   * @returns null if there is no such file
   * @throws RunlockError `guardBusy` after 10 s, `noKernelLock`, `io`, `corrupt`
   */
  static async open(named: string, clock: Clock): Promise<LockedLedger | null> {
    const deadline = clock.monotonic() + DEADLINE_MS;
    for (let tries = 0; ; tries += 1) {
      const real = realFile(named);
      if (real === null) return null;
      const ledger = LockedLedger.#tryOpen(named, real);
      if (ledger !== null) return ledger;
      if (clock.monotonic() > deadline) {
        throw new RunlockError(
          'guardBusy',
          `the ledger ${real} is kept by another process for more than ${DEADLINE_MS / 1000} s: is a runlock stopped in the middle of an add?`,
          { path: real },
        );
      }
      // Jitter, or those who were let go together would stay together.
      await clock.sleep(Math.min(25, 1 + tries) * (0.5 + Math.random()));
    }
  }

  /** Null if another has it, or has replaced it meanwhile. */
  static #tryOpen(named: string, real: string): LockedLedger | null {
    const beside = process.platform === 'win32';
    const locked = beside ? `${real}.lock` : real;
    const fd = beside
      ? openOrCreate(locked, 'write', ownershipOf(path.dirname(real)))
      : openPlain(locked, 'write');
    if (fd === null) return null;
    let taken = false;
    try {
      if (!tryLock(fd, 'exclusive', locked) || !isSameFile(fd, locked)) return null;
      requireExclusive(fd, locked);
      taken = true;
      return new LockedLedger(named, real, fd, locked);
    } finally {
      if (!taken) fs.closeSync(fd);
    }
  }

  /** @returns null if it was removed meanwhile */
  read(): Snapshot | null {
    return readLedgerFile(this.#real);
  }

  /**
   * Puts other bytes in place of those that were read, with the same mode and owner, durably.
   *
   * @returns false, with nothing changed, if somebody who doesn't ask for the lock has changed it since
   * @throws RunlockError `io`; the old file stands, except where only its durability is in doubt
   */
  replace(before: Snapshot, bytes: Buffer): boolean {
    const staged = Staged.write(this.#real, bytes, (fd) => keepOwner(fd, before.stat, this.#real), {
      sync: true,
    });
    try {
      // As late as possible: between this look and the rename nothing else happens.
      if (!this.isUnchanged(before)) return false;
      staged.replaceFile({ sync: true });
      return true;
    } catch (error) {
      throw error instanceof RunlockError ? error : ioError('make durable', this.#real, error);
    } finally {
      staged.discard();
    }
  }

  /** Whether the path still leads to this file, and the file still holds what was read. */
  isUnchanged({ bytes, stat }: Snapshot): boolean {
    if (realFile(this.#named) !== this.#real || !isSameFile(this.#fd, this.#locked)) return false;
    const now = readLedgerFile(this.#real);
    return (
      now !== null &&
      now.stat.ino === stat.ino &&
      now.stat.dev === stat.dev &&
      now.stat.mtimeNs === stat.mtimeNs &&
      now.bytes.equals(bytes)
    );
  }

  /** Removes temporary files that killed adds have left beside it, as far as we may: they are in nobody's way. */
  sweep(now: number): void {
    const dir = path.dirname(this.#real);
    const base = `${path.basename(this.#real)}.`;
    for (const name of listed(dir)) {
      if (!name.startsWith(base) || !/^\d+\.[0-9a-z]+$/.test(name.slice(base.length, -TEMPORARY.length)))
        continue;
      if (!name.endsWith(TEMPORARY)) continue;
      const file = path.join(dir, name);
      if (isLeftover(file, now)) discardTemporary(file);
    }
  }

  close(): void {
    fs.closeSync(this.#fd);
  }
}

/** A directory that may be written but not listed shows nothing. */
function listed(dir: string): string[] {
  try {
    return fs.readdirSync(dir);
  } catch {
    return [];
  }
}

function isLeftover(file: string, now: number): boolean {
  try {
    const stat = fs.lstatSync(file);
    return stat.isFile() && now - stat.mtimeMs > LEFTOVER_MS;
  } catch {
    return false;
  }
}

/** A file system that grants the lock twice would let two write at once: asked each time, on the real file. */
function requireExclusive(fd: number, file: string): void {
  const second = openPlain(file, 'write');
  if (second === null) return;
  try {
    if (!tryLock(second, 'exclusive', file)) return;
    // Another file by now: the last look before the rename sees it.
    if (!isSameFile(fd, file) || !isSameFile(second, file)) return;
    throw new RunlockError(
      'noKernelLock',
      `the file system of ${file} grants one lock to two: use a local disk`,
      {
        path: file,
      },
    );
  } finally {
    fs.closeSync(second);
  }
}

/**
 * Gives the new file the mode and owner of the old one before anything is in it, and looks whether it has them.
 *
 * @throws RunlockError `io` if it can't have them
 */
function keepOwner(fd: number, old: fs.BigIntStats, file: string): void {
  const mine = fs.fstatSync(fd, { bigint: true });
  try {
    if (mine.uid !== old.uid || mine.gid !== old.gid) fs.fchownSync(fd, Number(old.uid), Number(old.gid));
  } catch (cause) {
    throw new RunlockError(
      'io',
      `could not replace ${file}: it belongs to user ${old.uid}, group ${old.gid}, and user ${mine.uid} can't leave it theirs (${systemCode(cause) ?? cause})`,
      { path: file, cause },
    );
  }
  const mode = Number(old.mode & 0o7777n);
  if ((fs.fstatSync(fd).mode & 0o7777) !== mode) fs.fchmodSync(fd, mode);
  if ((fs.fstatSync(fd).mode & 0o7777) !== mode) {
    throw new RunlockError('io', `could not replace ${file}: its mode ${mode.toString(8)} can't be kept`, {
      path: file,
    });
  }
}

/**
 * Makes a first ledger, unless one is there by then: as any file is made, by root with the directory's owner, so that
 * root's job does not shut the user out.
 *
 * @returns false if something has that name
 * @throws RunlockError `io`
 */
export function createLedgerFile(file: string, bytes: Buffer): boolean {
  return Staged.write(file, bytes, ownershipFor(file), { sync: true }).createFile({ sync: true });
}

function ownershipFor(file: string): Ownership {
  try {
    return ownershipOfNew(file);
  } catch (cause) {
    throw ioError('create', file, cause);
  }
}
