import fs from 'node:fs';
import path from 'node:path';
import { linkNew, openPlain } from '../disk/files.ts';
import { tryLock } from '../disk/kernel-lock.ts';
import { RunlockError, systemCode } from '../errors.ts';
import { sharedMount } from '../stores/file/directory.ts';
import type { Where } from './finding.ts';
import { blockedAt } from './programs.ts';
import { type Root, reasonOf } from './root.ts';
import { mayAccess, type User } from './users.ts';
import { SWEPT, type Visit } from './visit.ts';

/** A state directory, and who uses it. */
export interface StateDirectory {
  /** As that system calls it. */
  readonly base: string;
  readonly singleMachine: boolean;
  readonly users: readonly { readonly user: User; readonly where: Where }[];
}

/** What a run needs for its lock, marker, record and history line, with some to spare. */
const FEW_BYTES = 1024 * 1024;
const SCARCE_BYTES = 100 * 1024 * 1024;
const FEW_INODES = 100;
/** A file system of another machine has a clock of its own; one tick or a slow answer is no difference. */
const SKEW_MS = 2000;

/** Mounts whose content ends with the machine or the container, by statfs(2)'s type. */
const PASSING_MOUNTS = new Map<number, string>([
  [0x01021994, 'tmpfs: it is empty after a restart'],
  [0x858458f6, 'ramfs: it is empty after a restart'],
  [0x794c7630, "overlayfs: in a container it ends with the container, unless it is the host's own"],
]);

/** Looks at one state directory. Makes a file there, and removes it at once. */
export function examineDirectory(state: StateDirectory, visit: Visit): void {
  const { base } = state;
  const { root, findings } = visit;
  const where: Where = { file: base, line: null };
  const outer = root.outer(base);
  if (SWEPT.test(root.real(base))) {
    findings.add(
      'note',
      'sweptPlace',
      where,
      'is where cleaners remove old files and a restart may remove all: run numbers begin anew, history and marks are lost',
      'use a directory of the application, or one in /var/lib',
    );
  }
  const stat = statOf(outer);
  if ('refused' in stat) {
    findings.add(
      'unseen',
      'unreadable',
      where,
      `could not be looked at: ${stat.refused}`,
      'run doctor as its user, or as root',
    );
    return;
  }
  if (stat.stat === null) {
    examineMissing(state, visit);
    return;
  }
  if (!stat.stat.isDirectory()) {
    findings.add('problem', 'noDirectory', where, 'is no directory', 'name another one');
    return;
  }
  examineWriters(base, stat.stat, visit);
  examineMount(state, outer, visit);
  const shut = examineUsers(state, stat.stat, visit);
  // Whoever may not write there himself does not make root do so.
  if (shut === 0 || shut < state.users.length) examineDisk(base, outer, visit);
}

function statOf(file: string): { readonly stat: fs.Stats | null } | { readonly refused: string } {
  try {
    return { stat: fs.statSync(file, { throwIfNoEntry: false }) ?? null };
  } catch (error) {
    return { refused: reasonOf(error) };
  }
}

function examineMissing({ base, users }: StateDirectory, visit: Visit): void {
  const { root, findings } = visit;
  const where: Where = { file: base, line: null };
  const parent = path.dirname(base);
  const stat = root.stat(parent);
  if (stat === null || !stat.isDirectory()) {
    findings.add(
      'problem',
      'noDirectory',
      where,
      `is not there, and neither is ${parent}, which runlock does not make`,
      `mkdir -p ${parent}, or name another directory`,
    );
    return;
  }
  const shut = users.find(
    ({ user }) => !mayAccess(user, stat, 'change') || blockedAt(root, user, base) !== null,
  );
  if (shut === undefined)
    findings.add('note', 'noDirectory', where, 'is not there yet: the first run makes it');
  else
    findings.add(
      'problem',
      'notWritable',
      shut.where,
      `user ${shut.user.name} can't make ${base}`,
      'make it for that user',
    );
}

/** Who may remove a file of the lock, or the directory itself, may let a second run in. */
function examineWriters(base: string, stat: fs.Stats, { root, findings }: Visit): void {
  const where: Where = { file: base, line: null };
  if ((stat.mode & 0o002) !== 0) {
    const sticky = (stat.mode & 0o1000) !== 0;
    findings.add(
      sticky ? 'note' : 'problem',
      'anybodyWrites',
      where,
      `anybody may write here (mode ${(stat.mode & 0o7777).toString(8)})${sticky ? ': others can put files in its way' : ': anybody can remove the lock'}`,
      'chmod o-w',
    );
  }
  for (let dir = path.dirname(root.real(base)); ; dir = path.dirname(dir)) {
    const above = root.stat(dir);
    if (above !== null && (above.mode & 0o1002) === 0o002) {
      findings.add(
        'problem',
        'anybodyWrites',
        { file: dir, line: null },
        `anybody may write here (mode ${(above.mode & 0o7777).toString(8)}), and put another directory in the place of ${base}`,
        'chmod o-w, or +t',
      );
    }
    if (dir === path.dirname(dir)) return;
  }
}

/** Returns how many of its users it is shut to. */
function examineUsers({ base, users }: StateDirectory, stat: fs.Stats, { root, findings }: Visit): number {
  let shut = 0;
  const guard = root.stat(path.join(base, 'lock.guard'));
  for (const { user, where } of users) {
    const why = whyShut(user, { base, stat, guard }, root);
    if (why === null) continue;
    shut += 1;
    findings.add('problem', 'notWritable', where, `user ${user.name} may not ${why.what}`, why.advice);
  }
  return shut;
}

function whyShut(
  user: User,
  { base, stat, guard }: { base: string; stat: fs.Stats; guard: fs.Stats | null },
  root: Root,
): { readonly what: string; readonly advice: string } | null {
  const owned = (one: fs.Stats) => `(owner ${one.uid}, mode ${(one.mode & 0o7777).toString(8)})`;
  const blocked = blockedAt(root, user, path.join(base, 'lock.json'));
  if (blocked !== null && blocked !== base)
    return {
      what: `enter ${blocked}, so not ${base} either`,
      advice: 'let that user in, or name another directory',
    };
  if (!mayAccess(user, stat, 'change'))
    return { what: `write to ${base} ${owned(stat)}`, advice: `chown ${user.name}, or a group in common` };
  if (guard !== null && !mayAccess(user, guard, 'write'))
    return {
      what: `write to ${path.join(base, 'lock.guard')} ${owned(guard)}`,
      advice: 'give the files in it to its owner: chown -R',
    };
  return null;
}

function examineMount({ base, singleMachine }: StateDirectory, outer: string, { findings }: Visit): void {
  const where: Where = { file: base, line: null };
  const mount = fs.statfsSync(outer);
  const shared = sharedMount(mount.type);
  if (shared !== null && !singleMachine)
    findings.add(
      'problem',
      'sharedMount',
      where,
      `is on a ${shared} mount, where a lock can't be seen from another machine: runlock refuses it`,
      'use a local disk, or say "singleMachine": true in runlock.json if this machine alone uses it',
    );
  else if (shared !== null)
    findings.add(
      'note',
      'sharedMount',
      where,
      `is on a ${shared} mount, and the configuration says that this machine alone uses it`,
    );
  const passing = process.platform === 'linux' ? PASSING_MOUNTS.get(mount.type >>> 0) : undefined;
  if (passing !== undefined)
    findings.add(
      'note',
      'passingMount',
      where,
      `is on ${passing}`,
      'run numbers and history are lost then: name a directory on a disk if they matter',
    );

  const free = mount.bavail * mount.bsize;
  if (mount.blocks > 0 && free < FEW_BYTES) {
    const reserve = mount.bfree > mount.bavail ? ': what is left is kept for root' : '';
    findings.add(
      'problem',
      'noRoom',
      where,
      `has ${sizeWords(free)} of room${reserve}`,
      'make room: a run could not write its record',
    );
  } else if (mount.blocks > 0 && free < SCARCE_BYTES)
    findings.add('note', 'noRoom', where, `has only ${sizeWords(free)} of room`, 'make room');
  // Some file systems have no fixed number of them, and say 0.
  if (mount.files > 0 && mount.ffree < FEW_INODES)
    findings.add(
      'problem',
      'noRoom',
      where,
      `has room for ${mount.ffree} more files (inodes)`,
      'remove small files there',
    );
}

function sizeWords(bytes: number): string {
  return bytes >= 1024 * 1024 ? `${Math.floor(bytes / 1024 / 1024)} MB` : `${Math.floor(bytes / 1024)} kB`;
}

/** Kernel locks and the clock, on a real file of that file system. */
function examineDisk(base: string, outer: string, visit: Visit): void {
  const { findings } = visit;
  const where: Where = { file: base, line: null };
  const file = path.join(outer, `.runlock-doctor-${process.pid}-${Math.random().toString(36).slice(2)}`);
  const before = Date.now();
  let first: number;
  try {
    first = fs.openSync(file, 'wx+', 0o600);
  } catch (error) {
    findings.add(
      'unseen',
      'notTried',
      where,
      `kernel locks and clock could not be tried: ${reasonOf(error)}`,
      'run doctor as a user who may write there',
    );
    return;
  }
  let second: number | null = null;
  try {
    second = openPlain(file, 'write');
    const links = linksOf(file);
    fs.unlinkSync(file);
    fs.writeSync(first, '\n');
    const written = fs.fstatSync(first).mtimeMs;
    const after = Date.now();
    const skew =
      written < before - SKEW_MS ? written - before : written > after + SKEW_MS ? written - after : 0;
    if (skew !== 0) {
      findings.add(
        'problem',
        'clock',
        where,
        `the file system's clock is ${Math.round(Math.abs(skew) / 1000)} s ${skew < 0 ? 'behind' : 'ahead of'} this machine's: heartbeats look ${skew < 0 ? 'older' : 'younger'} than they are`,
        'synchronise both clocks',
      );
    }
    const granted = tryLock(first, 'exclusive', base);
    if (!granted || (second !== null && tryLock(second, 'exclusive', base)))
      findings.add(
        'problem',
        'noKernelLock',
        where,
        granted ? 'grants one kernel lock to two' : 'gives no kernel lock',
        'put the state directory on a local disk',
      );
    else if (links !== null)
      findings.add('problem', 'noHardLinks', where, links, 'use a disk that makes them');
    else
      findings.add('ok', 'directory', where, `kernel locks work${skew === 0 ? ', the clock is right' : ''}`);
  } catch (error) {
    if (error instanceof RunlockError) findings.add('problem', 'noKernelLock', where, error.message);
    else findings.add('problem', 'notTried', where, `a file in it could not be written: ${reasonOf(error)}`);
  } finally {
    fs.closeSync(first);
    if (second !== null) fs.closeSync(second);
    removeIfThere(file);
  }
}

/** What keeps a file there from a second name, by which a lock is taken; null where nothing does. */
function linksOf(file: string): string | null {
  try {
    if (!linkNew(file, `${file}.link`)) return null;
    fs.unlinkSync(`${file}.link`);
    return null;
  } catch (error) {
    if (error instanceof RunlockError) return `makes no hard links (${systemCode(error.cause)})`;
    throw error;
  }
}

/** Where it could not be removed at once. */
function removeIfThere(file: string): void {
  try {
    fs.unlinkSync(file);
  } catch {
    // It is gone already, which is as it should be.
  }
}
