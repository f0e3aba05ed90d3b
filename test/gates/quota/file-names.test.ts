import { afterEach, expect, test, vi } from 'vitest';
import { isFault, parseDatedPath } from '../../../src/dated-path.ts';
import { fileOfDay } from '../../../src/gates/quota/file-names.ts';

afterEach(() => vi.unstubAllEnvs());

function nameOf(text: string, date: string): string {
  const path = parseDatedPath(text, '/base');
  if (isFault(path)) throw new Error(`${path.expected}, ${path.got}`);
  return fileOfDay(path, Date.parse(`${date}T00:00:00Z`) / 86_400_000);
}

test.each([
  ['logs/{yyyy-MM-dd}.log', '2026-10-05', '/base/logs/2026-10-05.log'],
  ['{yyyy}/{MM}/{dd}-{yyyyMMdd}', '2026-10-05', '/base/2026/10/05-20261005'],
  ['/var/log/app.log', '2026-10-05', '/var/log/app.log'],
  ["{RRRR-'W'II}.json", '2027-01-01', '/base/2026-W53.json'],
  ["{yyyy'年'M'月'do}", '2026-10-05', '/base/2026年10月5th'],
  ['{dd MMM yy}', '1969-12-31', '/base/31 Dec 69'],
])('%s on %s is %s', (text, date, expected) => expect(nameOf(text, date)).toBe(expected));

test.each(['Pacific/Apia', 'America/Los_Angeles', 'Pacific/Kiritimati'])(
  'the zone of the process (%s) does not change the day that is named',
  (zone) => {
    vi.stubEnv('TZ', zone);
    // In Apia there was no such day.
    expect(nameOf('{yyyy-MM-dd}', '2011-12-30')).toBe('/base/2011-12-30');
    expect(nameOf('{yyyy-MM-dd}', '2026-03-08')).toBe('/base/2026-03-08');
  },
);
