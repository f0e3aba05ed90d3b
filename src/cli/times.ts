import { RunlockError } from '../errors.ts';
import { printable } from '../printable.ts';

const TIME =
  /^(\d{4})-(\d{2})-(\d{2})[T ](\d{2}):(\d{2})(?::(\d{2})(?:\.(\d{1,3}))?)?(Z|[+-]\d{2}:?\d{2})?$/i;

/**
 * A moment as epoch ms: `2026-11-30T09:00`, with seconds or without. Without an offset it is local time.
 *
 * @throws RunlockError `usage`, for a day that does not exist too
 */
export function parseTime(text: string, what: string): number {
  const [, year, month, day, hour, minute, second = '0', ms = '', offset] = TIME.exec(text) ?? [];
  const parts = [year, month, day, hour, minute, second, ms.padEnd(3, '0')].map(Number);
  const [y = Number.NaN, mo = 0, d = 0, h = 0, mi = 0, s = 0, fraction = 0] = parts;
  const utc = Date.UTC(y, mo - 1, d, h, mi, s, fraction);
  const offsetMs = offset === undefined ? 0 : parseOffset(offset);
  // Date.UTC rolls over what does not exist.
  const exists = [new Date(utc)].every(
    (date) =>
      date.getUTCMonth() === mo - 1 &&
      date.getUTCDate() === d &&
      date.getUTCHours() === h &&
      mi < 60 &&
      s < 60,
  );
  if (!exists || Number.isNaN(utc - offsetMs)) {
    throw new RunlockError(
      'usage',
      `${what}: expected a time such as 2026-11-30T09:00 (local), or with Z or +08:00 behind it, got "${printable(text, 60)}"`,
    );
  }
  return offset === undefined ? new Date(y, mo - 1, d, h, mi, s, fraction).getTime() : utc - offsetMs;
}

/** `+08:00` in ms; NaN where no place has it. */
function parseOffset(text: string): number {
  if (text.toUpperCase() === 'Z') return 0;
  const [hours, minutes] = [Number(text.slice(1, 3)), Number(text.slice(-2))];
  if (hours > 14 || minutes > 59) return Number.NaN;
  return (text.startsWith('-') ? -1 : 1) * (hours * 60 + minutes) * 60_000;
}
