import { tzOffset } from '@date-fns/tz/tzOffset';
import type { Quota } from '../../config/quotas.ts';

/*
 * Days are counted from 1970-01-01, which is day 0 everywhere; what a day is in a zone, only its ends know. The
 * offsets come from the system's zone data, by @date-fns/tz.
 */

/** A stretch of time: from `from` on, up to but without `to`, epoch ms. */
export interface Period {
  readonly from: number;
  readonly to: number;
}

export const DAY_MS = 86_400_000;
/** 1970-01-01 was the fourth day of a week from Monday. */
const FIRST_WEEKDAY = 3;

/** The quota's day or week that `at` is in, whole; for a duration, that long up to `at` and with it. */
export function periodAt({ period, timeZone }: Pick<Quota, 'period' | 'timeZone'>, at: number): Period {
  if (typeof period === 'number') return { from: at - period, to: at + 1 };
  const zone = timeZone ?? 'UTC';
  const today = dayAt(at, zone);
  const first = period === 'day' ? today : today - ((((today + FIRST_WEEKDAY) % 7) + 7) % 7);
  return { from: startOfDay(first, zone), to: startOfDay(first + (period === 'day' ? 1 : 7), zone) };
}

/**
 * The periods of the last `days` days, oldest first, that of `at` being the last. For weeks, those that these days
 * are in; for a duration, one that ends at this time of each day.
 */
export function pastPeriods(quota: Pick<Quota, 'period' | 'timeZone'>, days: number, at: number): Period[] {
  const zone = quota.timeZone ?? 'UTC';
  const found = new Map<number, Period>();
  for (let ago = days - 1; ago >= 0; ago -= 1) {
    const then =
      typeof quota.period === 'number' ? at - ago * DAY_MS : noonOfDay(dayAt(at, zone) - ago, zone);
    const period = periodAt(quota, then);
    found.set(period.from, period);
  }
  return [...found.values()];
}

/** The days in a zone that a period touches, with `beside` more on either side. */
export function daysOf({ from, to }: Period, zone: string, beside: number): number[] {
  const first = dayAt(from, zone) - beside;
  const last = dayAt(to - 1, zone) + beside;
  return Array.from({ length: Math.max(0, last - first + 1) }, (_, index) => first + index);
}

export function dayAt(at: number, zone: string): number {
  return Math.floor((at + offsetAt(at, zone)) / DAY_MS);
}

/** The first moment of a day: not always midnight, which some zones skip when summer begins. */
export function startOfDay(day: number, zone: string): number {
  const { instants, exists } = findLocal(day * DAY_MS, zone);
  return exists ? Math.min(...instants) : Math.max(...instants);
}

function noonOfDay(day: number, zone: string): number {
  return findLocal((day + 0.5) * DAY_MS, zone).instants[0];
}

/**
 * When a clock in the zone shows `local`, given as if it were UTC. In the hour that is repeated it does so twice;
 * in the one that is skipped never, then the answers are what either offset makes of it.
 */
export function findLocal(local: number, zone: string): { instants: [number, number]; exists: boolean } {
  const before = local - offsetAt(local - DAY_MS, zone);
  const after = local - offsetAt(local + DAY_MS, zone);
  const [first, second] = [before, after].filter((instant) => instant + offsetAt(instant, zone) === local);
  if (first === undefined) return { instants: [before, after], exists: false };
  return { instants: [first, second ?? first], exists: true };
}

function offsetAt(at: number, zone: string): number {
  return Math.round(tzOffset(zone, new Date(at)) * 60_000);
}
