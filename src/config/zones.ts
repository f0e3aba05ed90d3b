import { nearest } from '../guess.ts';
import { describe, type KeyPath, wrong } from './readers.ts';

const EXPECTED = 'a time zone as Area/City, such as "Asia/Shanghai", or "UTC"';

/**
 * A time zone by its name. Intl would also take `CST` and `EST`, and mean Chicago and Panama by them; an offset
 * knows nothing of summer time.
 */
export function readZone(value: unknown, at: KeyPath): string {
  if (typeof value !== 'string') throw wrong(at, EXPECTED, describe(value));
  if (value === 'UTC') return value;
  if (!/^[A-Za-z][\w+-]*(?:\/[A-Za-z][\w+-]*)+$/.test(value)) throw wrong(at, EXPECTED, describe(value));
  if (!known().includes(value) && !isAlias(value)) {
    const guess = nearest(value, known());
    throw wrong(at, EXPECTED, `${describe(value)}${guess === null ? '' : `, did you mean "${guess}"?`}`);
  }
  return value;
}

let names: readonly string[] | undefined;

/** 2 ms, once; the first formatter in a process costs 30. */
function known(): readonly string[] {
  names ??= Intl.supportedValuesOf('timeZone');
  return names;
}

/** The list has one name for each zone: `Asia/Calcutta`, but not `Asia/Kolkata`. */
function isAlias(zone: string): boolean {
  try {
    new Intl.DateTimeFormat('en-US', { timeZone: zone });
    return true;
  } catch {
    return false;
  }
}
