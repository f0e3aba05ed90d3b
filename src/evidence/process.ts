import { systemCode } from '../errors.ts';
import { MAX_PID, type ProcessRef } from '../record.ts';
import type { Liveness } from '../rules.ts';
import { isDead, procIsOurs, readStat, readThreadGroup } from './procfs.ts';

/** `process.kill` is true for 0, -1, "", true and [], each of which means something else or nothing: ask this first. */
export function validPid(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= MAX_PID;
}

/** Whether the process on record still lives. Only the system's own "no such process" makes it `gone`. */
export async function sightProcess(ref: ProcessRef): Promise<Liveness> {
  if (!validPid(ref.pid)) return 'unsure';
  const answer = probe(ref.pid);
  if (answer !== 'there') return answer;
  return process.platform === 'linux' ? sightLinux(ref) : sightElsewhere(ref);
}

/** The raw start value of whatever has this number now. */
export async function startOf(pid: number): Promise<string | null> {
  if (!validPid(pid)) return null;
  if (process.platform === 'linux') return procIsOurs() ? (readStat(pid)?.started ?? null) : null;
  if (process.platform === 'win32') return null;
  const { readTable } = await import('./table.ts');
  return (await readTable()).get(pid)?.started ?? null;
}

/** Asks the kernel. "Not permitted" is said of the living only; any other answer says nothing. */
export function probe(pid: number): 'there' | 'gone' | 'unsure' {
  try {
    process.kill(pid, 0);
    return 'there';
  } catch (error) {
    const code = systemCode(error);
    if (code === 'ESRCH') return 'gone';
    return code === 'EPERM' ? 'there' : 'unsure';
  }
}

function sightLinux({ pid, started }: ProcessRef): Liveness {
  const stat = procIsOurs() ? readStat(pid) : null;
  // Hidden from us, or it ended just now.
  if (stat === null) return probe(pid) === 'gone' ? 'gone' : 'unsure';
  const group = readThreadGroup(pid);
  if (group !== null && group !== pid) return 'thread';
  if (started !== null && stat.started !== started) return 'reused';
  if (isDead(stat)) return probe(pid) === 'gone' ? 'gone' : 'zombie';
  return started === null ? 'unsure' : 'alive';
}

async function sightElsewhere({ pid, started }: ProcessRef): Promise<Liveness> {
  // Windows knows no start times that come cheap, and absence from its list is no death.
  if (process.platform === 'win32') return 'unsure';
  const { readTable } = await import('./table.ts');
  const row = (await readTable()).get(pid);
  if (row === undefined) return probe(pid) === 'gone' ? 'gone' : 'unsure';
  if (row.name.includes('<defunct>')) return 'zombie';
  if (started === null || row.started === null) return 'unsure';
  return row.started === started ? 'alive' : 'reused';
}
