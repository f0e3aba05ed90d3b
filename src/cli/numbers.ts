import { RunlockError } from '../errors.ts';
import { printable } from '../printable.ts';

/** @throws RunlockError `usage` for anything but a whole number from 1 */
export function parseCount(text: string, what: string): number {
  const count = /^\d{1,9}$/.test(text) ? Number(text) : 0;
  if (count > 0) return count;
  throw new RunlockError('usage', `${what}: expected a whole number from 1, got "${printable(text, 40)}"`);
}

/** @throws RunlockError `usage` for anything but an exit code */
export function parseExitCode(text: string, what: string): number {
  const code = /^\d{1,3}$/.test(text) ? Number(text) : 256;
  if (code < 256) return code;
  throw new RunlockError(
    'usage',
    `${what}: expected an exit code from 0 to 255, got "${printable(text, 40)}"`,
  );
}
