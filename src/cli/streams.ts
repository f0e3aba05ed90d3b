import fs from 'node:fs';
import { RunlockError, systemCode } from '../errors.ts';
import { printable } from '../printable.ts';

/** Writes an answer to stdout. Synchronous, and without Node's streams: they cost 3 ms to set up. */
export function answer(text: string): void {
  try {
    writeWhole(1, text);
  } catch (cause) {
    throw new RunlockError('io', `could not write the answer to stdout: ${systemCode(cause) ?? cause}`, {
      cause,
    });
  }
}

/**
 * Says a line on stderr, made harmless for a terminal whatever is in it. Where nobody can hear it, nothing can be
 * done about it.
 */
export function say(line: string): void {
  try {
    writeWhole(2, `${printable(line, 20_000)}\n`);
  } catch {
    // A closed or full stderr must not change what the command does.
  }
}

function writeWhole(fd: number, text: string): void {
  const bytes = Buffer.from(text);
  for (let done = 0; done < bytes.length; ) {
    try {
      done += fs.writeSync(fd, bytes, done);
    } catch (error) {
      const code = systemCode(error);
      // The reader has seen enough, as with `| head`.
      if (code === 'EPIPE') return;
      if (code !== 'EAGAIN') throw error;
      // A pipe that someone made non-blocking is full: wait for its reader.
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5);
    }
  }
}

/** Whether a descriptor is a terminal; asks the cheap question first. */
export function isTerminal(fd: number): boolean {
  try {
    if (process.platform !== 'win32' && !fs.fstatSync(fd).isCharacterDevice()) return false;
  } catch {
    return false;
  }
  const { isatty } = process.getBuiltinModule('node:tty');
  return isatty(fd);
}
