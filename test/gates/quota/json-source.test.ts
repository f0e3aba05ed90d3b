import { execFileSync } from 'node:child_process';
import { mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { countQuota } from '../../../src/gates/quota/quota.ts';
import { ask, errorOf, folderWith, NO_HISTORY, quotaIn } from './harness.ts';

const NOON = '2026-10-15T12:00:00Z';
const FILE = 'push/2026-10-15.json';
const where = { pt: '掘金', publishStatus: 'success' };
const byDay = { json: 'push/{yyyy-MM-dd}.json', at: 'list', where };
const GOOD = { pt: '掘金', publishStatus: 'success' };
const BAD = { pt: '掘金', publishStatus: 'failed' };

const countOf = async (content: string | Uint8Array, source: object = byDay) =>
  (await ask({ [FILE]: content }, NOON, { sources: [source] })).count;
const refusal = (content: string | Uint8Array, source: object = byDay) =>
  errorOf(ask({ [FILE]: content }, NOON, { sources: [source] }));

test.each([
  ['compact', `{"list":[${JSON.stringify(GOOD)},${JSON.stringify(BAD)}]}`],
  [
    'spaced',
    `{ "list" : [ { "pt" : "掘金" , "publishStatus" : "success" } , { "pt": "掘金", "publishStatus": "failed" } ] }`,
  ],
  [
    'keys in another order',
    '{"n":1,"list":[{"publishStatus":"success","x":[],"pt":"掘金"},{"publishStatus":"failed","pt":"掘金"}]}',
  ],
  ['an array', JSON.stringify([GOOD, BAD], null, 2)],
  ['escaped', '{"list":[{"pt":"\\u6398\\u91d1","publishStatus":"success"}]}'],
  ['with a byte order mark', `\ufeff${JSON.stringify({ list: [GOOD] })}`],
])('the same facts count the same: %s', async (_, text) => {
  expect(await countOf(text)).toBe(1);
});

test('UTF-16 with a byte order mark is read, anything else refused with its place', async () => {
  const text = JSON.stringify({ list: [GOOD] });
  expect(await countOf(Buffer.from(`\ufeff${text}`, 'utf16le'))).toBe(1);
  const error = await refusal(Buffer.from('{"list":[{"pt":"\xbe\xf2"}]}', 'latin1'));
  expect(error.code).toBe('corrupt');
  expect(error.message).toMatch(/byte 0xbe at byte offset 16 \(line 1, column 17\)/);
});

test('values are compared as JSON, texts in one Unicode form, fields by pointer too', async () => {
  const list = [
    { n: 1, s: { code: 'cafe\u0301' }, ok: true, none: null },
    { n: 2, s: { code: 'tea' }, ok: false, none: null },
  ];
  const text = JSON.stringify({ data: { list } });
  const source = (conditions: object) => ({
    json: 'push/{yyyy-MM-dd}.json',
    at: '/data/list',
    where: conditions,
  });
  expect(await countOf(text, source({ '/s/code': 'caf\u00e9', n: 1, ok: true }))).toBe(1);
  expect(await countOf(text, source({ s: { code: 'tea' } }))).toBe(1);
  expect(await countOf(text, source({ none: null }))).toBe(2);
});

test('a value that is deeper than the stack is compared and shown all the same', async () => {
  const deep = `${'['.repeat(100_000)}${']'.repeat(100_000)}`;
  const text = `[{"pt":${deep},"publishStatus":"success","t":${deep}},${JSON.stringify(GOOD)}]`;
  expect(await countOf(text)).toBe(1);
  expect(await countOf(text, { ...byDay, where: { pt: [[[]]] } })).toBe(0);
  const error = await refusal(text, { ...byDay, where: { publishStatus: 'success' }, time: 't' });
  expect(error.message).toMatch(/got a list/);
});

test('a condition on a field that no entry has is an error, and names the near one', async () => {
  const error = await refusal(JSON.stringify({ list: [{ pt: '掘金', publishstatus: 'success' }] }));
  expect(error.code).toBe('corrupt');
  expect(error.message).toContain(FILE);
  expect(error.message).toMatch(
    /none of the 1 entries has the field "publishStatus", did you mean "publishstatus"\?/,
  );
});

test('so is a condition that no entry can meet because it is of another type', async () => {
  const error = await refusal(JSON.stringify([{ code: '200' }]), { ...byDay, where: { code: 200 } });
  expect(error.message).toMatch(/"code" is "200" here and 200 in the configuration/);
});

test('an empty list is a true 0, and so is a file that is not there', async () => {
  expect(await countOf('{"list":[]}')).toBe(0);
  expect((await ask({ 'push/other': '' }, NOON, { sources: [byDay] })).count).toBe(0);
});

test.each([
  ['{"lists":[]}', /expected a list at "list", got nothing; did you mean "at": "lists"\?/],
  ['{"list":{}}', /expected a list at "list", got an object/],
  ['{"list":[{"pt":"掘', /line 1/],
  ['', /got the end/],
  ['{"list":[{}],"list":[]}', /each key once, got a second "list" at line 1/],
])('a file that is not what it should be is no 0: %s', async (text, message) => {
  const error = await refusal(text);
  expect([error.code, error.path?.endsWith(FILE)]).toEqual(['corrupt', true]);
  expect(error.message).toMatch(message);
});

test('a missing folder is an error with a guess at the one that was meant', async () => {
  const error = await errorOf(
    ask({ 'pushData/x': '' }, NOON, {
      sources: [{ ...byDay, json: 'pushDta/{yyyy}/{MM-dd}.json', time: 't' }],
    }),
  );
  expect(error.code).toBe('corrupt');
  expect(error.message).toMatch(/pushDta: expected a folder .* did you mean .*pushData\?/);
});

test('a folder whose name has a date may be missing', async () => {
  const source = { ...byDay, json: 'push/{yyyy}/{MM}/{dd}.json' };
  expect((await ask({ 'push/x': '' }, NOON, { sources: [source] })).count).toBe(0);
});

test('what stands in the place of the file and is none is an error, and nobody waits for it', async () => {
  const inPlace = async (make: (path: string) => void) => {
    const dir = folderWith({ 'push/x': '' });
    make(join(dir, FILE));
    return errorOf(
      countQuota(quotaIn(dir, { sources: [byDay] }), { at: Date.parse(NOON), history: NO_HISTORY }),
    );
  };
  expect((await inPlace((path) => mkdirSync(path))).message).toMatch(/got a directory/);
  expect((await inPlace((path) => execFileSync('mkfifo', [path]))).message).toMatch(/got a pipe/);
  expect((await inPlace((path) => symlinkSync('gone', path))).message).toMatch(/a link to nothing/);
  expect((await inPlace((path) => symlinkSync('2026-10-15.json', path))).code).toBe('io');
});

test('with a time the neighbours are read too, and each entry counts once, on its own day', async () => {
  const files = {
    'push/2026-10-14.json': JSON.stringify([
      { ...GOOD, when: '2026-10-14T23:30:00Z' },
      { ...GOOD, when: '2026-10-14T15:00:00Z' },
    ]),
    'push/2026-10-15.json': JSON.stringify([
      { ...GOOD, when: '2026-10-15 02:00:00' },
      { ...GOOD, when: Date.parse('2026-10-15T15:59:59.999Z') },
      { ...GOOD, when: Date.parse('2026-10-15T16:00:00Z') / 1000 },
      { ...BAD, when: null },
    ]),
  };
  const source = { ...byDay, time: 'when', zone: 'UTC' };
  expect((await ask(files, NOON, { timeZone: 'Asia/Shanghai', sources: [source] })).count).toBe(3);
  expect((await ask(files, NOON, { timeZone: 'America/Los_Angeles', sources: [source] })).count).toBe(2);
  const monthly = { 'push/2026-10.json': files['push/2026-10-15.json'] };
  const one = { ...source, json: 'push/{yyyy-MM}.json' };
  expect((await ask(monthly, NOON, { timeZone: 'Asia/Shanghai', sources: [one] })).count).toBe(2);
});

test('one file under the names of two days counts once', async () => {
  const dir = folderWith({ [FILE]: JSON.stringify([{ ...GOOD, when: NOON }]) });
  symlinkSync('2026-10-15.json', join(dir, 'push/2026-10-14.json'));
  const quota = quotaIn(dir, { sources: [{ ...byDay, time: 'when' }] });
  expect((await countQuota(quota, { at: Date.parse(NOON), history: NO_HISTORY })).count).toBe(1);
});

test('an entry that counts and tells no time is an error', async () => {
  const error = await refusal(JSON.stringify([{ ...GOOD, pushedAt: NOON }]), { ...byDay, time: 'pushdAt' });
  expect(error.message).toMatch(/expected a time in "pushdAt" .* got nothing, did you mean "pushedAt"\?/);
});

test('a week in its own zone is the sum of its days, each file whole', async () => {
  const files = {
    'push/2026-10-11.json': JSON.stringify([GOOD]),
    'push/2026-10-12.json': JSON.stringify([GOOD, GOOD]),
    'push/2026-10-18.json': JSON.stringify([GOOD]),
    'push/2026-10-19.json': JSON.stringify([GOOD]),
  };
  expect((await ask(files, NOON, { period: 'week', sources: [byDay] })).count).toBe(3);
});
