import { RunlockError } from './errors.ts';
import { printable } from './printable.ts';

export interface LockName {
  /** As it was written. */
  readonly text: string;
  /** The same for two names exactly if they are the same lock. */
  readonly key: string;
  /** Its folder under `locks/`; null for the default lock, which is the state directory itself. */
  readonly folder: string | null;
}

const NAME_MAX = 100;
const TEXT_MAX = 1000;
const FOLDER_MAX = 100;
const DEFAULT_KEY = 'default';

/**
 * Controls, line and paragraph separators, lone surrogates: what would break a line, a file or an encoding.
 * By number and not by `\p{…}`, which takes ten times as long to compile in every command.
 */
const FORBIDDEN = /[\0-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]/u;

/** Names that Windows keeps for devices, in every directory. */
const RESERVED = /^(?:con|prn|aux|nul|com\d|lpt\d)$/;

/**
 * A lock's name from what the user wrote: any text of 1 to 100 characters without control characters.
 * Names that differ only in case or in Unicode form are the same lock, any other two are not.
 * @throws RunlockError 'usage'
 */
export function parseLockName(text: string): LockName {
  requireText(text, 'lock name', NAME_MAX);
  const key = lockKey(text);
  return { text, key, folder: key === DEFAULT_KEY ? null : folderOfKey(key) };
}

/**
 * The item that a run works on: 1 to 1000 characters, as written.
 * @throws RunlockError 'usage'
 */
export function parseItem(text: string): string {
  return requireText(text, 'item', TEXT_MAX);
}

/**
 * A key of a ledger, which may be any item: 1 to 1000 characters, as written.
 * @throws RunlockError 'usage'
 */
export function parseKey(text: string): string {
  return requireText(text, 'key', TEXT_MAX);
}

/**
 * The job's label or the path of its file: 1 to 1000 characters, as written.
 * @throws RunlockError 'usage'
 */
export function parseJob(text: string): string {
  return requireText(text, 'job', TEXT_MAX);
}

/**
 * The name behind a folder under `locks/`, in the one spelling that all its spellings share. Null if it can't
 * be told from the folder (a long name, of which only a hash stands there), or if no lock has this folder.
 */
export function nameOfFolder(folder: string): string | null {
  if (!/^(?:[a-z0-9_-]|%[0-9a-f]{2})+$/.test(folder)) return null;
  let key: string;
  try {
    key = decodeURIComponent(folder);
  } catch {
    return null;
  }
  // A name has one folder: anything else that happens to decode to it was not made by us.
  if (FORBIDDEN.test(key) || key === DEFAULT_KEY || lockKey(key) !== key) return null;
  return folderOfKey(key) === folder ? key : null;
}

/** The same for two items, keys or names exactly if people see the same: Unicode has two forms of `é`. */
export function textKey(text: string): string {
  return text.normalize('NFC');
}

export function sameText(one: string, other: string): boolean {
  return one === other || textKey(one) === textKey(other);
}

function requireText(text: string, what: string, max: number): string {
  const bad = FORBIDDEN.exec(text);
  if (bad !== null) {
    const number = (bad[0].codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0');
    const place = [...text.slice(0, bad.index)].length + 1;
    throw new RunlockError(
      'usage',
      `${what} "${printable(text, 60)}": expected text without control characters, got U+${number} as character ${place}`,
    );
  }
  // Counted in the composed form, or one spelling of a lock would be too long where another is not.
  const length = [...textKey(text)].length;
  if (length === 0) throw new RunlockError('usage', `${what}: expected 1 to ${max} characters, got none`);
  if (length > max) {
    throw new RunlockError(
      'usage',
      `${what} "${printable(text, 60)}": expected at most ${max} characters, got ${length}`,
    );
  }
  return text;
}

/** Decomposed first, so that a letter folds the same whether its accent is part of it or follows it. */
function lockKey(text: string): string {
  let folded = '';
  for (const char of text.normalize('NFD')) folded += foldCase(char);
  return textKey(folded);
}

/**
 * One code point without its case, by Unicode's simple case folding. Node has no function for it: going up and
 * down again is nearly it, and the regular expression, which folds by those very tables, keeps out what only
 * looks like it (`ß` is not `ss`, nor is `ı` `i`).
 */
function foldCase(char: string): string {
  if (char <= '\x7f') return char.toLowerCase();
  const candidate = char.toUpperCase().toLowerCase();
  if (candidate === char || [...candidate].length !== 1) return char;
  return new RegExp(`^\\u{${(candidate.codePointAt(0) ?? 0).toString(16)}}$`, 'iu').test(char)
    ? candidate
    : char;
}

/**
 * A name for the file system: ASCII, lower case, no dot, so that it means the same on every system and can
 * neither leave its directory nor meet a name that a system reserves. `~` stands only before a hash.
 */
function folderOfKey(key: string): string {
  let folder = '';
  for (const byte of Buffer.from(key, 'utf8')) {
    const char = String.fromCharCode(byte);
    folder += /[a-z0-9_-]/.test(char) ? char : percent(byte);
  }
  if (RESERVED.test(folder)) return percent(folder.charCodeAt(0)) + folder.slice(1);
  if (folder.length <= FOLDER_MAX) return folder;
  const suffix = `~${sha256Hex(key)}`;
  // The beginning is for people who look into the directory; half an escape would only puzzle them.
  return folder.slice(0, FOLDER_MAX - suffix.length).replace(/%[0-9a-f]?$/, '') + suffix;
}

function percent(byte: number): string {
  return `%${byte.toString(16).padStart(2, '0')}`;
}

/** Loads crypto only here, where few names come: importing it takes 5 to 6 ms, a twelfth of a bare start. */
function sha256Hex(text: string): string {
  return process.getBuiltinModule('node:crypto').createHash('sha256').update(text, 'utf8').digest('hex');
}
