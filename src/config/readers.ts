import { parseDuration } from '../clock.ts';
import { RunlockError } from '../errors.ts';
import { nearest } from '../guess.ts';
import { printable } from '../printable.ts';

/* What the parts of the configuration are read with: each reader checks a value, and its message names its keys. */

/** Where a value stands in the file: `/srv/app/runlock.json: locks.video.hold`. */
export interface KeyPath {
  readonly file: string;
  /** Empty at the top. */
  readonly keys: readonly string[];
}

/** Checks a value and turns it into what the program works with. Throws RunlockError 'config'. */
export type Reader<T> = (value: unknown, at: KeyPath) => T;
export type Readers = Readonly<Record<string, Reader<unknown>>>;
export type ReadBy<R extends Readers> = { [K in keyof R]?: ReturnType<R[K]> };

/** Reads an object key by key; a key without a reader is refused, with a guess at the one that was meant. */
export function readObject<R extends Readers>(readers: R, value: unknown, at: KeyPath): ReadBy<R> {
  const read: [string, unknown][] = requireObject(value, at).map(([key, entry]) => {
    const inner = inside(at, key);
    const reader = Object.hasOwn(readers, key) ? readers[key] : undefined;
    if (reader === undefined) throw unknownKey(inner, key, Object.keys(readers));
    return [key, reader(entry, inner)];
  });
  // Each entry came from the reader of its key.
  return Object.fromEntries(read) as ReadBy<R>;
}

export function requireObject(value: unknown, at: KeyPath): [string, unknown][] {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw wrong(at, 'an object', describe(value));
  }
  return Object.entries(value);
}

export function duration(options: { zero?: boolean } = {}): Reader<number> {
  return (value, at) => readDuration(value, at, options);
}

/** A duration, or the one word that means "without limit". */
export function durationOr(word: string): Reader<number | null> {
  return (value, at) => (value === word ? null : readDuration(value, at, { or: word }));
}

export function readDuration(value: unknown, at: KeyPath, options: { zero?: boolean; or?: string }): number {
  if (typeof value !== 'string') {
    const or = options.or === undefined ? '' : `, or "${options.or}"`;
    throw wrong(at, `a duration in quotes such as "90s", "45m", "2h" or "1d"${or}`, describe(value));
  }
  try {
    return parseDuration(value, '', options);
  } catch {
    // Again for the message: naming the keys costs more than all the rest, and is seldom needed.
    return asConfigError(at, () => parseDuration(value, where(at), options));
  }
}

export function readText(value: unknown, at: KeyPath): string {
  if (typeof value !== 'string') throw wrong(at, 'a text', describe(value));
  if (value === '') throw wrong(at, 'a text', 'an empty one');
  if (/[\0-\x1f\x7f-\x9f]/.test(value)) throw wrong(at, 'a text without control characters', 'one with');
  return value;
}

export function readBoolean(value: unknown, at: KeyPath): boolean {
  if (typeof value !== 'boolean') throw wrong(at, 'true or false', describe(value));
  return value;
}

/** Parsers of the command line say 'usage'; here the same mistake is the file's. */
export function asConfigError<T>(at: KeyPath, read: () => T, prefix = () => ''): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof RunlockError)) throw error;
    throw new RunlockError('config', prefix() + error.message, { path: at.file, cause: error });
  }
}

export function unknownKey(at: KeyPath, key: string, known: readonly string[]): RunlockError {
  const guess = nearest(key, known);
  const expected =
    guess === null ? `one of ${known.join(', ')}` : `a known key, did you mean ${JSON.stringify(guess)}?`;
  return new RunlockError('config', `${where(at)}: unknown key, expected ${expected}`, { path: at.file });
}

export function wrong(at: KeyPath, expected: string, got: string): RunlockError {
  return new RunlockError('config', `${where(at)}: expected ${expected}, got ${got}`, { path: at.file });
}

export function inside(at: KeyPath, key: string): KeyPath {
  return { file: at.file, keys: [...at.keys, key] };
}

/** `/srv/app/runlock.json: locks.video.hold`; a key that is no plain word stands as `locks["my lock"]`. */
export function where({ file, keys }: KeyPath): string {
  const path = keys.map((key, level) => {
    if (!/^[\p{L}\p{N}_$-]{1,60}$/u.test(key) || printable(key) !== key) return `[${describe(key)}]`;
    return level === 0 ? key : `.${key}`;
  });
  return path.length === 0 ? shown(file) : `${shown(file)}: ${path.join('')}`;
}

/** A path whole, since it is what the user looks for, but harmless. */
export function shown(file: string): string {
  return printable(file, 4096);
}

/** A value of the file in a message: harmless and short. */
export function describe(value: unknown): string {
  if (typeof value === 'string') return `"${printable(value, 60)}"`;
  if (Array.isArray(value)) return 'an array';
  return typeof value === 'object' && value !== null ? 'an object' : String(value);
}
