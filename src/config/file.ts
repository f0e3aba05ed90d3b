import { closeSync, constants, fstatSync, openSync, readFileSync, type Stats } from 'node:fs';
import { ioError, RunlockError, systemCode } from '../errors.ts';
import { parseJson } from '../text.ts';
import { shown } from './readers.ts';

const MAX_BYTES = 2 ** 20;

/** Only a regular file is read: a FIFO would hang every job that asks, a device may never end. */
export function readConfigFile(file: string): Uint8Array {
  let fd: number;
  try {
    fd = openSync(file, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
  } catch (error) {
    const code = systemCode(error);
    if (code === 'ENOENT' || code === 'ENOTDIR') {
      throw new RunlockError('config', `${shown(file)}: expected a configuration file, got none`, {
        path: file,
        cause: error,
      });
    }
    throw ioError('read', file, error);
  }
  try {
    requireReadable(fstatSync(fd), file);
    const bytes = readFileSync(fd);
    // A virtual file says 0 for its size.
    if (bytes.length > MAX_BYTES) throw tooLong(file);
    return bytes;
  } catch (error) {
    throw error instanceof RunlockError ? error : ioError('read', file, error);
  } finally {
    closeSync(fd);
  }
}

function requireReadable(stats: Stats, file: string): void {
  if (stats.isDirectory()) throw ioError('read', file, new Error('it is a directory'));
  if (!stats.isFile()) {
    throw new RunlockError('config', `${shown(file)}: expected a regular file, got a pipe or a device`, {
      path: file,
    });
  }
  if (stats.size > MAX_BYTES) throw tooLong(file);
}

function tooLong(file: string): RunlockError {
  return new RunlockError('config', `${shown(file)}: expected at most 1 MiB, got more`, { path: file });
}

export function parse(text: string, file: string): unknown {
  try {
    return parseJson(text, file);
  } catch (error) {
    if (!(error instanceof RunlockError)) throw error;
    throw new RunlockError('config', error.message, { path: file, cause: error });
  }
}
