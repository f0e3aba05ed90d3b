import fs from 'node:fs';
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
  let prebuilds: string;
  try {
    prebuilds = path.join(path.dirname(require.resolve('fs-native-extensions/package.json')), 'prebuilds');
  } catch (cause) {
    throw unsupported('the package fs-native-extensions is not installed: install runlock anew', cause);
  }
  const file = path.join(prebuilds, `${process.platform}-${process.arch}`, 'fs-native-extensions.node');
  try {
    addon = require(file) as Addon;
  } catch (cause) {
    throw unsupported(fs.existsSync(file) ? notLoaded(file, cause) : noneFor(prebuilds, file), cause);
  }
  return addon;
}

/** The file is there: damaged, of another system, or on a mount from which nothing may be run. */
function notLoaded(file: string, cause: unknown): string {
  const [first = ''] = (cause instanceof Error ? cause.message : String(cause)).split('\n');
  const reason = first.replaceAll(`${file}: `, '');
  const advice = /failed to map segment|Operation not permitted/.test(reason)
    ? 'is it on a noexec mount? Install runlock on one that lets programs run'
    : 'install runlock anew on this machine';
  return `the kernel lock addon ${file} can not be loaded (${reason}): ${advice}`;
}

/** An addon that was never built for this processor can't be installed either. */
function noneFor(prebuilds: string, file: string): string {
  const { platform, arch } = process;
  const others = processors(prebuilds, `${platform}-`);
  const advice =
    others.length === 0
      ? 'install runlock anew'
      : `it is there for ${others.join(' and ')}, so runlock needs a Node for one of these`;
  return `there is no kernel lock addon for ${platform} on ${arch} (${file}): ${advice}`;
}

/** The processors of a platform for which the package has an addon. */
function processors(prebuilds: string, prefix: string): string[] {
  try {
    const names = fs.readdirSync(prebuilds).filter((name) => name.startsWith(prefix));
    return names.map((name) => name.slice(prefix.length)).sort();
  } catch {
    return [];
  }
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
