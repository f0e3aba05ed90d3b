import { expect, test } from 'vitest';
import type { LogSource, QuotaSource } from '../../../src/config/quotas.ts';
import { fileOfDay } from '../../../src/gates/quota/file-names.ts';
import { isFileOf } from '../../../src/gates/quota/source-files.ts';
import { folderWith, quotaIn } from './harness.ts';

function sourceOf(log: string): LogSource {
  const fields = { sources: [{ log, contains: 'done', time: '^(\\S+)' }] };
  const source: QuotaSource | undefined = quotaIn(folderWith({}), fields).sources[0];
  if (source?.type !== 'log') throw new Error('no log source');
  return source;
}

test.each([
  'logs/{yyyy-MM-dd}.log',
  'logs/{yyyy}/{MM}/app-{yyyyMMdd}.log',
  '{RRRR}-W{II}.log',
  '{yy.M.d}/{EEEE}, {do} {MMMM}.log',
  "a.b+c(d)/{yyyy-MM-dd'T''x'}",
  '../up/./{yyyy}{MM}{dd}.log',
  'plain.log',
])('the file of every day is known by its name: %s', (log) => {
  const source = sourceOf(log);
  for (let day = 19_000; day < 21_000; day += 1) {
    const file = fileOfDay(source.path, day);
    expect([file, isFileOf(source, file)]).toEqual([file, true]);
    expect(isFileOf(source, `${file}x`)).toBe(false);
  }
});
