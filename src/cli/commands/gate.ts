import { systemClock } from '../../clock.ts';
import type { Quota } from '../../config/quotas.ts';
import { RunlockError } from '../../errors.ts';
import { askGates, checkGates, closingGate } from '../../gates/ask.ts';
import { countWords, type GateAnswer } from '../../gates/gate.ts';
import { type Gate, requireQuota } from '../../gates/parse.ts';
import type { Period } from '../../gates/quota/periods.ts';
import type { QuotaCount } from '../../gates/quota/quota.ts';
import type { Look } from '../../lock.ts';
import { parseItem } from '../../names.ts';
import { printable } from '../../printable.ts';
import { recordIn } from '../../rules.ts';
import type { Arguments } from '../arguments.ts';
import { EXIT } from '../exit-codes.ts';
import { factsOf, parseGates } from '../gates.ts';
import { parseCount } from '../numbers.ts';
import { answerJson } from '../output.ts';
import { isInside } from '../skip.ts';
import { answer } from '../streams.ts';
import { findTarget, type Target } from '../target.ts';
import { parseTime } from '../times.ts';

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
  if (days !== undefined) return tellDays(args, target, gates, { days: parseCount(days, '--days'), at });

  await checkGates(gates, item !== null, facts);
  const answers = await askGates(gates, item, facts);
  const closing = closingGate(answers);
  if (args.flag('json')) answerJson({ open: closing === null, gates: answers });
  else answer(`${answers.map(answerLine).join('\n')}\n`);
  return closing?.code ?? EXIT.ok;
}

/** Who asks from inside a run does not mean that run's own mark. */
async function ownRun(look: Look): Promise<number | null> {
  const record = recordIn(look.seen.lock);
  return record !== null && (await isInside(look)) ? record.run : null;
}

function answerLine(answer: GateAnswer): string {
  const state = answer.open ? 'open  ' : answer.code === EXIT.failed ? 'error ' : 'closed';
  const { count, limit, sources = [] } = answer;
  const figures =
    count === undefined || limit === undefined
      ? (answer.reason ?? '')
      : `${count} of ${limit}: ${sources.map(countWords).join(', ')}`;
  // Errors of the system among the reasons name paths as they are.
  return printable(`${state}  ${printable(answer.gate, 200)}  ${figures}`.trimEnd(), 20_000);
}

/** What each source would have counted on each of the last days: a filter that never matches is seen so. */
async function tellDays(
  args: Arguments,
  target: Target,
  gates: readonly Gate[],
  { days, at }: { days: number; at: number },
): Promise<number> {
  const quotas = gates.filter((gate) => gate.type === 'quota');
  const other = args.operands.length === 0 ? undefined : gates.find((gate) => gate.type !== 'quota');
  if (other !== undefined)
    throw new RunlockError(
      'usage',
      `--days: expected gates quota:NAME only, got "${printable(other.text, 120)}", which has no days to count`,
    );
  if (quotas.length === 0)
    throw new RunlockError('usage', '--days: expected a gate quota:NAME to count for, got none');
  if (days > MOST_DAYS) throw new RunlockError('usage', `--days: expected at most ${MOST_DAYS}, got ${days}`);
  const { countPastDays } = await import('../../gates/quota/quota.ts');
  const tables = [];
  for (const gate of quotas) {
    const quota = requireQuota(gate, target.config);
    const counts = await countPastDays(quota, days, { at, history: target.lock.store });
    tables.push({ gate: gate.text, quota, counts });
  }
  if (args.flag('json')) {
    const json = tables.map(({ gate, quota, counts }) => ({
      gate,
      limit: quota.limit,
      days: counts.map(({ period, count, closed, sources }) => ({
        from: new Date(period.from).toISOString(),
        to: new Date(period.to).toISOString(),
        ...{ count, closed, sources },
      })),
    }));
    answerJson({ quotas: json });
  } else {
    const texts = await Promise.all(tables.map(({ gate, quota, counts }) => daysTable(gate, quota, counts)));
    answer(`${texts.join('\n\n')}\n`);
  }
  return EXIT.ok;
}

/** One line a period, one column a source. */
async function daysTable(gate: string, quota: Quota, counts: readonly QuotaCount[]): Promise<string> {
  const { dayAt } = await import('../../gates/quota/periods.ts');
  const nameOf = ({ from, to }: Period) =>
    typeof quota.period === 'number'
      ? `up to ${new Date(to).toISOString()}`
      : `${quota.period === 'week' ? 'week from ' : ''}${isoDay(dayAt(from, quota.timeZone ?? 'UTC'))}`;
  const sources = (counts[0]?.sources ?? []).map(({ source }) => printable(source, 60));
  const rows = [
    [printable(gate, 60), ...sources, 'largest', `of ${quota.limit}`],
    ...counts.map(({ period, count, closed, sources }) => [
      nameOf(period),
      ...sources.map(
        ({ count, untimed }) => `${count}${untimed === undefined ? '' : ` (+${untimed} without a time)`}`,
      ),
      String(count),
      closed ? 'closed' : 'open',
    ]),
  ];
  const widths = (rows[0] ?? []).map((_, column) =>
    Math.max(...rows.map((row) => (row[column] ?? '').length)),
  );
  const lines = rows.map((row) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  '));
  return lines.map((line) => line.trimEnd()).join('\n');
}

/** A day counted from 1970-01-01. */
function isoDay(day: number): string {
  return new Date(day * 86_400_000).toISOString().slice(0, 10);
}
