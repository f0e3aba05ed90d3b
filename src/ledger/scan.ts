import { createScanner, type JSONScanner } from 'jsonc-parser';
import { RunlockError } from '../errors.ts';
import { sameText } from '../names.ts';
import { printable } from '../printable.ts';
import { parseJson, placeAfter } from '../text.ts';
import { type LedgerPlace, placeWords } from './place.ts';

/** A key of an object with its value, by their places in the text. */
export interface Member {
  /** Without its escapes. */
  readonly key: string;
  readonly keyStart: number;
  readonly keyEnd: number;
  readonly valueStart: number;
  readonly valueEnd: number;
}

/** An object by the places of its braces. */
export interface ObjectSpan {
  readonly open: number;
  readonly close: number;
  readonly members: readonly Member[];
}

/**
 * The objects on the way to a place, from the whole document on. There is one less for each step that leads nowhere:
 * the last one is where the first missing key would be.
 *
 * @param where the file's path, for the message
 * @throws RunlockError `corrupt` for what is no strict JSON, for a key that stands twice in one of these objects, and
 *   for anything but an object on the way
 */
export function objectsOnTheWay(
  text: string,
  place: LedgerPlace,
  where: string,
): [ObjectSpan, ...ObjectSpan[]] {
  requireJson(text, where);
  // JSON.parse has seen that it is strict JSON, so that the first character of a token tells what it is.
  const scanner = createScanner(text, true);
  const walk = new Walk(text, place, where, scanner);
  scanner.scan();
  return walk.object(0);
}

/** @throws RunlockError `corrupt` with the place of the fault */
export function requireJson(text: string, where: string): unknown {
  try {
    return parseJson(text, where);
  } catch (cause) {
    if (!(cause instanceof RunlockError)) throw cause;
    throw new RunlockError('corrupt', cause.message, { path: where, cause });
  }
}

class Walk {
  readonly #text: string;
  readonly #place: LedgerPlace;
  readonly #where: string;
  readonly #scanner: JSONScanner;

  constructor(text: string, place: LedgerPlace, where: string, scanner: JSONScanner) {
    this.#text = text;
    this.#place = place;
    this.#where = where;
    this.#scanner = scanner;
  }

  /** Reads the object that the scanner stands before, and those in it that are on the way. */
  object(level: number): [ObjectSpan, ...ObjectSpan[]] {
    const step = this.#place[level];
    const open = this.#scanner.getTokenOffset();
    if (this.#char() !== '{') throw this.#notAnObject(level);
    const members: Member[] = [];
    const keys = new Set<string>();
    let inner: ObjectSpan[] = [];
    let onTheWay: string | null = null;
    while (this.#next() !== '}') {
      if (this.#char() === ',') this.#next();
      const keyStart = this.#scanner.getTokenOffset();
      const key = this.#scanner.getTokenValue();
      const keyEnd = keyStart + this.#scanner.getTokenLength();
      const isStep = step !== undefined && sameText(key, step);
      if (keys.has(key) || (isStep && onTheWay !== null)) throw this.#twice(level, key, keyStart);
      keys.add(key);
      this.#next(); // the colon
      this.#next();
      const valueStart = this.#scanner.getTokenOffset();
      if (isStep) {
        onTheWay = key;
        inner = this.object(level + 1);
      } else {
        this.#skipValue();
      }
      const valueEnd = this.#scanner.getTokenOffset() + this.#scanner.getTokenLength();
      members.push({ key, keyStart, keyEnd, valueStart, valueEnd });
    }
    return [{ open, close: this.#scanner.getTokenOffset(), members }, ...inner];
  }

  /** From a value's first token to its last, without recursion. */
  #skipValue(): void {
    for (let depth = 0; ; this.#scanner.scan()) {
      const char = this.#char();
      if (char === '{' || char === '[') depth += 1;
      else if (char === '}' || char === ']') depth -= 1;
      if (depth === 0) return;
    }
  }

  #next(): string | undefined {
    this.#scanner.scan();
    return this.#char();
  }

  #char(): string | undefined {
    return this.#text[this.#scanner.getTokenOffset()];
  }

  #notAnObject(level: number): RunlockError {
    const char = this.#char();
    const got =
      char === '[' ? 'an array' : char === '"' ? 'a text' : printable(this.#scanner.getTokenValue(), 40);
    return this.#fault(
      `expected an object at ${placeWords(this.#place.slice(0, level))}, got ${got}`,
      this.#scanner.getTokenOffset(),
    );
  }

  #twice(level: number, key: string, offset: number): RunlockError {
    const at = placeWords(this.#place.slice(0, level));
    return this.#fault(`expected each key once at ${at}, got a second "${printable(key, 60)}"`, offset);
  }

  #fault(message: string, offset: number): RunlockError {
    const place = placeAfter(this.#text.slice(0, offset));
    return new RunlockError('corrupt', `${printable(this.#where, 4096)}: ${message} (${place})`, {
      path: this.#where,
    });
  }
}
