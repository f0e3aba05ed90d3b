import { formatDuration, parseDuration, systemClock } from '../../clock.ts';
import { RunlockError } from '../../errors.ts';
import { type HistoryRun, type Outcome, runsOf } from '../../history.ts';
import type { Look } from '../../lock.ts';
import { parseItem, sameText } from '../../names.ts';
import { printable } from '../../printable.ts';
import { recordIn } from '../../rules.ts';
import { localTime } from '../../words.ts';
import type { Arguments } from '../arguments.ts';
import { EXIT } from '../exit-codes.ts';
import { parseCount } from '../numbers.ts';
import { answerJson } from '../output.ts';
import { answer, say } from '../streams.ts';
import { findTarget } from '../target.ts';

const OUTCOMES: readonly Outcome[] = [
  'finished',
  'failed',
  'timedOut',
  'released',
  'interrupted',
  'lost',
  'skipped',
  'error',
  'running',
];

export async function main(args: Arguments): Promise<number> {
  const most = parseCount(args.text('n') ?? '20', '-n');
  const since = args.text('since');
  const item = args.text('item');
  const wanted = {
    item: item === undefined ? null : parseItem(item),
    outcome: parseOutcome(args.text('outcome')),
  };
  const target = findTarget(args);
  const now = systemClock.now();
  const from = since === undefined ? Number.NEGATIVE_INFINITY : now - parseDuration(since, '--since');

  const { lock } = target;
  // Looked at first: a run that ends in between has its end in the history then.
  const look = await lock.look();
  const { events, torn } = await lock.store.events();
  const runs = runsOf(events)
    .map((run) => whatIsRunning(run, look))
    .filter((run) => Date.parse(run.startedAt) >= from)
    .filter((run) => wanted.item === null || (run.item !== null && sameText(run.item, wanted.item)))
    .filter((run) => wanted.outcome === null || run.outcome === wanted.outcome)
    .slice(-most);

  if (torn.length > 0)
    say(`runlock: ${torn.length} ${torn.length === 1 ? 'line' : 'lines'} of the history can't be read`);
  if (args.flag('json')) answerJson({ runs });
  else if (runs.length > 0) answer(`${runs.map((run) => historyLine(run, now)).join('\n')}\n`);
  return EXIT.ok;
}

/** A run without an end is running only if it still holds the lock; else it was killed, and nobody came since. */
function whatIsRunning(run: HistoryRun, look: Look): HistoryRun {
  if (run.outcome !== 'running' || (run.run ?? 0) > (look.seen.last?.run ?? 0)) return run;
  const current = recordIn(look.seen.lock)?.run === run.run && look.seen.lock?.ended === false;
  if (current && look.verdict.state === 'held') return run;
  return {
    ...run,
    outcome: 'interrupted',
    reason: current ? 'not taken over yet' : 'no end is written down',
  };
}

function parseOutcome(text: string | undefined): Outcome | null {
  if (text === undefined) return null;
  const outcome = OUTCOMES.find((one) => one === text);
  if (outcome !== undefined) return outcome;
  throw new RunlockError(
    'usage',
    `--outcome: expected one of ${OUTCOMES.join(', ')}, got "${printable(text, 40)}"`,
  );
}

function historyLine(run: HistoryRun, now: number): string {
  const columns = [
    (run.run === null ? '-' : String(run.run)).padStart(5),
    localTime(Date.parse(run.startedAt), now).padEnd(19),
    (run.durationMs === null
      ? ''
      : run.outcome === 'skipped'
        ? '-'
        : formatDuration(run.durationMs)
    ).padStart(12),
    run.outcome.padEnd(11),
    printable(run.item ?? run.job ?? '', 40).padEnd(12),
    [run.exitCode === null || run.exitCode === 0 ? '' : `exit ${run.exitCode}`, printable(run.reason ?? '')]
      .filter((text) => text !== '')
      .join('; '),
  ];
  return columns.join('  ').trimEnd();
}
