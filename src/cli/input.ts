import fs from 'node:fs';
import { ioError, RunlockError, systemCode } from '../errors.ts';
import { printable } from '../printable.ts';

const CHUNK_BYTES = 65_536;
/** More than any list, result or entry; a device that never ends is not waited for. */
const MAX_BYTES = 2 ** 26;

/**
 * Reads all of what a user names: a file, a pipe, or `-` for stdin.
 *
 * @param what in words: `the result`
 * @throws RunlockError `input` with the system's reason, or where it is larger than 64 MiB
 */
export function readInput(source: string, what: string): Buffer {
  const fd = source === '-' ? 0 : open(source, what);
  try {
    return readToEnd(fd, source === '-' ? `${what} on stdin` : printable(source, 4096));
  } catch (cause) {
    throw cause instanceof RunlockError ? cause : refused(source, what, cause);
  } finally {
    if (fd !== 0) fs.closeSync(fd);
  }
}

function open(file: string, what: string): number {
  try {
    return fs.openSync(file, 'r');
  } catch (cause) {
    throw refused(file, what, cause);
  }
}

function refused(source: string, what: string, cause: unknown): RunlockError {
  if (source === '-')
    return new RunlockError('io', `could not read ${what} on stdin: ${systemCode(cause) ?? cause}`, {
      cause,
    });
  return new RunlockError('input', ioError(`read ${what}`, source, cause).message, { path: source, cause });
}

function readToEnd(fd: number, where: string): Buffer {
  const chunks: Buffer[] = [];
  let length = 0;
  for (;;) {
    const chunk = Buffer.allocUnsafe(CHUNK_BYTES);
    const count = readSome(fd, chunk);
    if (count === 0) return Buffer.concat(chunks, length);
    length += count;
    if (length > MAX_BYTES)
      throw new RunlockError('input', `${where}: expected at most ${MAX_BYTES / 2 ** 20} MiB, got more`);
    chunks.push(chunk.subarray(0, count));
  }
}

/** 0 at the end. A pipe that someone made non-blocking is waited for. */
function readSome(fd: number, chunk: Buffer): number {
  for (;;) {
    try {
      return fs.readSync(fd, chunk, 0, chunk.length, null);
    } catch (error) {
      const code = systemCode(error);
      // Windows' end of a pipe.
      if (code === 'EOF') return 0;
      if (code !== 'EAGAIN') throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5);
    }
  }
}
