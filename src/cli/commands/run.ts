import { parseDuration, systemClock } from '../../clock.ts';
import { RunlockError } from '../../errors.ts';
import type { GateAnswer } from '../../gates/gate.ts';
import type { Acquired, Look } from '../../lock.ts';
import { asciiJson } from '../../printable.ts';
import { redactArgv } from '../../redact.ts';
import { signalCode } from '../../run/command.ts';
import { freeDescriptor } from '../../run/descriptor.ts';
import { endOverdue } from '../../run/overdue.ts';
import { Signals } from '../../run/signals.ts';
import { supervise } from '../../run/supervisor.ts';
import { newToken } from '../../token.ts';
import type { Arguments } from '../arguments.ts';
import { EXIT } from '../exit-codes.ts';
import { draftRecord, readHold, withSupervisor } from '../holder.ts';
import { parseExitCode } from '../numbers.ts';
import { NO_RUN, statusJson } from '../output.ts';
import { isInside, reportHeld, sayClosed } from '../skip.ts';
import { say } from '../streams.ts';
import { clearWaiting, readAsk, readWaiting, sayMarks, sayTookOver } from '../taking.ts';
import { findTargetToTake, type Target } from '../target.ts';

/** What `--json` tells on the last line of stderr: stdout is the command's own. */
interface RunReport {
  readonly outcome: string;
  readonly run: number | null;
  readonly item: string | null;
  readonly durationMs: number;
  readonly heldBy?: object;
  readonly gates?: readonly GateAnswer[];
}

export async function main(args: Arguments): Promise<number> {
  return start(args, new Signals(), (report, exitCode) => {
    if (args.flag('json')) say(asciiJson({ ...NO_RUN, ...report, exitCode }));
    return exitCode;
  });
}

type Report = (report: RunReport, exitCode: number) => number;

async function start(args: Arguments, signals: Signals, report: Report): Promise<number> {
  const argv = args.operands;
  if (argv.length === 0)
    throw new RunlockError('usage', 'runlock run: expected a command: runlock run [OPTION…] [--] CMD [ARG…]');
  if (argv[0] === '') throw new RunlockError('usage', 'runlock run: expected a command, got an empty text');
  const skipCode = args.text('skip-code');
  const skipped = skipCode === undefined ? null : parseExitCode(skipCode, '--skip-code');
  const target = findTargetToTake(args);
  const { settings } = target;
  const limits = {
    timeoutMs: readDuration(args, 'timeout') ?? settings.timeoutMs,
    killAfterMs: readDuration(args, 'kill-after', { zero: true }) ?? settings.killAfterMs,
    watchdogMs: readDuration(args, 'watchdog') ?? settings.watchdogMs,
  };
  const item = args.text('item');
  if (item !== undefined && args.flag('from'))
    throw new RunlockError('usage', '--item and --from contradict each other: give one of them');
  const ask = await readAsk(args, target, {
    item: item ?? null,
    isHolder: true,
    isEnding: () => isEnding(signals),
  });
  const draft = {
    ...(await withSupervisor(draftRecord(args, item, readHold(args, settings.holdMs)))),
    command: redactArgv(argv),
    liveIndex: freeDescriptor(),
    killAfterMs: limits.killAfterMs,
  };
  const token = newToken();
  const waiting = await readWaiting(args, target, signals.ending.signal);
  const acquired = await target.lock.acquire(
    {
      record: draft,
      token,
      chosenToken: false,
      timeoutMs: limits.timeoutMs,
      ...(ask === undefined ? {} : { ask }),
      makeRoom: (look) => makeRoom(look, target),
    },
    waiting,
  );
  clearWaiting(args, waiting);

  switch (acquired.outcome) {
    case 'held':
      await reportHeld(args, target, draft, acquired.look);
      // Asked to end while it waited.
      if (signals.first !== null) return report(none('skipped'), signalCode(signals.first));
      return report({ ...none('skipped'), heldBy: statusJson(target, acquired.look) }, skipped ?? EXIT.held);
    case 'closed': {
      const { run, tookOver, closed } = acquired;
      sayTookOver(tookOver);
      sayClosed(args, target, closed);
      const code = closed.code === EXIT.failed ? EXIT.runFailed : (skipped ?? closed.code);
      return report({ ...none('skipped'), run, gates: closed.gates }, code);
    }
    case 'acquired':
      sayTookOver(acquired.tookOver);
      sayMarks(target, acquired.marks);
      return report(...(await superviseRun(target, acquired, { argv, token, limits, signals })));
  }
}

async function superviseRun(
  target: Target,
  acquired: Extract<Acquired, { outcome: 'acquired' }>,
  {
    argv,
    token,
    limits,
    signals,
  }: {
    argv: readonly string[];
    token: string;
    limits: { timeoutMs: number | null; killAfterMs: number; watchdogMs: number | null };
    signals: Signals;
  },
): Promise<[RunReport, number]> {
  const { record, run, tie, gates } = acquired;
  const { outcome, exitCode, durationMs } = await supervise({
    lock: target.lock,
    record,
    tie,
    token,
    argv,
    ...limits,
    signals,
    clock: systemClock,
    say: (line) => say(`runlock: ${line}`),
  });
  return [{ outcome, run, item: record.item, durationMs: Math.round(durationMs), gates }, exitCode];
}

/** Whether a signal asks to end. One that came during synchronous work reaches its handler two turns later. */
async function isEnding(signals: Signals): Promise<boolean> {
  for (let turn = 0; turn < 2; turn += 1) await systemClock.sleep(0);
  return signals.first !== null;
}

/** A run whose supervisor was killed can't end its own overdue command: the next run does. */
async function makeRoom(look: Look, target: Target): Promise<boolean> {
  const { store } = target.lock;
  // Its own command, started once more by itself, must not end itself.
  if (await isInside(look)) return false;
  return endOverdue(look, {
    where: store.where,
    livePathOf: (run) => store.livePath(run),
    clock: systemClock,
  });
}

function none(outcome: string): RunReport {
  return { outcome, run: null, item: null, durationMs: 0 };
}

function readDuration(args: Arguments, option: string, options: { zero?: boolean } = {}): number | null {
  const text = args.text(option);
  return text === undefined ? null : parseDuration(text, `--${option}`, options);
}
