import { systemClock } from '../../clock.ts';
import { RunlockError } from '../../errors.ts';
import { askGates, checkGates, closingGate, type Facts } from '../../gates/ask.ts';
import type { GateAnswer } from '../../gates/gate.ts';
import type { Gate } from '../../gates/parse.ts';
import type { Look } from '../../lock.ts';
import { parseItem } from '../../names.ts';
import { printable } from '../../printable.ts';
import type { Arguments } from '../arguments.ts';
import { EXIT } from '../exit-codes.ts';
import { factsOf, parseGates } from '../gates.ts';
import { parseCount } from '../numbers.ts';
import { answerJson } from '../output.ts';
import { isInside } from '../skip.ts';
import { answer } from '../streams.ts';
import { findTarget } from '../target.ts';
import { parseTime } from '../times.ts';

const DAY_MS = 86_400_000;
const MOST_DAYS = 366;

export async function main(args: Arguments): Promise<number> {
  const itemText = args.text('item');
  const item = itemText === undefined ? null : parseItem(itemText);
  const atText = args.text('at');
  const target = findTarget(args);
  const gates = args.operands.length > 0 ? parseGates(args.operands, target) : target.settings.gates;
  if (gates.length === 0) {
    throw new RunlockError(
      'usage',
      'runlock gate: expected a gate to ask, such as quota:NAME, output:PATH, item or ledger:LEDGER, and the configuration has none either',
    );
  }
  const at = atText === undefined ? systemClock.now() : parseTime(atText, '--at');
  const facts = factsOf(target, { at, look: () => target.lock.look(), ownRun });
  const days = args.text('days');
  if (days !== undefined) return tellDays(args, gates, parseCount(days, '--days'), facts);

  checkGates(gates, item !== null, facts);
  const answers = await askGates(gates, item, facts);
  const closing = closingGate(answers);
  if (args.flag('json')) answerJson({ open: closing === null, gates: answers });
  else answer(`${answers.map(answerLine).join('\n')}\n`);
  return closing?.code ?? EXIT.ok;
}

/** Who asks from inside a run does not mean that run's own mark. */
async function ownRun(look: Look): Promise<number | null> {
  const { lock } = look.seen;
  const record = lock !== null && 'record' in lock.content ? lock.content.record : null;
  return record !== null && (await isInside(look)) ? record.run : null;
}

function answerLine(answer: GateAnswer): string {
  const state = answer.open ? 'open  ' : answer.code === EXIT.failed ? 'error ' : 'closed';
  const { count, limit, sources = [] } = answer;
  const figures =
    count === undefined || limit === undefined
      ? (answer.reason ?? '')
      : `${count} of ${limit}: ${sources.map(({ source, count }) => `${printable(source, 200)} ${count}`).join(', ')}`;
  return `${state}  ${printable(answer.gate, 200)}  ${figures}`.trimEnd();
}

/** What each source would have counted on each of the last days: a filter that never matches is seen so. */
async function tellDays(
  args: Arguments,
  gates: readonly Gate[],
  days: number,
  facts: Facts,
): Promise<number> {
  const quotas = gates.filter((gate) => gate.type === 'quota');
  if (quotas.length === 0)
    throw new RunlockError('usage', '--days: expected a gate quota:NAME to count for, got none');
  if (days > MOST_DAYS) throw new RunlockError('usage', `--days: expected at most ${MOST_DAYS}, got ${days}`);
  const times = Array.from({ length: days }, (_, back) => facts.at - (days - 1 - back) * DAY_MS);
  const rows = [];
  let failed = false;
  for (const at of times) {
    const answers = await askGates(quotas, null, { ...facts, at });
    failed ||= answers.some(({ code }) => code === EXIT.failed);
    rows.push({ at: new Date(at).toISOString(), gates: answers });
  }
  if (args.flag('json')) answerJson({ days: rows });
  else answer(`${rows.flatMap(({ at, gates }) => gates.map((gate) => dayLine(at, gate))).join('\n')}\n`);
  return failed ? EXIT.failed : EXIT.ok;
}

function dayLine(at: string, answer: GateAnswer): string {
  const day = new Date(at);
  const pad = (value: number) => String(value).padStart(2, '0');
  const date = `${day.getFullYear()}-${pad(day.getMonth() + 1)}-${pad(day.getDate())}`;
  return `${date}  ${answerLine(answer)}`;
}
