import { constants } from 'node:fs';
import { type FileHandle, lstat, open, readdir, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { DatedPath } from '../../dated-path.ts';
import { ioError, RunlockError, systemCode } from '../../errors.ts';
import { nearest } from '../../guess.ts';
import { printable } from '../../printable.ts';

/* Files that others write and a quota reads. What is missing counts as nothing; what can't be read is an error. */

/** A file of evidence, opened; `identity` is the same whatever name or link it was opened by. */
export interface EvidenceFile {
  readonly path: string;
  readonly identity: string;
  readonly size: number;
  /** When it was last changed, epoch ms. */
  readonly changed: number;
  readonly handle: FileHandle;
}

/**
 * Opens a regular file, links followed, without ever waiting for the other end of a FIFO.
 *
 * @returns null if there is none
 * @throws RunlockError `corrupt` for anything but a file, and for a link to nothing; `io` if the system refuses
 */
export async function openEvidence(path: string): Promise<EvidenceFile | null> {
  let handle: FileHandle;
  try {
    handle = await open(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
  } catch (error) {
    if (systemCode(error) === 'ENXIO') throw badEvidence(path, 'expected a regular file, got a socket');
    if (systemCode(error) !== 'ENOENT') throw unreadable(path, error);
    if (await exists(path)) throw badEvidence(path, 'expected a file, got a link to nothing');
    return null;
  }
  try {
    const stats = await handle.stat({ bigint: true });
    if (stats.isFile()) {
      const identity = `${stats.dev}:${stats.ino}`;
      return { path, identity, size: Number(stats.size), changed: Number(stats.mtimeMs), handle };
    }
    const got = stats.isDirectory() ? 'a directory' : 'a pipe or a device';
    throw badEvidence(path, `expected a regular file, got ${got}`);
  } catch (error) {
    await handle.close();
    throw error instanceof RunlockError ? error : unreadable(path, error);
  }
}

async function exists(path: string): Promise<boolean> {
  try {
    await lstat(path);
    return true;
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return false;
    throw unreadable(path, error);
  }
}

/**
 * The folder before the first date field must be there: a misspelt one would count 0 for ever.
 *
 * @throws RunlockError `corrupt` with a guess at the folder that was meant
 */
export async function requireFolder({ folder, text }: DatedPath): Promise<void> {
  try {
    if ((await stat(folder)).isDirectory()) return;
  } catch (error) {
    const code = systemCode(error);
    if (code !== 'ENOENT' && code !== 'ENOTDIR') throw unreadable(folder, error);
  }
  const guess = await guessFolder(folder);
  const hint = guess === null ? '' : `, did you mean ${printable(guess, 4096)}?`;
  throw badEvidence(folder, `expected a folder (for "${printable(text)}"), got none${hint}`);
}

/** The folder whose name is nearest to the first one on the way that is not there. */
async function guessFolder(folder: string): Promise<string | null> {
  const parent = dirname(folder);
  try {
    const names = await readdir(parent, { withFileTypes: true });
    const folders = names.filter((entry) => !entry.isFile()).map((entry) => entry.name);
    const guess = nearest(basename(folder), folders);
    return guess === null || guess === basename(folder) ? null : join(parent, guess);
  } catch {
    return parent === folder ? null : guessFolder(parent);
  }
}

export function badEvidence(path: string, what: string, cause?: unknown): RunlockError {
  return new RunlockError('corrupt', `${printable(path, 4096)}: ${what}`, { path, cause });
}

export function unreadable(path: string, error: unknown): RunlockError {
  const { message, cause } = ioError('read', printable(path, 4096), error);
  return new RunlockError('io', message, { path, cause });
}
