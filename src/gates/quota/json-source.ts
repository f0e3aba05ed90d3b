import type { JsonSource } from '../../config/quotas.ts';
import { RunlockError } from '../../errors.ts';
import { nearest } from '../../guess.ts';
import { parsePlace } from '../../ledger/place.ts';
import { sameText } from '../../names.ts';
import { printable } from '../../printable.ts';
import { decodeText, findDuplicateKey, parseJson } from '../../text.ts';
import { badEvidence, type EvidenceFile, openEvidence, requireFolder, unreadable } from './evidence.ts';
import { fileOfDay } from './file-names.ts';
import { isWithin, latestIn, parseMoment } from './moments.ts';
import { daysOf, type Period } from './periods.ts';
import { addTo, type Tally } from './tally.ts';

const MAX_BYTES = 256 * 2 ** 20;

/**
 * Counts the entries that meet the conditions, for each of the periods.
 *
 * With `time`, every file whose days touch a period is read, and one on either side; times decide. Without, a file
 * is of the one period that its name tells.
 *
 * @throws RunlockError `corrupt` if a file is not what the configuration says, `io` if it can't be read
 */
export async function countJson(source: JsonSource, periods: readonly Period[]): Promise<Tally> {
  await requireFolder(source.path);
  const counts = periods.map(() => 0);
  const files: string[] = [];
  const seen = new Set<string>();
  for (const [path, touched] of filesOf(source, periods)) {
    const file = await openEvidence(path);
    if (file === null) continue;
    try {
      // Each entry once, though a file has several names.
      if (source.time !== null && seen.has(file.identity)) continue;
      seen.add(file.identity);
      files.push(path);
      for (const entry of select(source, await readList(source, file), path)) {
        const moment =
          source.time === null
            ? null
            : momentOf(source, source.time, entry, { path, latest: latestIn(file.changed, periods) });
        addTo(counts, (index) => {
          const period = periods[index];
          return moment === null ? touched.has(index) : period !== undefined && isWithin(moment, period);
        });
      }
    } finally {
      await file.handle.close();
    }
  }
  return { counts, files, untimed: periods.map(() => 0) };
}

/** Each file once, with the periods (by index) for which it is read. */
function filesOf(source: JsonSource, periods: readonly Period[]): Map<string, Set<number>> {
  const files = new Map<string, Set<number>>();
  for (const [index, period] of periods.entries()) {
    for (const day of daysOf(period, source.zone, source.time === null ? 0 : 1)) {
      const path = fileOfDay(source.path, day);
      files.set(path, (files.get(path) ?? new Set()).add(index));
    }
  }
  return files;
}

async function readList(source: JsonSource, file: EvidenceFile): Promise<readonly unknown[]> {
  if (file.size > MAX_BYTES) throw badEvidence(file.path, 'expected at most 256 MiB of JSON, got more');
  const bytes = await file.handle.readFile().catch((error: unknown) => {
    throw unreadable(file.path, error);
  });
  const value = parse(bytes, file.path);
  if (Array.isArray(value)) return value;
  const { at } = source;
  const list = at === null ? value : find(value, at);
  if (Array.isArray(list)) return list;
  const where = at === null ? 'at the top' : `at "${printable(at, 60)}"`;
  const got = shown(list);
  throw badEvidence(file.path, `expected a list ${where}, got ${got}${hintAt(value, at)}`);
}

function parse(bytes: Uint8Array, path: string): unknown {
  try {
    const text = decodeText(bytes, path);
    const value = parseJson(text, path);
    // Of two lists under one key JSON.parse drops the first without a word.
    const twice = findDuplicateKey(text);
    if (twice === null) return value;
    const key = printable(JSON.stringify(twice.key), 60);
    throw badEvidence(path, `expected each key once, got a second ${key} at ${twice.place}`);
  } catch (error) {
    if (!(error instanceof RunlockError)) throw error;
    throw new RunlockError('corrupt', error.message, { path, cause: error });
  }
}

function hintAt(value: unknown, at: string | null): string {
  if (!isObject(value)) return '';
  const lists = Object.keys(value).filter((key) => Array.isArray(value[key]));
  const guess = (at === null ? null : nearest(at, lists)) ?? (lists.length === 1 ? lists[0] : null) ?? null;
  return guess === null ? '' : `; did you mean "at": "${printable(guess, 60)}"?`;
}

/** The entries that meet all conditions. */
function select({ where }: JsonSource, entries: readonly unknown[], path: string): readonly unknown[] {
  for (const [field, wanted] of where) {
    const values = entries.map((entry) => find(entry, field));
    if (entries.length > 0 && values.every((value) => value === undefined)) {
      throw neverMatches(path, field, entries);
    }
    const other = values.find((value) => isOtherType(value, wanted));
    if (other !== undefined) {
      const what = `"${printable(field, 60)}" is ${shown(other)} here and ${shown(wanted)} in the configuration`;
      throw badEvidence(path, `${what}, which would never be the same`);
    }
  }
  return entries.filter((entry) => [...where].every(([field, wanted]) => isSame(find(entry, field), wanted)));
}

function neverMatches(path: string, field: string, entries: readonly unknown[]): RunlockError {
  const known = [...new Set(entries.flatMap((entry) => (isObject(entry) ? Object.keys(entry) : [])))];
  const guess = nearest(field, known);
  const hint =
    guess !== null
      ? `, did you mean "${printable(guess, 60)}"?`
      : known.length > 0
        ? `, only ${printable(known.slice(0, 12).join(', '))}`
        : '';
  const what = `none of the ${entries.length} entries has the field "${printable(field, 60)}"${hint}`;
  return badEvidence(path, `${what} (a condition on it would count 0 for ever)`);
}

/** The same to people, and never equal: 1 and "1". */
function isOtherType(value: unknown, wanted: unknown): boolean {
  const scalar = (one: unknown) => ['string', 'number', 'boolean'].includes(typeof one);
  return (
    scalar(value) && scalar(wanted) && typeof value !== typeof wanted && String(value) === String(wanted)
  );
}

/** When an entry was, by its field; one that doesn't say is a doubt, and a doubt is never free. */
function momentOf(
  { zone }: JsonSource,
  field: string,
  entry: unknown,
  { path, latest }: { path: string; latest: number },
) {
  const value = find(entry, field);
  const text = typeof value === 'string' || typeof value === 'number' ? String(value) : null;
  const moment = text === null ? null : parseMoment(text, zone);
  if (moment !== null && moment.earliest > latest) {
    const what = `expected the time of a success in "${printable(field, 60)}", got one to come: ${shown(value)}`;
    throw badEvidence(path, what);
  }
  if (moment !== null) return moment;
  const got = shown(value);
  const guess = isObject(entry) ? nearest(field, Object.keys(entry)) : null;
  const hint = value !== undefined || guess === null ? '' : `, did you mean "${printable(guess, 60)}"?`;
  const expected = `expected a time in "${printable(field, 60)}" of each entry that counts`;
  throw badEvidence(path, `${expected}, got ${got}${hint}`);
}

/** A field by its name, or by a JSON pointer (`/status/code`); undefined if there is none. */
function find(value: unknown, field: string): unknown {
  return field.startsWith('/') ? parsePlace(field, 'field').reduce(own, value) : own(value, field);
}

function own(value: unknown, key: string): unknown {
  if (Array.isArray(value)) return /^(?:0|[1-9]\d*)$/.test(key) ? value[Number(key)] : undefined;
  if (!isObject(value)) return undefined;
  if (Object.hasOwn(value, key)) return value[key];
  const same = Object.keys(value).find((one) => sameText(one, key));
  return same === undefined ? undefined : value[same];
}

/** Equal as JSON, texts in one Unicode form. Goes no deeper than the configuration does. */
function isSame(value: unknown, wanted: unknown): boolean {
  if (typeof value === 'string' && typeof wanted === 'string') {
    return sameText(value, wanted);
  }
  if (Array.isArray(value) && Array.isArray(wanted)) {
    return value.length === wanted.length && wanted.every((one, index) => isSame(value[index], one));
  }
  if (isObject(value) && isObject(wanted)) {
    const keys = Object.keys(wanted);
    return (
      Object.keys(value).length === keys.length && keys.every((key) => isSame(own(value, key), wanted[key]))
    );
  }
  return value === wanted;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A value in a message: harmless and short, however deep it is. */
function shown(value: unknown): string {
  if (value === undefined) return 'nothing';
  if (Array.isArray(value)) return 'a list';
  return isObject(value) ? 'an object' : printable(JSON.stringify(value), 60);
}
