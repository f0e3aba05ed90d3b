import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { RunlockError } from '../../src/errors.ts';
import { type Addition, addEntry } from '../../src/ledger/add-entry.ts';
import { parsePlace } from '../../src/ledger/place.ts';

const NOW = Date.UTC(2026, 9, 14, 8, 30, 5, 123);

/** The text with one key more at a place, as people write it. */
function added(text: string, place: string, key: string, entry = '{}', more: Partial<Addition> = {}): string {
  const result = add(text, place, key, entry, more);
  if (result.outcome !== 'added') throw new Error('expected it to be added');
  return result.text;
}

function add(text: string, place: string, key: string, entry = '{}', more: Partial<Addition> = {}) {
  const addition = {
    place: parsePlace(place, 'x'),
    key,
    entry,
    stamp: null,
    create: false,
    now: NOW,
    ...more,
  };
  return addEntry(text, addition, '/srv/ledger.json');
}

function refusal(text: string, place: string): string {
  try {
    add(text, place, 'new');
  } catch (error) {
    if (error instanceof RunlockError && error.code === 'corrupt') return error.message;
    throw error;
  }
  throw new Error('expected a RunlockError');
}

describe('a new key looks like its neighbours', () => {
  it.each([
    ['two spaces', '{\n  "a": {\n    "x": 1\n  }\n}\n', '{\n  "a": {\n    "x": 1,\n    "k": {}\n  }\n}\n'],
    ['tabs', '{\n\t"a": {\n\t\t"x": 1\n\t}\n}', '{\n\t"a": {\n\t\t"x": 1,\n\t\t"k": {}\n\t}\n}'],
    [
      'CRLF',
      '{\r\n "a": {\r\n  "x": 1\r\n }\r\n}\r\n',
      '{\r\n "a": {\r\n  "x": 1,\r\n  "k": {}\r\n }\r\n}\r\n',
    ],
    ['no indentation', '{\n"a": {\n"x": 1\n}\n}', '{\n"a": {\n"x": 1,\n"k": {}\n}\n}'],
    ['nothing between', '{"a":{"x":1}}', '{"a":{"x":1,"k":{}}}'],
    ["as Python's json writes", '{"a": {"x": 1, "y": 2}}', '{"a": {"x": 1, "y": 2, "k": {}}}'],
    ["as Python's json writes a single one", '{"a": {"x": 1}}', '{"a": {"x": 1, "k": {}}}'],
    ['padded braces', '{ "a": { "x": 1 } }', '{ "a": { "x": 1, "k": {} } }'],
    ['a comma in front', '{"a":{\n  "x": 1\n, "y": 2\n}}', '{"a":{\n  "x": 1\n, "y": 2\n, "k": {}\n}}'],
    ['one-line objects in lines', '{\n  "a": { "x": 1 }\n}', '{\n  "a": { "x": 1, "k": {} }\n}'],
    ['empty, in lines', '{\n  "a": {}\n}\n', '{\n  "a": {\n    "k": {}\n  }\n}\n'],
    ['empty, by tabs', '{\n\t"b": 1,\n\t"a": {}\n}', '{\n\t"b": 1,\n\t"a": {\n\t\t"k": {}\n\t}\n}'],
    ['empty, in lines of its own', '{\n  "a": {\n  }\n}', '{\n  "a": {\n    "k": {}\n  }\n}'],
    ['empty, all on one line', '{"b":1,"a":{}}', '{"b":1,"a":{"k":{}}}'],
    ['empty and padded', '{ "b": 1, "a": {} }', '{ "b": 1, "a": { "k": {} } }'],
    ['empty with a blank', '{"b": 1, "a": { }}', '{"b": 1, "a": { "k": {} }}'],
  ])('%s', (_style, before, after) => {
    expect(added(before, 'a', 'k')).toBe(after);
  });

  it.each([
    ['{}', '{\n  "k": {}\n}'],
    ['{}\n', '{\n  "k": {}\n}\n'],
    ['{}\r\n', '{\r\n  "k": {}\r\n}\r\n'],
    ['{"x":1}', '{"x":1,"k":{}}'],
    [' {\n "x":1 }', ' {\n "x":1,\n "k":{} }'],
  ])('the whole document: %j', (before, after) => {
    expect(added(before, '', 'k')).toBe(after);
  });
});

describe('an entry keeps its own text', () => {
  const TABS = '{\n\t"a": {\n\t\t"x": 1\n\t}\n}';

  it('numbers, escapes and blanks on a line stay byte for byte', () => {
    const entry = '{ "id":7440123456789012345,  "n": 1.10, "big": 1e400, "t": "\\u00e9é\\/" }';
    expect(added(TABS, 'a', 'k', `\n ${entry}\r\n`)).toContain(`"k": ${entry}\n\t}`);
  });

  it('several lines take the indentation and line ends of the ledger', () => {
    const entry = '{\r\n  "list": [1,\r\n    2],\r\n  "o": {}\r\n}\r\n';
    const lines = ['{', '\t"a": {', '\t\t"x": 1,', '\t\t"k": {', '\t\t\t"list": [1,', '\t\t\t\t2],'];
    expect(added(TABS, 'a', 'k', entry)).toBe([...lines, '\t\t\t"o": {}', '\t\t}', '\t}', '}'].join('\n'));
  });

  it('several lines become one where the ledger has one', () => {
    const entry = '{\n  "a": [\n    1,\n    2\n  ]\n}';
    expect(added('{"x":1,"y":2}', '', 'k', entry)).toBe('{"x":1,"y":2,"k":{"a": [1,2]}}');
  });

  it.each(['null', '"text"', '-0', '[]', 'true'])('any JSON may be one: %s', (entry) => {
    expect(added('{"x":1}', '', 'k', entry)).toBe(`{"x":1,"k":${entry}}`);
  });
});

describe('where it goes', () => {
  it.each([
    ['/a/b', '{"a":{"b":{"x":1}}}', '{"a":{"b":{"x":1,"k":{}}}}'],
    ['/a~1b/m~0n', '{"a/b":{"m~n":{}}}', '{"a/b":{"m~n":{"k":{}}}}'],
    ['a.b', '{"a.b":{}}', '{"a.b":{"k":{}}}'],
    ['/', '{"":{}}', '{"":{"k":{}}}'],
    ['vide\u0301o', '{"vid\u00e9o":{}}', '{"vid\u00e9o":{"k":{}}}'],
    ['esc', '{"\\u0065sc":{}}', '{"\\u0065sc":{"k":{}}}'],
    ['__proto__', '{"__proto__":{}}', '{"__proto__":{"k":{}}}'],
  ])('%s', (place, before, after) => {
    expect(added(before, place, 'k')).toBe(after);
  });

  it('a key like those that every JavaScript object has is one like any other', () => {
    for (const key of ['__proto__', 'constructor', 'toString', '0', '"\\\n']) {
      const text = added('{"x":1}', '', key);
      expect(Object.keys(JSON.parse(text)).sort()).toEqual([key, 'x'].sort());
      expect(add(text, '', key)).toMatchObject({ outcome: 'exists', count: 2 });
    }
  });

  it('with create a missing place is made, without it is refused', () => {
    const text = '{\n  "version": 1\n}\n';
    expect(refusal(text, '/a/b')).toBe(
      '/srv/ledger.json: expected an object at /a/b, got nothing (ledger add --create makes it)',
    );
    expect(added(text, '/a/b', 'k', '[1]', { create: true })).toBe(
      '{\n  "version": 1,\n  "a": {\n    "b": {\n      "k": [1]\n    }\n  }\n}\n',
    );
    expect(added('{"a":{},"c":1}', '/a/b', 'k', '[1]', { create: true })).toBe(
      '{"a":{"b":{"k": [1]}},"c":1}',
    );
  });
});

describe('a key that exists is left as it is', () => {
  it.each(['vid\u00e9o', 'vide\u0301o'])('in either Unicode form: %j', (key) => {
    const text = '{"a":{"vid\\u00e9o": {"id": 1.0}}}';
    expect(add(text, 'a', key)).toEqual({ outcome: 'exists', entry: '{"id": 1.0}', count: 1 });
  });
});

describe('what it refuses, with path, place and what was got', () => {
  it.each([
    ['{"a":{}', 'a', 'expected "," or "}", got the end at line 1, column 8'],
    ['', 'a', 'expected a JSON value, got the end'],
    ['{"a":{},}', 'a', 'expected a key in double quotes, got "}"'],
    ['{"a":{} // x\n}', 'a', 'got "/" at line 1, column 9'],
    ['{"a":{}} {}', 'a', 'expected nothing more after the JSON'],
    ['[]', '', 'expected an object at the top, got an array (line 1, column 1)'],
    ['{"a":\n[]}', 'a', 'expected an object at /a, got an array (line 2, column 1)'],
    ['{"a":"\u001b"}'.replace('\u001b', '\\u001b'), 'a', 'expected an object at /a, got a text'],
    ['{"a":null}', '/a/b', 'expected an object at /a, got null (line 1, column 6)'],
    ['{"a":{},\n"a":{}}', 'a', 'expected each key once at the top, got a second "a" (line 2, column 1)'],
    ['{"a":{},"b":1,"b":2}', 'a', 'got a second "b" (line 1, column 15)'],
    ['{"a":{"x":1,"\\u0078":2}}', 'a', 'expected each key once at /a, got a second "x"'],
    ['{"\u00e9":{},"e\u0301":{}}', '\u00e9', 'expected each key once at the top'],
  ])('%j at %j', (text, place, message) => {
    const got = refusal(text, place);
    expect(got).toContain(message);
    expect(got.startsWith('/srv/ledger.json: ')).toBe(true);
    expect(got).not.toMatch(/[\p{Cc}\p{Cs}]/u);
  });

  it('what stands twice inside a neighbour is no matter of ours', () => {
    expect(added('{"x":{"y":1,"y":2}}', '', 'k')).toBe('{"x":{"y":1,"y":2},"k":{}}');
  });

  it('deep text ends in no stack overflow', () => {
    const deep = `${'['.repeat(200_000)}${']'.repeat(200_000)}`;
    expect(added(`{"x":${deep}}`, '', 'k', deep)).toBe(`{"x":${deep},"k":${deep}}`);
  });
});

describe('the stamp', () => {
  it('is refreshed beside the new key, and nothing else', () => {
    const text = '{"t": "2020-01-01T00:00:00Z", "a": {}, "u": 1}';
    expect(add(text, 'a', 'k', '{}', { stamp: 't' })).toEqual({
      outcome: 'added',
      text: '{"t": "2026-10-14T08:30:05Z", "a": {"k": {}}, "u": 1}',
      count: 1,
      stamp: { key: 't', value: '"2026-10-14T08:30:05Z"' },
    });
  });

  it.each(['{"a":{}}', '{"a":{"t":"2020-01-01T00:00:00Z"}}', '{"t":"soon","a":{}}', '{"t":{},"a":{}}'])(
    'where none stands the entry goes in all the same: %s',
    (text) => {
      const result = add(text, 'a', 'k', '1', { stamp: 't' });
      expect(result).toMatchObject({ outcome: 'added', stamp: { key: 't', value: null } });
    },
  );
});

/** JSON with blanks wherever they may stand: as many as are given, again from the start when they run out. */
function scattered(value: unknown, blanks: readonly string[]): string {
  let at = 0;
  const blank = () => blanks[at++ % blanks.length] ?? '';
  const write = (part: unknown): string => {
    if (typeof part !== 'object' || part === null) return JSON.stringify(part);
    const inner = Array.isArray(part)
      ? part.map((one) => `${blank()}${write(one)}${blank()}`)
      : Object.entries(part).map(
          ([key, one]) => `${blank()}${JSON.stringify(key)}${blank()}:${blank()}${write(one)}${blank()}`,
        );
    const [open, close] = Array.isArray(part) ? '[]' : '{}';
    return `${open}${inner.length === 0 ? blank() : inner.join(',')}${close}`;
  };
  return blank() + write(value) + blank();
}

const blanks = fc.array(fc.constantFrom('', '', ' ', '\n', '\r\n', '\n  ', '\t', '\r'), {
  minLength: 1,
  maxLength: 9,
});
const keys = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 4 }),
  fc.constantFrom('__proto__', 'x', '0', '\u00e9'),
);
const objects = fc
  .array(fc.tuple(keys, fc.jsonValue({ maxDepth: 2 })), { maxLength: 5 })
  .map((pairs) => Object.fromEntries(pairs));

describe('for any ledger', () => {
  it('every byte but the new member stays, and JSON.parse sees exactly one key more', () => {
    fc.assert(
      fc.property(
        objects,
        objects,
        fc.integer({ min: 0, max: 2 }),
        keys,
        fc.jsonValue({ maxDepth: 2 }),
        blanks,
        blanks,
        (ledger, outer, depth, key, entry, documentBlanks, entryBlanks) => {
          const place = ['p', 'q'].slice(0, depth);
          const before = place.reduceRight<object>(
            (inner, step) => ({ ...outer, [step]: inner, z: 1 }),
            ledger,
          );
          const text = scattered(before, documentBlanks);
          const entryText = scattered(entry, entryBlanks);
          const addition = { place, key, entry: entryText, stamp: null, create: false, now: NOW };
          const result = addEntry(text, addition, 'x');
          const old = place.reduce<Record<string, unknown>>(
            (value, step) => value[step] as Record<string, unknown>,
            JSON.parse(text),
          );
          const exists = Object.keys(old).some((one) => one.normalize('NFC') === key.normalize('NFC'));
          expect(result.outcome).toBe(exists ? 'exists' : 'added');
          if (result.outcome !== 'added') return;

          let same = 0;
          while (same < text.length && text[same] === result.text[same]) same += 1;
          const rest = text.slice(same);
          expect(result.text.endsWith(rest)).toBe(true);

          const parsed = JSON.parse(result.text) as Record<string, unknown>;
          const now = place.reduce((value, step) => value[step] as Record<string, unknown>, parsed);
          expect(Object.keys(now).length).toBe(Object.keys(old).length + 1);
          expect(Object.getOwnPropertyDescriptor(now, key)?.value).toEqual(JSON.parse(entryText));
          delete now[key];
          expect(parsed).toEqual(JSON.parse(text));

          expect(addEntry(result.text, addition, 'x')).toMatchObject({ outcome: 'exists' });
        },
      ),
      { numRuns: 3000 },
    );
  });

  it('is read or refused as one, whatever the text', () => {
    const text = fc.string({ unit: fc.constantFrom(...'{}[]",:1e-. \\u0\n/*a') });
    fc.assert(
      fc.property(
        fc.oneof(
          text,
          text.map((inner) => `{"a":{${inner}}}`),
        ),
        (ledger) => {
          try {
            const result = add(ledger, 'a', 'k');
            if (result.outcome === 'added') expect(() => JSON.parse(result.text)).not.toThrow();
          } catch (error) {
            expect(error).toMatchObject({ code: 'corrupt' });
          }
        },
      ),
      { numRuns: 3000 },
    );
  });
});
