import type { ProcessRef } from '../record.ts';
import { probe } from './process.ts';
import { procIsOurs, readArgv, readStat } from './procfs.ts';

/** A process as the search for a caller sees it. */
export interface Sight extends ProcessRef {
  ppid: number;
  /** The kernel's name of it. */
  comm: string;
  argv: readonly string[];
  /** Equal in forked copies of one process; also where the system doesn't tell. */
  image: string;
}

/** Looks at one process. `hidden`: it may be there, but we are not shown it. */
export type Look = (pid: number) => Sight | 'gone' | 'hidden';

export async function looker(): Promise<Look> {
  if (process.platform === 'linux') return lookLinux;
  const { readTable } = await import('./table.ts');
  const table = await readTable();
  return (pid) => {
    const row = table.get(pid);
    if (row !== undefined) return { ...row, comm: row.name, image: '' };
    return probe(pid) === 'gone' ? 'gone' : 'hidden';
  };
}

function lookLinux(pid: number): Sight | 'gone' | 'hidden' {
  const stat = procIsOurs() ? readStat(pid) : null;
  if (stat === null) return probe(pid) === 'gone' ? 'gone' : 'hidden';
  const { ppid, comm, started, startCode, startStack } = stat;
  // Of another user's process the kernel says 1 and 0, so that all of those are alike.
  return { pid, ppid, started, comm, argv: readArgv(pid) ?? [], image: `${startCode} ${startStack}` };
}
