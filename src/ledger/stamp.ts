import { isEpochTime } from '../clock.ts';

/**
 * Now, written as a time that stands in a ledger is: ISO 8601 with the offset and the digits that it has there, or
 * the number of seconds or milliseconds since the epoch. A time without an offset is local, as whoever writes one means.
 *
 * @param json the value as JSON
 * @param now ms since the epoch
 * @returns JSON, or null if the value is no time that is known
 */
export function refreshedTime(json: string, now: number): string | null {
  if (!json.startsWith('"')) return refreshedNumber(json, now);
  const iso = refreshedIso(JSON.parse(json), now);
  return iso === null ? null : JSON.stringify(iso);
}

const ISO =
  /^\d{4}-\d\d-\d\d(?:(?<t>[Tt ])\d\d:\d\d(?<seconds>:\d\d)?(?<fraction>[.,]\d{1,9})?(?<offset> ?[Zz]| ?[+-]\d\d(?::?\d\d)?)?)?$/;

function refreshedIso(text: string, now: number): string | null {
  const match = ISO.exec(text);
  if (match === null) return null;
  const { t, seconds, fraction, offset } = match.groups ?? {};
  if (fraction !== undefined && seconds === undefined) return null;
  // The wall time at that offset, as if it were UTC.
  const minutes = offset === undefined ? -new Date(now).getTimezoneOffset() : offsetMinutes(offset);
  const wall = new Date(now + minutes * 60_000).toISOString();
  if (t === undefined) return wall.slice(0, 10);
  const second = seconds === undefined ? '' : wall.slice(16, 19);
  const digits = fraction === undefined ? '' : fraction.charAt(0) + secondsFraction(now, fraction.length - 1);
  return `${wall.slice(0, 10)}${t}${wall.slice(11, 16)}${second}${digits}${offset ?? ''}`;
}

function offsetMinutes(offset: string): number {
  const [, sign, hours, minutes] = /([+-])(\d\d):?(\d\d)?/.exec(offset) ?? [];
  return (sign === '-' ? -1 : 1) * (Number(hours ?? 0) * 60 + Number(minutes ?? 0));
}

function secondsFraction(now: number, digits: number): string {
  const ms = String(((Math.floor(now) % 1000) + 1000) % 1000).padStart(3, '0');
  return ms.padEnd(digits, '0').slice(0, digits);
}

function refreshedNumber(json: string, now: number): string | null {
  const match = /^(\d+)(?:\.(\d{1,9}))?$/.exec(json);
  if (match === null) return null;
  const [, whole = '', fraction] = match;
  // `20261130120000` is a date as people write it.
  const milliseconds = isEpochTime(Number(whole) / 1000);
  if (!milliseconds && !isEpochTime(Number(whole))) return null;
  const base = String(Math.floor(milliseconds ? now : now / 1000));
  if (fraction === undefined) return base;
  return `${base}.${milliseconds ? '0'.repeat(fraction.length) : secondsFraction(now, fraction.length)}`;
}
