import { expect, it } from 'vitest';
import { loadConfig } from '../../src/config/config.ts';
import { readLedgers } from '../../src/config/ledgers.ts';
import { resolveLedger } from '../../src/ledger/reference.ts';

const AT = { file: '/srv/app/runlock.json', keys: ['ledgers'] };

it('files are relative to the configuration, places are keys or pointers', () => {
  const ledgers = readLedgers(
    {
      published: { file: '../data/ledger.json', at: 'publishes', stamp: 'updatedAt' },
      视频: { file: '/var/l.json', at: '/a~1b/c' },
      whole: { file: 'w.json' },
    },
    AT,
  );
  expect(Object.fromEntries(ledgers)).toEqual({
    published: { file: '/srv/data/ledger.json', place: ['publishes'], stamp: 'updatedAt' },
    视频: { file: '/var/l.json', place: ['a/b', 'c'], stamp: null },
    whole: { file: '/srv/app/w.json', place: [], stamp: null },
  });
});

it('a name is one in both Unicode forms', () => {
  const ledgers = readLedgers({ 'cafe\u0301': { file: 'l' } }, AT);
  const config = { ...loadConfig(null), ledgers };
  for (const name of ['cafe\u0301', 'caf\u00e9'])
    expect(resolveLedger(name, config, '/')).toMatchObject({ file: '/srv/app/l' });
});

it.each([
  [[], 'ledgers: expected an object, got an array'],
  [{ a: 'l.json' }, 'ledgers.a: expected an object, got "l.json"'],
  [{ a: {} }, 'ledgers.a: expected the key "file", got none'],
  [{ a: { file: '' } }, 'ledgers.a.file: expected a text, got an empty one'],
  [{ a: { file: 'l', at: 7 } }, 'ledgers.a.at: expected a text, got 7'],
  [{ a: { file: 'l', at: '/a~2' } }, 'ledgers.a.at: expected a JSON pointer'],
  [
    { a: { file: 'l', stmap: 'x' } },
    'ledgers.a.stmap: unknown key, expected a known key, did you mean "stamp"?',
  ],
  [{ é: { file: 'l' }, 'e\u0301': { file: 'm' } }, 'ledgers: expected each ledger once, got a second "é"'],
  [{ '': { file: 'l' } }, 'ledgers: expected a name for each ledger, got an empty one'],
])('%j is refused with its place', (value, message) => {
  expect(() => readLedgers(value, AT)).toThrow(
    expect.objectContaining({
      code: 'config',
      path: AT.file,
      message: expect.stringContaining(`/srv/app/runlock.json: ${message}`),
    }),
  );
});
