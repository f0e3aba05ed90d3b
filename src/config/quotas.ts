import { dirname } from 'node:path';
import { parseDuration } from '../clock.ts';
import { type DatedPath, isFault, parseDatedPath } from '../dated-path.ts';
import { findEncoding } from '../encodings.ts';
import { parsePlace } from '../ledger/place.ts';
import { textKey } from '../names.ts';
import { printable } from '../printable.ts';
import {
  asConfigError,
  describe,
  inside,
  type KeyPath,
  type ReadBy,
  type Readers,
  readObject,
  readText,
  requireObject,
  where,
  wrong,
} from './readers.ts';
import { readZone } from './zones.ts';

/** So many successes in a period, and no more. */
export interface Quota {
  readonly name: string;
  readonly limit: number;
  /** A duration, in ms, is that long up to the time asked for. */
  readonly period: 'day' | 'week' | number;
  /** Null only with a duration. */
  readonly timeZone: string | null;
  /** The largest count of these is the quota's. */
  readonly sources: readonly QuotaSource[];
}

export type QuotaSource = JsonSource | LogSource | { readonly type: 'history' };

interface FileSource {
  readonly path: DatedPath;
  /** In which the source names its files, and tells times without an offset. */
  readonly zone: string;
}

/** A JSON file with a list of entries. */
export interface JsonSource extends FileSource {
  readonly type: 'json';
  /** The key, or the JSON pointer, at which the list is; null is the whole file. */
  readonly at: string | null;
  /** By a field's name or JSON pointer: the value it must have. */
  readonly where: ReadonlyMap<string, unknown>;
  /** The field that tells when; null where the files of a period are known by their names. */
  readonly time: string | null;
}

/** A log file. */
export interface LogSource extends FileSource {
  readonly type: 'log';
  readonly contains: string;
  /** Its first group is the time. */
  readonly time: RegExp;
  /** As TextDecoder names it. */
  readonly encoding: string;
}

/** A year and a day: a duration's files are listed one by one. */
const LONGEST_PERIOD_MS = 366 * 86_400_000;

const QUOTA_KEYS = {
  limit: readLimit,
  period: readPeriod,
  timeZone: readZone,
  sources: readList,
} satisfies Readers;

const JSON_KEYS = {
  json: readDatedPath,
  at: readField,
  where: readWhere,
  time: readField,
  zone: readZone,
} satisfies Readers;

const LOG_KEYS = {
  log: readDatedPath,
  contains: readText,
  time: readPattern,
  zone: readZone,
  encoding: readEncoding,
} satisfies Readers;

const HISTORY_KEYS = { history: readFinished } satisfies Readers;

/** By the quota's name in its composed Unicode form (NFC). */
export function readQuotas(value: unknown, at: KeyPath): ReadonlyMap<string, Quota> {
  const quotas = new Map<string, Quota>();
  for (const [key, entry] of requireObject(value, at)) {
    const name = textKey(readText(key, inside(at, key)));
    if (quotas.has(name)) throw wrong(at, 'each quota once', `a second ${describe(name)}`);
    quotas.set(name, readQuota(name, entry, inside(at, key)));
  }
  return quotas;
}

function readQuota(name: string, value: unknown, at: KeyPath): Quota {
  const read = readObject(QUOTA_KEYS, value, at);
  const limit = required(read, 'limit', 'how many successes at most, from 1', at);
  const period = required(read, 'period', PERIODS, at);
  const list = required(read, 'sources', SOURCES, at);
  const timeZone = read.timeZone ?? null;
  if (timeZone === null && typeof period !== 'number') {
    // Any default would be somebody's yesterday.
    throw wrong(inside(at, 'timeZone'), `the zone whose ${period} is meant: Area/City or UTC`, 'nothing');
  }
  const quota = { name, limit, period, timeZone };
  const sources = list.map((entry, index) =>
    readSource(quota, entry, inside(inside(at, 'sources'), String(index))),
  );
  return { ...quota, sources };
}

type Frame = Pick<Quota, 'period' | 'timeZone'>;

function readSource(quota: Frame, value: unknown, at: KeyPath): QuotaSource {
  const kinds = requireObject(value, at)
    .map(([key]) => key)
    .filter((key) => ['json', 'log', 'history'].includes(key));
  if (kinds.length > 1) throw wrong(at, 'one of "json", "log" and "history"', kinds.join(' and '));
  switch (kinds[0]) {
    case 'json':
      return readJson(quota, value, at);
    case 'log':
      return readLog(quota, value, at);
    case 'history':
      readObject(HISTORY_KEYS, value, at);
      return { type: 'history' };
    default:
      throw wrong(at, 'a source with the key "json", "log" or "history"', 'none of them');
  }
}

function readJson(quota: Frame, value: unknown, at: KeyPath): JsonSource {
  const read = readObject(JSON_KEYS, value, at);
  const path = required(read, 'json', 'a path', at);
  const zone = requireZone(read.zone, quota, at);
  if (read.time === undefined && !isNamedByPeriod(path, zone, quota)) {
    const what =
      typeof quota.period === 'number' ? 'the last hours' : `a ${quota.period} in ${quota.timeZone}`;
    throw wrong(
      inside(at, 'time'),
      `the field that tells when, since the names of the files don't tell which entries are of ${what}`,
      'nothing',
    );
  }
  return {
    type: 'json',
    path,
    zone,
    at: read.at ?? null,
    where: read.where ?? new Map(),
    time: read.time ?? null,
  };
}

/** Whether each file is of one period alone. */
function isNamedByPeriod({ names }: DatedPath, zone: string, { period, timeZone }: Frame): boolean {
  return zone === timeZone && (period === 'week' ? names !== null : period === 'day' && names === 'day');
}

function readLog(quota: Frame, value: unknown, at: KeyPath): LogSource {
  const read = readObject(LOG_KEYS, value, at);
  return {
    type: 'log',
    path: required(read, 'log', 'a path', at),
    zone: requireZone(read.zone, quota, at),
    contains: required(read, 'contains', 'the text that stands in a line about a success', at),
    time: required(read, 'time', PATTERN, at),
    encoding: read.encoding ?? 'utf-8',
  };
}

function requireZone(own: string | undefined, quota: Frame, at: KeyPath): string {
  const zone = own ?? quota.timeZone;
  if (zone !== null) return zone;
  const expected = 'the zone that the source writes times and file names in, as the quota has no "timeZone"';
  throw wrong(inside(at, 'zone'), expected, 'nothing');
}

function required<R extends Readers, K extends keyof R & string>(
  read: ReadBy<R>,
  key: K,
  expected: string,
  at: KeyPath,
): Exclude<ReadBy<R>[K], undefined> {
  const value = read[key];
  if (value === undefined) throw wrong(inside(at, key), expected, 'nothing');
  // Only undefined was taken away.
  return value as Exclude<ReadBy<R>[K], undefined>;
}

/** Not 0: half of the world's programs mean "no limit" by it. */
function readLimit(value: unknown, at: KeyPath): number {
  if (typeof value === 'number' && Number.isSafeInteger(value) && value > 0) return value;
  throw wrong(at, 'a whole number from 1', describe(value));
}

const PERIODS = '"day", "week" or a duration such as "1h" or "24h"';

function readPeriod(value: unknown, at: KeyPath): Quota['period'] {
  if (value === 'day' || value === 'week') return value;
  if (typeof value !== 'string' || !/^\d/.test(value)) throw wrong(at, PERIODS, describe(value));
  const ms = asConfigError(at, () => parseDuration(value, where(at)));
  if (ms > LONGEST_PERIOD_MS) throw wrong(at, 'at most "366d"', describe(value));
  return ms;
}

const SOURCES = 'a list of sources, each with "json", "log" or "history"';

function readList(value: unknown, at: KeyPath): readonly unknown[] {
  if (!Array.isArray(value)) throw wrong(at, SOURCES, describe(value));
  // None would count 0 for ever.
  if (value.length === 0) throw wrong(at, 'at least one source', 'none');
  return value;
}

function readDatedPath(value: unknown, at: KeyPath): DatedPath {
  const path = parseDatedPath(readText(value, at), dirname(at.file));
  if (isFault(path)) throw wrong(at, path.expected, printable(path.got));
  return path;
}

/** A name, or a JSON pointer that is one: where it leads the files tell. */
function readField(value: unknown, at: KeyPath): string {
  const field = readText(value, at);
  asConfigError(at, () => parsePlace(field, where(at)));
  return field;
}

function readWhere(value: unknown, at: KeyPath): ReadonlyMap<string, unknown> {
  const conditions = requireObject(value, at);
  if (conditions.length === 0) throw wrong(at, 'at least one field with its value', 'none');
  for (const [field] of conditions) asConfigError(at, () => parsePlace(field, where(at)));
  return new Map(conditions);
}

const PATTERN = 'a regular expression whose first group is the time, such as "^\\\\[(\\\\S+)\\\\]"';

/** How long a pattern of the user's takes on a line of the user's is up to the user. */
function readPattern(value: unknown, at: KeyPath): RegExp {
  const text = readText(value, at);
  try {
    const groups = new RegExp(`${text}|`).exec('')?.length ?? 0;
    if (groups > 1) return new RegExp(text);
  } catch (error) {
    const reason = error instanceof Error ? printable(error.message) : '';
    throw wrong(at, PATTERN, `${describe(text)} (${reason})`);
  }
  throw wrong(at, PATTERN, `${describe(text)}, which has no group`);
}

function readEncoding(value: unknown, at: KeyPath): string {
  const label = readText(value, at);
  const encoding = findEncoding(label);
  if (encoding === null) {
    throw wrong(at, 'an encoding such as "utf-8", "utf-16le", "gbk" or "latin1"', describe(label));
  }
  return encoding;
}

function readFinished(value: unknown, at: KeyPath): 'finished' {
  if (value !== 'finished') throw wrong(at, '"finished"', describe(value));
  return value;
}
