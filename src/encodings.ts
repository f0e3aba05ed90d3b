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
  for (const list of [oneByte, twoBytes, ...(encoding === 'gb18030' ? [fourBytes] : [])]) {
    if (found.size === wanted.size) break;
    // A line each, so that one that stands for nothing spoils no other.
    const sequences = list();
    const decoded = decoder.decode(Buffer.from(sequences.flatMap((bytes) => [...bytes, 0x0a]))).split('\n');
    for (const [index, bytes] of sequences.entries()) {
      const char = decoded[index];
      if (char === undefined || !wanted.has(char) || found.has(char)) continue;
      const buffer = Buffer.from(bytes);
      if (decoder.decode(buffer) === char) found.set(char, buffer);
    }
  }
  return found;
}

function oneByte(): number[][] {
  return range(0x80, 0xff).map((byte) => [byte]);
}

function twoBytes(): number[][] {
  const seconds = [...range(0x40, 0x7e), ...range(0x80, 0xfe)];
  return range(0x81, 0xfe).flatMap((first) => seconds.map((second) => [first, second]));
}

/** Those of GB 18030 that stand for one UTF-16 unit: what GBK does not have. */
function fourBytes(): number[][] {
  const digits = range(0x30, 0x39);
  return range(0x81, 0x84).flatMap((first) =>
    digits.flatMap((second) =>
      range(0x81, 0xfe).flatMap((third) => digits.map((fourth) => [first, second, third, fourth])),
    ),
  );
}

function range(from: number, to: number): number[] {
  return Array.from({ length: to - from + 1 }, (_, index) => from + index);
}
