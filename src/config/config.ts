import { lstatSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { ioError, systemCode } from '../errors.ts';
import { type Gate, parseGate, requireQuota } from '../gates/parse.ts';
import { type LockName, parseLockName } from '../names.ts';
import { printable } from '../printable.ts';
import { decodeText, findDuplicateKey } from '../text.ts';
import { parse, readConfigFile } from './file.ts';
import { type LedgerSettings, readLedgers } from './ledgers.ts';
import { type Quota, readQuotas } from './quotas.ts';
import {
  asConfigError,
  describe,
  duration,
  durationOr,
  inside,
  type KeyPath,
  type ReadBy,
  type Readers,
  readBoolean,
  readObject,
  readText,
  requireObject,
  where,
  wrong,
} from './readers.ts';

/** What the configuration says about one lock. Flags may still override it. */
export interface LockSettings {
  /** How old a heartbeat may be, in ms; null is `never`. */
  holdMs: number | null;
  /** How long a running mark counts after its run was last known to work, in ms. */
  freshMs: number;
  /** How long an unknown mark counts, in ms; null is until it is settled. */
  unknownForMs: number | null;
  /** How long `run` lets its command run, in ms; null is without limit. */
  timeoutMs: number | null;
  /** How long after TERM comes KILL, in ms. */
  killAfterMs: number;
  /** How often the command must call `hb`, in ms; null is never. */
  watchdogMs: number | null;
  /** The gates that are asked before a run begins, unless the command line leaves them out. */
  gates: readonly Gate[];
}

export interface Config {
  /** Absolute path of the file; null if there is none. */
  readonly path: string | null;
  /** Absolute path of the state directory, `runs` beside the file unless it says otherwise; null without a file. */
  readonly dir: string | null;
  /** The engine's URL, as written; null is the state directory. It may hold a password: keep it out of messages. */
  readonly store: string | null;
  /** The state directory may be on a network or FUSE mount, because this machine alone uses it. */
  readonly singleMachine: boolean;
  /** By name, in its composed Unicode form (NFC). */
  readonly ledgers: ReadonlyMap<string, LedgerSettings>;
  /** By name, in its composed Unicode form (NFC). */
  readonly quotas: ReadonlyMap<string, Quota>;
  settingsFor(name: LockName): LockSettings;
}

export const FILE_NAME = 'runlock.json';
const DEFAULT_DIR = 'runs';

const DEFAULT_HOLD_MS = 45 * 60_000;
const DEFAULT_FRESH_MS = 2 * 3_600_000;
const DEFAULT_KILL_AFTER_MS = 10_000;

/** The keys that stand at the top for every lock, and under `locks` for one. */
const LOCK_KEYS = {
  hold: durationOr('never'),
  fresh: duration(),
  unknownFor: durationOr('settled'),
  timeout: duration(),
  killAfter: duration({ zero: true }),
  watchdog: duration(),
  gates: readGates,
} satisfies Readers;

/** All keys of the file: a new one is one more line here. */
const TOP_KEYS = {
  $schema: readText,
  dir: readText,
  store: readText,
  singleMachine: readBoolean,
  ...LOCK_KEYS,
  ledgers: readLedgers,
  quotas: readQuotas,
  locks: readLocks,
} satisfies Readers;

/**
 * The nearest `runlock.json` in `start` or above it; `start` need not exist. Anything of that name counts, a
 * dangling link too: passing over it could choose another directory, where the lock is free.
 * @param top a directory above `start` that the search does not leave
 * @throws RunlockError 'io' if a directory on the way can't be searched
 */
export function findConfig(start: string, top?: string): string | null {
  for (let dir = resolve(start); ; dir = dirname(dir)) {
    const path = join(dir, FILE_NAME);
    try {
      if (lstatSync(path, { throwIfNoEntry: false }) !== undefined) return path;
    } catch (error) {
      if (systemCode(error) !== 'ENOTDIR') throw ioError('look for', path, error);
    }
    if (dir === dirname(dir) || dir === top) return null;
  }
}

/**
 * The configuration in the file `path`; the defaults alone if that is null.
 * @throws RunlockError 'config' with the place, what was expected and what was got; 'input' for a wrong
 *   encoding; 'io' if the file can't be read
 */
export function loadConfig(path: string | null): Config {
  if (path === null) return makeConfig(null, {});
  const file = resolve(path);
  const text = decodeText(readConfigFile(file), file);
  const value = parse(text, file);
  const duplicate = findDuplicateKey(text);
  if (duplicate !== null) {
    const key = printable(JSON.stringify(duplicate.key), 60);
    throw wrong({ file, keys: [] }, 'each key once', `a second ${key} at ${duplicate.place}`);
  }
  const top = { file, keys: [] };
  const read = readObject(TOP_KEYS, value, top);
  const config = makeConfig(file, read);
  requireQuotas(read.gates, inside(top, 'gates'), config);
  for (const [name, lock] of read.locks?.values() ?? []) {
    requireQuotas(lock.gates, inside(inside(inside(top, 'locks'), name), 'gates'), config);
  }
  return config;
}

/** Gates may stand before the quotas that they name. */
function requireQuotas(gates: readonly Gate[] = [], at: KeyPath, config: Config): void {
  for (const [index, gate] of gates.entries()) {
    if (gate.type !== 'quota') continue;
    const place = inside(at, String(index));
    asConfigError(
      place,
      () => requireQuota(gate, config),
      () => `${where(place)}: `,
    );
  }
}

function makeConfig(path: string | null, top: ReadBy<typeof TOP_KEYS>): Config {
  return {
    path,
    dir: path === null ? null : resolve(dirname(path), top.dir ?? DEFAULT_DIR),
    store: top.store ?? null,
    singleMachine: top.singleMachine ?? false,
    ledgers: top.ledgers ?? new Map(),
    quotas: top.quotas ?? new Map(),
    settingsFor(name) {
      const own = { ...top, ...top.locks?.get(name.key)?.[1] };
      const freshMs = own.fresh ?? DEFAULT_FRESH_MS;
      return {
        holdMs: own.hold === undefined ? DEFAULT_HOLD_MS : own.hold,
        freshMs,
        unknownForMs: own.unknownFor === undefined ? freshMs : own.unknownFor,
        timeoutMs: own.timeout ?? null,
        killAfterMs: own.killAfter ?? DEFAULT_KILL_AFTER_MS,
        watchdogMs: own.watchdog ?? null,
        gates: own.gates ?? [],
      };
    },
  };
}

/** Whether there are such quotas is checked when the whole file is read. */
function readGates(value: unknown, at: KeyPath): readonly Gate[] {
  if (!Array.isArray(value)) throw wrong(at, 'an array of gates', describe(value));
  return value.map((entry, index) => {
    const place = inside(at, String(index));
    const text = readText(entry, place);
    return asConfigError(
      place,
      () => parseGate(text, dirname(at.file)),
      () => `${where(place)}: `,
    );
  });
}

/** By the lock's key, since its name has many spellings; with the one that is used here. */
function readLocks(
  value: unknown,
  at: KeyPath,
): ReadonlyMap<string, readonly [string, ReadBy<typeof LOCK_KEYS>]> {
  const locks = new Map<string, readonly [string, ReadBy<typeof LOCK_KEYS>]>();
  for (const [text, entry] of requireObject(value, at)) {
    const { key } = asConfigError(
      at,
      () => parseLockName(text),
      () => `${where(at)}: `,
    );
    const same = locks.get(key);
    if (same !== undefined) {
      throw wrong(
        at,
        'each lock once',
        `${describe(same[0])} and ${describe(text)}, which are the same lock`,
      );
    }
    locks.set(key, [text, readObject(LOCK_KEYS, entry, inside(at, text))]);
  }
  return locks;
}
