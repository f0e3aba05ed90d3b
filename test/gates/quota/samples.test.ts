import { join, resolve } from 'node:path';
import { expect, test } from 'vitest';
import { loadConfig } from '../../../src/config/config.ts';
import { countPastDays, countQuota } from '../../../src/gates/quota/quota.ts';
import { NO_HISTORY } from './harness.ts';

const SAMPLES = resolve(import.meta.dirname, '../../fixtures/quota');

function sampleQuota(timeZone: string) {
  const quota = loadConfig(join(SAMPLES, 'runlock.json')).quotas.get('juejin');
  if (quota === undefined) throw new Error('no such quota');
  const sources = quota.sources.map((source) =>
    source.type === 'json' ? { ...source, zone: timeZone } : source,
  );
  return { ...quota, timeZone, sources };
}

test.each([
  ['Asia/Shanghai', '2026-10-15T12:00:00+08:00', 1, 2],
  ['UTC', '2026-10-15T12:00:00Z', 1, 1],
  ['America/Los_Angeles', '2026-10-15T12:00:00-07:00', 1, 0],
])('the day of %s is counted in the files of its own days', async (zone, at, pushed, logged) => {
  const answer = await countQuota(sampleQuota(zone), { at: Date.parse(at), history: NO_HISTORY });
  expect(answer.sources.map(({ source, count }) => [source, count])).toEqual([
    ['pushData/{yyyy-MM-dd}.json', pushed],
    ['logs/{yyyy-MM-dd}.log', logged],
  ]);
  expect(answer).toMatchObject({ count: Math.max(pushed, logged), limit: 1, closed: true });
});

test('a source says which files it has read, and which lines told no time', async () => {
  const at = Date.parse('2026-10-15T12:00:00+08:00');
  const { sources } = await countQuota(sampleQuota('Asia/Shanghai'), { at, history: NO_HISTORY });
  expect(sources[0]).toMatchObject({ files: [join(SAMPLES, 'pushData/2026-10-15.json')] });
  expect(sources[1]).toMatchObject({
    files: [join(SAMPLES, 'logs/2026-10-14.log'), join(SAMPLES, 'logs/2026-10-15.log')],
    untimed: 1,
  });
});

test('the day is whole: its later hours count too', async () => {
  const at = Date.parse('2026-10-15T00:00:00+08:00');
  expect((await countQuota(sampleQuota('Asia/Shanghai'), { at, history: NO_HISTORY })).count).toBe(2);
});

test('past days are counted as they would have been on the day', async () => {
  const at = Date.parse('2026-10-16T01:00:00+08:00');
  const days = await countPastDays(sampleQuota('Asia/Shanghai'), 3, { at, history: NO_HISTORY });
  expect(
    days.map(({ count, closed, sources }) => [count, closed, ...sources.map((one) => one.count)]),
  ).toEqual([
    [2, true, 0, 2],
    [2, true, 1, 2],
    [0, false, 0, 0],
  ]);
  expect(new Date(days[0]?.period.from ?? 0).toISOString()).toBe('2026-10-13T16:00:00.000Z');
});
