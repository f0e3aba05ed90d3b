import fs from 'node:fs';
import path from 'node:path';
import { isOwnDirectory, makeDirectory, ownershipOf, syncDirectory } from '../../disk/files.ts';
import { ioError, RunlockError, systemCode } from '../../errors.ts';
import { type LockPaths, lockDirectory } from './paths.ts';

/**
 * Mounts on which a kernel lock, though granted, does not keep out another machine, by statfs(2)'s type.
 * Numbers from linux/magic.h and the file systems' own sources.
 */
const SHARED_MOUNTS = new Map<number, string>([
  [0x6969, 'NFS'],
  [0x517b, 'SMB'],
  [0xff534d42, 'CIFS'],
  [0xfe534d42, 'SMB2'],
  [0x65735546, 'FUSE'],
  [0x01021997, '9p'],
  [0x5346414f, 'AFS'],
  [0x6b414653, 'AFS'],
  [0x00c36400, 'Ceph'],
  [0x47504653, 'GPFS'],
  [0x0bd00bd0, 'Lustre'],
  [0x7461636f, 'OCFS2'],
  [0x01161970, 'GFS2'],
  [0x786f4256, 'vboxsf'],
  [0x73757245, 'Coda'],
  [0x564c, 'NCP'],
]);

/**
 * Looks whether the state directory is there. For who only reads: a directory that nobody has made yet holds no
 * lock, but a missing parent is more likely a wrong path.
 *
 * @throws RunlockError `io`
 */
export function isThere(base: string): boolean {
  try {
    if (fs.statSync(base).isDirectory()) return true;
  } catch (error) {
    if (systemCode(error) !== 'ENOENT') throw ioError('open the state directory', base, error);
    try {
      fs.statSync(path.dirname(base));
    } catch (cause) {
      throw ioError('open the parent of the state directory', base, cause);
    }
    return false;
  }
  throw new RunlockError('corrupt', `the state directory ${base} is not a directory`, { path: base });
}

/**
 * Makes what a taker needs: the state directory (not its parents: a wrong path would go unnoticed), the named
 * lock's directory, and the folders in it.
 *
 * @returns whether the state directory was made
 */
export function makeLockDirectory(base: string, folder: string | null, paths: LockPaths): boolean {
  const made = !isThere(base) && makeBase(base);
  const ownership = ownershipOf(base);
  for (const dir of foldersOf(base, folder, paths)) {
    if (isOwnDirectory(dir)) continue;
    makeDirectory(dir, ownership);
    keepName(dir);
  }
  if (made) keepName(base);
  return made;
}

/** What is synced in a directory is lost all the same with the directory's own name. */
function keepName(dir: string): void {
  try {
    syncDirectory(path.dirname(dir));
  } catch (error) {
    // One that may be written to but not read can't be opened for that.
    if (systemCode(error) !== 'EACCES') throw ioError('make the directory', dir, error);
  }
}

/**
 * Through a link in place of a folder, lines would be appended, times set and old files removed in a directory of
 * someone else's. The state directory itself may be a link: that is the user's choice.
 *
 * @throws RunlockError `corrupt` if a folder is there and is no directory
 */
export function refuseStrangeFolders(base: string, folder: string | null, paths: LockPaths): void {
  for (const dir of foldersOf(base, folder, paths)) isOwnDirectory(dir);
}

/** What a lock's files are in, each after the one that it is in. */
function foldersOf(base: string, folder: string | null, paths: LockPaths): string[] {
  const named = folder === null ? [] : [path.dirname(lockDirectory(base, folder)), paths.dir];
  return [...named, paths.liveDir, paths.historyDir, paths.recordsDir];
}

function makeBase(base: string): boolean {
  try {
    fs.mkdirSync(base);
    // Root's cron must not shut out the user whose directory this is in.
    const { owner } = ownershipOf(path.dirname(base));
    if (owner !== null) fs.chownSync(base, owner.uid, owner.gid);
    return true;
  } catch (error) {
    if (systemCode(error) === 'EEXIST') return false;
    throw ioError('make the state directory', base, error);
  }
}

/**
 * Asked before anything is made there, and by who only looks too: what another machine has done may not be seen
 * here yet, and a kernel lock of its own never is.
 *
 * @param dir of a lock; need not be there yet
 * @throws RunlockError `noKernelLock` on a mount that other machines may write to
 */
export function refuseSharedMount(dir: string): void {
  const kind = sharedKind(dir);
  if (kind === null) return;
  throw new RunlockError(
    'noKernelLock',
    `the state directory ${dir} is on a ${kind} mount, where a lock can't be seen from another machine: use a local disk, ` +
      'or say "singleMachine": true in runlock.json if this machine alone uses it',
    { path: dir },
  );
}

/** The kind of a mount that other machines may write to, by statfs(2)'s type; null for a local one. */
export function sharedMount(type: number): string | null {
  return process.platform === 'linux' ? (SHARED_MOUNTS.get(type >>> 0) ?? null) : null;
}

function sharedKind(dir: string): string | null {
  if (process.platform === 'win32') return isUnc(dir) || isUnc(realDrive(dir)) ? 'network' : null;
  try {
    return sharedMount(fs.statfsSync(dir).type);
  } catch (error) {
    // What is missing is asked of the directory that it will be in; what is in the way is told by who needs it.
    const inTheWay = ['ENOENT', 'ENOTDIR', 'ELOOP'].includes(systemCode(error) ?? '');
    if (!inTheWay || dir === path.dirname(dir)) throw error;
    return sharedKind(path.dirname(dir));
  }
}

/** `\\server\share`, also as `\\?\UNC\server`, but not `\\?\C:` or a device. */
function isUnc(dir: string): boolean {
  return /^\\\\(?:\?\\UNC\\|[^?.\\])/i.test(dir);
}

/** A drive letter may stand for a share. */
function realDrive(dir: string): string {
  try {
    return fs.realpathSync.native(dir);
  } catch {
    // Some drives that are no share either (RAM disks) have no such name.
    return dir;
  }
}
