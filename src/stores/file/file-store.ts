import fs from 'node:fs';
import path from 'node:path';
import type { Clock } from '../../clock.ts';
import { isOwnDirectory, openOrCreate, openPlain, ownershipOf, readAll, writeAll } from '../../disk/files.ts';
import { ioError, RunlockError } from '../../errors.ts';
import type { HistoryEvent, TornLine } from '../../history.ts';
import type { LockRecord } from '../../record.ts';
import { recordIn } from '../../rules.ts';
import type { Committed, LastRun, Sighting, Step, Store, Tie } from '../../store.ts';
import { Collision, commit, completeEnd, type GuardedLock } from './commit.ts';
import { isThere, makeLockDirectory, refuseSharedMount, refuseStrangeFolders } from './directory.ts';
import { Guard, readLast } from './guard.ts';
import { keepRejected } from './handed-in.ts';
import { appendEvent, readEvents } from './history-file.ts';
import { endOf, findLastRun, isUsed } from './last-run.ts';
import { type LiveFileHandle, listNames, probe, readCopy, touchFile } from './live.ts';
import { beatLockFile, readLockFile } from './lock-file.ts';
import { readMarker } from './marker-file.ts';
import {
  type LockPaths,
  livePath,
  lockDirectory,
  pathsOf,
  pingPath,
  recordPath,
  resultPath,
} from './paths.ts';

/** How much of the history a look reads to see whether a run has ended; a change reads all it needs. */
const LOOK_BYTES = 16 * 1024;

/** What happened on the way that a person should hear of. */
export type Notice =
  | { readonly type: 'madeDirectory'; readonly path: string }
  | { readonly type: 'markerSetAside'; readonly path: string; readonly to: string }
  /** The change is made, but something of it is left for the next command to complete. */
  | { readonly type: 'leftToNext'; readonly error: RunlockError };

export interface FileStoreOptions {
  /** The state directory, absolute. */
  readonly base: string;
  /** The named lock's folder; null: the default lock. */
  readonly folder: string | null;
  readonly clock: Clock;
  /** The configuration says that this machine alone uses the directory, whatever mount it is on. */
  readonly singleMachine: boolean;
  readonly notice: (notice: Notice) => void;
}

/** A lock in a directory. Each change is made under the kernel lock of its guard. */
export class FileStore implements Store {
  readonly where: string;
  readonly #base: string;
  readonly #folder: string | null;
  readonly #clock: Clock;
  readonly #singleMachine: boolean;
  readonly #notice: (notice: Notice) => void;
  readonly #paths: LockPaths;
  #live: LiveFileHandle | null = null;

  constructor(options: FileStoreOptions) {
    this.#base = options.base;
    this.#folder = options.folder;
    this.#clock = options.clock;
    this.#singleMachine = options.singleMachine;
    this.#notice = options.notice;
    this.#paths = pathsOf(lockDirectory(options.base, options.folder));
    this.where = this.#paths.dir;
  }

  async look(): Promise<Sighting> {
    return this.#guarded('look at', () => {
      isThere(this.#base);
      this.#refuseSharedMount();
      refuseStrangeFolders(this.#base, this.#folder, this.#paths);
      return this.#see(readLast(this.#paths.guard) ?? findLastRun(this.#paths), LOOK_BYTES);
    });
  }

  async transact<T>(decide: (seen: Sighting) => Step<T>): Promise<Committed<T>> {
    this.#guarded('prepare', () => this.#prepare());
    for (let tries = 0; ; tries += 1) {
      const ownership = ownershipOf(this.#paths.dir);
      const guard = await Guard.take(this.#paths.guard, ownership, this.#clock);
      try {
        const lock: GuardedLock = {
          paths: this.#paths,
          guard,
          ownership,
          live: this.#live,
          markerSetAside: (to) => this.#notice({ type: 'markerSetAside', path: this.#paths.marker, to }),
          leftToNext: (error) =>
            this.#notice({ type: 'leftToNext', error: ioError('tidy up', this.where, error) }),
        };
        const done = this.#guarded('change', () => this.#change(lock, decide));
        if (done !== null) return done;
      } catch (error) {
        if (!(error instanceof Collision)) throw error;
        if (tries > 100) {
          throw new RunlockError(
            'guardBusy',
            `${this.where} is changed by others all the time: is a cleaner removing lock files?`,
            {
              path: this.where,
            },
          );
        }
      } finally {
        guard.close();
      }
      await this.#clock.sleep(5 * Math.random());
    }
  }

  /** One try under the guard. Null: the guard was removed meanwhile, try again. */
  #change<T>(lock: GuardedLock, decide: (seen: Sighting) => Step<T>): Committed<T> | null {
    const { guard } = lock;
    // Once more: whoever has waited for the guard has not looked for a while.
    refuseStrangeFolders(this.#base, this.#folder, this.#paths);
    let last = guard.read() ?? findLastRun(this.#paths);
    if (completeEnd(lock, last) !== null) last = guard.read() ?? findLastRun(this.#paths);

    const step = decide(this.#see(last, Infinity));
    if (step.change === null) return { value: step.value, tie: null };
    if (!guard.isInPlace()) return null;

    const live = commit(lock, step.change, last, this.#clock.now());
    if (live !== null) this.#live = live;
    if (step.change.type === 'end' || step.change.type === 'cancel') this.#live = null;
    if (step.change.type === 'take' && !guard.isInPlace() && !this.#confirm(step.change.record)) {
      this.#live?.unlock();
      this.#live = null;
      return null;
    }
    return { value: step.value, tie: live === null ? null : tieOf(live) };
  }

  /**
   * The guard was removed while we were taking the lock, so someone else may have had a guard too. Whoever changes
   * lock.json also locks that very file, so what stands there now tells who has it.
   */
  #confirm(record: LockRecord): boolean {
    const current = recordIn(readLockFile(this.#paths.lock));
    return current?.run === record.run && current?.tokenHash === record.tokenHash;
  }

  #see(last: LastRun | null, historyBytes: number): Sighting {
    const paths = this.#paths;
    const lock = readLockFile(paths.lock);
    const given = last?.ended === false ? last.run : null;
    const run = lock === null ? given : (recordIn(lock)?.run ?? null);
    const ended =
      run !== null && ((last?.run === run && last.ended) || endOf(paths, run, historyBytes) !== null);
    const sight = lock ?? (run === null || ended ? null : readCopy(paths, run));
    const live = run !== null && recordIn(sight)?.live === true;
    const lost = given !== null && lock !== null && recordIn(lock) === null;
    return {
      now: this.#clock.now(),
      lock: sight === null ? null : { ...sight, ended },
      identity: lock?.identity ?? (sight === null ? 'none' : `live ${run}`),
      liveFile: live ? probe(paths, run) : 'unknown',
      last,
      nextRun: this.#nextRun(last, historyBytes),
      lastCopy: lost ? recordIn(readCopy(paths, given)) : null,
      marker: readMarker(paths.marker),
    };
  }

  /** A guard that was put back from a copy remembers too small a number. */
  #nextRun(last: LastRun | null, historyBytes: number): number {
    const next = (last?.run ?? 0) + 1;
    return isUsed(this.#paths, next, historyBytes) ? (findLastRun(this.#paths)?.run ?? 0) + 1 : next;
  }

  #refuseSharedMount(): void {
    if (!this.#singleMachine) refuseSharedMount(this.#paths.dir);
  }

  #prepare(): void {
    this.#refuseSharedMount();
    if (makeLockDirectory(this.#base, this.#folder, this.#paths))
      this.#notice({ type: 'madeDirectory', path: this.#base });
  }

  async beat(run: number, tokenHash: string | null): Promise<'ok' | 'missing' | 'other'> {
    const now = this.#clock.now();
    return this.#guarded('refresh', () => {
      refuseStrangeFolders(this.#base, this.#folder, this.#paths);
      const mine = (record: LockRecord) => record.run === run && record.tokenHash === tokenHash;
      const result = beatLockFile(this.#paths.lock, now, mine);
      // Cleaners that go by age leave these alone then.
      if (result !== 'other')
        for (const file of [this.#paths.guard, this.#paths.marker, livePath(this.#paths, run)])
          touchFile(file, now);
      return result;
    });
  }

  async watch(run: number): Promise<void> {
    this.#guarded('write', () => {
      const file = pingPath(livePath(this.#paths, run));
      writePing(openOrCreate(file, 'write', ownershipOf(this.#paths.dir)));
    });
  }

  async ping(run: number): Promise<void> {
    this.#guarded('refresh', () => {
      const fd = openPlain(pingPath(livePath(this.#paths, run)), 'write');
      if (fd !== null) writePing(fd);
    });
  }

  async lastPing(run: number): Promise<string> {
    return this.#guarded('read', () => {
      const fd = openPlain(pingPath(livePath(this.#paths, run)), 'read');
      if (fd === null) return '';
      try {
        return readAll(fd, 4096)?.toString('latin1') ?? '';
      } finally {
        fs.closeSync(fd);
      }
    });
  }

  async keepRejected(run: number, bytes: Uint8Array): Promise<string> {
    return this.#guarded('write', () => keepRejected(this.#paths, run, bytes, ownershipOf(this.#paths.dir)));
  }

  async append(event: HistoryEvent): Promise<void> {
    this.#guarded('prepare', () => this.#prepare());
    this.#guarded('write', () =>
      appendEvent(this.#paths, event, ownershipOf(this.#paths.dir), { sync: false }),
    );
  }

  async endOf(run: number): Promise<HistoryEvent | null> {
    return this.#guarded('read', () => endOf(this.#paths, run));
  }

  async events(): Promise<{ events: HistoryEvent[]; torn: TornLine[] }> {
    return this.#guarded('read', () => readEvents(this.#paths));
  }

  recordPath(run: number): string {
    return recordPath(this.#paths, run);
  }

  livePath(run: number): string {
    return livePath(this.#paths, run);
  }

  letGo(): void {
    this.#live?.unlock();
    this.#live = null;
  }

  /** Gives every error of the system a path and a code of ours. */
  #guarded<T>(doing: string, act: () => T): T {
    try {
      return act();
    } catch (error) {
      if (error instanceof RunlockError || error instanceof Collision) throw error;
      throw ioError(doing, this.where, error);
    }
  }
}

/** In place and of one width, so that a ping works on a full disk too. */
function writePing(fd: number): void {
  try {
    writeAll(fd, Buffer.from(process.hrtime.bigint().toString().padStart(24, '0')), 0);
  } finally {
    fs.closeSync(fd);
  }
}

function tieOf({ descriptor, path: file }: LiveFileHandle): Tie {
  return { descriptor, path: file, resultPath: resultPath(file) };
}

/**
 * Makes the state directory with the folders of its default lock, where they are missing.
 *
 * @returns whether the directory itself was made
 * @throws RunlockError `io`
 */
export function makeStateDirectory(base: string): boolean {
  return makeLockDirectory(base, null, pathsOf(base));
}

/** The folders of the named locks under a state directory. */
export function listLockFolders(base: string): string[] {
  const dir = path.join(base, 'locks');
  return isOwnDirectory(dir) ? listNames(dir).sort() : [];
}
