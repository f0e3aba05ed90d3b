/*
 * Texts as the bytes that another program writes. Node decodes these encodings, but encodes only some, so the
 * bytes of a character are looked up by decoding all there are.
 */

/** The encoding's name as TextDecoder has it, or null for one that lines can't be searched in. */
export function findEncoding(label: string): string | null {
  const alias = /^(?:cp|windows-|ms)?(936|950|932)$/i.exec(label)?.[1];
  const byNumber = { 936: 'gbk', 950: 'big5', 932: 'shift_jis' }[alias ?? ''];
  try {
    const { encoding } = new TextDecoder(byNumber ?? label.replace(/^utf-?16(le|be)?$/i, 'utf-16$1'));
    // What a byte means must not depend on what was far before it.
    return encoding === 'iso-2022-jp' ? null : encoding;
  } catch {
    return null;
  }
}

/** `text` in an encoding that `findEncoding` named; null if a character of it can't be written in that. */
export function encodeText(text: string, encoding: string): Buffer | null {
  if (encoding === 'utf-8') return Buffer.from(text, 'utf8');
  if (encoding === 'utf-16le') return Buffer.from(text, 'utf16le');
  if (encoding === 'utf-16be') return Buffer.from(text, 'utf16le').swap16();
  const table = findBytes(new Set(text), encoding);
  const bytes = [...text].map((char) => table.get(char));
  return bytes.every((char) => char !== undefined) ? Buffer.concat(bytes) : null;
}

/** The shortest bytes for each of the characters that has any. */
function findBytes(wanted: ReadonlySet<string>, encoding: string): Map<string, Buffer> {
  const decoder = new TextDecoder(encoding);
  const found = new Map<string, Buffer>();
  for (const char of wanted) if (char < '\x80') found.set(char, Buffer.from(char));
  const tables = [ONE_BYTE, TWO_BYTES, ...(encoding === 'gb18030' ? [FOUR_BYTES] : [])];
  for (const ranges of tables) {
    if (found.size === wanted.size) break;
    const all = sequencesOf(ranges);
    for (const [index, char] of decoder.decode(all).split('\n').entries()) {
      if (!wanted.has(char) || found.has(char)) continue;
      const start = index * (ranges.length + 1);
      const bytes = all.subarray(start, start + ranges.length);
      if (decoder.decode(bytes) === char) found.set(char, bytes);
    }
  }
  return found;
}

type Range = readonly [from: number, to: number];

const ONE_BYTE: readonly Range[] = [[0x80, 0xff]];
const TWO_BYTES: readonly Range[] = [
  [0x81, 0xfe],
  [0x40, 0xfe],
];
/** Those of GB 18030 that stand for one UTF-16 unit: what GBK does not have. */
const FOUR_BYTES: readonly Range[] = [
  [0x81, 0x84],
  [0x30, 0x39],
  [0x81, 0xfe],
  [0x30, 0x39],
];

/** All that a byte of each range can make, a line each, so that one that stands for nothing spoils no other. */
function sequencesOf(ranges: readonly Range[]): Buffer {
  const sizes = ranges.map(([from, to]) => to - from + 1);
  const count = sizes.reduce((product, size) => product * size, 1);
  const stride = ranges.length + 1;
  const all = Buffer.alloc(count * stride, '\n');
  for (let index = 0; index < count; index += 1) {
    let left = index;
    for (let place = ranges.length - 1; place >= 0; place -= 1) {
      const size = sizes[place] ?? 1;
      all[index * stride + place] = (ranges[place]?.[0] ?? 0) + (left % size);
      left = Math.floor(left / size);
    }
  }
  return all;
}
