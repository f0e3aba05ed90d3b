/** How much of a line is kept to find its time in; a line may be as long as the file. */
const HEAD_BYTES = 64 * 1024;

const NOTHING = Buffer.alloc(0);

export interface FoundLine {
  /** The line without its end, and without the NULs that a truncated file leaves before it; 64 KiB at most. */
  readonly bytes: Buffer;
  /** The line is longer. */
  readonly cut: boolean;
}

/**
 * Searches the bytes of a file, as they come, for lines that contain a text. Needs no more memory than a chunk and
 * the head of one line. `bytes` of what was found are good until the next call only.
 */
export class LineSearch {
  readonly #needle: Buffer;
  readonly #newline: Buffer;
  /** Bytes a unit: in UTF-16 what is found between two units is another text. */
  readonly #unit: number;
  readonly #found: (line: FoundLine) => void;
  /** The beginning of a line whose end is not here yet; of a long one, as much as a match may need. */
  #rest: Buffer = NOTHING;
  #long: { readonly head: Buffer; matched: boolean } | null = null;

  constructor(needle: Buffer, newline: Buffer, found: (line: FoundLine) => void) {
    this.#needle = needle;
    this.#newline = newline;
    this.#unit = newline.length;
    this.#found = found;
  }

  push(chunk: Buffer): void {
    let data = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    if (this.#long !== null) {
      const end = this.#next(data, this.#newline, 0);
      this.#lookInLong(data.subarray(0, end < 0 ? undefined : end));
      if (end < 0) return;
      this.#endLong();
      data = data.subarray(end + this.#unit);
    }
    const last = this.#previous(data, data.length);
    const whole = last < 0 ? 0 : last + this.#unit;
    this.#lookInLines(data.subarray(0, whole));
    this.#keep(this.#withoutNuls(data.subarray(whole)));
  }

  /** The file has ended; its last line may lack an end. */
  end(): void {
    if (this.#long !== null) this.#endLong();
    else this.#lookInLines(this.#rest);
    this.#rest = NOTHING;
  }

  #keep(rest: Buffer): void {
    // What is kept is a copy: the chunk's memory is used again.
    if (rest.length <= HEAD_BYTES) {
      this.#rest = Buffer.from(rest);
      return;
    }
    this.#long = { head: Buffer.from(rest.subarray(0, HEAD_BYTES)), matched: false };
    this.#lookInLong(rest);
  }

  #lookInLong(data: Buffer): void {
    if (this.#long === null) return;
    this.#long.matched ||= this.#next(data, this.#needle, 0) >= 0;
    const from = Math.max(0, data.length - this.#needle.length + 1);
    this.#rest = Buffer.from(data.subarray(from - (from % this.#unit)));
  }

  #endLong(): void {
    if (this.#long?.matched) this.#found({ bytes: this.#long.head, cut: true });
    this.#long = null;
    this.#rest = NOTHING;
  }

  /** Whole lines: goes from match to match, not from line to line. */
  #lookInLines(data: Buffer): void {
    let from = 0;
    for (;;) {
      const match = this.#next(data, this.#needle, from);
      if (match < 0) return;
      const before = this.#previous(data, match);
      const end = this.#next(data, this.#newline, match);
      const line = data.subarray(before < 0 ? 0 : before + this.#unit, end < 0 ? undefined : end);
      const bytes = this.#withoutNuls(line);
      this.#found({ bytes: bytes.subarray(0, HEAD_BYTES), cut: bytes.length > HEAD_BYTES });
      if (end < 0) return;
      from = end + this.#unit;
    }
  }

  #next(data: Buffer, bytes: Buffer, from: number): number {
    let at = data.indexOf(bytes, from);
    while (at >= 0 && at % this.#unit !== 0) at = data.indexOf(bytes, at + 1);
    return at;
  }

  /** The last line end before `end`. */
  #previous(data: Buffer, end: number): number {
    const before = data.subarray(0, end);
    let at = before.lastIndexOf(this.#newline);
    while (at > 0 && at % this.#unit !== 0) at = before.subarray(0, at).lastIndexOf(this.#newline);
    return at % this.#unit === 0 ? at : -1;
  }

  #withoutNuls(line: Buffer): Buffer {
    let from = 0;
    while (from < line.length && line[from] === 0) from += 1;
    return from === 0 ? line : line.subarray(from - (from % this.#unit));
  }
}
