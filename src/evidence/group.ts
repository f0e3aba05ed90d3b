import type { ProcessRef } from '../record.ts';
import { isDead, procIsOurs, readAllStats } from './procfs.ts';
import { nameOf, wordsOf } from './words.ts';

export interface Named extends ProcessRef {
  /** In words, `node publish.js`. */
  name: string;
}

/**
 * The living others of the process group that `leader` leads or led; on Windows, which has no groups, its
 * children. Empty where that can't be seen. Ask only if the leader is gone or the same one: the system
 * gives no number out anew that still names a group, so a new owner's group is not the old one's.
 */
export async function groupMembers(leader: number): Promise<Named[]> {
  if (process.platform !== 'linux') return membersElsewhere(leader);
  const members: Named[] = [];
  for (const stat of procIsOurs() ? readAllStats() : []) {
    if (stat.pgrp !== leader || stat.pid === leader || stat.pid === process.pid || isDead(stat)) continue;
    members.push({ pid: stat.pid, started: stat.started, name: await nameOf(stat.pid) });
  }
  return members;
}

async function membersElsewhere(leader: number): Promise<Named[]> {
  const { readGroup, readTable } = await import('./table.ts');
  const rows = [...(await readTable()).values()];
  const group = process.platform === 'win32' ? null : new Set(await readGroup(leader));
  return rows
    .filter(({ pid, ppid }) => (group === null ? ppid === leader : group.has(pid)))
    .filter(({ pid }) => pid !== leader && pid !== process.pid)
    .map(({ pid, started, argv }) => ({ pid, started, name: wordsOf(argv) }));
}
