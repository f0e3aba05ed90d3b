import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { build } from 'esbuild';
import { afterAll, describe, expect, test } from 'vitest';
import { loadConfig } from '../../src/config/config.ts';
import { RunlockError } from '../../src/errors.ts';

const dir = mkdtempSync(join(realpathSync(tmpdir()), 'runlock-quotas-'));
mkdirSync(join(dir, 'with{brace'));
afterAll(() => rmSync(dir, { recursive: true, force: true }));

const LOG = { log: 'logs/{yyyy-MM-dd}.log', contains: 'done', time: '^(\\S+)' };
const JSON_SOURCE = { json: 'push/{yyyy-MM-dd}.json', where: { state: 'ok' } };
const DAY = { limit: 1, period: 'day', timeZone: 'Asia/Shanghai', sources: [LOG] };

function load(quota: unknown, folder = dir) {
  const path = join(folder, 'runlock.json');
  writeFileSync(path, JSON.stringify({ quotas: { q: quota } }));
  return loadConfig(path).quotas.get('q');
}

function refusal(quota: unknown): string {
  try {
    load(quota);
  } catch (error) {
    if (!(error instanceof RunlockError)) throw error;
    expect(error.code).toBe('config');
    return error.message.replace(join(dir, 'runlock.json: quotas.q'), '');
  }
  throw new Error('expected a refusal');
}

const source = (fields: object) => ({ ...DAY, sources: [fields] });
const path = (log: string) => source({ ...LOG, log });

test('a quota is read with what its sources leave unsaid', () => {
  const quota = load({ ...DAY, sources: [LOG, { ...JSON_SOURCE, at: 'list' }, { history: 'finished' }] });
  expect(quota).toMatchObject({ name: 'q', limit: 1, period: 'day', timeZone: 'Asia/Shanghai' });
  expect(quota?.sources).toMatchObject([
    { type: 'log', zone: 'Asia/Shanghai', encoding: 'utf-8', path: { folder: join(dir, 'logs') } },
    { type: 'json', zone: 'Asia/Shanghai', at: 'list', time: null },
    { type: 'history' },
  ]);
  expect(load({ ...DAY, period: '24h' })?.period).toBe(86_400_000);
  expect(loadConfig(null).quotas.size).toBe(0);
});

test('paths are relative to the file, whose own folder may have braces in its name', () => {
  const folder = join(dir, 'with{brace');
  expect(load(DAY, folder)?.sources[0]).toMatchObject({ path: { folder: join(folder, 'logs') } });
});

describe('refused, with what was expected', () => {
  test.each([
    [{ ...DAY, limt: 1 }, /^\.limt: unknown key, expected a known key, did you mean "limit"\?/],
    [source({ ...LOG, zon: 'UTC' }), /^\.sources\.0\.zon: unknown key.*"zone"/],
    [source({ ...JSON_SOURCE, contains: 'x' }), /^\.sources\.0\.contains: unknown key/],
    [source({ history: 'failed' }), /\.history: expected "finished", got "failed"/],
    [source({ history: 'finished', zone: 'UTC' }), /\.zone: unknown key/],
    [source({ file: 'x' }), /expected a source with the key "json", "log" or "history", got none/],
    [source({ ...LOG, ...JSON_SOURCE }), /expected one of .* got log and json/],
    [{ ...DAY, sources: [] }, /\.sources: expected at least one source, got none/],
    [{ ...DAY, sources: LOG }, /\.sources: expected a list of sources.*got an object/],
    [{ ...DAY, sources: undefined }, /\.sources: expected a list/],
    [{ ...DAY, limit: undefined }, /\.limit: expected how many successes at most.*got nothing/],
    [{ ...DAY, limit: 0 }, /\.limit: expected a whole number from 1, got 0/],
    [{ ...DAY, limit: 1.5 }, /\.limit: expected a whole number from 1, got 1\.5/],
    [{ ...DAY, limit: '1' }, /\.limit: expected a whole number from 1, got "1"/],
    [{ ...DAY, period: undefined }, /\.period: expected "day", "week" or a duration.*got nothing/],
    [{ ...DAY, period: 'month' }, /\.period: expected "day", "week" or a duration.*got "month"/],
    [{ ...DAY, period: '0h' }, /\.period: expected a duration longer than 0/],
    [{ ...DAY, period: '1000d' }, /\.period: expected at most "366d"/],
    [{ ...DAY, timeZone: undefined }, /\.timeZone: expected the zone whose day is meant.*got nothing/],
    [
      { ...DAY, period: '24h', timeZone: undefined },
      /\.sources\.0\.zone: expected the zone that the source writes times/,
    ],
    [source({ ...LOG, contains: undefined }), /\.contains: expected the text.*got nothing/],
    [source({ ...LOG, contains: '' }), /\.contains: expected a text, got an empty one/],
    [source({ ...LOG, time: undefined }), /\.time: expected a regular expression.*got nothing/],
    [source({ ...LOG, time: '^\\S+' }), /\.time: expected a regular expression.*which has no group/],
    [source({ ...LOG, time: '^(' }), /\.time: expected a regular expression.*got "\^\(" \(Invalid/],
    [source({ ...LOG, encoding: 'gkb' }), /\.encoding: expected an encoding such as.*got "gkb"/],
    [source({ ...JSON_SOURCE, at: '/a~2' }), /\.at: expected a JSON pointer.*got "\/a~2"/],
    [source({ ...JSON_SOURCE, where: { '/a~': 1 } }), /\.where: expected a JSON pointer.*got "\/a~"/],
    [source({ ...JSON_SOURCE, time: '/a~b' }), /\.time: expected a JSON pointer/],
    [source({ ...JSON_SOURCE, where: {} }), /\.where: expected at least one field/],
  ])('%j', (quota, message) => expect(refusal(quota)).toMatch(message));
});

describe('a zone is Area/City or UTC', () => {
  test.each([
    'CST',
    'EST',
    'GMT',
    '+08:00',
    'UTC+8',
    'GMT+8',
    'Shanghai',
    'Asia/Nowhere',
    'utc',
    ' UTC',
    '',
    8,
  ])('%j is refused', (timeZone) => {
    expect(refusal({ ...DAY, timeZone })).toMatch(/^\.timeZone: expected a time zone as Area\/City/);
    expect(refusal(source({ ...LOG, zone: timeZone }))).toMatch(/\.zone: expected a time zone as Area\/City/);
  });

  test.each([
    'UTC',
    'Asia/Kolkata',
    'Asia/Kathmandu',
    'America/Argentina/Buenos_Aires',
    'America/Port-au-Prince',
  ])('%s is taken', (timeZone) => expect(load({ ...DAY, timeZone })?.timeZone).toBe(timeZone));

  test('a slip of the fingers is guessed', () => {
    expect(refusal({ ...DAY, timeZone: 'Asia/Shanghia' })).toMatch(/did you mean "Asia\/Shanghai"\?/);
  });
});

describe('a date field is a day', () => {
  test.each([
    ['{yyyy-mm-dd}', /got \{yyyy-mm-dd\}: "m" is minutes, the month is "M", did you mean \{yyyy-MM-dd\}\?/],
    ['{YYYY-MM-DD}', /"Y" is the year of a local week, the year is "y", did you mean \{yyyy-MM-dd\}\?/],
    ['{yyyyMMddHH}', /"H" is no part of a day$/],
    ['{PP}', /"P" is no part of a day/],
    ['{}', /expected a date-fns format of a day/],
    ['{today}', /"t" is no part of a day|"o" is no part of a day/],
    ["{yyyy'x}", /a second quote/],
    ['{yyyy', /"\}" after each "\{"/],
    ['{yyyy-{MM}}', /"\}" after each "\{"/],
    ['yyyy}', /"\{" before each "\}"/],
  ])('%s is refused', (field, message) => {
    expect(refusal(path(`logs/${field}.log`))).toMatch(message);
  });

  test.each(['{yyyy-MM-dd}', '{yyyy}/{MM}/{dd}', "{RRRR-'W'II}", '{dd MMM yy}', "{yyyy'年'M'月'do}", 'app'])(
    '%s is taken',
    (field) => expect(load(path(`logs/${field}.log`))).toBeDefined(),
  );
});

test('reading a configuration loads no date library', async () => {
  const entry = resolve(import.meta.dirname, '../../src/config/config.ts');
  const { metafile } = await build({
    entryPoints: [entry],
    bundle: true,
    write: false,
    platform: 'node',
    format: 'esm',
    metafile: true,
  });
  const files = Object.keys(metafile.inputs);
  expect(files.filter((file) => file.endsWith('src/config/quotas.ts'))).toHaveLength(1);
  expect(files.filter((file) => file.includes('date-fns'))).toEqual([]);
});

test('JSON files whose names do not tell the period need a time', () => {
  const needsTime = /\.sources\.0\.time: expected the field that tells when.*got nothing/;
  const json = (name: string, more = {}) => source({ ...JSON_SOURCE, json: `push/${name}.json`, ...more });
  expect(refusal(json('{yyyy-MM}'))).toMatch(needsTime);
  expect(refusal(json('all'))).toMatch(needsTime);
  expect(refusal(json("{RRRR-'W'II}"))).toMatch(needsTime);
  expect(refusal(json('{yyyy-MM-dd}', { zone: 'UTC' }))).toMatch(needsTime);
  expect(refusal({ ...json('{yyyy-MM-dd}'), period: '24h' })).toMatch(needsTime);
  expect(load(json('{yyyy-MM-dd}', { zone: 'UTC', time: 'at' }))).toBeDefined();
  expect(load({ ...json("{RRRR-'W'II}"), period: 'week' })).toBeDefined();
  expect(load({ ...json('{yyyy}/{MMdd}'), period: 'week' })).toBeDefined();
});

test('a quota whose name is written twice, in two Unicode forms, is refused', () => {
  const file = join(dir, 'runlock.json');
  writeFileSync(file, JSON.stringify({ quotas: { 'caf\u00e9': DAY, 'cafe\u0301': DAY } }));
  expect(() => loadConfig(file)).toThrow(/quotas: expected each quota once/);
});
