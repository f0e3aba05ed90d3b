import { realpathSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import type { ProcessRef } from '../record.ts';
import type { Named } from './group.ts';
import { isDead, procIsOurs, readAllStats, readBytes, readLink, readStat, type Stat } from './procfs.ts';
import { nameOf, wordsOf } from './words.ts';

/** What everything that one `run` started can be known by. */
export interface TreeRef {
  /** `RUNLOCK_LOCK` and `RUNLOCK_RUN`, as given to the command. */
  lock: string;
  run: number;
  /** The live file, and the descriptor at which the command was handed it. */
  livePath: string;
  liveIndex: number | null;
  command: ProcessRef | null;
  /** Members seen earlier; they stay members whatever they do to hide it. Only the run's supervisor knows any. */
  seen?: readonly ProcessRef[];
}

export interface TreeMember extends Named {
  /** Its session: a daemon has left the command's. 0 where the system doesn't tell. */
  session: number;
}

/**
 * The living processes of a run's tree, the command included; never ourselves or one above us.
 *
 * No single trace is enough. A program may have closed its inherited descriptors (ssh, Python's
 * `subprocess`), or started with an environment of its own (sudo, `env -i`), and a child whose parent ended
 * has another parent now. Who shows any of the three belongs to it, and so do all its descendants.
 */
export async function treeOf(ref: TreeRef): Promise<TreeMember[]> {
  const parts = process.platform === 'linux' ? treeOnLinux(ref) : await treeElsewhere(ref);
  return Promise.all(parts);
}

/**
 * Orphans in our own process group and session that are younger than the command and show no trace of anybody.
 * Started by a program that closed its descriptors, gave it an environment of its own and ended at once, the
 * command's descendants look like this; so may those of a script that started us.
 *
 * @returns `only`: nobody else in the group has children of his own beside us, so whose they are is no question
 */
export async function straysOf(ref: TreeRef): Promise<{ strays: TreeMember[]; only: boolean }> {
  const self = process.platform === 'linux' && procIsOurs() ? readStat('self') : null;
  const since = Number(ref.command?.started ?? Number.NaN);
  if (self === null || Number.isNaN(since)) return { strays: [], only: false };
  const stats = new Map(readAllStats().map((stat) => [stat.pid, stat]));
  const above = lineOf(process.pid, stats);
  const belongs = membership(ref, stats);
  const group = [...stats.values()].filter(
    (stat) =>
      stat.pgrp === self.pgrp &&
      stat.session === self.session &&
      !above.has(stat.pid) &&
      !isDead(stat) &&
      !belongs(stat),
  );
  const isOrphan = ({ ppid }: Stat) => stats.get(ppid)?.session !== self.session;
  const strays = group.filter((stat) => isOrphan(stat) && Number(stat.started) >= since);
  const named = strays.map(async ({ pid, started, session }) => ({
    ...{ pid, started, session },
    name: await nameOf(pid),
  }));
  return { strays: await Promise.all(named), only: strays.length === group.length };
}

/** Our own session, null where there is none or it can't be seen. */
export function ownSession(): number | null {
  return process.platform === 'linux' ? (readStat('self')?.session ?? null) : null;
}

function treeOnLinux(ref: TreeRef): Promise<TreeMember>[] {
  const stats = new Map((procIsOurs() ? readAllStats() : []).map((stat) => [stat.pid, stat]));
  const above = lineOf(process.pid, stats);
  const belongs = membership(ref, stats);
  return [...stats.values()]
    .filter((stat) => !above.has(stat.pid) && belongs(stat) && !isDead(stat))
    .map(async ({ pid, started, session }) => ({ pid, started, session, name: await nameOf(pid) }));
}

/** Tells members by their own traces or by a parent that is one, asking /proc once for each process. */
function membership(ref: TreeRef, stats: ReadonlyMap<number, Stat>): (stat: Stat) => boolean {
  const shows = traces(ref);
  const known = new Map<number, boolean>();
  return belongs;

  function belongs(stat: Stat): boolean {
    const before = known.get(stat.pid);
    if (before !== undefined) return before;
    known.set(stat.pid, false);
    // What we started ourselves is of the tree only if it shows it.
    const parent = stat.ppid === process.pid ? undefined : stats.get(stat.ppid);
    const answer = (parent !== undefined && belongs(parent)) || shows(stat);
    known.set(stat.pid, answer);
    return answer;
  }
}

/** Whether a process itself shows that it belongs to the run, cheapest question first. */
function traces({ lock, run, livePath, liveIndex, command, seen = [] }: TreeRef): (stat: Stat) => boolean {
  const entries = [`\0RUNLOCK_LOCK=${lock}\0`, `\0RUNLOCK_RUN=${run}\0`].map((entry) => Buffer.from(entry));
  const path = resolvedPath(livePath);
  const since = command?.started ?? null;
  return ({ pid, started, isKernelThread }) => {
    if (pid === command?.pid && started === since) return true;
    if (seen.some((member) => member.pid === pid && member.started === started)) return true;
    // Nothing of the tree is older than the command; on a quiet machine this leaves almost nobody to ask.
    if (since !== null && Number(started) < Number(since)) return false;
    if (isKernelThread) return false;
    const fd = liveIndex === null ? null : readLink(`/proc/${pid}/fd/${liveIndex}`);
    if (fd !== null && namesLiveFile(fd, path)) return true;
    const environment = readBytes(`/proc/${pid}/environ`);
    if (environment === null) return false;
    const whole = Buffer.concat([Buffer.of(0), environment, Buffer.of(0)]);
    return entries.every((entry) => whole.includes(entry));
  };
}

/** The kernel shows the name that a file was opened by: the live file had a temporary one until it was locked. */
function namesLiveFile(fd: string, path: string): boolean {
  const shown = fd.replace(/ \(deleted\)$/, '');
  return shown === path || (shown.startsWith(`${path}.`) && shown.endsWith('.tmp'));
}

/** The kernel shows a descriptor's path without links. The file itself may be gone by now. */
function resolvedPath(path: string): string {
  try {
    return join(realpathSync(dirname(path)), basename(path));
  } catch {
    return path;
  }
}

/** The process and all above it. */
function lineOf(pid: number, table: ReadonlyMap<number, { ppid: number }>): Set<number> {
  const line = new Set<number>();
  for (let at: number | undefined = pid; at !== undefined && !line.has(at); at = table.get(at)?.ppid)
    line.add(at);
  return line;
}

/**
 * Elsewhere only parents can be followed, so who lost its parent is out of sight. Windows tells no start:
 * ask there while the command is known to live.
 */
async function treeElsewhere({ command }: TreeRef): Promise<Promise<TreeMember>[]> {
  if (command === null) return [];
  const { readTable } = await import('./table.ts');
  const table = await readTable();
  const found = table.get(command.pid);
  if (found !== undefined && found.started !== command.started) return [];
  const above = lineOf(process.pid, table);
  return [...table.values()]
    .filter(({ pid }) => !above.has(pid) && lineOf(pid, table).has(command.pid))
    .map(async ({ pid, started, argv }) => ({ pid, started, session: 0, name: wordsOf(argv) }));
}
