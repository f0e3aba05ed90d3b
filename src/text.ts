import { isUtf8 } from 'node:buffer';
import { RunlockError } from './errors.ts';
import { printable } from './printable.ts';

const EXPECTED_ENCODING = 'UTF-8, or UTF-16 with a byte order mark';

/**
 * The text of a file or of stdin: UTF-8 with or without a byte order mark, UTF-16 with one. Nothing is ever
 * replaced: a name with a replacement character in it would be another name.
 * @param where the file's path, or `stdin`, for the message
 * @throws RunlockError 'input' with the place of the first byte that does not fit
 */
export function decodeText(bytes: Uint8Array, where: string): string {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const [first, second, third] = buffer;
  if (first === 0xff && second === 0xfe) return decodeUtf16(buffer, where, 'LE');
  if (first === 0xfe && second === 0xff) return decodeUtf16(buffer, where, 'BE');
  const start = first === 0xef && second === 0xbb && third === 0xbf ? 3 : 0;
  const text = buffer.toString('utf8', start);
  if (!isUtf8(buffer)) refuseUtf8(buffer, start, text, where);
  return text;
}

function decodeUtf16(buffer: Buffer, where: string, order: 'LE' | 'BE'): string {
  const whole = buffer.subarray(2, buffer.length - (buffer.length % 2));
  // UTF-32's byte order mark begins with UTF-16's, and every other unit of it would be a NUL.
  if (order === 'LE' && whole.length >= 2 && whole.readUInt16LE(0) === 0) {
    throw badEncoding(where, 'what looks like UTF-32', 2, '');
  }
  const text = (order === 'LE' ? whole : Buffer.from(whole).swap16()).toString('utf16le');
  const lone = text.search(/\p{Cs}/u);
  if (lone >= 0) {
    const offset = 2 + 2 * lone;
    const bytes = `${hex(buffer[offset])} ${hex(buffer[offset + 1])}`;
    throw badEncoding(where, `half a surrogate pair (bytes ${bytes})`, offset, text.slice(0, lone));
  }
  if (buffer.length % 2 === 1) {
    const last = buffer.length - 1;
    throw badEncoding(where, `half a character (byte ${hex(buffer[last])})`, last, text);
  }
  return text;
}

/** `text` is the same bytes with replacement characters: the first one that does not stand in them is the place. */
function refuseUtf8(buffer: Buffer, start: number, text: string, where: string): never {
  let offset = start;
  let from = 0;
  for (;;) {
    const at = text.indexOf('\ufffd', from);
    offset += Buffer.byteLength(text.slice(from, at < 0 ? undefined : at));
    const genuine = buffer[offset] === 0xef && buffer[offset + 1] === 0xbf && buffer[offset + 2] === 0xbd;
    if (at < 0 || !genuine) {
      throw badEncoding(
        where,
        `the byte ${hex(buffer[offset])}`,
        offset,
        text.slice(0, at < 0 ? undefined : at),
      );
    }
    offset += 3;
    from = at + 1;
  }
}

function badEncoding(where: string, got: string, offset: number, before: string): RunlockError {
  return new RunlockError(
    'input',
    `${printable(where, 4096)}: expected ${EXPECTED_ENCODING}, got ${got} at byte offset ${offset} (${placeAfter(before)})`,
  );
}

function hex(byte: number | undefined): string {
  return `0x${(byte ?? 0).toString(16).padStart(2, '0')}`;
}

/** Line and column, from 1, of what follows `before`. A column is a code point. */
export function placeAfter(before: string): string {
  const lineStart = before.lastIndexOf('\n') + 1;
  const line = before.split('\n').length;
  return `line ${line}, column ${[...before.slice(lineStart)].length + 1}`;
}

/**
 * JSON.parse whose refusal says where. (Its own says so only sometimes, and quotes the text.)
 * @param where the file's path, or `stdin`, for the message
 * @throws RunlockError 'input'
 */
export function parseJson(text: string, where: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    const { offset, expected } = scanJson(text).fault ?? { offset: text.length, expected: 'JSON' };
    const char = text.codePointAt(offset);
    const got = char === undefined ? 'the end' : `"${printable(String.fromCodePoint(char))}"`;
    const place = placeAfter(text.slice(0, offset));
    throw new RunlockError(
      'input',
      `${printable(where, 4096)}: expected ${expected}, got ${got} at ${place}`,
      {
        cause,
      },
    );
  }
}

/**
 * The first key that stands twice in one object of valid JSON, of which JSON.parse silently keeps the last.
 * `key` is as it was written by whoever wrote the text; `place` is `line 3, column 5`.
 */
export function findDuplicateKey(text: string): { key: string; place: string } | null {
  const { duplicate } = scanJson(text);
  return duplicate === null
    ? null
    : { key: duplicate.key, place: placeAfter(text.slice(0, duplicate.offset)) };
}

/** Lines without their ends, `\n` or `\r\n`. A final line end does not begin another line. */
export function splitLines(text: string): string[] {
  const lines = text.split('\n').map((line) => (line.endsWith('\r') ? line.slice(0, -1) : line));
  if (lines.at(-1) === '') lines.pop();
  return lines;
}

interface JsonScan {
  fault: { offset: number; expected: string } | null;
  duplicate: { offset: number; key: string } | null;
}

/**
 * Walks over JSON for what JSON.parse keeps to itself: where the first fault is, which key stands twice.
 * Small enough to be here always; loading a parser with positions costs 6 ms of every command that reads a
 * configuration. Without recursion, as deep text must not end in a stack overflow.
 */
function scanJson(text: string): JsonScan {
  const open: (Set<string> | null)[] = []; // one entry a level: an object's keys, null for an array
  let duplicate: JsonScan['duplicate'] = null;
  let at = 0;
  let next: 'value' | 'value or ]' | 'key' | 'key or }' | 'end' = 'value';

  for (;;) {
    while (' \t\n\r'.includes(text[at] ?? 'x')) at += 1;
    const char = text[at];
    const keys = open.at(-1);

    if (next === 'end') {
      // A value is complete: what may follow depends on where it stands.
      if (keys === undefined) {
        const fault = char === undefined ? null : { offset: at, expected: 'nothing more after the JSON' };
        return { fault, duplicate };
      }
      if (char === ',') next = keys === null ? 'value' : 'key';
      else if (char === (keys === null ? ']' : '}')) open.pop();
      else return { fault: { offset: at, expected: keys === null ? '"," or "]"' : '"," or "}"' }, duplicate };
      at += 1;
    } else if ((next === 'key or }' && char === '}') || (next === 'value or ]' && char === ']')) {
      open.pop();
      at += 1;
      next = 'end';
    } else if (next === 'key' || next === 'key or }') {
      const expected = next === 'key' ? 'a key in double quotes' : 'a key in double quotes or "}"';
      if (char !== '"') return { fault: { offset: at, expected }, duplicate };
      const string = scanString(text, at);
      if (string.expected !== null)
        return { fault: { offset: string.end, expected: string.expected }, duplicate };
      const key: string = JSON.parse(text.slice(at, string.end));
      if (keys?.has(key)) duplicate ??= { offset: at, key };
      keys?.add(key);
      at = string.end;
      while (' \t\n\r'.includes(text[at] ?? 'x')) at += 1;
      if (text[at] !== ':') return { fault: { offset: at, expected: '":"' }, duplicate };
      at += 1;
      next = 'value';
    } else if (char === '{' || char === '[') {
      open.push(char === '{' ? new Set() : null);
      at += 1;
      next = char === '{' ? 'key or }' : 'value or ]';
    } else {
      const scalar = char === '"' ? scanString(text, at) : scanWord(text, at);
      if (scalar.expected !== null)
        return { fault: { offset: scalar.end, expected: scalar.expected }, duplicate };
      at = scalar.end;
      next = 'end';
    }
  }
}

/** `end` is behind the token, or where it breaks off if something else was `expected` there. */
interface Token {
  end: number;
  expected: string | null;
}

const ESCAPE = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y;

function scanString(text: string, start: number): Token {
  let at = start + 1;
  for (;;) {
    const unit = text.charCodeAt(at);
    if (Number.isNaN(unit)) return { end: at, expected: 'the end of a string (")' };
    if (unit < 0x20) return { end: at, expected: 'no control character in a string' };
    if (unit === 0x22) return { end: at + 1, expected: null };
    if (unit === 0x5c) {
      ESCAPE.lastIndex = at;
      if (!ESCAPE.test(text))
        return { end: at, expected: 'no such escape in a string (a backslash is \\\\)' };
      at = ESCAPE.lastIndex;
    } else {
      at += 1;
    }
  }
}

const WORD = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y;

function scanWord(text: string, start: number): Token {
  WORD.lastIndex = start;
  return WORD.test(text) ? { end: WORD.lastIndex, expected: null } : { end: start, expected: 'a JSON value' };
}
