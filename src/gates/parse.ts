import { type DatedPath, isFault, parseDatedPath } from '../dated-path.ts';
import { RunlockError } from '../errors.ts';
import { nearest } from '../guess.ts';
import { textKey } from '../names.ts';
import { printable } from '../printable.ts';

/** A gate as it is asked for. `text` is how the user wrote it. */
export type Gate =
  | { readonly type: 'quota'; readonly text: string; readonly name: string }
  | { readonly type: 'output'; readonly text: string; readonly path: DatedPath }
  | { readonly type: 'item'; readonly text: string }
  /** A relative path in `ledger` is relative to `base`. */
  | { readonly type: 'ledger'; readonly text: string; readonly ledger: string; readonly base: string };

export type QuotaGate = Extract<Gate, { type: 'quota' }>;
export type OutputGate = Extract<Gate, { type: 'output' }>;
export type LedgerGate = Extract<Gate, { type: 'ledger' }>;

const FORMS = 'quota:NAME, output:PATH, item or ledger:LEDGER';
const TAKES = { quota: 'NAME', output: 'PATH', item: null, ledger: 'LEDGER' } as const;

/**
 * Reads a gate from what the user wrote. Whether there is such a quota or ledger, the configuration tells.
 *
 * @param base the directory that relative paths are relative to, absolute
 * @throws RunlockError `usage`
 */
export function parseGate(text: string, base: string): Gate {
  const colon = text.indexOf(':');
  const type = colon < 0 ? text : text.slice(0, colon);
  const value = colon < 0 ? null : text.slice(colon + 1);
  if (!isType(type)) throw unknownGate(text, type);
  const takes = TAKES[type];
  if (takes === null && value !== null)
    throw new RunlockError('usage', `gate "${shown(text)}": expected just "${type}", got more behind it`);
  if (takes !== null && (value === null || value.trim() === ''))
    throw new RunlockError('usage', `gate "${shown(text)}": expected ${type}:${takes}, got no ${takes}`);
  const given = value ?? '';
  if (/[\0-\x1f\x7f-\x9f\u2028\u2029]/.test(given))
    throw new RunlockError('usage', `gate "${shown(text)}": expected no control characters`);
  switch (type) {
    case 'quota':
      return { type, text, name: given };
    case 'output':
      return { type, text, path: readPath(text, given, base) };
    case 'item':
      return { type, text };
    case 'ledger':
      return { type, text, ledger: given, base };
  }
}

function readPath(text: string, given: string, base: string): DatedPath {
  if (/[/\\]$/.test(given))
    throw new RunlockError(
      'usage',
      `gate "${shown(text)}": expected the path of a file, got one of a directory`,
    );
  const path = parseDatedPath(given, base);
  if (!isFault(path)) return path;
  const { expected, got } = path;
  throw new RunlockError('usage', `gate "${shown(text)}": expected ${expected}, got ${shown(got)}`);
}

/** Whether the gate is about an item, so that it can't be asked without one. */
export function needsItem(gate: Gate): boolean {
  return gate.type === 'item' || gate.type === 'ledger';
}

/**
 * The quota that a gate names.
 *
 * @throws RunlockError `usage` with a guess at the one that was meant, and where it would have to be
 */
export function requireQuota<Q>(
  { text, name }: QuotaGate,
  config: { readonly quotas: ReadonlyMap<string, Q>; readonly path: string | null },
): Q {
  const quota = config.quotas.get(textKey(name));
  if (quota !== undefined) return quota;
  const known = [...config.quotas.keys()];
  const near = nearest(name, known);
  const place = config.path === null ? 'there is no runlock.json' : `in ${printable(config.path, 4096)}`;
  const expected =
    near !== null
      ? `a known quota, did you mean "quota:${printable(near, 100)}"?`
      : known.length === 0
        ? 'a quota of the configuration, which has none'
        : `one of ${printable(known.join(', '), 200)}`;
  throw new RunlockError('usage', `gate "${shown(text)}": expected ${expected} (${place})`);
}

function isType(type: string): type is keyof typeof TAKES {
  return Object.hasOwn(TAKES, type);
}

function unknownGate(text: string, type: string): RunlockError {
  const near = nearest(type, Object.keys(TAKES));
  const hint = near === null ? '' : `, did you mean "${near}${text.slice(type.length)}"?`;
  return new RunlockError('usage', `gate "${shown(text)}": expected ${FORMS}${printable(hint, 200)}`);
}

function shown(text: string): string {
  return printable(text, 120);
}
