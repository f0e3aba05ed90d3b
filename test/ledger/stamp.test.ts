import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { refreshedTime } from '../../src/ledger/stamp.ts';

const NOW = Date.UTC(2026, 9, 14, 20, 30, 5, 123);

describe('a time is refreshed as it stands there', () => {
  it.each([
    ['"2020-01-01T00:00:00Z"', '"2026-10-14T20:30:05Z"'],
    ['"2020-01-01T00:00:00.000Z"', '"2026-10-14T20:30:05.123Z"'],
    ['"2020-01-01T00:00:00.0+00:00"', '"2026-10-14T20:30:05.1+00:00"'],
    ['"2020-01-01T00:00:00,000000Z"', '"2026-10-14T20:30:05,123000Z"'],
    ['"2026-10-14T16:00:00+08:00"', '"2026-10-15T04:30:05+08:00"'],
    ['"2026-10-14T16:00:00-0330"', '"2026-10-14T17:00:05-0330"'],
    ['"2026-10-14T16:00+08"', '"2026-10-15T04:30+08"'],
    ['"2026-10-14 16:00:00 +0800"', '"2026-10-15 04:30:05 +0800"'],
    ['"2026-10-14t16:00:00z"', '"2026-10-14t20:30:05z"'],
    ['"\\u0032020-01-01T00:00:00Z"', '"2026-10-14T20:30:05Z"'],
    ['1697270400', '1792009805'],
    ['1697270400.5', '1792009805.1'],
    ['1697270400.123456', '1792009805.123000'],
    ['1697270400000', '1792009805123'],
  ])('%s becomes %s', (before, after) => {
    expect(refreshedTime(before, NOW)).toBe(after);
  });

  it('without an offset it is local time', () => {
    const local = new Date(NOW);
    const two = (number: number) => String(number).padStart(2, '0');
    const day = `${local.getFullYear()}-${two(local.getMonth() + 1)}-${two(local.getDate())}`;
    const time = `${two(local.getHours())}:${two(local.getMinutes())}:${two(local.getSeconds())}`;
    expect(refreshedTime('"2020-01-01T00:00:00"', NOW)).toBe(`"${day}T${time}"`);
    expect(refreshedTime('"2020-01-01"', NOW)).toBe(`"${day}"`);
  });

  it('with an offset it is this very moment, to the second', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 4_000_000_000_000 }),
        fc.integer({ min: -14 * 60, max: 14 * 60 }),
        (now, offset) => {
          const minutes = Math.abs(offset);
          const two = (number: number) => String(number).padStart(2, '0');
          const zone = `${offset < 0 ? '-' : '+'}${two(Math.floor(minutes / 60))}:${two(minutes % 60)}`;
          const fresh = refreshedTime(`"2020-01-01T00:00:00${zone}"`, now) ?? '';
          expect(Date.parse(JSON.parse(fresh))).toBe(Math.floor(now / 1000) * 1000);
        },
      ),
    );
  });
});

describe('what is no time that is known is left alone', () => {
  it.each([
    '""',
    '"soon"',
    '"2020"',
    '"2020-01-01T00:00.5Z"',
    '"14.10.2026"',
    'null',
    '{}',
    '[]',
    'true',
    '0',
    '-5',
  ])('%s', (json) => {
    expect(refreshedTime(json, NOW)).toBeNull();
  });

  it.each(['1.69e9', '1697270400000000', '7440123456789012345', '20261014', '20261130120000', '99999999999'])(
    'a number: %s',
    (json) => {
      expect(refreshedTime(json, NOW)).toBeNull();
    },
  );
});
