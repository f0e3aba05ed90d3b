import fs from 'node:fs';
import { ioError, systemCode } from '../../errors.ts';
import type { LiveFile } from '../../rules.ts';

/** libuv's way to open a file so that Windows refuses it to everybody else until the last one has closed it. */
const UV_FS_O_EXLOCK = 0x1000_0000;

/*
 * On Windows a kernel lock is its process's own: a command that is handed the live file has no part in the lock on
 * it. What a handle refuses to others it refuses as long as anybody has inherited it, so the tree of a run is handed
 * this empty file beside the live one, which must stay readable.
 */

/**
 * Makes and opens the tree file of a run, before its live file has its name.
 *
 * @throws RunlockError `io`
 */
export function openTreeFile(file: string): number {
  try {
    // A number is used once: one that is there is left from a guard that was lost, and nobody has it open.
    fs.rmSync(file, { force: true });
    const { O_RDWR, O_CREAT, O_EXCL } = fs.constants;
    return fs.openSync(file, O_RDWR | O_CREAT | O_EXCL | UV_FS_O_EXLOCK, 0o600);
  } catch (cause) {
    throw ioError('create', file, cause);
  }
}

/**
 * Whether somebody has it open; `unknown` where it is missing. Opened so that two who look at the same moment are no
 * obstacle to each other.
 */
export function probeTree(file: string): LiveFile {
  try {
    fs.closeSync(fs.openSync(file, 'r'));
    return 'unlocked';
  } catch (error) {
    return systemCode(error) === 'EBUSY' ? 'locked' : 'unknown';
  }
}
