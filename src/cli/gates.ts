import { resolve } from 'node:path';
import { systemClock } from '../clock.ts';
import type { Config } from '../config/config.ts';
import { RunlockError } from '../errors.ts';
import { startOf } from '../evidence/process.ts';
import {
  askGates,
  checkGates,
  chooseItems,
  closingGate,
  type Facts,
  type QuotaFigures,
} from '../gates/ask.ts';
import type { GateAnswer } from '../gates/gate.ts';
import { type Kept, removeOutput } from '../gates/output.ts';
import {
  type Gate,
  type LedgerGate,
  type OutputGate,
  parseGate,
  type QuotaGate,
  requireQuota,
} from '../gates/parse.ts';
import { type LedgerReference, resolveLedger } from '../ledger/reference.ts';
import type { Ask, Closed, Look, Permission } from '../lock.ts';
import { textKey } from '../names.ts';
import { printable } from '../printable.ts';
import type { Arguments } from './arguments.ts';
import { readCandidates } from './candidates.ts';
import { EXIT } from './exit-codes.ts';
import { holderIn } from './output.ts';
import { say } from './streams.ts';
import { type Asker, configuredGates } from './taking.ts';
import { absolute, type Target } from './target.ts';

const DAY_MS = 86_400_000;

/** The gates that a command asks: the configuration's first, then those of the command line; each once. */
export function readGates(args: Arguments, target: Target): Gate[] {
  return once([...configuredGates(args, target), ...parseGates(args.texts('gate'), target)]);
}

/** @throws RunlockError `usage` for one that is no gate, or names no quota or ledger that there is */
export function parseGates(texts: readonly string[], target: Target): Gate[] {
  const gates = texts.map((text) => parseGate(text, absolute('.')));
  for (const gate of gates) {
    if (gate.type === 'quota') requireQuota(gate, target.config);
  }
  return once(gates);
}

function once(gates: readonly Gate[]): Gate[] {
  return [...new Map(gates.map((gate) => [identity(gate), gate])).values()];
}

/** What two spellings of one gate have in common. */
function identity(gate: Gate): string {
  switch (gate.type) {
    case 'quota':
      return `quota:${textKey(gate.name)}`;
    case 'output':
      return `output:${gate.path.base}:${gate.path.text}`;
    case 'item':
      return 'item';
    case 'ledger':
      return `ledger:${gate.base}:${gate.ledger}`;
  }
}

/** Where gates find their facts, as seen from a lock. The lock is looked at only if a gate is about marks. */
export function factsOf(
  target: Target,
  options: { at: number; look: () => Promise<Look>; ownRun: (look: Look) => Promise<number | null> },
): Facts {
  return {
    at: options.at,
    async marks() {
      const look = await options.look();
      return {
        sight: look.seen.marker,
        bounds: target.settings,
        holder: holderIn(look),
        now: options.at,
        ownRun: await options.ownRun(look),
        where: target.dir,
      };
    },
    countQuota: (gate, at) => countQuota(target, gate, at),
    readLedger: (gate) => readLedger(target, gate),
    keptFrom: (gates) => keptFiles(target, gates),
    outputPath,
  };
}

/** All that the configuration names, whichever gates are asked now: another job's may be asked by others. */
function keptFiles({ base, config, settings }: Target, asked: readonly Gate[]): Kept[] {
  const own = [base, ...(config.path === null ? [] : [config.path])];
  const ledgers = [...config.ledgers].map(([name, { file }]) => ({
    what: `the ledger ${name}`,
    place: file,
  }));
  const gates = [...settings.gates, ...asked].filter((gate) => gate.type === 'ledger');
  const sources = [...config.quotas.values()].flatMap(({ name, sources }) =>
    sources.flatMap((source) =>
      source.type === 'history' ? [] : [{ what: `what the quota ${name} counts`, source }],
    ),
  );
  return [
    ...own.map((place) => ({ what: "runlock's own", place })),
    ...ledgers,
    ...gates.map((gate) => ({ what: 'a ledger that a gate asks', place: ledgerOf(gate, config).file })),
    ...sources,
  ];
}

/**
 * What is asked under the lock before a run begins: the gates, and with `--from` which item. What is wrong with
 * the question itself is found here, before any lock is taken.
 */
export async function makeAsk(
  args: Arguments,
  target: Target,
  { item, isHolder, isEnding }: Asker,
): Promise<Ask> {
  const from = args.text('from');
  const gates = readGates(args, target);
  const now = systemClock.now();
  await checkGates(gates, item !== null || from !== undefined, {
    at: now,
    outputPath,
    keptFrom: (asked) => keptFiles(target, asked),
  });
  for (const gate of gates) if (gate.type === 'ledger') ledgerOf(gate, target.config);
  const candidates = from === undefined ? null : readCandidates(from);
  const asker = isHolder ? null : { pid: process.pid, started: await startOf(process.pid) };
  return {
    asker,
    async permit(look, run) {
      const facts = factsOf(target, {
        at: look.seen.now,
        look: async () => look,
        ownRun: async () => run,
      });
      const permission = await permit(gates, candidates, item, { facts, isEnding });
      if (permission.open && !args.flag('quiet')) sayRemarks(permission.gates);
      return permission;
    },
  };
}

async function permit(
  gates: readonly Gate[],
  candidates: readonly string[] | null,
  item: string | null,
  { facts, isEnding }: { facts: Facts; isEnding: Asker['isEnding'] },
): Promise<Permission> {
  if (candidates === null) {
    const answers = await askGates(gates, item, facts);
    return closedBy(answers) ?? opened(gates, item, answers, { facts, isEnding });
  }
  const { items, answers, leftOut } = await chooseItems(candidates, gates, facts);
  const closed = closedBy(answers);
  if (closed !== null) return closed;
  const [first] = items;
  if (first === undefined)
    return { open: false, code: EXIT.item, reason: `no candidate is left: ${leftOut}`, gates: answers };
  return opened(gates, first, answers, { facts, isEnding });
}

/** The outputs are looked at once more, when nothing else is to be asked, and then removed at once. */
function opened(
  gates: readonly Gate[],
  item: string | null,
  answers: readonly GateAnswer[],
  { facts, isEnding }: { facts: Facts; isEnding: Asker['isEnding'] },
): Permission {
  const outputs = gates.filter((gate) => gate.type === 'output');
  const clear = async () => {
    const again = await askGates(outputs, item, facts);
    const closed = closedBy(again);
    if (closed !== null) {
      const changed = new Map(again.map((answer) => [answer.gate, answer]));
      return { ...closed, gates: answers.map((answer) => changed.get(answer.gate) ?? answer) };
    }
    // Who is told to end before it begins leaves what stands there.
    if (await isEnding()) return null;
    for (const gate of outputs) removeOutput(await facts.outputPath(gate, facts.at));
    return null;
  };
  return { open: true, item, gates: answers, clear: outputs.length === 0 ? null : clear };
}

/** Null: all are open. */
export function closedBy(answers: readonly GateAnswer[]): Closed | null {
  const closing = closingGate(answers);
  if (closing === null) return null;
  return { open: false, code: closing.code, reason: gateWords(closing), gates: answers };
}

/** A gate and what it said, on one line: `quota:mail: 1 of 1 used (history 1)`. */
export function gateWords({ gate, reason }: GateAnswer): string {
  return `${printable(gate, 200)}${reason === null ? '' : `: ${reason}`}`;
}

/** What an open gate could not see. */
export function sayRemarks(answers: readonly GateAnswer[]): void {
  for (const answer of answers) {
    if (answer.open && answer.reason !== null) say(`runlock: gate ${gateWords(answer)}`);
  }
}

/** On the day of `at` in the local zone. Date fields are seldom there, and what fills them is loaded only then. */
async function outputPath({ path }: OutputGate, at: number): Promise<string> {
  if (path.pieces.every((piece) => typeof piece === 'string')) return resolve(path.base, path.text);
  const local = new Date(at);
  const day = Date.UTC(local.getFullYear(), local.getMonth(), local.getDate()) / DAY_MS;
  const { fileOfDay } = await import('../gates/quota/file-names.ts');
  return fileOfDay(path, day);
}

async function countQuota(target: Target, gate: QuotaGate, at: number): Promise<QuotaFigures> {
  const { countQuota: count } = await import('../gates/quota/quota.ts');
  return count(requireQuota(gate, target.config), { at, history: target.lock.store });
}

async function readLedger(target: Target, gate: LedgerGate): Promise<(item: string) => boolean> {
  const { listKeys } = await import('../ledger/ledger.ts');
  const keys = new Set(listKeys(ledgerOf(gate, target.config)).map(textKey));
  return (item) => keys.has(textKey(item));
}

function ledgerOf({ ledger, base, text }: LedgerGate, config: Config): LedgerReference {
  try {
    return resolveLedger(ledger, config, base);
  } catch (error) {
    if (!(error instanceof RunlockError)) throw error;
    throw new RunlockError(error.code, `gate ${printable(text, 120)}: ${error.message}`, { cause: error });
  }
}
