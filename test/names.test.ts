import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { RunlockError } from '../src/errors.ts';
import { nameOfFolder, parseItem, parseJob, parseLockName } from '../src/names.ts';

/** Names as users have them, and such as break things. */
const anyName = fc
  .oneof(
    fc.string({ unit: 'grapheme', minLength: 1, maxLength: 30 }),
    fc.string({ unit: 'binary', minLength: 1, maxLength: 100 }),
    fc
      .array(
        fc.constantFrom(
          ...'aAbB./\\%~ -_:*?"<>|1',
          ...['é', 'e\u0301', 'É', 'ß', 'ẞ', 'ss', 'ı', 'i', 'İ', 'I', 'ς', 'σ', 'Σ', 'K', 'k', '视', '😀'],
          ...['con', 'nul', 'COM1', 'lpt9', '..', '%2f', 'default', 'ǅ', 'ᾳ', 'ﬀ', 'ff', 'Å', 'Å'],
        ),
        { minLength: 1, maxLength: 40 },
      )
      .map((parts) => parts.join('')),
  )
  .filter((text) => !/[\p{Cc}\p{Zl}\p{Zp}\p{Cs}]/u.test(text) && [...text.normalize('NFC')].length <= 100);

const RESERVED = /^(?:con|prn|aux|nul|com[0-9]|lpt[0-9]|conin\$|conout\$|clock\$)(?:\.|$)/i;

describe('which names are the same lock', () => {
  it.each([
    ['Video', 'vIDEO'],
    ['é', 'e\u0301'],
    ['É', 'e\u0301'],
    ['Å', '\u212b'],
    ['k', '\u212a'],
    ['ς', 'Σ'],
    ['σ', 'ς'],
    ['ß', 'ẞ'],
    ['ǆ', 'ǅ'],
    ['가', '\u1100\u1161'],
    ['ᏸ', 'Ᏸ'],
  ])('%s and %s', (one, other) => {
    expect(parseLockName(one).key).toBe(parseLockName(other).key);
    expect(parseLockName(one).folder).toBe(parseLockName(other).folder);
  });

  it.each([
    ['ß', 'ss'],
    ['ı', 'i'],
    ['İ', 'i'],
    ['ﬀ', 'ff'],
    ['é', 'e'],
    ['½', '1/2'],
    ['ａ', 'a'],
    ['a b', 'a%20b'],
    ['a', 'a '],
    ['con', '%63on'],
  ])('not %s and %s', (one, other) => {
    expect(parseLockName(one).key).not.toBe(parseLockName(other).key);
    expect(parseLockName(one).folder).not.toBe(parseLockName(other).folder);
  });

  it.each(['default', 'DEFAULT', 'Default'])('%s is the default lock', (text) => {
    expect(parseLockName(text)).toEqual({ text, key: 'default', folder: null });
  });

  it('folds every code point as Unicode does, and none that only looks alike', () => {
    for (let code = 0x21; code < 0x20000; code += 1) {
      const char = String.fromCodePoint(code);
      if (/[\p{Cc}\p{Zl}\p{Zp}\p{Cs}]/u.test(char)) continue;
      const { key } = parseLockName(char);
      if (parseLockName(key).key !== key) throw new Error(`unstable: U+${code.toString(16)}`);
      for (const other of [char.toUpperCase(), char.toLowerCase(), char.toUpperCase().toLowerCase()]) {
        if (other === char || [...other].length !== 1) continue;
        const same = new RegExp(`^\\u{${other.codePointAt(0)?.toString(16)}}$`, 'iu').test(char);
        if ((parseLockName(other).key === key) !== same) {
          throw new Error(`U+${code.toString(16)} and its variant ${other}: expected the same lock: ${same}`);
        }
      }
    }
  });

  it('two names share a folder if and only if they have the same key', () => {
    fc.assert(
      fc.property(anyName, anyName, (one, other) => {
        const a = parseLockName(one);
        const b = parseLockName(other);
        expect(a.folder === b.folder).toBe(a.key === b.key);
      }),
      { numRuns: 2000 },
    );
  });

  it('two long names that begin alike do not share a folder', () => {
    const long = '视'.repeat(99);
    const folders = [...'abcdef', ''].map((end) => parseLockName(long + end).folder);
    expect(new Set(folders).size).toBe(7);
  });

  it('no other spelling by case or Unicode form is another lock', () => {
    fc.assert(
      fc.property(anyName, fc.array(fc.boolean(), { maxLength: 50 }), (name, flips) => {
        const { key, folder } = parseLockName(name);
        const swapped = [...name]
          .map((char, index) => {
            const other = char === char.toLowerCase() ? char.toUpperCase() : char.toLowerCase();
            const plain =
              [...other].length === 1 &&
              new RegExp(`^\\u{${other.codePointAt(0)?.toString(16)}}$`, 'iu').test(char);
            return flips[index] && plain ? other : char;
          })
          .join('');
        for (const variant of [swapped, name.normalize('NFC'), name.normalize('NFD'), key]) {
          expect(parseLockName(variant)).toEqual({ text: variant, key, folder });
        }
      }),
      { numRuns: 1000 },
    );
  });
});

describe('folders', () => {
  it.each([
    ['video', 'video'],
    ['mail:send', 'mail%3asend'],
    ['视频', '%e8%a7%86%e9%a2%91'],
    ['..', '%2e%2e'],
    ['../../etc/passwd', '%2e%2e%2f%2e%2e%2fetc%2fpasswd'],
    ['NUL', '%6eul'],
    ['com1', '%63om1'],
    ['com1.txt', 'com1%2etxt'],
    ['com¹', 'com%c2%b9'],
    [' ', '%20'],
    ['a~b%', 'a%7eb%25'],
    ['lock.json', 'lock%2ejson'],
  ])('%s is stored as %s', (name, folder) => {
    expect(parseLockName(name).folder).toBe(folder);
  });

  it('stay inside, mean the same on every system, and tell their name back', () => {
    fc.assert(
      fc.property(anyName, (name) => {
        const { key, folder } = parseLockName(name);
        if (folder === null) return;
        expect(folder).toMatch(/^[a-z0-9_%~-]{1,100}$/);
        expect(folder).not.toMatch(RESERVED);
        expect(nameOfFolder(folder)).toBe(folder.includes('~') ? null : key);
      }),
      { numRuns: 2000 },
    );
  });

  it.each([
    '',
    '.',
    '..',
    'A',
    'a.b',
    '%',
    '%2',
    '%zz',
    '%2E',
    '%61',
    'con',
    'default',
    '%c3',
    '%c3%89',
    'e%cc%81',
    '%0a',
    '%e2%80%a8',
    `x~${'0'.repeat(64)}`,
  ])('no lock has the folder %j', (folder) => {
    expect(nameOfFolder(folder)).toBeNull();
  });

  it('never throws on a foreign folder, and believes none that it would not have made', () => {
    const folder = fc
      .array(fc.constantFrom(...'abc%2ef0d', '%c3', '%a9', '%e8', '~', '.'))
      .map((p) => p.join(''));
    fc.assert(
      fc.property(folder, (text) => {
        const name = nameOfFolder(text);
        if (name !== null) expect(parseLockName(name).folder).toBe(text);
      }),
      { numRuns: 2000 },
    );
  });
});

describe('what is no name', () => {
  it.each([
    ['', 'lock name: expected 1 to 100 characters, got none'],
    ['a\nb', 'got U+000A as character 2'],
    ['\u001b[2J', 'got U+001B as character 1'],
    ['\0', 'got U+0000'],
    ['a\u0085', 'got U+0085'],
    ['a\u2028', 'got U+2028'],
    ['😀\ud83d', 'got U+D83D as character 2'],
    ['x'.repeat(101), 'expected at most 100 characters, got 101'],
  ])('%j is refused in one harmless line', (text, message) => {
    expect.assertions(4);
    try {
      parseLockName(text);
    } catch (error) {
      expect(error).toBeInstanceOf(RunlockError);
      if (!(error instanceof RunlockError)) return;
      expect(error.code).toBe('usage');
      expect(error.message).toContain(message);
      expect(error.message).not.toMatch(/[\p{Cc}\p{Zl}\p{Zp}\p{Cs}]/u);
    }
  });

  it('length is counted in characters, the same for every spelling', () => {
    expect(parseLockName('😀'.repeat(100)).folder).toMatch(/^(?:%[0-9a-f]{2}){11}~[0-9a-f]{64}$/);
    expect(parseLockName('é'.repeat(100)).folder).toBe(parseLockName('e\u0301'.repeat(100)).folder);
    expect(() => parseLockName('é'.repeat(101))).toThrow(RunlockError);
  });
});

describe('items and jobs', () => {
  it.each([parseItem, parseJob])('are any text without control characters, as written: %o', (parse) => {
    for (const text of ['ep-42', 'EP 42', 'jobs/视频.json', 'C:\\jobs\\x.json', '../x', 'y'.repeat(1000)]) {
      expect(parse(text)).toBe(text);
    }
    for (const text of ['', 'a\tb', 'a\nb', '\u2029', '\udc00', 'y'.repeat(1001)]) {
      expect(() => parse(text)).toThrow(RunlockError);
    }
  });
});
