import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseMoment } from '../../../src/gates/quota/moments.ts';
import { DAY_MS, daysOf, pastPeriods, periodAt, startOfDay } from '../../../src/gates/quota/periods.ts';

const iso = (at: number) => new Date(at).toISOString().replace('.000Z', 'Z');
const day = (timeZone: string, at: string) => {
  const { from, to } = periodAt({ period: 'day', timeZone }, Date.parse(at));
  return [iso(from), iso(to), (to - from) / 3_600_000];
};

describe('a day', () => {
  test.each([
    ['Europe/Berlin', '2026-03-29T12:00:00Z', '2026-03-28T23:00:00Z', 23],
    ['Europe/Berlin', '2026-10-25T12:00:00Z', '2026-10-24T22:00:00Z', 25],
    ['America/New_York', '2026-03-08T12:00:00Z', '2026-03-08T05:00:00Z', 23],
    ['America/New_York', '2026-11-01T12:00:00Z', '2026-11-01T04:00:00Z', 25],
    ['Australia/Lord_Howe', '2026-04-04T16:00:00Z', '2026-04-04T13:00:00Z', 24.5],
    // Midnight itself is skipped in Cairo, and comes twice in Havana.
    ['Africa/Cairo', '2026-04-24T12:00:00Z', '2026-04-23T22:00:00Z', 23],
    ['America/Havana', '2026-11-01T12:00:00Z', '2026-11-01T04:00:00Z', 25],
    ['Asia/Kathmandu', '2026-10-15T00:00:00Z', '2026-10-14T18:15:00Z', 24],
    ['Pacific/Kiritimati', '2026-10-15T00:00:00Z', '2026-10-14T10:00:00Z', 24],
    ['Pacific/Chatham', '2026-04-04T14:00:00Z', '2026-04-04T10:15:00Z', 25],
    ['Pacific/Pago_Pago', '2026-10-15T10:59:59Z', '2026-10-14T11:00:00Z', 24],
    ['UTC', '2026-10-15T23:59:59Z', '2026-10-15T00:00:00Z', 24],
  ])('in %s at %s begins %s and has %s hours', (zone, at, from, hours) => {
    expect(day(zone, at)).toEqual([from, iso(Date.parse(from) + hours * 3_600_000), hours]);
  });

  test('follows on the one before, and has in it whatever the zone calls that day', () => {
    const zones = [
      'Europe/London',
      'America/St_Johns',
      'Africa/Cairo',
      'America/Havana',
      'Asia/Tehran',
      'Pacific/Chatham',
      'Australia/Lord_Howe',
      'America/Santiago',
      'Africa/Casablanca',
    ];
    fc.assert(
      fc.property(
        fc.constantFrom(...zones),
        fc.integer({ min: Date.UTC(2012, 0), max: Date.UTC(2030, 0) }),
        (timeZone, at) => {
          const { from, to } = periodAt({ period: 'day', timeZone }, at);
          expect(from <= at && at < to).toBe(true);
          expect(periodAt({ period: 'day', timeZone }, to).from).toBe(to);
          expect(periodAt({ period: 'day', timeZone }, from - 1).to).toBe(from);
          const name = nameOfDay(at, timeZone);
          expect([nameOfDay(from, timeZone), nameOfDay(to - 1, timeZone)]).toEqual([name, name]);
          expect(nameOfDay(from - 1, timeZone)).not.toBe(name);
        },
      ),
      { numRuns: 300 },
    );
  });
});

const formats = new Map<string, Intl.DateTimeFormat>();
function nameOfDay(at: number, timeZone: string): string {
  let format = formats.get(timeZone);
  format ??= new Intl.DateTimeFormat('en-CA', { timeZone });
  formats.set(timeZone, format);
  return format.format(at);
}

test('a day that a zone left out has no time in it', () => {
  const skipped = Date.UTC(2011, 11, 30) / DAY_MS;
  expect(startOfDay(skipped, 'Pacific/Apia')).toBe(startOfDay(skipped + 1, 'Pacific/Apia'));
});

test('a week is from Monday, across the end of a year too', () => {
  const week = (at: string) => periodAt({ period: 'week', timeZone: 'Asia/Shanghai' }, Date.parse(at));
  for (const at of ['2026-12-28T00:00:00+08:00', '2026-12-31T12:00:00Z', '2027-01-03T23:59:59.999+08:00']) {
    const { from, to } = week(at);
    expect([iso(from), iso(to)]).toEqual(['2026-12-27T16:00:00Z', '2027-01-03T16:00:00Z']);
  }
  expect(iso(week('1969-12-31T00:00:00Z').from)).toBe('1969-12-28T16:00:00Z');
});

test('a duration is that long up to the time asked for, and with it', () => {
  const at = Date.parse('2026-10-15T12:00:00Z');
  expect(periodAt({ period: 3_600_000, timeZone: null }, at)).toEqual({ from: at - 3_600_000, to: at + 1 });
});

test('the days of a period are those of the zone that names the files', () => {
  const period = periodAt({ period: 'day', timeZone: 'Asia/Shanghai' }, Date.parse('2026-10-15T12:00:00Z'));
  const first = Date.UTC(2026, 9, 14) / DAY_MS;
  expect(daysOf(period, 'UTC', 0)).toEqual([first, first + 1]);
  expect(daysOf(period, 'UTC', 1)).toEqual([first - 1, first, first + 1, first + 2]);
});

test('past days follow each other through a change of the clock; days of one week are one period', () => {
  const at = Date.parse('2026-10-26T22:30:00Z');
  const days = pastPeriods({ period: 'day', timeZone: 'Europe/Berlin' }, 4, at);
  expect(days.map(({ from, to }) => (to - from) / 3_600_000)).toEqual([24, 24, 25, 24]);
  for (const [index, { from }] of days.slice(1).entries()) expect(from).toBe(days[index]?.to);
  expect(pastPeriods({ period: 'week', timeZone: 'Europe/Berlin' }, 8, at)).toHaveLength(2);
});

describe('a time in a log', () => {
  test.each([
    ['2026-10-15T02:01:11.004Z', '2026-10-15T02:01:11.004Z'],
    ['2026-10-15T02:01:11,004Z', '2026-10-15T02:01:11.004Z'],
    ['2026-10-15 02:01:11.123456', '2026-10-14T18:01:11.123Z'],
    ['2026-10-15 02:01:11 +0800', '2026-10-14T18:01:11.000Z'],
    ['2026-10-15T02:01:11+05:45', '2026-10-14T20:16:11.000Z'],
    ['2026-10-15T02:01:11-09', '2026-10-15T11:01:11.000Z'],
    ['2026-10-15T02:01:11 UTC', '2026-10-15T02:01:11.000Z'],
    ['20261015T020111Z', '2026-10-15T02:01:11.000Z'],
    ['2026/10/15 02:01', '2026-10-14T18:01:00.000Z'],
    ['2026-10-14T24:00:00Z', '2026-10-15T00:00:00.000Z'],
    ['1792030271', '2026-10-15T02:11:11.000Z'],
    ['1792030271.004', '2026-10-15T02:11:11.004Z'],
    ['1792030271004', '2026-10-15T02:11:11.004Z'],
    ['1792030271004123', '2026-10-15T02:11:11.004Z'],
  ])('%s is %s', (text, expected) => {
    const moment = parseMoment(text, 'Asia/Shanghai');
    expect(moment?.earliest).toBe(moment?.latest);
    expect(moment && new Date(moment.earliest).toISOString()).toBe(expected);
  });

  test.each([
    '',
    'now',
    '2026-02-30T00:00:00Z',
    '2026-13-01',
    '2026-10-15T25:00:00Z',
    '2026-10-15T02:01:11 CST',
  ])('"%s" is none', (text) => expect(parseMoment(text, 'UTC')).toBeNull());

  test('one that a clock shows twice, or a day without a time, may be either', () => {
    expect(parseMoment('2026-10-25T02:30:00', 'Europe/Berlin')).toEqual({
      earliest: Date.parse('2026-10-25T00:30:00Z'),
      latest: Date.parse('2026-10-25T01:30:00Z'),
    });
    expect(parseMoment('2026-10-15', 'Asia/Shanghai')).toEqual({
      earliest: Date.parse('2026-10-14T16:00:00Z'),
      latest: Date.parse('2026-10-15T15:59:59.999Z'),
    });
  });
});
