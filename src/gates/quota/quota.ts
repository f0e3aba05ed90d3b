import type { Quota, QuotaSource } from '../../config/quotas.ts';
import type { SourceCount } from '../gate.ts';
import { countHistory, type HistoryEvidence } from './history-source.ts';
import { countJson } from './json-source.ts';
import { countLog } from './log-source.ts';
import { type Period, pastPeriods, periodAt } from './periods.ts';
import type { Tally } from './tally.ts';

/** What was counted in one period. */
export interface QuotaCount {
  readonly period: Period;
  /** The largest of the sources' counts. */
  readonly count: number;
  readonly limit: number;
  readonly closed: boolean;
  readonly sources: readonly SourceCount[];
}

export interface QuotaQuestion {
  /** The time it is asked for, epoch ms. */
  readonly at: number;
  /** The lock's own history. */
  readonly history: HistoryEvidence;
}

/**
 * Counts the successes of the quota's period that `at` is in.
 *
 * @throws RunlockError if any source can't be read: that is not "zero so far"
 */
export async function countQuota(quota: Quota, { at, history }: QuotaQuestion): Promise<QuotaCount> {
  const period = periodAt(quota, at);
  const tallies = await countSources(quota, [period], history);
  return countOf(quota, period, tallies, 0);
}

/**
 * What the quota would have counted on each of the last `days` days, that of `at` being the last; oldest first.
 * For weeks, in those that these days are in; for a duration, up to this time of each day. Each file is read once.
 *
 * @throws RunlockError as countQuota does
 */
export async function countPastDays(
  quota: Quota,
  days: number,
  { at, history }: QuotaQuestion,
): Promise<QuotaCount[]> {
  const periods = pastPeriods(quota, days, at);
  const tallies = await countSources(quota, periods, history);
  return periods.map((period, index) => countOf(quota, period, tallies, index));
}

type Counted = readonly (readonly [QuotaSource, Tally])[];

async function countSources(
  { sources }: Quota,
  periods: readonly Period[],
  history: HistoryEvidence,
): Promise<Counted> {
  const counted: [QuotaSource, Tally][] = [];
  // One after the other: each may hold many files open.
  for (const source of sources) counted.push([source, await countSource(source, periods, history)]);
  return counted;
}

function countSource(
  source: QuotaSource,
  periods: readonly Period[],
  history: HistoryEvidence,
): Promise<Tally> {
  switch (source.type) {
    case 'json':
      return countJson(source, periods);
    case 'log':
      return countLog(source, periods);
    case 'history':
      return countHistory(history, periods);
  }
}

function countOf({ limit }: Quota, period: Period, counted: Counted, index: number): QuotaCount {
  const sources = counted.map(([source, tally]): SourceCount => {
    const count = tally.counts[index] ?? 0;
    if (source.type === 'history') return { source: 'history', count };
    const untimed = tally.untimed[index] ?? 0;
    return { source: source.path.text, count, files: tally.files, ...(untimed === 0 ? {} : { untimed }) };
  });
  const count = Math.max(...sources.map((source) => source.count));
  return { period, count, limit, closed: count >= limit, sources };
}
