import { execFileSync } from 'node:child_process';
import { appendFileSync, mkdirSync, symlinkSync, utimesSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { countPastDays, countQuota } from '../../../src/gates/quota/quota.ts';
import { ask, errorOf, type Files, folderWith, NO_HISTORY, quotaIn } from './harness.ts';

const NOON = '2026-10-15T12:00:00Z';
const byDay = { log: 'logs/{yyyy-MM-dd}.log', zone: 'UTC', contains: '发布成功', time: '^\\[(\\S+)\\]' };
const forEver = { ...byDay, log: 'logs/app.log' };
const ok = (at: string, rest = '') => `[${at}] 发布成功${rest}\n`;

const countOf = async (files: Files, fields: object = {}) =>
  (await ask(files, NOON, { sources: [byDay], ...fields })).count;

test('a success in the log of the day before or after counts on the day it was, once', async () => {
  const east = {
    'logs/2026-10-14.log': ok('2026-10-14T18:30:00Z') + ok('2026-10-14T15:59:59Z'),
    'logs/2026-10-15.log': ok('2026-10-15T16:00:00Z'),
  };
  expect(await countOf(east, { timeZone: 'Asia/Shanghai' })).toBe(1);
  const west = {
    'logs/2026-10-15.log': ok('2026-10-15T06:59:59Z'),
    'logs/2026-10-16.log': ok('2026-10-16T04:00:00Z') + ok('2026-10-16T07:00:00Z'),
  };
  expect(await countOf(west, { timeZone: 'America/Los_Angeles' })).toBe(1);
});

test('a process that goes on writing into yesterday’s file is heard', async () => {
  expect(await countOf({ 'logs/2026-10-14.log': ok('2026-10-15T03:00:00Z') })).toBe(1);
  expect(await countOf({ 'logs/2026-10-16.log': ok('2026-10-15T03:00:00Z') })).toBe(1);
  expect(await countOf({ 'logs/2026-10-13.log': ok('2026-10-15T03:00:00Z') })).toBe(0);
});

test('a time without an offset is the clock of the source', async () => {
  const files = { 'logs/2026-10-15.log': ok('2026-10-15T23:30:00') };
  expect(await countOf(files, { sources: [{ ...byDay, zone: 'America/New_York' }] })).toBe(0);
  expect(await countOf(files, { sources: [{ ...byDay, zone: 'Asia/Shanghai' }] })).toBe(1);
});

test('a line without a time does not count; if none has one, that is an error', async () => {
  const lost = '发布成功, some time today\n';
  expect(await countOf({ 'logs/2026-10-15.log': lost + ok(NOON) })).toBe(1);
  const error = await errorOf(ask({ 'logs/2026-10-15.log': lost + lost }, NOON, { sources: [byDay] }));
  expect([error.code, error.path?.endsWith('logs/2026-10-15.log')]).toEqual(['corrupt', true]);
  expect(error.message).toMatch(/2 lines contain "发布成功", but "time" .* finds no time in any/);
});

test('lines without a time that may be of the period are told of, by what stands around them', async () => {
  const lost = '发布成功\n';
  const untimedOf = async (log: string, changed: string, days: string) => {
    const dir = folderWith({ 'logs/app.log': log });
    utimesSync(join(dir, 'logs/app.log'), new Date(changed), new Date(changed));
    const quota = quotaIn(dir, { sources: [forEver] });
    const counts = await countPastDays(quota, 3, { at: Date.parse(days), history: NO_HISTORY });
    return counts.map(({ count, sources }) => [count, sources[0]?.untimed ?? 0]);
  };
  const [yesterday, today] = [ok('2026-10-14T10:00:00Z'), ok('2026-10-15T10:00:00Z')];
  // After the last time, up to the last change of the file.
  expect(await untimedOf(yesterday + lost, NOON, NOON)).toEqual([
    [0, 0],
    [1, 1],
    [0, 1],
  ]);
  expect(await untimedOf(yesterday + lost, '2026-10-14T11:00:00Z', NOON)).toEqual([
    [0, 0],
    [1, 1],
    [0, 0],
  ]);
  // Between two, and before the first.
  expect(await untimedOf(yesterday + lost + lost + today, NOON, NOON)).toEqual([
    [0, 0],
    [1, 2],
    [1, 2],
  ]);
  expect(await untimedOf(lost + yesterday + today, NOON, NOON)).toEqual([
    [0, 1],
    [1, 1],
    [1, 0],
  ]);
});

test('a number that may be a date and an hour is no time, and a time to come is an error', async () => {
  const asked = (log: string) =>
    ask({ 'logs/app.log': log }, NOON, { sources: [{ ...forEver, time: '^\\[(.+?)\\]' }] });
  expect((await asked(ok('1792022400') + ok('1792022400.25') + ok('1792022400123'))).count).toBe(3);
  for (const time of ['2026101511', '2034011500', '0000000007', '4512345678'])
    expect((await errorOf(asked(ok(time)))).message).toMatch(/finds no time in any/);
  for (const time of ['2105674321', '2206-10-15T11:00:00Z', '2105674321000']) {
    const error = await errorOf(asked(ok(NOON) + ok(time)));
    expect([error.code, error.message]).toEqual([
      'corrupt',
      expect.stringMatching(/tells a time to come \(2/),
    ]);
  }
  // What the day asked for still has before it, and a clock that was a little wrong, is none.
  const json = { 'a.json': JSON.stringify([{ ok: true, at: '2206-10-15T11:00:00Z' }]) };
  const source = { json: 'a.json', where: { ok: true }, time: 'at' };
  expect((await errorOf(ask(json, NOON, { sources: [source] }))).message).toMatch(
    /"at", got one to come: "2206/,
  );
  expect((await ask(json, '2206-10-15T00:00:00Z', { sources: [source] })).count).toBe(1);
  expect((await ask(json, '2206-10-14T00:00:00Z', { sources: [source] })).count).toBe(0);
  await errorOf(ask(json, '2206-10-13T00:00:00Z', { sources: [source] }));
});

test('a log that is not there counts 0; a misspelt folder is an error', async () => {
  expect(await countOf({ 'logs/other.log': ok(NOON) })).toBe(0);
  const error = await errorOf(ask({ 'log/x': '' }, NOON, { sources: [byDay] }));
  expect(error.message).toMatch(/logs: expected a folder .* did you mean .*log\?/);
});

test('CRLF, a missing last line end, a byte order mark, NULs of a truncated file are no obstacle', async () => {
  const times = [ok('2026-10-15T01:00:00Z').trimEnd(), ok('2026-10-15T02:00:00Z').trimEnd()];
  expect(await countOf({ 'logs/2026-10-15.log': times.join('\r\n') })).toBe(2);
  expect(await countOf({ 'logs/2026-10-15.log': `\ufeff${times.join('\n')}` })).toBe(2);
  expect(await countOf({ 'logs/2026-10-15.log': `${'\0'.repeat(3_000_000)}${times.join('\n\0\0')}` })).toBe(
    2,
  );
  const atTheEnd = { ...byDay, time: '成功 (\\S+)$' };
  const files = { 'logs/2026-10-15.log': `发布成功 ${NOON}\r\n` };
  expect(await countOf(files, { sources: [atTheEnd] })).toBe(1);
});

test('a line may be longer than memory would like, and the text far behind the time', async () => {
  const long = `[${NOON}] ${'x'.repeat(5_000_000)}发布成功${'y'.repeat(3_000_000)}`;
  expect(await countOf({ 'logs/2026-10-15.log': long })).toBe(1);
  expect(await countOf({ 'logs/2026-10-15.log': `${long}\n${ok(NOON)}${long}\n` })).toBe(3);
  const without = `[${NOON}] ${'x'.repeat(5_000_000)}\n`;
  expect(await countOf({ 'logs/2026-10-15.log': without })).toBe(0);
  const late = { 'logs/2026-10-15.log': `${'x'.repeat(200_000)}发布成功 [${NOON}]\n${ok(NOON)}` };
  const error = await errorOf(ask(late, NOON, { sources: [{ ...byDay, time: '\\[(\\S+)\\]' }] }));
  expect(error.message).toMatch(/tells no time in its first 65536 bytes/);
});

test('the text is searched as the bytes of the encoding of the source', async () => {
  const line = (bytes: Uint8Array) => Buffer.concat([Buffer.from(`[${NOON}] `), bytes, Buffer.from(' \n')]);
  const gbk = line(Buffer.from('b7a2b2bcb3c9b9a6', 'hex'));
  expect(await countOf({ 'logs/2026-10-15.log': gbk }, { sources: [{ ...byDay, encoding: 'gbk' }] })).toBe(1);
  expect(await countOf({ 'logs/2026-10-15.log': gbk })).toBe(0);
  const latin = line(Buffer.from('publi\xe9', 'latin1'));
  const source = { ...byDay, contains: 'publié', encoding: 'latin1' };
  expect(await countOf({ 'logs/2026-10-15.log': latin }, { sources: [source] })).toBe(1);
  const strange = await errorOf(
    ask({ 'logs/2026-10-15.log': latin }, NOON, { sources: [{ ...byDay, encoding: 'latin1' }] }),
  );
  expect([strange.code, strange.message]).toEqual([
    'config',
    expect.stringMatching(/can't be written in windows-1252/),
  ]);
});

test('UTF-16 is searched at its units, and known by its byte order mark', async () => {
  const text = ok('2026-10-15T01:00:00Z') + ok('2026-10-15T02:00:00Z', '\u0a0a\u0d0a');
  const utf16 = Buffer.from(text, 'utf16le');
  const named = { sources: [{ ...byDay, encoding: 'utf-16le' }] };
  expect(await countOf({ 'logs/2026-10-15.log': utf16 }, named)).toBe(2);
  const marked = Buffer.from(`\ufeff${text}`, 'utf16le');
  expect(await countOf({ 'logs/2026-10-15.log': marked })).toBe(2);
  expect(await countOf({ 'logs/2026-10-15.log': Buffer.from(marked).swap16() })).toBe(2);
  // The same bytes, one off: other characters.
  const off = Buffer.concat([
    Buffer.from(`[${NOON}] a`, 'utf16le').subarray(0, -1),
    Buffer.from('发布成功', 'utf16le'),
    Buffer.from([0x61]),
  ]);
  expect(await countOf({ 'logs/2026-10-15.log': off }, named)).toBe(0);
});

test('rotated and compressed neighbours are read', async () => {
  const files = {
    'logs/app.log': ok('2026-10-15T11:00:00Z'),
    'logs/app.log.1': ok('2026-10-15T05:00:00Z') + ok('2026-10-14T05:00:00Z'),
    'logs/app.log.2.gz': gzipSync(ok('2026-10-15T01:00:00Z')),
    'logs/app.log.note': ok(NOON),
    'logs/app.logs': ok(NOON),
    'logs/my-app.log': ok(NOON),
  };
  expect(await countOf(files, { sources: [forEver] })).toBe(3);
  const daily = { 'logs/2026-10-15.log.gz': gzipSync(ok(NOON)), 'logs/2026-10-14.log.1': ok(NOON) };
  expect(await countOf(daily)).toBe(2);
});

test.each([
  ...[
    'app.log.old',
    'app.1.log',
    'app-20261015.log',
    'app.2026-10-15.log',
    'app.log-20261015',
    'app.log.2026-10-15',
  ],
  ...[
    'app.log.bak',
    'app.log.1.old',
    'app-2026-10-15T10-00-00.000.log',
    'app.log-1760522400',
    'app_2026-10.log',
  ],
  ...['app__2026-10-15_00-00-00.log', 'app.log.2026-10-15-10', 'app.old.log'],
])('a rotated log is read under its plain name: %s', async (name) => {
  const files = { 'logs/app.log': ok(NOON), [`logs/${name}`]: ok('2026-10-15T01:00:00Z') };
  expect(await countOf(files, { sources: [forEver] })).toBe(2);
  const packed = { 'logs/app.log': ok(NOON), [`logs/${name}.gz`]: gzipSync(ok('2026-10-15T01:00:00Z')) };
  expect(await countOf(packed, { sources: [forEver] })).toBe(2);
});

test.each([
  'app-1.log',
  'app2.log',
  'app.log.html',
  'app-error.log',
  'my-app.log',
  'app.log2',
  'app.zip',
  'app.txt',
])('another log is not taken for a rotated one: %s', async (name) => {
  const files = { 'logs/app.log': ok(NOON), [`logs/${name}`]: ok(NOON) };
  expect(await countOf(files, { sources: [forEver] })).toBe(1);
});

test.each([
  ...[
    'app.log.1.xz',
    'app.log.1.bz2',
    'app.log.1.zst',
    'app.log.1.Z',
    'app.log.2.lz4',
    'app.log.zip',
    'app.log.7z',
  ],
  ...['app-20261015.log.xz', 'app.log-20261015.br', 'app.1.log.tar.gz', 'app.log.1.tgz'],
  'app.log.1',
])(
  'a rotated log that is packed in another way is an error, unless it is older than the period: %s',
  async (name) => {
    // What tells in the last row is how xz begins.
    const xz = Buffer.from('fd377a585a000004e6d6b446', 'hex');
    const dir = folderWith({ 'logs/app.log': ok(NOON), [`logs/${name}`]: xz });
    const quota = quotaIn(dir, { sources: [forEver] });
    const countAt = async (changed: string) => {
      utimesSync(join(dir, 'logs', name), new Date(changed), new Date(changed));
      return countQuota(quota, { at: Date.parse(NOON), history: NO_HISTORY });
    };
    expect((await countAt('2026-10-14T23:59:59Z')).count).toBe(1);
    const error = await errorOf(countAt('2026-10-15T00:00:00Z'));
    expect([error.code, error.path]).toEqual(['corrupt', join(dir, 'logs', name)]);
    expect(error.message).toMatch(/^[^\n]*packed in a way that is not read here.* unpack it[^\n]*$/);
    // Rows of past days are of an older period too.
    await errorOf(countPastDays(quota, 2, { at: Date.parse('2026-10-16T12:00:00Z'), history: NO_HISTORY }));
  },
);

test('what stands in a file and in its compressed copy counts once, what stands in either counts', async () => {
  const first = ok('2026-10-15T01:00:00Z');
  const second = ok('2026-10-15T02:00:00Z');
  const both = (plain: string, packed: Uint8Array) =>
    countOf({ 'logs/app.log.1': plain, 'logs/app.log.1.gz': packed }, { sources: [forEver] });
  expect(await both(first + first + second, gzipSync(first + first + second))).toBe(3);
  expect(await both(second, gzipSync(first))).toBe(2);
});

test("logs that are rotated by date, as logrotate's dateext does, count too", async () => {
  const files = { 'logs/app.log-20261015': ok(NOON), 'logs/app.log-20261014.gz': gzipSync(ok(NOON)) };
  expect(await countOf(files, { sources: [forEver] })).toBe(2);
});

test('a torn gzip file is an error, whatever was found in it and beside it', async () => {
  const beside = { 'logs/app.log': ok(NOON), 'logs/app.log.gz': gzipSync(ok(NOON)).subarray(0, 20) };
  expect((await errorOf(ask(beside, NOON, { sources: [forEver] }))).code).toBe('corrupt');
  const whole = gzipSync(`${ok(NOON)}${fc.sample(fc.string({ minLength: 3000 }), { numRuns: 1, seed: 1 })}`);
  for (const bytes of [whole.subarray(0, -9), whole.subarray(0, 0), Buffer.from('no gzip')]) {
    const error = await errorOf(ask({ 'logs/2026-10-15.log.gz': bytes }, NOON, { sources: [byDay] }));
    expect([error.code, error.message]).toEqual(['corrupt', expect.stringMatching(/gzip file/)]);
  }
});

test('compressed lines under a plain name are not searched in vain', async () => {
  expect(await countOf({ 'logs/2026-10-15.log': gzipSync(ok(NOON)) })).toBe(1);
});

test('what stands in the place of a log and is none is an error, and nobody waits for it', async () => {
  const inPlace = async (make: (path: string) => void) => {
    const dir = folderWith({ 'logs/x': '' });
    make(join(dir, 'logs/2026-10-16.log'));
    const quota = quotaIn(dir, { sources: [byDay] });
    return (await errorOf(countQuota(quota, { at: Date.parse(NOON), history: NO_HISTORY }))).message;
  };
  expect(await inPlace((path) => mkdirSync(path))).toMatch(/got a directory/);
  expect(await inPlace((path) => execFileSync('mkfifo', [path]))).toMatch(/got a pipe/);
  expect(await inPlace((path) => symlinkSync('gone', path))).toMatch(/a link to nothing/);
});

test('a link to the log of today does not count it twice', async () => {
  const dir = folderWith({ 'logs/2026-10-15.log': ok(NOON) });
  symlinkSync('2026-10-15.log', join(dir, 'logs/2026-10-16.log'));
  const quota = quotaIn(dir, { sources: [byDay] });
  expect((await countQuota(quota, { at: Date.parse(NOON), history: NO_HISTORY })).count).toBe(1);
});

test('a duration counts up to the time asked for', async () => {
  const files = {
    'logs/app.log': ['10:59:59', '11:00:00', '12:00:00', '12:00:01']
      .map((time) => ok(`2026-10-15T${time}Z`))
      .join(''),
  };
  expect(await countOf(files, { period: '1h', sources: [forEver] })).toBe(2);
});

test('over any log the days add up to all of it, each success on one day', async () => {
  const start = Date.UTC(2026, 9, 20);
  const success = fc.record({
    at: fc.integer({ min: start, max: start + 20 * 86_400_000 }),
    // The file may be one day off.
    off: fc.integer({ min: -1, max: 1 }),
    crlf: fc.boolean(),
  });
  const zones = [
    'Europe/Berlin',
    'America/New_York',
    'Pacific/Kiritimati',
    'Asia/Kathmandu',
    'Pacific/Chatham',
  ];
  await fc.assert(
    fc.asyncProperty(
      fc.array(success, { maxLength: 60 }),
      fc.constantFrom(...zones),
      async (successes, timeZone) => {
        const dir = folderWith({ 'logs/x': '' });
        for (const { at, off, crlf } of successes) {
          const name = new Date(at + off * 86_400_000).toISOString().slice(0, 10);
          const line = `[${new Date(at).toISOString()}] 发布成功`;
          appendFileSync(join(dir, `logs/${name}.log`), `no\n${line}${crlf ? '\r' : ''}\n`);
        }
        const quota = quotaIn(dir, { timeZone, sources: [byDay] });
        const at = start + 21 * 86_400_000;
        const days = await countPastDays(quota, 23, { at, history: NO_HISTORY });
        expect(days.reduce((sum, { count }) => sum + count, 0)).toBe(successes.length);
        for (const { period, count } of days) {
          const within = successes.filter((one) => one.at >= period.from && one.at < period.to);
          expect(count).toBe(within.length);
        }
      },
    ),
    { numRuns: 25 },
  );
});
