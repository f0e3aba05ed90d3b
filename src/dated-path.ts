import { dirname, isAbsolute, resolve } from 'node:path';

/*
 * Paths with date fields: `logs/{yyyy-MM-dd}.log`, where each `{…}` is a date-fns format of a day. They are checked
 * here, without date-fns, since every command that reads a configuration comes by; only who needs a name for a day
 * loads it (gates/quota/file-names.ts).
 */

export interface DatedPath {
  /** As it was written. */
  readonly text: string;
  /** What it is relative to, absolute. */
  readonly base: string;
  readonly pieces: readonly PathPiece[];
  /** The absolute folder before the first date field, or of the file itself where there is none. */
  readonly folder: string;
  /** The shortest time whose files never share a name with others'; null is longer than a week. */
  readonly names: 'day' | 'week' | null;
}

export type PathPiece = string | { readonly format: string };

/** Why a text is no dated path, in the words of "expected …, got …". */
export interface PatternFault {
  readonly expected: string;
  readonly got: string;
}

/** Year, month, week, day. Not `Y` and `D`, which are another year and the day of the year, and seldom meant. */
const DAY_LETTERS = 'yuRMLwIdEi';
const ALLOWED = 'a date-fns format of a day (yyyy, MM, dd, RRRR, II and the like)';
const MEANT: Readonly<Record<string, string>> = {
  m: '"m" is minutes, the month is "M"',
  Y: '"Y" is the year of a local week, the year is "y"',
  D: '"D" is the day of the year, the day of the month is "d"',
};

/** As date-fns takes a format apart: a run of one letter, perhaps with `o`; quoted text; anything else. */
const TOKEN = /([a-zA-Z])(?:o(?![a-zA-Z])|\1*)|''|'(?:''|[^'])+'?|[^a-zA-Z]/gu;

/** @param base what a relative path is relative to, absolute */
export function parseDatedPath(text: string, base: string): DatedPath | PatternFault {
  const pieces: PathPiece[] = [];
  let at = 0;
  let letters = '';
  while (at < text.length) {
    const open = text.indexOf('{', at);
    const literal = text.slice(at, open < 0 ? undefined : open);
    if (literal.includes('}')) return { expected: '"{" before each "}"', got: text };
    if (literal !== '') pieces.push(literal);
    if (open < 0) break;
    const close = text.indexOf('}', open);
    if (close < 0) return { expected: '"}" after each "{"', got: text };
    const format = text.slice(open + 1, close);
    const fault = faultOf(format);
    if (fault !== null) return fault;
    letters += lettersOf(format).join('');
    pieces.push({ format });
    at = close + 1;
  }
  return { text, base, pieces, folder: folderOf(text, base), names: namesWhat(letters) };
}

export function isFault(path: DatedPath | PatternFault): path is PatternFault {
  return 'expected' in path;
}

function faultOf(format: string): PatternFault | null {
  const got = `{${format}}`;
  const letters = lettersOf(format);
  if (format.includes('{')) return { expected: '"}" after each "{"', got };
  if (letters.length === 0) return { expected: ALLOWED, got };
  if ((format.match(/'/g) ?? []).length % 2 === 1) return { expected: 'a second quote for each quote', got };
  const strange = letters.find((letter) => !DAY_LETTERS.includes(letter));
  if (strange === undefined) return null;
  const meant = MEANT[strange] ?? `"${strange}" is no part of a day`;
  const guess = replaceLetters(format);
  const better = lettersOf(guess).every((letter) => DAY_LETTERS.includes(letter));
  return { expected: ALLOWED, got: `${got}: ${meant}${better ? `, did you mean {${guess}}?` : ''}` };
}

/** The letters that stand for something, one a token. */
function lettersOf(format: string): string[] {
  return [...format.matchAll(TOKEN)].flatMap(([, letter]) => letter ?? []);
}

/** The source of a regular expression for what a format makes of any day. */
export function formatPattern(format: string): string {
  return format.replace(TOKEN, (token, letter: string | undefined) => {
    if (letter === undefined) return escapePattern(unquoted(token));
    if (token.endsWith('o') && token !== 'o') return '\\d+[a-z]{2}';
    const isWord = letter === 'E' || ('MLi'.includes(letter) && token.length > 2);
    return isWord ? '\\p{L}+' : `\\d{${token.length},}`;
  });
}

function unquoted(token: string): string {
  if (token === "''") return "'";
  return token.length > 1 && token.startsWith("'") ? token.slice(1, -1).replaceAll("''", "'") : token;
}

/** The source of a regular expression for this text and no other. */
export function escapePattern(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&');
}

function replaceLetters(format: string): string {
  return format.replace(TOKEN, (token, letter: string | undefined) =>
    letter === undefined ? token : token.replaceAll('m', 'M').replaceAll('Y', 'y').replaceAll('D', 'd'),
  );
}

function namesWhat(letters: string): DatedPath['names'] {
  const has = (some: string) => [...some].some((letter) => letters.includes(letter));
  const isoWeek = has('R') && has('I');
  if ((has('yu') && has('ML') && has('d')) || (isoWeek && has('iE'))) return 'day';
  return isoWeek ? 'week' : null;
}

function folderOf(text: string, base: string): string {
  const open = text.indexOf('{');
  if (open < 0) return dirname(resolve(base, text));
  const slash = Math.max(
    text.lastIndexOf('/', open),
    process.platform === 'win32' ? text.lastIndexOf('\\', open) : -1,
  );
  const folder = text.slice(0, slash + 1);
  return isAbsolute(folder) ? resolve(folder) : resolve(base, folder);
}
