/**
 * The process table where there is no /proc: what `ps` says (macOS, BSD), or the system's snapshot
 * (Windows: pid, parent and name alone). What is missing in it is not known to be dead: a Windows
 * snapshot may be refused, and on ARM64 there is none.
 */

export interface Row {
  pid: number;
  ppid: number;
  name: string;
  /** Split at blanks, since `ps` joins arguments with them; on Windows just the name. */
  argv: string[];
  /** Raw start value, null on Windows. */
  started: string | null;
}

/** One snapshot; empty where it can't be had. Costs a process of its own, tens of milliseconds. */
export async function readTable(): Promise<Map<number, Row>> {
  const rows = new Map<number, Row>();
  try {
    const { default: psList } = await import('ps-list');
    for (const { pid, ppid, name, cmd, startTime } of await psList()) {
      rows.set(pid, {
        pid,
        ppid,
        name,
        argv: splitArguments(cmd || name),
        started: startTime === undefined ? null : String(startTime.getTime()),
      });
    }
  } catch {
    // Refused, or not there for this processor: nothing is known then, and nobody is dead for it.
  }
  return rows;
}

/** Undoes what `ps` joined, as far as that can be done: what follows a shell's `-c` is one text again. */
export function splitArguments(joined: string): string[] {
  const text = /^(\S+(?:\s+-\w+)*?\s+-\w*c)\s+(.*)$/s.exec(joined);
  const [, before, after] = text ?? [];
  if (before !== undefined && after !== undefined) return [...before.split(/\s+/), after];
  return joined.split(/\s+/).filter((word) => word !== '');
}

/** Members of a process group from `ps` itself, since the table has no groups. */
export async function readGroup(leader: number): Promise<number[]> {
  try {
    const { execFile } = process.getBuiltinModule('node:child_process');
    const { promisify } = process.getBuiltinModule('node:util');
    const { stdout } = await promisify(execFile)('ps', ['-A', '-o', 'pid=,pgid=,stat=']);
    return stdout
      .split('\n')
      .map((line) => line.trim().split(/\s+/))
      .filter(([, pgid, stat]) => Number(pgid) === leader && stat?.startsWith('Z') === false)
      .map(([pid]) => Number(pid));
  } catch {
    return [];
  }
}
