import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

/**
 * Linux's /proc, read and never trusted further than it goes: under `hidepid` it says "no such file" of
 * the living, and a container may see another namespace's. So every reader here answers null or nothing
 * instead of throwing, and null never means "dead".
 */

/** What /proc/<pid>/stat says, as far as it is used. Times and addresses stay raw: they are only compared. */
export interface Stat {
  pid: number;
  /** The kernel's name of the program, cut at 15 bytes; any text at all, brackets included. */
  comm: string;
  state: string;
  ppid: number;
  pgrp: number;
  session: number;
  /** A thread of the kernel (field 9), which has no files and no environment. Its number means nothing in a container. */
  isKernelThread: boolean;
  /** Ticks since boot at which it started (field 22). */
  started: string;
  /** Where code and stack begin (fields 26 and 28): a fork keeps both, an exec gets new ones. */
  startCode: string;
  startStack: string;
}

/** PF_KTHREAD of the kernel's sched.h. */
const KERNEL_THREAD = 0x0020_0000;

/** Reads the line of /proc/<pid>/stat. The name may hold `)` and blanks, so fields count from the last `)`. */
export function parseStat(line: string): Stat | null {
  const open = line.indexOf('(');
  const close = line.lastIndexOf(')');
  if (open < 1 || close < open) return null;
  const pid = Number(line.slice(0, open));
  const fields = line.slice(close + 2).split(' ');
  const [state, ppid, pgrp, session] = fields;
  const started = fields[19];
  if (!Number.isInteger(pid) || state === undefined || started === undefined || !/^\d+$/.test(started))
    return null;
  return {
    pid,
    comm: line.slice(open + 1, close),
    state,
    ppid: Number(ppid),
    pgrp: Number(pgrp),
    session: Number(session),
    isKernelThread: (Number(fields[6]) & KERNEL_THREAD) !== 0,
    started,
    startCode: fields[23] ?? '0',
    startStack: fields[25] ?? '0',
  };
}

let ours: boolean | undefined;

/**
 * Whether /proc shows the pids of our own namespace. After `unshare --pid` without a new mount, and in
 * some containers, it shows another's, and each number in it names somebody else.
 */
export function procIsOurs(): boolean {
  ours ??= process.platform === 'linux' && selfLink() === String(process.pid) && oneNamespaceDeep();
  return ours;
}

function selfLink(): string | null {
  return readLink('/proc/self');
}

/** `NSpid` lists our number in /proc's namespace and in each below it, down to our own: ours alone, if it is ours. */
function oneNamespaceDeep(): boolean {
  const found = /^NSpid:\s*(.*)$/m.exec(readText('/proc/self/status') ?? '');
  return found === null || !/\s/.test(found[1] ?? '');
}

export function readStat(pid: number | 'self'): Stat | null {
  const line = readText(`/proc/${pid}/stat`);
  return line === null ? null : parseStat(line);
}

/** Arguments as they stand in the process's memory: it may have written anything there, and kernel threads have none. */
export function readArgv(pid: number): string[] | null {
  const text = readText(`/proc/${pid}/cmdline`);
  // A title set later (`npm run x`) is padded with NULs up to the length of what stood there before.
  return text === null ? null : text.replace(/\0+$/, '').split('\0');
}

/** The process whose thread this number is: itself, unless it is a thread id. Those answer signals and have a /proc entry too. */
export function readThreadGroup(pid: number): number | null {
  const found = /^Tgid:\s*(\d+)$/m.exec(readText(`/proc/${pid}/status`) ?? '');
  return found === null ? null : Number(found[1]);
}

/**
 * Whether nothing of this process runs any more. A zombie's other threads may go on working after its
 * first one has ended, and then the kernel still shows `Z` for all of it.
 */
export function isDead(stat: Stat): boolean {
  if (stat.state !== 'Z' && stat.state !== 'X') return false;
  return !listNumbers(`/proc/${stat.pid}/task`).some((thread) => {
    const state = parseStat(readText(`/proc/${stat.pid}/task/${thread}/stat`) ?? '')?.state;
    return state !== undefined && state !== 'Z' && state !== 'X';
  });
}

/** Every process that /proc shows us. */
export function readAllStats(): Stat[] {
  const stats: Stat[] = [];
  for (const pid of listNumbers('/proc')) {
    const stat = readStat(pid);
    if (stat !== null) stats.push(stat);
  }
  return stats;
}

export function readText(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return null;
  }
}

export function readBytes(path: string): Buffer | null {
  try {
    return readFileSync(path);
  } catch {
    return null;
  }
}

export function readLink(path: string): string | null {
  try {
    return readlinkSync(path);
  } catch {
    return null;
  }
}

export function listNumbers(directory: string): number[] {
  try {
    return readdirSync(directory).map(Number).filter(Number.isInteger);
  } catch {
    return [];
  }
}
