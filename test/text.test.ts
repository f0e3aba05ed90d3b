import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { RunlockError } from '../src/errors.ts';
import { decodeText, findDuplicateKey, parseJson, splitLines } from '../src/text.ts';

const wellFormed = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.array(fc.constantFrom('\ufffd', '视', '😀', 'a', '\n', '\0')).map((parts) => parts.join('')),
);
const BOM_LE = Buffer.from([0xff, 0xfe]);
const BOM_BE = Buffer.from([0xfe, 0xff]);
const utf16le = (text: string) => Buffer.concat([BOM_LE, Buffer.from(text, 'utf16le')]);
const utf16be = (text: string) => Buffer.concat([BOM_BE, Buffer.from(text, 'utf16le').swap16()]);

describe('decodeText', () => {
  it('reads the same text from UTF-8, with and without mark, and from UTF-16 of both orders', () => {
    fc.assert(
      fc.property(wellFormed, (text) => {
        // A mark at the beginning is no part of a text; UTF-16 with a NUL there is taken for UTF-32.
        if (text.startsWith('\ufeff') || text.startsWith('\0')) return;
        expect(decodeText(Buffer.from(text), 'x')).toBe(text);
        expect(decodeText(Buffer.from(`\ufeff${text}`), 'x')).toBe(text);
        expect(decodeText(utf16le(text), 'x')).toBe(text);
        expect(decodeText(utf16be(text), 'x')).toBe(text);
      }),
    );
  });

  it('reads a view into a larger buffer', () => {
    const bytes = new Uint8Array([0xff, 0xff, 0x61, 0x62, 0xff]);
    expect(decodeText(bytes.subarray(2, 4), 'x')).toBe('ab');
  });

  it.each([
    // 掘金 in GBK
    ['ok\n  ', [0xbe, 0xf2, 0xbd, 0xf0], 'the byte 0xbe at byte offset 5 (line 2, column 3)'],
    ['视\ufffd😀', [0x80], 'the byte 0x80 at byte offset 10 (line 1, column 4)'],
    ['', [0xc0, 0x80], 'the byte 0xc0 at byte offset 0 (line 1, column 1)'],
    ['a', [0xe8, 0xa7], 'the byte 0xe8 at byte offset 1 (line 1, column 2)'],
    ['a', [0xed, 0xa0, 0x80], 'the byte 0xed at byte offset 1 (line 1, column 2)'],
    ['\ufeffa', [0xff], 'the byte 0xff at byte offset 4 (line 1, column 2)'],
  ])('refuses other bytes with their place: %j and %j', (good, bad, place) => {
    const bytes = Buffer.concat([Buffer.from(good), Buffer.from(bad), Buffer.from(' rest')]);
    expect(messageOf(() => decodeText(bytes, '/srv/x.json'))).toBe(
      `/srv/x.json: expected UTF-8, or UTF-16 with a byte order mark, got ${place}`,
    );
  });

  it.each([
    [
      Buffer.concat([utf16le('a\nb'), Buffer.from([0x63])]),
      'half a character (byte 0x63) at byte offset 8 (line 2, column 2)',
    ],
    [utf16le('ab\ud83dc'), 'half a surrogate pair (bytes 0x3d 0xd8) at byte offset 6 (line 1, column 3)'],
    [utf16be('\ude00'), 'half a surrogate pair (bytes 0xde 0x00) at byte offset 2 (line 1, column 1)'],
    [
      Buffer.from([0xff, 0xfe, 0, 0, 0x61, 0, 0, 0]),
      'what looks like UTF-32 at byte offset 2 (line 1, column 1)',
    ],
  ])('refuses broken UTF-16: %o', (bytes, place) => {
    expect(messageOf(() => decodeText(bytes, 'stdin'))).toContain(place);
  });

  it('replaces nothing: bytes that it reads come back as they were', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 40 }), (bytes) => {
        let text: string;
        try {
          text = decodeText(bytes, 'x');
        } catch (error) {
          expect(error).toBeInstanceOf(RunlockError);
          return;
        }
        const back = [Buffer.from(text), Buffer.from(`\ufeff${text}`), utf16le(text), utf16be(text)];
        expect(back.some((candidate) => candidate.equals(bytes))).toBe(true);
      }),
      { numRuns: 5000 },
    );
  });

  it('finds the one bad byte, wherever it stands', () => {
    fc.assert(
      fc.property(wellFormed, wellFormed, (before, behind) => {
        const start = Buffer.from(`x${before}`);
        const bytes = Buffer.concat([start, Buffer.from([0xff]), Buffer.from(behind)]);
        expect(messageOf(() => decodeText(bytes, 'x'))).toContain(
          `the byte 0xff at byte offset ${start.length} `,
        );
      }),
    );
  });
});

describe('parseJson', () => {
  it.each([
    ['', 'expected a JSON value, got the end at line 1, column 1'],
    ['{\n  "a": 1,\n}', 'expected a key in double quotes, got "}" at line 3, column 1'],
    ['{"视" 1}', 'expected ":", got "1" at line 1, column 6'],
    ['[1,]', 'expected a JSON value, got "]" at line 1, column 4'],
    ['[1 2]', 'expected "," or "]", got "2" at line 1, column 4'],
    ['{"a":1} x', 'expected nothing more after the JSON, got "x" at line 1, column 9'],
    ["{'a':1}", 'expected a key in double quotes or "}", got "\'" at line 1, column 2'],
    ['{"a":"x', 'expected the end of a string ("), got the end at line 1, column 8'],
    ['["a\nb"]', 'expected no control character in a string, got "\\u{a}" at line 1, column 4'],
    [
      '["C:\\x"]',
      'expected no such escape in a string (a backslash is \\\\), got "\\u{5c}"'.replace('\\u{5c}', '\\'),
    ],
    ['nul', 'expected a JSON value, got "n" at line 1, column 1'],
    ['01', 'expected nothing more after the JSON, got "1" at line 1, column 2'],
    ['\u001b', 'expected a JSON value, got "\\u{1b}" at line 1, column 1'],
    ['[1, // x\n2]', 'got "/" at line 1, column 5'],
  ])('says where %j goes wrong', (text, message) => {
    expect(messageOf(() => parseJson(text, 'a.json'))).toContain(message);
  });

  it('takes and refuses what JSON.parse does, with a place for each refusal', () => {
    const damaged = fc
      .tuple(
        fc.json(),
        fc.nat(),
        fc.constantFrom('', ',', '"', '}', ']', '\\', '0', '\n', '\u001b', ' ', '-', 'e'),
      )
      .map(([json, at, piece]) => {
        const place = at % (json.length + 1);
        return json.slice(0, place) + piece + json.slice(place + (at % 3));
      });
    fc.assert(
      fc.property(
        fc.oneof(fc.json(), damaged, fc.string({ unit: fc.constantFrom(...'{}[]",:1e-. \\u0') })),
        (text) => {
          let expected: unknown;
          try {
            expected = JSON.parse(text);
          } catch {
            const message = messageOf(() => parseJson(text, 'x'));
            expect(message).toMatch(/^x: expected .+, got .+ at line \d+, column \d+$/);
            // The fallback, for when the walk finds no fault where JSON.parse did.
            expect(message).not.toContain('expected JSON,');
            return;
          }
          expect(parseJson(text, 'x')).toEqual(expected);
          // And the walk agrees that there is none: else it could not be trusted with duplicates.
          expect(() => findDuplicateKey(text)).not.toThrow();
        },
      ),
      { numRuns: 5000 },
    );
  });

  it('stands deep and long text', () => {
    expect(messageOf(() => parseJson('['.repeat(200_000), 'x'))).toContain('line 1, column 200001');
    expect(messageOf(() => parseJson(`"${'x'.repeat(5_000_000)}`, 'x'))).toContain('column 5000002');
  });
});

describe('findDuplicateKey', () => {
  it.each([
    ['{"a":1,\n "a":2}', { key: 'a', place: 'line 2, column 2' }],
    ['{"b":[{"a":1,"\\u0061":2}]}', { key: 'a', place: 'line 1, column 14' }],
    ['{"a":{"a":1},"b":{"a":[]}}', null],
    ['[{"a":1},{"a":1}]', null],
    ['{"__proto__":1,"constructor":2}', null],
  ])('in %s', (text, found) => {
    expect(findDuplicateKey(text)).toEqual(found);
  });

  it('finds none in what JSON.stringify wrote', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(findDuplicateKey(JSON.stringify(value, null, 1))).toBeNull();
      }),
    );
  });
});

describe('splitLines', () => {
  it.each([
    ['', []],
    ['\n', ['']],
    ['a', ['a']],
    ['a\n', ['a']],
    ['a\r\nb\r\n', ['a', 'b']],
    ['a\n\nb', ['a', '', 'b']],
    ['a\r', ['a']],
    ['a\rb', ['a\rb']],
  ])('%j', (text, lines) => {
    expect(splitLines(text)).toEqual(lines);
  });
});

function messageOf(call: () => unknown): string {
  try {
    call();
  } catch (error) {
    if (error instanceof RunlockError && error.code === 'input') return error.message;
    throw error;
  }
  throw new Error('expected a RunlockError');
}
