import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { asciiJson, printable } from '../src/printable.ts';

const anyText = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.array(fc.nat({ max: 0xffff })).map((units) => String.fromCharCode(...units)),
  fc
    .array(fc.constantFrom('\u001b', '\n', '\u202e', '\u2028', '\ud800', '\u200b', 'a', '视', '😀', '\u200d'))
    .map((parts) => parts.join('')),
);

describe('printable', () => {
  it.each(['publish video', '视频', 'mail:send', '👩‍👩‍👧', '❤️', 'e\u0301', 'قفل', ' '])(
    'leaves %s alone',
    (text) => {
      expect(printable(text)).toBe(text);
    },
  );

  it.each([
    ['\u001b[2J', '\\u{1b}[2J'],
    ['a\nb\r\tc\0', 'a\\u{a}b\\u{d}\\u{9}c\\u{0}'],
    ['\u007f\u009b31m', '\\u{7f}\\u{9b}31m'],
    ['\u202eabc\u2066', '\\u{202e}abc\\u{2066}'],
    ['\u2028\u2029', '\\u{2028}\\u{2029}'],
    ['a\u200bb\u00adc\ufeffd\u3164', 'a\\u{200b}b\\u{ad}c\\u{feff}d\\u{3164}'],
    ['\ud83dx\ude00', '\\u{d83d}x\\u{de00}'],
    ['\u{e0041}', '\\u{e0041}'],
  ])('shows what a terminal or a reader would fall for: %j', (text, shown) => {
    expect(printable(text)).toBe(shown);
  });

  it('cuts by code points, never inside an escape', () => {
    expect(printable('abcde', 5)).toBe('abcde');
    expect(printable('abcdef', 5)).toBe('abcd…');
    expect(printable('😀😀😀', 2)).toBe('😀…');
    expect(printable('ab\u001bcdefgh', 5)).toBe('ab…');
    expect(printable('\u001b\u001b', 3)).toBe('…');
    expect(printable('abc', 0)).toBe('');
  });

  it('is one harmless line of bounded length, whatever it is given', () => {
    fc.assert(
      fc.property(anyText, fc.nat({ max: 60 }), (text, max) => {
        const shown = printable(text, max);
        expect([...shown].length).toBeLessThanOrEqual(max);
        expect(shown).not.toMatch(/[\p{Cc}\p{Zl}\p{Zp}\p{Cs}\p{Bidi_Control}\u200b\u200c\u2060\ufeff]/u);
        expect(printable(shown, max)).toBe(shown);
      }),
    );
  });

  it('does not walk through a whole file for a few characters of it', () => {
    const start = performance.now();
    printable('x'.repeat(20_000_000));
    expect(performance.now() - start).toBeLessThan(200);
  });
});

describe('asciiJson', () => {
  it('is one ASCII line that parses to the same, lone surrogates included', () => {
    fc.assert(
      fc.property(fc.oneof(fc.jsonValue(), fc.record({ text: anyText })), (value) => {
        const json = asciiJson(value);
        expect(json).toMatch(/^[\x20-\x7e]*$/);
        expect(JSON.parse(json)).toEqual(JSON.parse(JSON.stringify(value)));
      }),
    );
  });

  it('escapes by UTF-16 unit, and DEL too', () => {
    expect(asciiJson({ 视: '😀\u007f' })).toBe('{"\\u89c6":"\\ud83d\\ude00\\u007f"}');
    expect(asciiJson(undefined)).toBe('null');
  });
});
