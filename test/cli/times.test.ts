import { expect, test } from 'vitest';
import { parseTime } from '../../src/cli/times.ts';

test.each([
  ['2026-11-30T09:00Z', Date.UTC(2026, 10, 30, 9)],
  ['2026-11-30T09:00:01.5+08:00', Date.UTC(2026, 10, 30, 1, 0, 1, 500)],
  ['2026-11-30 09:00-0330', Date.UTC(2026, 10, 30, 12, 30)],
  ['2026-11-30T09:00', new Date(2026, 10, 30, 9).getTime()],
])('%s is a time, local without an offset', (text, at) => {
  expect(parseTime(text, '--at')).toBe(at);
});

test.each([
  '',
  '2026-11-30',
  '2026-02-29T10:00',
  '2026-11-30T24:00',
  '2026-11-30T10:60',
  '2026-11-30T10:00+15:00',
])('%j is none', (text) => {
  expect(() => parseTime(text, '--at')).toThrow(/--at: expected a time such as/);
});
