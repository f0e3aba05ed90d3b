import fc from 'fast-check';
import { expect, test } from 'vitest';
import { LineSearch } from '../../../src/gates/quota/line-search.ts';

/** The lines found when the bytes come in chunks of these sizes. */
function search(
  bytes: Buffer,
  sizes: readonly number[],
  newline = Buffer.from('\n'),
  needle = Buffer.from('aba'),
) {
  const found: string[] = [];
  const lines = new LineSearch(needle, newline, (line) => found.push(line.bytes.toString('latin1')));
  let at = 0;
  for (let turn = 0; at < bytes.length; turn += 1) {
    const size = sizes[turn % sizes.length] ?? 1;
    // The chunk's memory is used again, as a reader does.
    const chunk = Buffer.from(bytes.subarray(at, at + size));
    lines.push(chunk);
    chunk.fill(0x3f);
    at += size;
  }
  lines.end();
  return found;
}

const size = fc.oneof(fc.integer({ min: 1, max: 9 }), fc.integer({ min: 10, max: 300 }));
const sizes = fc.array(size, { minLength: 1, maxLength: 5 });

test('the lines that contain the text are found once, however the bytes come in', () => {
  const text = fc
    .array(fc.constantFrom('a', 'b', '\n', 'ab', 'x'), { maxLength: 60 })
    .map((all) => all.join(''));
  fc.assert(
    fc.property(text, sizes, (all, chunks) => {
      const expected = all.split('\n').filter((line) => line.includes('aba'));
      expect(search(Buffer.from(all), chunks)).toEqual(expected);
    }),
    { numRuns: 500 },
  );
});

test('in UTF-16 neither the text nor a line end is found between two units', () => {
  // Half of a unit looks like a line end, or like half of the text.
  const unit = fc.constantFrom(
    'a',
    'b',
    'aba',
    '\n',
    '\u0a00',
    '\u000a',
    '\u0a0a',
    '\u6161',
    '\u6100',
    '\u6200',
  );
  fc.assert(
    fc.property(fc.array(unit, { maxLength: 40 }), sizes, (units, chunks) => {
      const all = units.join('');
      const expected = all.split('\n').filter((line) => line.includes('aba'));
      const newline = Buffer.from('\n', 'utf16le');
      const found = search(Buffer.from(all, 'utf16le'), chunks, newline, Buffer.from('aba', 'utf16le'));
      expect(found.map((line) => Buffer.from(line, 'latin1').toString('utf16le'))).toEqual(expected);
    }),
    { numRuns: 500 },
  );
});

test.each([60_000, 65_536, 65_537, 70_000, 300_000])(
  'a line of %i bytes is found by what stands anywhere in it, also where two chunks meet',
  (length) => {
    // The second chunk of a long line ends at 69,535 of it.
    for (const place of [0, 65_534, 65_535, 65_536, 69_533, 69_534, length - 3]) {
      if (place > length - 3) continue;
      const line = `${'x'.repeat(place)}aba${'y'.repeat(length - place - 3)}`;
      const found = search(Buffer.from(`1\n${line}\naba\n`), [65_537, 4_000, 1]);
      expect(found.map((one) => one.length)).toEqual([Math.min(length, 65_536), 3]);
    }
  },
);
