import { createRequire } from 'node:module';
import path from 'node:path';
import { RunlockError, systemCode } from '../errors.ts';

/** What fs-native-extensions' compiled part offers of what is used here. */
interface Addon {
  /** Throws EAGAIN if another open file holds the lock. */
  tryLock(fd: number, offset: number, length: number, exclusive: boolean): void;
  unlock(fd: number, offset: number, length: number): void;
}

// One byte far behind the content: on Windows a locked range can't be read by others.
// macOS locks whole files only.
const [OFFSET, LENGTH] = process.platform === 'darwin' ? [0, 0] : [2 ** 30, 1];

let addon: Addon | undefined;

/**
 * Loads the addon by its path: the package's own loader looks through a dozen places, which costs more than all
 * the rest of a command, and takes a Debian-built file on Alpine for missing although it works there.
 */
function load(): Addon {
  if (addon !== undefined) return addon;
  // Bun is ended by loading this addon: there is no error to catch.
  if (process.versions.bun !== undefined)
    throw unsupported('Bun can not load the kernel lock addon: use Node');
  const require = createRequire(import.meta.filename);
  let file: string;
  try {
    const root = path.dirname(require.resolve('fs-native-extensions/package.json'));
    file = path.join(root, 'prebuilds', `${process.platform}-${process.arch}`, 'fs-native-extensions.node');
  } catch (cause) {
    throw unsupported('the package fs-native-extensions is not installed: install runlock anew', cause);
  }
  try {
    addon = require(file) as Addon;
  } catch (cause) {
    throw unsupported(
      `there is no kernel lock addon for ${process.platform} on ${process.arch} (${file})`,
      cause,
    );
  }
  return addon;
}

function unsupported(message: string, cause?: unknown): RunlockError {
  return new RunlockError('noKernelLock', `${message}. Without kernel locks runlock takes no lock`, {
    cause,
  });
}

/**
 * Tries to lock an open file. The lock belongs to the open file description: it goes with its last descriptor,
 * also when the process is killed.
 *
 * @returns false if it is locked by another open of the file
 * @throws RunlockError `noKernelLock` where the addon or the file system has no such locks
 */
export function tryLock(fd: number, mode: 'exclusive' | 'shared', file: string): boolean {
  try {
    load().tryLock(fd, OFFSET, LENGTH, mode === 'exclusive');
    return true;
  } catch (error) {
    if (error instanceof RunlockError) throw error;
    const code = systemCode(error) ?? String(error);
    if (code === 'EAGAIN' || code === 'EACCES' || code === 'EBUSY') return false;
    throw new RunlockError(
      'noKernelLock',
      `the file system of ${file} gives no kernel locks (${code}): use a local disk`,
      { path: file, cause: error },
    );
  }
}

/** Frees the lock for good, even while children have inherited the descriptor. */
export function unlock(fd: number): void {
  load().unlock(fd, OFFSET, LENGTH);
}
