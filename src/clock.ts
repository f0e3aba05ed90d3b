import { RunlockError } from './errors.ts';

/** Time as an argument, so that rules and waits can be tested without waiting. */
export interface Clock {
  /** Wall time in ms since the epoch. It may step. */
  now(): number;
  /** Time in ms from an arbitrary start, which no clock adjustment moves. On Linux it stands still in suspend. */
  monotonic(): number;
  /**
   * Resolves no earlier than after `ms`; at once (a turn later) if that is 0 or less.
   * Rejects with the signal's reason as soon as it aborts.
   */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  sleep: (ms, signal) =>
    new Promise((resolve, reject) => {
      if (signal?.aborted) {
        reject(signal.reason);
        return;
      }
      const abort = () => {
        timer.cancel();
        reject(signal?.reason);
      };
      const timer = after(ms, () => {
        signal?.removeEventListener('abort', abort);
        resolve();
      });
      signal?.addEventListener('abort', abort, { once: true });
    }),
};

/** The longest delay that setTimeout takes; it fires at once for anything longer. */
const LONGEST_TIMEOUT_MS = 2 ** 31 - 1;

/**
 * A timer for any length of time, Infinity included: calls back once, never early. It keeps the process
 * alive, as setTimeout does.
 * @throws RangeError if `ms` is not a number, which setTimeout would take for "now"
 */
export function after(ms: number, callback: () => void): { cancel(): void } {
  if (Number.isNaN(ms)) throw new RangeError('after: expected a number of milliseconds, got NaN');
  const due = performance.now() + ms;
  let timer: NodeJS.Timeout;
  const arm = () => {
    const left = due - performance.now();
    timer = setTimeout(check, Math.min(Math.max(Math.ceil(left), 0), LONGEST_TIMEOUT_MS));
  };
  const check = () => {
    // setTimeout may be up to a millisecond early by this clock.
    if (performance.now() < due) arm();
    else callback();
  };
  arm();
  return { cancel: () => clearTimeout(timer) };
}

const UNIT_MS = new Map([
  ['ms', 1],
  ['s', 1000],
  ['m', 60_000],
  ['h', 3_600_000],
  ['d', 86_400_000],
]);

/** A hundred years: added to any present time it is still a valid date. */
const LONGEST_DURATION_MS = 36_500 * 86_400_000;

/**
 * A duration in whole ms from `90s`, `45m`, `2h`, `1d`, `500ms` or `1.5h`.
 * @param what what it is the value of, as the user knows it: `--hold`
 * @param options `zero`: 0 is allowed. `or`: a word that the caller accepts instead, for the message.
 * @throws RunlockError 'usage'
 */
export function parseDuration(
  text: string,
  what: string,
  options: { zero?: boolean; or?: string } = {},
): number {
  const [, digits, unit] = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(text) ?? [];
  const ms = Math.round(Number(digits) * (UNIT_MS.get(unit ?? '') ?? Number.NaN));
  if (ms <= LONGEST_DURATION_MS && (ms > 0 || (ms === 0 && options.zero))) return ms;

  let expected = 'a duration such as 90s, 45m, 2h or 1d';
  if (ms === 0) expected = 'a duration longer than 0';
  else if (ms > LONGEST_DURATION_MS) expected = 'a duration of at most 36500d';
  if (options.or !== undefined) expected += `, or "${options.or}"`;
  throw new RunlockError('usage', `${what}: expected ${expected}, got "${plain(text)}"`);
}

/** A duration is plain ASCII: whatever else stands there is shown by its number, and not at length. */
function plain(text: string): string {
  const shown = text.slice(0, 40).replace(/[^\x20-\x7e]/gu, (char) => {
    return `\\u{${(char.codePointAt(0) ?? 0).toString(16)}}`;
  });
  return text.length > 40 ? `${shown}…` : shown;
}

/**
 * A duration for people, rounded down, in at most two units: `0.3 s`, `14 s`, `90 s`, `2 min 30 s`, `52 min`,
 * `3 h 5 min`, `2 d 4 h`. Less than nothing is `0 s`.
 */
export function formatDuration(ms: number): string {
  const tenths = Math.max(0, Math.floor(ms / 100));
  if (tenths < 10) return tenths === 0 ? '0 s' : `0.${tenths} s`;
  const seconds = Math.floor(tenths / 10);
  if (seconds < 120) return seconds === 60 ? '1 min' : `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  // What people choose as bounds (150s) is shown whole; beyond ten minutes nobody asks for the seconds.
  if (minutes < 10) return twoUnits(minutes, 'min', seconds % 60, 's');
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 24) return twoUnits(hours, 'h', minutes % 60, 'min');
  return twoUnits(Math.floor(hours / 24), 'd', hours % 24, 'h');
}

function twoUnits(large: number, largeUnit: string, small: number, smallUnit: string): string {
  return small === 0 ? `${large} ${largeUnit}` : `${large} ${largeUnit} ${small} ${smallUnit}`;
}

/** Whether a number of seconds may be meant as a time since 1970: one from 1990 to 2100. Others are ids, or dates. */
export function isEpochTime(seconds: number): boolean {
  return seconds >= 631_152_000 && seconds < 4_102_444_800;
}
