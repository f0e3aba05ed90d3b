import fs from 'node:fs';
import { isSameFile, openPlain } from '../../disk/files.ts';
import { tryLock } from '../../disk/kernel-lock.ts';
import { systemCode } from '../../errors.ts';

/**
 * Keeps a file that is replaced whole from being replaced or removed by anyone else, even by one who has another
 * guard because a cleaner has removed ours: who changes the file holds a kernel lock on the very file that stands
 * there.
 *
 * @param act is given the open file, or null where there is none; it must put a new one in place by link(2) then
 * @returns null if somebody else is changing it or has changed it: look again
 */
export function withReplacedFile<T>(file: string, act: (fd: number | null) => T): { value: T } | null {
  const open = openForLock(file);
  if (open === null) return { value: act(null) };
  try {
    if (!tryLock(open.fd, open.mode, file) || !isSameFile(open.fd, file)) return null;
    return { value: act(open.fd) };
  } finally {
    fs.closeSync(open.fd);
  }
}

/** Another user's may be readable only; a shared lock keeps out those who can write, at least. */
function openForLock(file: string): { fd: number; mode: 'exclusive' | 'shared' } | null {
  try {
    const fd = openPlain(file, 'write');
    return fd === null ? null : { fd, mode: 'exclusive' };
  } catch (error) {
    if (!isPermission(error)) throw error;
    const fd = openPlain(file, 'read');
    return fd === null ? null : { fd, mode: 'shared' };
  }
}

function isPermission(error: unknown): boolean {
  const code = error instanceof Error ? systemCode(error.cause) : undefined;
  return code === 'EACCES' || code === 'EPERM';
}
