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

/** @throws RunlockError `noKernelLock` on a mount that other machines may write to */
export function refuseSharedMount(base: string): void {
  const kind = sharedKind(base);
  if (kind === null) return;
  throw new RunlockError(
    'noKernelLock',
    `the state directory ${base} is on a ${kind} mount, where a lock can't be seen from another machine: use a local disk, ` +
      'or say "singleMachine": true in runlock.json if this machine alone uses it',
    { path: base },
  );
}

/** The kind of a mount that other machines may write to, by statfs(2)'s type; null for a local one. */
export function sharedMount(type: number): string | null {
  return process.platform === 'linux' ? (SHARED_MOUNTS.get(type >>> 0) ?? null) : null;
}

function sharedKind(base: string): string | null {
  if (process.platform === 'win32') return isUnc(base) || isUnc(realDrive(base)) ? 'network' : null;
  return sharedMount(fs.statfsSync(base).type);
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
