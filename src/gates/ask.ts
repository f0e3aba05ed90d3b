import { RunlockError } from '../errors.ts';
import { textKey } from '../names.ts';
import { printable } from '../printable.ts';
import { countWords, type GateAnswer, type SourceCount } from './gate.ts';
import { askItem, countingMarks, type Marks } from './item.ts';
import { askOutput, type Kept, refuseKept, refuseOwnStreams } from './output.ts';
import { type Gate, type LedgerGate, needsItem, type OutputGate, type QuotaGate } from './parse.ts';

/** What a quota has counted. */
export interface QuotaFigures {
  readonly count: number;
  readonly limit: number;
  readonly closed: boolean;
  readonly sources: readonly SourceCount[];
}

/** Where the facts come from that gates answer from. Each is looked up only if a gate asks for it. */
export interface Facts {
  /** As of when is asked, epoch ms. */
  readonly at: number;
  readonly marks: () => Promise<Marks>;
  readonly countQuota: (gate: QuotaGate, at: number) => Promise<QuotaFigures>;
  /** Reads the ledger once, and tells of any number of items whether it has them. */
  readonly readLedger: (gate: LedgerGate) => Promise<(item: string) => boolean>;
  /** What no output gate may remove, these gates' own evidence included. */
  readonly keptFrom: (gates: readonly Gate[]) => readonly Kept[];
  /** The path of an output gate on the day of `at`. */
  readonly outputPath: (gate: OutputGate, at: number) => Promise<string>;
}

/**
 * Asks all gates about one item.
 *
 * @param item null only where no gate is about items
 * @throws RunlockError `usage`, `config`; where an answer can't be had for another reason, the gate is closed with 1
 */
export async function askGates(
  gates: readonly Gate[],
  item: string | null,
  facts: Facts,
): Promise<GateAnswer[]> {
  const answers: GateAnswer[] = [];
  for (const gate of gates) answers.push(await answered(gate, () => askGate(gate, item, facts)));
  return answers;
}

/** The gate that decides: an answer that can't be had goes before any other, else the first that is closed. */
export function closingGate(answers: readonly GateAnswer[]): GateAnswer | null {
  return answers.find(({ code }) => code === 1) ?? answers.find(({ open }) => !open) ?? null;
}

/** Which of the candidates may be started. */
export interface Choice {
  /** In the order of the candidates; none where a gate is closed that has nothing to do with items. */
  readonly items: readonly string[];
  readonly answers: readonly GateAnswer[];
  /** Why none is left, where none is. */
  readonly leftOut: string;
}

/**
 * Asks which candidates may be started: without a mark that counts, and not closed by a gate. Evidence is read
 * once, however many there are.
 *
 * @throws RunlockError as askGates does; `corrupt` while nobody knows what is marked
 */
export async function chooseItems(
  candidates: readonly string[],
  gates: readonly Gate[],
  facts: Facts,
): Promise<Choice> {
  const answers: GateAnswer[] = [];
  const ledgers: { gate: string; has: (item: string) => boolean }[] = [];
  for (const gate of gates) {
    // Marks are minded with and without the gate.
    if (gate.type === 'item') continue;
    if (gate.type !== 'ledger') answers.push(await answered(gate, () => askGate(gate, null, facts)));
    else {
      let has: ((item: string) => boolean) | null = null;
      const answer = await answered(gate, async () => {
        has = await facts.readLedger(gate);
        return open(gate);
      });
      answers.push(answer);
      if (has !== null) ledgers.push({ gate: gate.text, has });
    }
  }
  const marked = countingMarks(await facts.marks());
  const unmarked = candidates.filter((item) => !marked.has(textKey(item)));
  const items = unmarked.filter((item) => !ledgers.some(({ has }) => has(item)));
  const counted = [
    `${candidates.length - unmarked.length} of ${candidates.length} in progress or in an unknown state`,
    ...(ledgers.length === 0 ? [] : [`${unmarked.length - items.length} in a ledger already`]),
  ];
  return { items: closingGate(answers) === null ? items : [], answers, leftOut: counted.join(', ') };
}

/** @throws RunlockError `usage` for what no lock need be taken to find */
export async function checkGates(
  gates: readonly Gate[],
  hasItem: boolean,
  facts: Pick<Facts, 'at' | 'outputPath' | 'keptFrom'>,
): Promise<void> {
  for (const gate of gates) {
    if (needsItem(gate) && !hasItem)
      throw new RunlockError(
        'usage',
        `gate ${printable(gate.text, 120)}: expected an item to ask about, got none`,
      );
    if (gate.type !== 'output') continue;
    const file = await facts.outputPath(gate, facts.at);
    refuseOwnStreams(gate, file);
    refuseKept(gate, file, facts.keptFrom(gates));
  }
}

async function askGate(gate: Gate, item: string | null, facts: Facts): Promise<GateAnswer> {
  switch (gate.type) {
    case 'quota':
      return quotaAnswer(gate.text, await facts.countQuota(gate, facts.at));
    case 'output':
      return askOutput(gate, await facts.outputPath(gate, facts.at));
    case 'item':
      return askItem(gate.text, itemOf(item), await facts.marks());
    case 'ledger': {
      const has = await facts.readLedger(gate);
      return has(itemOf(item))
        ? { gate: gate.text, open: false, code: 7, reason: `it has ${printable(itemOf(item), 80)} already` }
        : open(gate);
    }
  }
}

function quotaAnswer(gate: string, { count, limit, closed, sources }: QuotaFigures): GateAnswer {
  const figures = { count, limit, sources };
  const reason = `${count} of ${limit} used (${sources.map(countWords).join(', ')})`;
  if (closed) return { gate, open: false, code: 5, reason, ...figures };
  const doubt = sources.some(({ untimed = 0 }) => untimed > 0);
  return { gate, open: true, code: 0, reason: doubt ? reason : null, ...figures };
}

function open(gate: Gate): GateAnswer {
  return { gate: gate.text, open: true, code: 0, reason: null };
}

function itemOf(item: string | null): string {
  if (item === null) throw new Error('whether there is an item is checked before gates are asked');
  return item;
}

/** Evidence that can't be read is not "nothing so far". */
async function answered(gate: Gate, ask: () => Promise<GateAnswer>): Promise<GateAnswer> {
  try {
    return await ask();
  } catch (error) {
    if (!(error instanceof RunlockError) || error.code === 'usage' || error.code === 'config') throw error;
    return { gate: gate.text, open: false, code: 1, reason: error.message };
  }
}
