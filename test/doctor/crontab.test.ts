import fc from 'fast-check';
import { expect, test } from 'vitest';
import { parseAnacrontab, parseCrontab } from '../../src/doctor/crontab.ts';

const own = (text: string) => parseCrontab(text, { userField: false });
const system = (text: string) => parseCrontab(text, { userField: true });

test('jobs have their line, the user field only where there is one, and the variables above them', () => {
  const text = '# x\nMAILTO=""\n*/5 * * * *  echo a\n\nPATH = "/opt/bin:/bin"\n@hourly echo b\nX=1\n';
  const { jobs } = own(text);
  expect(jobs.map(({ line, user, command }) => [line, user, command])).toEqual([
    [3, null, 'echo a'],
    [6, null, 'echo b'],
  ]);
  expect(jobs.map(({ variables }) => [...variables])).toEqual([
    [['MAILTO', '']],
    [
      ['MAILTO', ''],
      ['PATH', '/opt/bin:/bin'],
    ],
  ]);
  expect(system('0 3 * * 1-5 ann runlock run -- x\n@reboot\troot  y z\n').jobs).toMatchObject([
    { user: 'ann', command: 'runlock run -- x' },
    { user: 'root', command: 'y z' },
  ]);
});

test('an environment line whose value has many words is no job', () => {
  expect(own('A = b c d e f g\nB=* * * * * x\n').jobs).toEqual([]);
});

test('what stands behind a percent sign is stdin, and an escaped one is a percent sign', () => {
  expect(own('0 0 * * * date +\\%F > x%line 1%line 2\n').jobs[0]?.command).toBe('date +%F > x');
  expect(own('0 0 * * * %nothing but stdin\n').jobs).toEqual([]);
});

test('a last line without an end, which cron passes over, is told', () => {
  expect(own('0 0 * * * a\n0 0 * * * b').cutLine).toBe(2);
  expect(own('0 0 * * * a\n').cutLine).toBeNull();
  expect(own('').cutLine).toBeNull();
});

test('CRLF does not become a part of the command', () => {
  expect(own('0 0 * * * a b\r\n').jobs[0]?.command).toBe('a b');
});

test('jobs of anacron have their line, the variables above them, and all of their command', () => {
  const text =
    '# x\nRANDOM_DELAY=45\n1\t5\tcron.daily\tnice run 100%\nA = "b"\n  @monthly 15 m/x c\n@weekly 15 w A=1 c\n7 5 alone\n';
  expect(
    parseAnacrontab(text).map(({ line, command, variables }) => [line, command, [...variables]]),
  ).toEqual([
    [3, 'nice run 100%', [['RANDOM_DELAY', '45']]],
    [
      6,
      'A=1 c',
      [
        ['RANDOM_DELAY', '45'],
        ['A', '"b"'],
      ],
    ],
  ]);
});

test('any text is read without an error, and each job stands on the line that is told', () => {
  const piece = fc.constantFrom(
    '* ',
    '@daily ',
    'A=',
    '%',
    '\\',
    '"',
    '\n',
    'root ',
    'runlock run ',
    '\0',
    '=',
    '#',
  );
  const text = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.array(piece).map((all) => all.join('')),
  );
  fc.assert(
    fc.property(text, fc.boolean(), (source, userField) => {
      const lines = source.split('\n');
      for (const job of parseCrontab(source, { userField }).jobs) {
        expect(lines[job.line - 1]?.replaceAll('\\%', '%')).toContain(job.command);
        expect(job.command).not.toBe('');
      }
      for (const job of parseAnacrontab(source)) expect(lines[job.line - 1]).toContain(job.command);
    }),
    { numRuns: 1000 },
  );
});

test('200 kB of anything are read in one go, with no more variables than anybody has', () => {
  const variables = Array.from({ length: 20_000 }, (_, at) => `A${at}=1\n* * * * * x\n`).join('');
  const { jobs } = own(variables);
  expect(jobs).toHaveLength(20_000);
  expect(jobs.at(-1)?.variables.size).toBeLessThanOrEqual(500);
  for (const piece of [' ', '* ', '@a ', '"', '=', '%', '\\%', '\r', 'a', '-n '])
    expect(own(piece.repeat(200_000 / piece.length)).jobs.length).toBeLessThan(2);
  for (const piece of [' ', '1 ', '@a ', '=', '1 2 a ', 'a'])
    expect(parseAnacrontab(piece.repeat(200_000 / piece.length)).length).toBeLessThan(2);
});
