import fc from 'fast-check';
import { expect, test } from 'vitest';
import { lastOf, listOf, parseEnvironmentFile, parseUnit, splitWords } from '../../src/doctor/unit-file.ts';

test('settings have their section and line; a line that goes on keeps the number of its first', () => {
  const text =
    '[Unit]\nDescription=x\n[Service]\n; no\nExecStart=/bin/a \\\n# between\n  b \\\n  c\nUser = ann\n';
  const settings = parseUnit(text, '/x.service');
  expect(
    settings.map(({ section, key, value, where }) => [section, key, value.split(/\s+/), where.line]),
  ).toEqual([
    ['Unit', 'Description', ['x'], 2],
    ['Service', 'ExecStart', ['/bin/a', 'b', 'c'], 5],
    ['Service', 'User', ['ann'], 9],
  ]);
});

test('an empty setting takes back those before it, and other sections do not count', () => {
  const settings = parseUnit(
    '[Service]\nExecStart=a\nExecStart=\nExecStart=b\nExecStart=c\n[Install]\nExecStart=d\n',
    'x',
  );
  expect(listOf(settings, 'ExecStart').map(({ value }) => value)).toEqual(['b', 'c']);
  expect(lastOf(settings, 'ExecStart')?.value).toBe('c');
  expect(lastOf(settings, 'User')).toBeUndefined();
});

test("words are split with systemd's quotes and escapes", () => {
  expect(splitWords(`a "b c" 'd "e"' f\\x20g\\tz "" h"i j"k`)).toEqual([
    'a',
    'b c',
    'd "e"',
    'f g\tz',
    '',
    'hi jk',
  ]);
});

test('an environment file gives names and values, without quotes, comments and what is no assignment', () => {
  const text = '# A=1\nB="two words"\nexport C=3\n;D=4\nE = 5\nF=\n-G=1\nfoo\n';
  expect([...parseEnvironmentFile(text)]).toEqual([
    ['B', 'two words'],
    ['C', '3'],
    ['E', '5'],
    ['F', ''],
  ]);
});

test('any text is read without an error', () => {
  const piece = fc.constantFrom(
    '[Service]',
    'ExecStart=',
    '\\',
    '\n',
    '"',
    "'",
    '\\x',
    ' ',
    '=',
    ';',
    '%',
    'a',
    '\0',
    ']',
  );
  const text = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.array(piece).map((all) => all.join('')),
  );
  fc.assert(
    fc.property(text, (source) => {
      const lines = source.split('\n').length;
      for (const { where, value } of parseUnit(source, 'x')) {
        expect(where.line).toBeLessThanOrEqual(lines);
        expect(splitWords(value).every((word) => word.length <= value.length)).toBe(true);
      }
      expect([...parseEnvironmentFile(source).keys()].every((name) => /^\w+$/.test(name))).toBe(true);
    }),
  );
});

test('200 kB of anything are read in one go', () => {
  const blanks = ' '.repeat(200_000);
  const continued = 'a\\\n'.repeat(70_000);
  for (const text of [
    `x=${blanks}y`,
    `[${']  '.repeat(60_000)}x`,
    `"${blanks}=`,
    `export${blanks}`,
    continued,
  ])
    expect(parseUnit(text, 'x').length + parseEnvironmentFile(text).size).toBeLessThan(3);
  const many = `[Service]\n${'Environment=\nEnvironment=A\n'.repeat(8000)}`;
  expect(listOf(parseUnit(many, 'x'), 'Environment')).toHaveLength(1);
  expect(listOf(parseUnit(`[Service]\n${'A=b\n'.repeat(50_000)}`, 'x'), 'A')).toHaveLength(50_000);
  expect(splitWords('"a" \\x41 '.repeat(20_000))).toHaveLength(40_000);
});
