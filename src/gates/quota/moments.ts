import { isEpochTime } from '../../clock.ts';
import { DAY_MS, findLocal, type Period, startOfDay } from './periods.ts';

/** When something happened, as well as its text says: at one moment, or between two. Epoch ms. */
export interface Moment {
  readonly earliest: number;
  readonly latest: number;
}

/**
 * The last moment at which what stands in a file can have happened, with a day for clocks that are wrong or were set
 * back. A later time is not the time of a success: left out without a word it would keep the quota open.
 *
 * @param changed when the file was last changed, epoch ms
 */
export function latestIn(changed: number, periods: readonly Period[]): number {
  return Math.max(changed, ...periods.map((period) => period.to)) + DAY_MS;
}

/** What may have been in the period counts as in it: a doubt is never free. */
export function isWithin({ earliest, latest }: Moment, { from, to }: Period): boolean {
  return earliest < to && latest >= from;
}

const DATE = /^(\d{4})([-/]?)(\d{2})\2(\d{2})/;
const TIME = /^(?:[Tt_]|\s+)(\d{2}):?(\d{2})(?::?(\d{2})(?:[.,](\d{1,9}))?)?/;
const OFFSET = /^\s*(?:([Zz]|UTC|GMT)|([+\u2212-])(\d{2})(?::?(\d{2}))?)$/;
/** Seconds since 1970, perhaps with a fraction, or milli-, micro- or nanoseconds. */
const EPOCH = /^(\d{10})(?:\d{3}|\d{6}|\d{9})?(?:[.,]\d+)?$/;

/**
 * Reads ISO 8601 in its usual variants (`T` or a space, `.` or `,`, any offset or `Z`, with or without separators)
 * and epoch numbers. Without an offset it is the clock of `zone`; without a time it is the whole day.
 *
 * @returns null if the text is none of these, or there is no such day
 */
export function parseMoment(text: string, zone: string): Moment | null {
  const trimmed = text.trim();
  if (EPOCH.test(trimmed)) return parseEpoch(trimmed);
  const date = DATE.exec(trimmed);
  if (date === null) return null;
  const midnight = dateOf(Number(date[1]), Number(date[3]), Number(date[4]));
  if (midnight === null) return null;
  const rest = trimmed.slice(date[0].length);
  if (rest === '') return wholeDay(midnight / DAY_MS, zone);
  const time = TIME.exec(rest);
  const sinceMidnight = time === null ? null : timeOf(time);
  if (time === null || sinceMidnight === null) return null;
  return withOffset(midnight + sinceMidnight, rest.slice(time[0].length), zone);
}

/** Null for `2026113021`, which is 2034 in seconds and an hour of 2026 to who wrote it: nobody knows which. */
function parseEpoch(text: string): Moment | null {
  const [digits = '', fraction = ''] = text.split(/[.,]/);
  if (!isEpochTime(Number(digits.slice(0, 10))) || isDateAndHour(digits)) return null;
  const ms = Math.floor(Number(`${digits.slice(0, 10)}.${digits.slice(10)}${fraction}`) * 1000 + 1e-4);
  return { earliest: ms, latest: ms };
}

function isDateAndHour(digits: string): boolean {
  const [, year, month, day, hour] = /^(\d{4})(\d\d)(\d\d)(\d\d)$/.exec(digits) ?? [];
  const isDay = dateOf(Number(year), Number(month), Number(day)) !== null;
  return isDay && Number(hour) < 24;
}

function dateOf(year: number, month: number, day: number): number | null {
  const ms = Date.UTC(year, month - 1, day);
  const date = new Date(ms);
  return year >= 1900 && date.getUTCMonth() === month - 1 && date.getUTCDate() === day ? ms : null;
}

/** In ms since midnight. 24:00 is the next one, and :60 a leap second. */
function timeOf([, hours, minutes, seconds, fraction]: readonly string[]): number | null {
  const [h, m, s] = [Number(hours), Number(minutes), Number(seconds ?? 0)];
  if (h > 24 || m > 59 || s > 60 || (h === 24 && (m > 0 || s > 0))) return null;
  const ms = Number((fraction ?? '').padEnd(3, '0').slice(0, 3));
  return ((h * 60 + m) * 60 + s) * 1000 + ms;
}

function withOffset(local: number, rest: string, zone: string): Moment | null {
  if (rest === '') {
    const { instants } = findLocal(local, zone);
    return { earliest: Math.min(...instants), latest: Math.max(...instants) };
  }
  const [whole, utc, sign, hours, minutes] = OFFSET.exec(rest) ?? [];
  if (whole === undefined || Number(hours ?? 0) > 23 || Number(minutes ?? 0) > 59) return null;
  const minutesEast = utc === undefined ? Number(hours) * 60 + Number(minutes ?? 0) : 0;
  const at = local - (sign === '+' ? minutesEast : -minutesEast) * 60_000;
  return { earliest: at, latest: at };
}

function wholeDay(day: number, zone: string): Moment {
  return { earliest: startOfDay(day, zone), latest: startOfDay(day + 1, zone) - 1 };
}
