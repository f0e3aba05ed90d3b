import { systemClock } from '../../clock.ts';
import { RunlockError } from '../../errors.ts';
import { type AddOutcome, addToLedger, hasKey, listKeys } from '../../ledger/ledger.ts';
import { placeWords } from '../../ledger/place.ts';
import { type LedgerReference, resolveLedger } from '../../ledger/reference.ts';
import { parseKey } from '../../names.ts';
import { printable } from '../../printable.ts';
import { decodeText, parseJson } from '../../text.ts';
import type { Arguments } from '../arguments.ts';
import { EXIT } from '../exit-codes.ts';
import { readInput } from '../input.ts';
import { answerJson } from '../output.ts';
import { answer, say } from '../streams.ts';
import { findSettings } from '../target.ts';

/** Each verb of `ledger`, with what it takes. */
const VERBS: Readonly<
  Record<string, { operands: string; most: number; main: (call: Call) => Promise<number> }>
> = {
  add: { operands: 'LEDGER KEY [ENTRY.json | -]', most: 3, main: add },
  has: { operands: 'LEDGER KEY', most: 2, main: has },
  list: { operands: 'LEDGER', most: 1, main: list },
};

interface Call {
  readonly args: Arguments;
  readonly ledger: LedgerReference;
  /** What stands behind LEDGER. */
  readonly operands: readonly string[];
}

export async function main(args: Arguments): Promise<number> {
  const [name = '', text, ...operands] = args.operands;
  const verb = Object.hasOwn(VERBS, name) ? VERBS[name] : undefined;
  if (verb === undefined) {
    throw new RunlockError(
      'usage',
      `runlock ledger: expected add, has or list, got "${printable(name, 40)}"`,
    );
  }
  const extra = operands[verb.most - 1];
  if (text === undefined || extra !== undefined) {
    const got = extra === undefined ? 'no LEDGER' : `also "${printable(extra, 60)}"`;
    throw new RunlockError('usage', `runlock ledger ${name}: expected ${verb.operands}, got ${got}`);
  }
  for (const option of ['create', 'stamp']) {
    if (name !== 'add' && args.flag(option))
      throw new RunlockError('usage', `runlock ledger ${name} has no option --${option}`);
  }
  return verb.main({ args, ledger: resolveLedger(text, findSettings(args), '.'), operands });
}

async function add({ args, ledger, operands: [operand, source] }: Call): Promise<number> {
  const key = requireKey(operand, 'add');
  const entry = source === undefined ? '{}' : readEntry(source);
  const stamp = args.text('stamp') ?? null;
  const added = await addToLedger(ledger, { key, entry, stamp, create: args.flag('create') }, systemClock);
  if (args.flag('json')) answerJson({ ...added, ...stampJson(added), ...whereJson(ledger), key });
  if (added.outcome === 'exists') {
    const same = added.same ? ', with the same entry' : ', with another entry';
    if (!args.flag('quiet')) say(`runlock: ${where(ledger)} has "${printable(key)}" already${same}`);
    return EXIT.ledger;
  }
  if (added.stamp?.value === null) {
    const name = printable(added.stamp.key, 60);
    say(
      `runlock: added, but there is no time under "${name}" at the top of ${printable(ledger.file, 4096)} to refresh`,
    );
  }
  return EXIT.ok;
}

async function has({ args, ledger, operands: [operand] }: Call): Promise<number> {
  const key = requireKey(operand, 'has');
  const there = hasKey(ledger, key);
  if (args.flag('json')) answerJson({ has: there, ...whereJson(ledger), key });
  return there ? EXIT.ok : EXIT.item;
}

async function list({ args, ledger }: Call): Promise<number> {
  const keys = listKeys(ledger);
  if (args.flag('json')) answerJson({ keys, ...whereJson(ledger) });
  else if (keys.length > 0)
    answer(`${keys.map((key) => printable(key, Number.POSITIVE_INFINITY)).join('\n')}\n`);
  return EXIT.ok;
}

/** A key is what an item may be: the gate asks with items. An empty one is most likely an unset variable. */
function requireKey(operand: string | undefined, verb: string): string {
  if (operand === undefined)
    throw new RunlockError('usage', `runlock ledger ${verb}: expected a KEY, got none`);
  return parseKey(operand);
}

/**
 * The entry as the text it is: parsed only to see that it is JSON, since JavaScript would round its numbers.
 *
 * @throws RunlockError `input`
 */
function readEntry(source: string): string {
  const name = source === '-' ? 'the entry on stdin' : source;
  const text = decodeText(readInput(source, 'the entry'), name);
  parseJson(text, name);
  return text;
}

function whereJson({ file, place }: LedgerReference) {
  return { file, place };
}

/** The time as a program reads it, and not as it is written in the ledger. */
function stampJson(added: AddOutcome) {
  if (added.outcome !== 'added' || added.stamp === null) return {};
  const { key, value } = added.stamp;
  return { stamp: { key, value: value === null ? null : (JSON.parse(value) as string | number) } };
}

function where({ file, place }: LedgerReference): string {
  return `${printable(file, 4096)}${place.length === 0 ? '' : ` at ${placeWords(place)}`}`;
}
