import { closeSync, constants, fstatSync, lstatSync, openSync, readFileSync, type Stats } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { parseDuration } from './clock.ts';
import { ioError, RunlockError, systemCode } from './errors.ts';
import { nearest } from './guess.ts';
import { type LockName, parseLockName } from './names.ts';
import { printable } from './printable.ts';
import { decodeText, findDuplicateKey, parseJson } from './text.ts';

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
  settingsFor(name: LockName): LockSettings;
}

const FILE_NAME = 'runlock.json';
const DEFAULT_DIR = 'runs';
const MAX_BYTES = 2 ** 20;

const DEFAULT_HOLD_MS = 45 * 60_000;
const DEFAULT_FRESH_MS = 2 * 3_600_000;
const DEFAULT_KILL_AFTER_MS = 10_000;

/** A place in the file: `/srv/app/runlock.json: locks.video.hold`. */
interface Place {
  readonly file: string;
  /** Empty at the top. */
  readonly keys: readonly string[];
}

/** Checks a value and turns it into what the program works with. Throws RunlockError 'config'. */
type Reader<T> = (value: unknown, at: Place) => T;
type Readers = Readonly<Record<string, Reader<unknown>>>;
type ReadBy<R extends Readers> = { [K in keyof R]?: ReturnType<R[K]> };

/** The keys that stand at the top for every lock, and under `locks` for one. */
const LOCK_KEYS = {
  hold: durationOr('never'),
  fresh: duration(),
  unknownFor: durationOr('settled'),
  timeout: duration(),
  killAfter: duration({ zero: true }),
  watchdog: duration(),
} satisfies Readers;

/** All keys of the file: a new one is one more line here. */
const TOP_KEYS = {
  $schema: readText,
  dir: readText,
  store: readText,
  singleMachine: readBoolean,
  ...LOCK_KEYS,
  locks: readLocks,
} satisfies Readers;

/**
 * The nearest `runlock.json` in `start` or above it; `start` need not exist. Anything of that name counts, a
 * dangling link too: passing over it could choose another directory, where the lock is free.
 * @throws RunlockError 'io' if a directory on the way can't be searched
 */
export function findConfig(start: string): string | null {
  for (let dir = resolve(start); ; dir = dirname(dir)) {
    const path = join(dir, FILE_NAME);
    try {
      if (lstatSync(path, { throwIfNoEntry: false }) !== undefined) return path;
    } catch (error) {
      if (systemCode(error) !== 'ENOTDIR') throw ioError('look for', path, error);
    }
    if (dir === dirname(dir)) return null;
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
  return makeConfig(file, readObject(TOP_KEYS, value, { file, keys: [] }));
}

function makeConfig(path: string | null, top: ReadBy<typeof TOP_KEYS>): Config {
  return {
    path,
    dir: path === null ? null : resolve(dirname(path), top.dir ?? DEFAULT_DIR),
    store: top.store ?? null,
    singleMachine: top.singleMachine ?? false,
    settingsFor(name) {
      const own = { ...top, ...top.locks?.get(name.key) };
      const freshMs = own.fresh ?? DEFAULT_FRESH_MS;
      return {
        holdMs: own.hold === undefined ? DEFAULT_HOLD_MS : own.hold,
        freshMs,
        unknownForMs: own.unknownFor === undefined ? freshMs : own.unknownFor,
        timeoutMs: own.timeout ?? null,
        killAfterMs: own.killAfter ?? DEFAULT_KILL_AFTER_MS,
        watchdogMs: own.watchdog ?? null,
      };
    },
  };
}

/** Only a regular file is read: a FIFO would hang every job that asks, a device may never end. */
function readConfigFile(file: string): Uint8Array {
  let fd: number;
  try {
    fd = openSync(file, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
  } catch (error) {
    const code = systemCode(error);
    if (code === 'ENOENT' || code === 'ENOTDIR') {
      throw new RunlockError('config', `${shown(file)}: expected a configuration file, got none`, {
        path: file,
        cause: error,
      });
    }
    throw ioError('read', file, error);
  }
  try {
    requireReadable(fstatSync(fd), file);
    const bytes = readFileSync(fd);
    // A virtual file says 0 for its size.
    if (bytes.length > MAX_BYTES) throw tooLong(file);
    return bytes;
  } catch (error) {
    throw error instanceof RunlockError ? error : ioError('read', file, error);
  } finally {
    closeSync(fd);
  }
}

function requireReadable(stats: Stats, file: string): void {
  if (stats.isDirectory()) throw ioError('read', file, new Error('it is a directory'));
  if (!stats.isFile()) {
    throw new RunlockError('config', `${shown(file)}: expected a regular file, got a pipe or a device`, {
      path: file,
    });
  }
  if (stats.size > MAX_BYTES) throw tooLong(file);
}

function tooLong(file: string): RunlockError {
  return new RunlockError('config', `${shown(file)}: expected at most 1 MiB, got more`, { path: file });
}

function parse(text: string, file: string): unknown {
  try {
    return parseJson(text, file);
  } catch (error) {
    if (!(error instanceof RunlockError)) throw error;
    throw new RunlockError('config', error.message, { path: file, cause: error });
  }
}

/** Reads an object key by key; a key without a reader is refused, with a guess at the one that was meant. */
function readObject<R extends Readers>(readers: R, value: unknown, at: Place): ReadBy<R> {
  const read: [string, unknown][] = requireObject(value, at).map(([key, entry]) => {
    const place = inside(at, key);
    const reader = Object.hasOwn(readers, key) ? readers[key] : undefined;
    if (reader === undefined) throw unknownKey(place, key, Object.keys(readers));
    return [key, reader(entry, place)];
  });
  // Each entry came from the reader of its key.
  return Object.fromEntries(read) as ReadBy<R>;
}

function requireObject(value: unknown, at: Place): [string, unknown][] {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw wrong(at, 'an object', describe(value));
  }
  return Object.entries(value);
}

function duration(options: { zero?: boolean } = {}): Reader<number> {
  return (value, at) => readDuration(value, at, options);
}

/** A duration, or the one word that means "without limit". */
function durationOr(word: string): Reader<number | null> {
  return (value, at) => (value === word ? null : readDuration(value, at, { or: word }));
}

function readDuration(value: unknown, at: Place, options: { zero?: boolean; or?: string }): number {
  if (typeof value !== 'string') {
    const or = options.or === undefined ? '' : `, or "${options.or}"`;
    throw wrong(at, `a duration in quotes such as "90s", "45m", "2h" or "1d"${or}`, describe(value));
  }
  try {
    return parseDuration(value, '', options);
  } catch {
    // Again for the message: naming the place costs more than all the rest, and is seldom needed.
    return asConfigError(at, () => parseDuration(value, where(at), options));
  }
}

function readText(value: unknown, at: Place): string {
  if (typeof value !== 'string') throw wrong(at, 'a text', describe(value));
  if (value === '') throw wrong(at, 'a text', 'an empty one');
  if (/[\0-\x1f\x7f-\x9f]/.test(value)) throw wrong(at, 'a text without control characters', 'one with');
  return value;
}

function readBoolean(value: unknown, at: Place): boolean {
  if (typeof value !== 'boolean') throw wrong(at, 'true or false', describe(value));
  return value;
}

/** By the lock's key, since its name has many spellings. */
function readLocks(value: unknown, at: Place): ReadonlyMap<string, ReadBy<typeof LOCK_KEYS>> {
  const locks = new Map<string, ReadBy<typeof LOCK_KEYS>>();
  const spellings = new Map<string, string>();
  for (const [text, entry] of requireObject(value, at)) {
    const { key } = asConfigError(
      at,
      () => parseLockName(text),
      () => `${where(at)}: `,
    );
    const same = spellings.get(key);
    if (same !== undefined) {
      throw wrong(at, 'each lock once', `${describe(same)} and ${describe(text)}, which are the same lock`);
    }
    spellings.set(key, text);
    locks.set(key, readObject(LOCK_KEYS, entry, inside(at, text)));
  }
  return locks;
}

/** Parsers of the command line say 'usage'; here the same mistake is the file's. */
function asConfigError<T>(at: Place, read: () => T, prefix = () => ''): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof RunlockError)) throw error;
    throw new RunlockError('config', prefix() + error.message, { path: at.file, cause: error });
  }
}

function unknownKey(at: Place, key: string, known: readonly string[]): RunlockError {
  const guess = nearest(key, known);
  const expected =
    guess === null ? `one of ${known.join(', ')}` : `a known key, did you mean ${JSON.stringify(guess)}?`;
  return new RunlockError('config', `${where(at)}: unknown key, expected ${expected}`, { path: at.file });
}

function wrong(at: Place, expected: string, got: string): RunlockError {
  return new RunlockError('config', `${where(at)}: expected ${expected}, got ${got}`, { path: at.file });
}

function inside(at: Place, key: string): Place {
  return { file: at.file, keys: [...at.keys, key] };
}

/** `/srv/app/runlock.json: locks.video.hold`; a key that is no plain word stands as `locks["my lock"]`. */
function where({ file, keys }: Place): string {
  const path = keys.map((key, level) => {
    if (!/^[\p{L}\p{N}_$-]{1,60}$/u.test(key) || printable(key) !== key) return `[${describe(key)}]`;
    return level === 0 ? key : `.${key}`;
  });
  return path.length === 0 ? shown(file) : `${shown(file)}: ${path.join('')}`;
}

/** A path whole, since it is what the user looks for, but harmless. */
function shown(file: string): string {
  return printable(file, 4096);
}

/** A value of the file in a message: harmless and short. */
function describe(value: unknown): string {
  if (typeof value === 'string') return `"${printable(value, 60)}"`;
  if (Array.isArray(value)) return 'an array';
  return typeof value === 'object' && value !== null ? 'an object' : String(value);
}
