import fs from 'node:fs';
import { systemCode } from '../errors.ts';
import { isDead, listNumbers, readAllStats, readText } from './procfs.ts';
import { nameOf } from './words.ts';

export interface Opener {
  readonly pid: number;
  /** In words, `node publish.js`; empty where it can't be seen. */
  readonly name: string;
}

/** Who has a file open. */
export interface Openers {
  readonly processes: readonly Opener[];
  /** How many processes could not be looked into: other users' ones. Null: there was no way to look at all. */
  readonly unseen: number | null;
}

/**
 * Finds the processes that have a file open or mapped, ourselves included: what was handed to us somebody means to
 * write to. On Linux by the file itself, not by its name, so that a renamed or a linked file, and a process in
 * another mount namespace, are found too.
 *
 * @param file must exist
 * @throws the system's error if the file can't be looked at
 */
export async function openersOf(file: string): Promise<Openers> {
  const { dev, ino } = fs.statSync(file, { bigint: true });
  switch (process.platform) {
    case 'linux':
      return openersOnLinux(dev, ino);
    case 'win32':
      // Its system refuses by itself to remove what is open.
      return { processes: [], unseen: null };
    default:
      return openersByLsof(file);
  }
}

async function openersOnLinux(dev: bigint, ino: bigint): Promise<Openers> {
  const found: number[] = [];
  let unseen = 0;
  const stats = readAllStats();
  for (const stat of stats) {
    const { pid } = stat;
    // What has ended has no files any more.
    if (stat.isKernelThread || isDead(stat)) continue;
    // Where the first thread has ended, the others have the descriptors still, and it has none.
    const has = stat.state === 'Z' ? threadHasOpen(pid, dev, ino) : hasOpen(`/proc/${pid}`, dev, ino);
    if (has === true) found.push(pid);
    else if (has === null) unseen += 1;
  }
  const processes = await Promise.all(found.map(async (pid) => ({ pid, name: await nameOf(pid) })));
  // Under `hidepid` the others are not even listed, and process 1 is one of them.
  const hidden = stats.length === 0 ? null : stats.some(({ pid }) => pid === 1) ? 0 : 1;
  return { processes, unseen: hidden === null ? null : unseen + hidden };
}

function threadHasOpen(pid: number, dev: bigint, ino: bigint): boolean | null {
  const threads = listNumbers(`/proc/${pid}/task`);
  const answers = threads.map((thread) => hasOpen(`/proc/${pid}/task/${thread}`, dev, ino));
  return answers.includes(true) ? true : answers.includes(null) ? null : false;
}

/** Null: we may not look. A process that has ended meanwhile has nothing open. */
function hasOpen(place: string, dev: bigint, ino: bigint): boolean | null {
  let descriptors: string[];
  try {
    descriptors = fs.readdirSync(`${place}/fd`);
  } catch (error) {
    return isGone(error) ? false : null;
  }
  for (const descriptor of descriptors) {
    try {
      const open = fs.statSync(`${place}/fd/${descriptor}`, { bigint: true });
      if (open.ino === ino && open.dev === dev) return true;
    } catch (error) {
      if (!isGone(error)) return null;
    }
  }
  return isMapped(place, dev, ino);
}

/** A mapped file may have been closed, and is written to all the same. */
function isMapped(place: string, dev: bigint, ino: bigint): boolean {
  return (readText(`${place}/maps`) ?? '').includes(` ${deviceWords(dev)} ${ino} `);
}

/** As /proc/<pid>/maps has it: `fd:01`, by the kernel's own split of the number. */
function deviceWords(dev: bigint): string {
  const major = ((dev >> 8n) & 0xfffn) | ((dev >> 32n) & 0xfffff000n);
  const minor = (dev & 0xffn) | ((dev >> 12n) & 0xffffff00n);
  return [major, minor].map((part) => part.toString(16).padStart(2, '0')).join(':');
}

function isGone(error: unknown): boolean {
  return ['ENOENT', 'ESRCH', 'ENOTDIR'].includes(systemCode(error) ?? '');
}

async function openersByLsof(file: string): Promise<Openers> {
  const { execFile } = process.getBuiltinModule('node:child_process');
  const text = await new Promise<string | null>((resolve) => {
    // It ends with 1 where nobody has the file open, and also where it failed: what it says tells them apart.
    execFile('lsof', ['-F', 'p', '--', file], (error, stdout, stderr) => {
      const failed = error !== null && stdout === '' && stderr.trim() !== '';
      resolve(failed || systemCode(error) === 'ENOENT' ? null : stdout);
    });
  });
  if (text === null) return { processes: [], unseen: null };
  const pids = [...text.matchAll(/^p(\d+)$/gm)].map((match) => Number(match[1]));
  const processes = await Promise.all(pids.map(async (pid) => ({ pid, name: await nameOf(pid) })));
  // Without root it sees its own user's processes alone.
  return { processes, unseen: process.geteuid?.() === 0 ? 0 : 1 };
}
