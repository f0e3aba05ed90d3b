import fs from 'node:fs';
import { formatDuration, parseDuration, systemClock } from '../clock.ts';
import type { TookOver } from '../endings.ts';
import type { Gate } from '../gates/parse.ts';
import type { Ask, Waiting } from '../lock.ts';
import { counts, type MarkerItem } from '../marker.ts';
import { printable } from '../printable.ts';
import { localTime } from '../words.ts';
import type { Arguments } from './arguments.ts';
import { heldLine } from './output.ts';
import { isInside } from './skip.ts';
import { isTerminal, say } from './streams.ts';
import type { Target } from './target.ts';

/** What `--wait` asks for; on a terminal one line shows what is waited for. */
export async function readWaiting(
  args: Arguments,
  target: Target,
  signal: AbortSignal,
): Promise<Waiting | null> {
  const text = args.text('wait');
  if (text === undefined) return null;
  const forMs = parseDuration(text, '--wait', { zero: true });
  const show = isTerminal(2) && !args.flag('quiet');
  const started = systemClock.monotonic();
  return {
    forMs,
    signal,
    inVain: isInside,
    onWait(look) {
      if (!show) return;
      const left = formatDuration(Math.max(0, forMs - (systemClock.monotonic() - started)));
      showLine(`waiting up to ${left}: ${heldLine(target, look)}`);
    },
  };
}

/** Rewrites the last line of the terminal; one that does not know its width says 0. */
function showLine(text: string): void {
  try {
    fs.writeSync(2, `\r\x1b[K${printable(text, (process.stderr.columns || 80) - 1)}`);
  } catch {
    // A line nobody can see.
  }
}

/** Ends the line that shows what is waited for. */
export function clearWaiting(args: Arguments, waiting: Waiting | null): void {
  if (waiting !== null && !args.flag('quiet') && isTerminal(2)) showLine('');
}

/** Who asks whether it may begin. */
export interface Asker {
  readonly item: string | null;
  /** It holds the lock itself, and not for the script that called. */
  readonly isHolder: boolean;
  /** Whether it has been told to end meanwhile: then nothing is removed for it. */
  readonly isEnding: () => Promise<boolean>;
}

/** The gates that the configuration asks for, unless the command line leaves them out. */
export function configuredGates(args: Arguments, target: Target): readonly Gate[] {
  return args.flag('no-default-gates') ? [] : target.settings.gates;
}

/**
 * What is asked under the lock before a run begins, gates and `--from`. What that takes is loaded only then: most
 * runs ask nothing, and take the lock in one step.
 */
export async function readAsk(args: Arguments, target: Target, who: Asker): Promise<Ask | undefined> {
  if (configuredGates(args, target).length === 0 && !args.flag('gate') && !args.flag('from'))
    return undefined;
  const { loadGates } = await import('./parts/gates.ts');
  return (await loadGates()).makeAsk(args, target, who);
}

/** An item that an earlier run left in an unknown state may be half done, or done. */
export function sayMarks(target: Target, marks: readonly MarkerItem[]): void {
  const now = systemClock.now();
  const mark = marks.filter((entry) => counts(entry, target.settings, null, now)).at(-1);
  if (mark === undefined) return;
  const since = localTime(Date.parse(mark.since), now);
  say(
    `runlock: ${printable(mark.item, 80)} is begun again, though nobody has settled what run ${mark.run} left unknown since ${since}`,
  );
}

export function sayTookOver(tookOver: TookOver | null): void {
  if (tookOver === null) return;
  say(
    `runlock: took over from ${tookOver.run === null ? 'a lock without a number' : `run ${tookOver.run}`}: ${printable(tookOver.reason, 400)}`,
  );
}
