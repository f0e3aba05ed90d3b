import { RunlockError } from './errors.ts';

/** How old a heartbeat may be when the holder did not choose: 45 min, in ms. Also the bound of an unreadable lock. */
export const DEFAULT_HOLD_MS = 45 * 60_000;

/** The largest process number any supported system gives out. */
export const MAX_PID = 2 ** 31 - 1;

/** A process, and when it started in the system's own raw value (`null`: not known). Not a time. */
export interface ProcessRef {
  readonly pid: number;
  readonly started: string | null;
}

/** What the holder left word of by `finish` from inside a `run`. */
export type HandedIn = 'finished' | 'failed';

/**
 * The content of `lock.json`. Everything but `pid` and `job` may be missing in a lock that another tool wrote;
 * it reads as `null` then (`holdMs`: the default hold).
 */
export interface LockRecord {
  readonly version: 1;
  /** The holder; `null` where the heartbeat alone decides. */
  readonly pid: number | null;
  readonly job: string | null;
  readonly item: string | null;
  readonly run: number | null;
  /** SHA-256 of the token, hex. The token itself stands in no file. */
  readonly tokenHash: string | null;
  readonly platform: string | null;
  readonly host: string | null;
  readonly bootId: string | null;
  readonly pidNamespace: string | null;
  readonly pidStarted: string | null;
  /** Forked copies of the shell `pid` that belong to the holder, innermost first. */
  readonly forks: readonly ProcessRef[];
  /** Who called, where that says nothing about the holder's life (`pid` is null then): for identity only. */
  readonly caller: ProcessRef | null;
  /** The script that called, in words: `bash ./publish.sh`. What has ended can't be asked for its name. */
  readonly startedBy: string | null;
  /** The session that the command began in; what leaves it is a daemon. */
  readonly session: number | null;
  /** The command of `run`, secrets left out. */
  readonly command: readonly string[] | null;
  readonly commandPid: number | null;
  readonly commandPidStarted: string | null;
  /** ISO 8601 UTC. */
  readonly acquiredAt: string | null;
  /** How old the heartbeat may be, ms; `null`: never too old. */
  readonly holdMs: number | null;
  /** When the time limit of `run` ends, ISO 8601 UTC. */
  readonly deadline: string | null;
  readonly killAfterMs: number | null;
  /** There is a kernel-locked live file for this run. */
  readonly live: boolean;
  /** At which descriptor the command's tree has the live file. */
  readonly liveIndex: number | null;
  readonly handedIn: HandedIn | null;
}

export type ParsedRecord =
  | { readonly type: 'record'; readonly record: LockRecord }
  | { readonly type: 'unreadable'; readonly problem: string };

/** The holder process of a lock, or `null` where there is none. */
export function holderOf(record: LockRecord): ProcessRef | null {
  return record.pid === null ? null : { pid: record.pid, started: record.pidStarted };
}

/** The command of a `run`, or `null` where it has not started or there is none. */
export function commandOf(record: LockRecord): ProcessRef | null {
  return record.commandPid === null ? null : { pid: record.commandPid, started: record.commandPidStarted };
}

/** One line of JSON, without a line end. */
export function serializeRecord(record: LockRecord): string {
  return JSON.stringify(record);
}

/**
 * Reads a lock. Content that is no lock is a value (`unreadable`), since the rules know what to make of it.
 *
 * @throws RunlockError `corrupt` for a version this program does not know: guessing could mean running twice.
 */
export function parseRecord(text: string, path: string): ParsedRecord {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    return unreadable(text.trim() === '' ? 'it is empty' : 'it is not JSON');
  }
  if (typeof json !== 'object' || json === null || Array.isArray(json)) {
    return unreadable('expected a JSON object');
  }
  const fields = new Map<string, unknown>(Object.entries(json));
  const version = fields.get('version') ?? 1;
  if (version !== 1) {
    throw new RunlockError(
      'corrupt',
      `${path} is of version ${JSON.stringify(version).slice(0, 40)}, this runlock reads version 1: use the runlock that wrote it`,
      { path },
    );
  }
  try {
    return { type: 'record', record: readFields(fields) };
  } catch (error) {
    if (error instanceof BadField) return unreadable(error.message);
    throw error;
  }
}

function readFields(fields: Map<string, unknown>): LockRecord {
  const read = new FieldReader(fields);
  return {
    version: 1,
    pid: read.integer('pid', MAX_PID),
    job: read.text('job'),
    item: read.text('item'),
    // Far above any count of runs, and small enough that the next number is exact.
    run: read.integer('run', 1e15),
    tokenHash: read.text('tokenHash'),
    platform: read.text('platform'),
    host: read.text('host'),
    bootId: read.text('bootId'),
    pidNamespace: read.text('pidNamespace'),
    pidStarted: read.text('pidStarted'),
    forks: read.processes('forks'),
    caller: read.process('caller'),
    startedBy: read.text('startedBy'),
    session: read.count('session'),
    command: read.texts('command'),
    commandPid: read.integer('commandPid', MAX_PID),
    commandPidStarted: read.text('commandPidStarted'),
    acquiredAt: read.time('acquiredAt'),
    holdMs:
      fields.get('holdMs') === undefined ? DEFAULT_HOLD_MS : read.integer('holdMs', Number.MAX_SAFE_INTEGER),
    deadline: read.time('deadline'),
    killAfterMs: read.count('killAfterMs'),
    live: read.flag('live'),
    liveIndex: read.count('liveIndex'),
    handedIn: read.oneOf('handedIn', ['finished', 'failed']),
  };
}

class BadField extends Error {}

function unreadable(problem: string): ParsedRecord {
  return { type: 'unreadable', problem };
}

class FieldReader {
  readonly #fields: Map<string, unknown>;

  constructor(fields: Map<string, unknown>) {
    this.#fields = fields;
  }

  text(name: string): string | null {
    return this.#read(name, 'a text', isText);
  }

  texts(name: string): readonly string[] | null {
    return this.#read(
      name,
      'a list of texts',
      (value): value is string[] => Array.isArray(value) && value.every(isText),
    );
  }

  flag(name: string): boolean {
    return (
      this.#read(name, 'true or false', (value): value is boolean => typeof value === 'boolean') ?? false
    );
  }

  integer(name: string, max: number): number | null {
    return this.#read(name, `a whole number from 1 to ${max}`, (value): value is number =>
      isInteger(value, 1, max),
    );
  }

  count(name: string): number | null {
    return this.#read(name, 'a whole number from 0', (value): value is number =>
      isInteger(value, 0, Number.MAX_SAFE_INTEGER),
    );
  }

  time(name: string): string | null {
    return this.#read(
      name,
      'an ISO 8601 time',
      (value): value is string => isText(value) && !Number.isNaN(Date.parse(value)),
    );
  }

  oneOf<T extends string>(name: string, allowed: readonly T[]): T | null {
    return this.#read(name, allowed.join(' or '), (value): value is T =>
      allowed.some((one) => one === value),
    );
  }

  process(name: string): ProcessRef | null {
    return this.#read(name, 'a process', isProcess);
  }

  processes(name: string): readonly ProcessRef[] {
    return (
      this.#read(
        name,
        'a list of processes',
        (value): value is ProcessRef[] => Array.isArray(value) && value.every(isProcess),
      ) ?? []
    );
  }

  #read<T>(name: string, expected: string, fits: (value: unknown) => value is T): T | null {
    const value = this.#fields.get(name) ?? null;
    if (value === null) return null;
    if (!fits(value)) throw new BadField(`${name}: expected ${expected}`);
    return value;
  }
}

function isText(value: unknown): value is string {
  return typeof value === 'string';
}

function isInteger(value: unknown, min: number, max: number): boolean {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= min && value <= max;
}

function isProcess(value: unknown): value is ProcessRef {
  if (typeof value !== 'object' || value === null) return false;
  const { pid, started } = value as { pid?: unknown; started?: unknown };
  return isInteger(pid, 1, MAX_PID) && (started === null || isText(started));
}
