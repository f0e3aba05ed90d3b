import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { Ajv } from 'ajv';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { loadConfig } from '../../src/config/config.ts';
import { RunlockError } from '../../src/errors.ts';

const ROOT = path.resolve(import.meta.dirname, '../..');
const SCHEMA = JSON.parse(fs.readFileSync(path.join(ROOT, 'runlock.schema.json'), 'utf8')) as Schema;

interface Schema {
  readonly properties: Readonly<Record<string, unknown>>;
  readonly definitions: Readonly<Record<string, { readonly properties?: Readonly<Record<string, unknown>> }>>;
}

let dir: string;
beforeAll(() => {
  dir = fs.mkdtempSync(path.join(os.tmpdir(), 'runlock-schema-'));
});
afterAll(() => fs.rmSync(dir, { recursive: true }));

function load(config: unknown): void {
  const file = path.join(dir, 'runlock.json');
  fs.writeFileSync(file, JSON.stringify(config));
  loadConfig(file);
}

/** The message about a key that is like none of those it has; null where the configuration is right. */
function fault(config: unknown): string | null {
  try {
    load(config);
    return null;
  } catch (error) {
    if (error instanceof RunlockError && error.code === 'config') return error.message;
    throw error;
  }
}

const STRANGE = { zzzzzzzzzzzz: 1 };
const QUOTA = { limit: 1, period: 'day', timeZone: 'UTC', sources: [{ history: 'finished' }] };
const JSON_SOURCE = { json: '{yyyy-MM-dd}.json', where: { a: 1 } };
const LOG_SOURCE = { log: 'x.log', contains: 'x', time: '^(\\S+)' };
const source = (one: object) => ({ quotas: { q: { ...QUOTA, sources: [one] } } });

describe('the schema and the readers know the same keys', () => {
  test.each<[string, object, Readonly<Record<string, unknown>> | undefined]>([
    ['at the top', STRANGE, SCHEMA.properties],
    ['of a lock', { locks: { video: STRANGE } }, SCHEMA.definitions.lock?.properties],
    ['of a ledger', { ledgers: { l: { file: 'x', ...STRANGE } } }, SCHEMA.definitions.ledger?.properties],
    ['of a quota', { quotas: { q: { ...QUOTA, ...STRANGE } } }, SCHEMA.definitions.quota?.properties],
    ['of a JSON source', source({ ...JSON_SOURCE, ...STRANGE }), SCHEMA.definitions.jsonSource?.properties],
    ['of a log source', source({ ...LOG_SOURCE, ...STRANGE }), SCHEMA.definitions.logSource?.properties],
    [
      'of the history',
      source({ history: 'finished', ...STRANGE }),
      SCHEMA.definitions.historySource?.properties,
    ],
  ])('%s', (_, config, properties) => {
    const message = fault(config) ?? '';
    const keys = /expected one of (.*)$/.exec(message)?.[1]?.split(', ');
    expect(keys?.toSorted(), message).toEqual(Object.keys(properties ?? {}).toSorted());
  });
});

const isValid = new Ajv({ strict: true, strictTypes: false }).compile(SCHEMA);

describe('the schema and the readers agree', () => {
  const GOOD: unknown[] = [
    {},
    { $schema: './node_modules/runlock/runlock.schema.json', dir: 'runs', singleMachine: true },
    {
      hold: 'never',
      fresh: '2h',
      unknownFor: 'settled',
      timeout: '1.5h',
      killAfter: '0s',
      watchdog: '500ms',
    },
    { gates: ['item', 'output:out/{yyyy-MM-dd}.json', 'ledger:l.json#a'] },
    { gates: ['quota:q'], quotas: { q: QUOTA } },
    { quotas: { q: { limit: 3, period: '24h', sources: [{ history: 'finished' }] } } },
    source(JSON_SOURCE),
    source({ ...JSON_SOURCE, at: '/a/b', time: 'when', zone: 'Asia/Shanghai' }),
    source({ ...LOG_SOURCE, zone: 'UTC', encoding: 'gbk' }),
    { ledgers: { published: { file: 'ledger.json', at: 'publishes', stamp: 'updatedAt' } } },
    { locks: { video: { hold: '20m', gates: [] }, 视频: {} } },
  ];
  const BAD: unknown[] = [
    [],
    { dir: '' },
    { dir: 'a\u0007b' },
    { singleMachine: 'yes' },
    { hold: 45 },
    { hold: '0s' },
    { hold: '45 m' },
    { fresh: 'never' },
    { unknownFor: 'never' },
    { gates: 'item' },
    { gates: ['itme'] },
    { gates: ['item:x'] },
    { gates: ['quota:'] },
    { quotas: { q: { ...QUOTA, limit: 0 } } },
    { quotas: { q: { ...QUOTA, period: 'month' } } },
    { quotas: { q: { ...QUOTA, timeZone: 'CST' } } },
    { quotas: { q: { ...QUOTA, sources: [] } } },
    { quotas: { q: { limit: 1, timeZone: 'UTC', sources: QUOTA.sources } } },
    source({}),
    source({ history: 'failed' }),
    source({ ...JSON_SOURCE, where: {} }),
    source({ log: 'x.log', contains: 'x' }),
    source({ ...LOG_SOURCE, ...JSON_SOURCE }),
    { ledgers: { l: {} } },
    { ledgers: { l: { file: 'x', at: 1 } } },
    { locks: { video: { dir: 'x' } } },
    { locks: { '': {} } },
  ];
  test.each(GOOD.map((config) => [JSON.stringify(config), config]))('that %s is right', (_, config) => {
    expect(fault(config)).toBeNull();
    expect(isValid(config), JSON.stringify(isValid.errors)).toBe(true);
  });
  test.each(BAD.map((config) => [JSON.stringify(config), config]))('that %s is wrong', (_, config) => {
    expect(fault(config)).not.toBeNull();
    expect(isValid(config)).toBe(false);
  });
});

test('the schema comes with the package', () => {
  const { files } = JSON.parse(fs.readFileSync(path.join(ROOT, 'package.json'), 'utf8')) as {
    files: string[];
  };
  expect(files).toContain('runlock.schema.json');
});
