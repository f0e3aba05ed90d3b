import fs from 'node:fs';

const CHUNK_BYTES = 256 * 1024;
/** Longer than any line that is written here by far. */
const MAX_LINE_BYTES = 1 << 20;
const LINE_END = 0x0a;

/**
 * The lines of an open file, first to last. Read in pieces, since a history may have grown larger than the memory,
 * or than any one string can be. Null stands for a line too long to be one of ours.
 */
export function* linesForward(fd: number): Generator<string | null> {
  const chunk = Buffer.alloc(CHUNK_BYTES);
  const line = new Line();
  for (let at = 0; ; ) {
    const count = fs.readSync(fd, chunk, 0, CHUNK_BYTES, at);
    if (count === 0) break;
    at += count;
    const bytes = chunk.subarray(0, count);
    let start = 0;
    for (let end = bytes.indexOf(LINE_END); end >= 0; end = bytes.indexOf(LINE_END, start)) {
      line.append(bytes.subarray(start, end));
      yield line.take();
      start = end + 1;
    }
    line.append(bytes.subarray(start));
  }
  yield line.take();
}

/**
 * The same, last to first.
 *
 * @param maxBytes how much of the end of the file to read; the line that is cut by this is left out
 */
export function* linesBackward(fd: number, maxBytes: number): Generator<string | null> {
  const { size } = fs.fstatSync(fd);
  const stop = Math.max(0, size - maxBytes);
  const chunk = Buffer.alloc(Math.min(CHUNK_BYTES, size - stop));
  const line = new Line();
  for (let at = size; at > stop; ) {
    const from = Math.max(stop, at - chunk.length);
    const bytes = chunk.subarray(0, fs.readSync(fd, chunk, 0, at - from, from));
    at = from;
    let end = bytes.length;
    for (let start = bytes.lastIndexOf(LINE_END); start >= 0; ) {
      line.prepend(bytes.subarray(start + 1, end));
      yield line.take();
      end = start;
      start = end === 0 ? -1 : bytes.lastIndexOf(LINE_END, end - 1);
    }
    line.prepend(bytes.subarray(0, end));
  }
  if (stop === 0) yield line.take();
}

/** A line that is put together from the pieces it was read in. */
class Line {
  #bytes = Buffer.alloc(0);
  #tooLong = false;

  append(piece: Buffer): void {
    this.#put(piece, () => Buffer.concat([this.#bytes, piece]));
  }

  prepend(piece: Buffer): void {
    this.#put(piece, () => Buffer.concat([piece, this.#bytes]));
  }

  #put(piece: Buffer, joined: () => Buffer<ArrayBuffer>): void {
    if (this.#bytes.length + piece.length > MAX_LINE_BYTES) this.#tooLong = true;
    if (!this.#tooLong) this.#bytes = joined();
  }

  take(): string | null {
    const text = this.#tooLong ? null : this.#bytes.toString('utf8');
    this.#bytes = Buffer.alloc(0);
    this.#tooLong = false;
    return text;
  }
}
