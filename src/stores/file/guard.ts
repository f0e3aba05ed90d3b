import fs from 'node:fs';
import type { Clock } from '../../clock.ts';
import { isSameFile, type Ownership, openOrCreate, openPlain, readAll, writeAll } from '../../disk/files.ts';
import { tryLock } from '../../disk/kernel-lock.ts';
import { ioError, RunlockError } from '../../errors.ts';
import type { LastRun } from '../../store.ts';

/** How long a contender waits for the guard, ms. It is held for milliseconds; who stops inside must not hang others. */
const DEADLINE_MS = 5_000;

const NO_HASH = '-'.repeat(64);
const LINE = /^(\d{16}) (given|ended) ([0-9a-f]{64}|-{64})\n$/;

/**
 * `lock.guard`, kernel-locked: while one has it, nobody else changes this lock. The kernel gives it back when the
 * process dies. Its content is of one width and written in place, so that a full disk can't cut it.
 */
export class Guard {
  readonly #fd: number;
  readonly #file: string;

  private constructor(fd: number, file: string) {
    this.#fd = fd;
    this.#file = file;
  }

  /**
   * @throws RunlockError `guardBusy` after 5 s, `noKernelLock` if the file system grants the lock twice or not at all
   */
  static async take(file: string, ownership: Ownership, clock: Clock): Promise<Guard> {
    const deadline = clock.monotonic() + DEADLINE_MS;
    for (let tries = 0; ; tries += 1) {
      const fd = openOrCreate(file, 'write', ownership);
      try {
        if (tryLock(fd, 'exclusive', file)) {
          const guard = new Guard(fd, file);
          // A cleaner may have removed the file between open and lock: then this lock keeps nobody out.
          if (guard.isInPlace()) {
            guard.#proveExclusive();
            return guard;
          }
        }
      } catch (error) {
        fs.closeSync(fd);
        throw error;
      }
      fs.closeSync(fd);
      if (clock.monotonic() > deadline) {
        throw new RunlockError(
          'guardBusy',
          `${file} is kept by another process for more than ${DEADLINE_MS / 1000} s: is a runlock stopped in the middle of a change?`,
          { path: file },
        );
      }
      // Jitter, or contenders that were let go together would stay together.
      await clock.sleep(Math.min(50, 1 + tries) * (0.5 + Math.random()));
    }
  }

  /** Whether the guard file is still the one that is locked. */
  isInPlace(): boolean {
    return isSameFile(this.#fd, this.#file);
  }

  /** A file system that grants the lock twice would let two runs in: asked each time, on the real file. */
  #proveExclusive(): void {
    const second = openPlain(this.#file, 'write');
    if (second === null) return;
    try {
      if (tryLock(second, 'exclusive', this.#file)) {
        throw new RunlockError(
          'noKernelLock',
          `the file system of ${this.#file} grants one lock to two: put the state directory on a local disk`,
          { path: this.#file },
        );
      }
    } finally {
      fs.closeSync(second);
    }
  }

  read(): LastRun | null {
    return parseLast(readAll(this.#fd, 4096));
  }

  write(last: LastRun): void {
    const state = last.ended ? 'ended' : 'given';
    const line = `${String(last.run).padStart(16, '0')} ${state} ${last.tokenHash ?? NO_HASH}\n`;
    try {
      writeAll(this.#fd, Buffer.from(line), 0);
      // What another program made of the file must not stay behind the line.
      if (fs.fstatSync(this.#fd).size !== line.length) fs.ftruncateSync(this.#fd, line.length);
      // A number must not be given out twice after a power cut. That a run ended is said by its record too.
      if (!last.ended) fs.fsyncSync(this.#fd);
    } catch (error) {
      throw ioError('write', this.#file, error);
    }
  }

  close(): void {
    fs.closeSync(this.#fd);
  }
}

/** Reads the last run without the guard. Null where it is missing or can't be read as one. */
export function readLast(file: string): LastRun | null {
  const fd = openPlain(file, 'read');
  if (fd === null) return null;
  try {
    return parseLast(readAll(fd, 4096));
  } finally {
    fs.closeSync(fd);
  }
}

function parseLast(bytes: Buffer | null): LastRun | null {
  const match = bytes === null ? null : LINE.exec(bytes.toString('latin1'));
  if (match === null) return null;
  const [, run, state, hash] = match;
  if (run === undefined || Number(run) === 0) return null;
  return {
    run: Number(run),
    ended: state === 'ended',
    tokenHash: hash === undefined || hash === NO_HASH ? null : hash,
  };
}
