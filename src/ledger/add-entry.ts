import { RunlockError } from '../errors.ts';
import { sameText } from '../names.ts';
import { printable } from '../printable.ts';
import { inLinesOf, type Layout, layoutFor } from './layout.ts';
import { type LedgerPlace, placeWords } from './place.ts';
import { type Member, type ObjectSpan, objectsOnTheWay, requireJson } from './scan.ts';
import { refreshedTime } from './stamp.ts';

/** What is to be added, and where. */
export interface Addition {
  readonly place: LedgerPlace;
  readonly key: string;
  /** Valid JSON. Its numbers and texts get into the ledger byte for byte. */
  readonly entry: string;
  /** The key at the top of the document whose time is to be refreshed; null for none. */
  readonly stamp: string | null;
  /** Makes the place if it is not there. */
  readonly create: boolean;
  /** ms since the epoch. */
  readonly now: number;
}

export type AddedText =
  | {
      readonly outcome: 'added';
      readonly text: string;
      readonly count: number;
      readonly stamp: StampOutcome | null;
    }
  /** `entry` is what stands under the key, as JSON. */
  | { readonly outcome: 'exists'; readonly entry: string; readonly count: number };

/** `value` is JSON; null where no time was there to refresh. */
export interface StampOutcome {
  readonly key: string;
  readonly value: string | null;
}

interface Edit {
  readonly at: number;
  readonly end: number;
  readonly text: string;
}

/**
 * Adds one key to an object in a JSON text. Every character but the new member and the stamp's value stays.
 *
 * @param where the file's path, for the message
 * @throws RunlockError `corrupt` if the text is not strict JSON, the place not there or no object, a key on the way
 *   stands twice, or the result is not what it should be
 */
export function addEntry(text: string, addition: Addition, where: string): AddedText {
  const { place, key, entry } = addition;
  const chain = objectsOnTheWay(text, place, where);
  const object = chain.at(-1) ?? chain[0];
  const missing = place.slice(chain.length - 1);
  if (missing.length > 0 && !addition.create) throw placeMissing(place, where);

  const member = missing.length === 0 ? object.members.find((one) => sameText(one.key, key)) : undefined;
  const count = missing.length === 0 ? object.members.length : 0;
  if (member !== undefined) return { outcome: 'exists', entry: valueIn(text, member), count };

  const layout = layoutFor(text, chain);
  const [first = key, ...rest] = [...missing, key];
  const value = inLinesOf(nested(rest, entry.trim()), layout);
  const stamp = stampEdit(text, chain[0], addition);
  const edits = [
    { at: layout.at, end: layout.at, text: memberText(layout, first, value) },
    ...(stamp?.edit ? [stamp.edit] : []),
  ];
  const edited = applyEdits(text, edits);
  requireOneMore(edited, addition, missing.length === 0 ? object : null, where);
  return { outcome: 'added', text: edited, count: count + 1, stamp: stamp?.outcome ?? null };
}

/** The place is not there, which is not the same as an empty ledger. */
export function placeMissing(place: LedgerPlace, where: string): RunlockError {
  return new RunlockError(
    'corrupt',
    `${printable(where, 4096)}: expected an object at ${placeWords(place)}, got nothing (ledger add --create makes it)`,
    { path: where },
  );
}

function valueIn(text: string, member: Member): string {
  return text.slice(member.valueStart, member.valueEnd);
}

/** An entry inside of objects with one key each, one line a key. */
function nested(keys: readonly string[], entry: string): string {
  return keys.reduceRight((inner, key) => `{\n${JSON.stringify(key)}: ${inner}\n}`, entry);
}

function memberText({ before, colon, after }: Layout, key: string, value: string): string {
  return `${before}${JSON.stringify(key)}${colon}${value}${after}`;
}

function stampEdit(
  text: string,
  root: ObjectSpan,
  { stamp, now }: Addition,
): { outcome: StampOutcome; edit: Edit | null } | null {
  if (stamp === null) return null;
  const member = root.members.find((one) => sameText(one.key, stamp));
  const value = member === undefined ? null : refreshedTime(valueIn(text, member), now);
  const edit =
    member === undefined || value === null
      ? null
      : { at: member.valueStart, end: member.valueEnd, text: value };
  return { outcome: { key: stamp, value }, edit };
}

function applyEdits(text: string, edits: readonly Edit[]): string {
  const pieces: string[] = [];
  let done = 0;
  for (const edit of [...edits].sort((a, b) => a.at - b.at)) {
    pieces.push(text.slice(done, edit.at), edit.text);
    done = edit.end;
  }
  return pieces.join('') + text.slice(done);
}

/** Counts before and after, by another parser than the one that made the edit: one added, none gone. */
function requireOneMore(
  text: string,
  { place, key }: Addition,
  before: ObjectSpan | null,
  where: string,
): void {
  let value = requireJson(text, where);
  for (const step of place) {
    const found = Object.entries(asRecord(value)).find(([name]) => sameText(name, step));
    value = found?.[1];
  }
  const after = asRecord(value);
  const old = before?.members ?? [];
  const whole = old.every((member) => Object.hasOwn(after, member.key)) && Object.hasOwn(after, key);
  const count = Object.keys(after).length;
  if (whole && count === old.length + 1) return;
  throw new RunlockError(
    'corrupt',
    `${printable(where, 4096)}: expected ${old.length + 1} keys after adding one, got ${count}: nothing was changed`,
    { path: where },
  );
}

function asRecord(value: unknown): object {
  return typeof value === 'object' && value !== null ? value : {};
}
