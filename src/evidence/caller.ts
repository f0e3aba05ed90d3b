import type { ProcessRef } from '../record.ts';
import { readInvocation } from './invocation.ts';
import { type OwnCall, ownCall } from './own-call.ts';
import { roleOf } from './role.ts';
import { type Look, looker, type Sight } from './sight.ts';
import { wordsOf } from './words.ts';

/** Who called us, past all that ends with this call. */
export interface Caller {
  /**
   * - `script`: a script or a shell that lives on; its pid may be the holder
   * - `indirect`: alive, but not plainly a script or a shell, so that its end says nothing
   * - `nobody`: a service manager, a scheduler's daemon, init, sshd, a desktop's shell, or nothing in sight
   */
  kind: 'script' | 'indirect' | 'nobody';
  /** Of forked copies of one shell the outermost, the shell itself. Null for `nobody`. */
  process: ProcessRef | null;
  /** The forked copies that stand between it and us, innermost first. */
  forks: ProcessRef[];
  /** In words, `bash ./publish.sh`; empty if it can't be seen. */
  name: string;
}

/** Climbs from our parent. From /proc on Linux, else from the system's process table. */
export async function findCaller(): Promise<Caller> {
  return climb(() => process.ppid, await looker(), ownCall(process.argv));
}

/** Every process above us that can be seen, nearest first. */
export async function ancestors(): Promise<ProcessRef[]> {
  const look = await looker();
  const found = new Map<number, ProcessRef>();
  for (let pid = process.ppid; pid > 0 && !found.has(pid); ) {
    const seen = look(pid);
    if (seen === 'gone') break;
    found.set(pid, { pid, started: seen === 'hidden' ? null : seen.started });
    if (seen === 'hidden') break;
    pid = seen.ppid;
  }
  return [...found.values()];
}

const NOBODY: Caller = { kind: 'nobody', process: null, forks: [], name: '' };

/** A parent may end while we climb past it; its child has another one then, and we begin again. */
const TRIES = 3;

/** The climb itself; `start` gives our parent anew at each try. */
export function climb(start: () => number, look: Look, own: OwnCall): Caller {
  for (let tries = 0; tries < TRIES; tries++) {
    const found = climbOnce(start(), look, own);
    if (found !== 'gone') return found;
  }
  return NOBODY;
}

function climbOnce(start: number, look: Look, own: OwnCall): Caller | 'gone' {
  const passed = new Set<number>();
  for (let pid = start; pid > 0 && !passed.has(pid); ) {
    passed.add(pid);
    const seen = look(pid);
    if (seen === 'gone') return 'gone';
    if (seen === 'hidden') return pid === 1 ? NOBODY : indirect({ pid, started: null, argv: [] });
    const role = pid === 1 ? 'nobody' : roleOf(seen, look, own);
    if (role === 'nobody') return { ...NOBODY, name: nameIn(seen) };
    if (role === 'indirect') return indirect(seen);
    if (role === 'script') return { ...NOBODY, kind: 'script', process: refOf(seen), name: nameIn(seen) };
    if (role === 'shell') return outermost(seen, look);
    pid = seen.ppid;
  }
  return NOBODY;
}

/** From a shell up to the one it was forked from: `$(…)`, `(…) &` and the like are copies of it. */
function outermost(innermost: Sight, look: Look): Caller {
  const forks: ProcessRef[] = [];
  let shell = innermost;
  for (;;) {
    const parent = look(shell.ppid);
    if (parent === 'gone' || parent === 'hidden' || !isCopy(shell, parent)) break;
    // What works in a copy is the shell's own work, and pid 1 is no holder.
    if (parent.pid === 1) return { ...NOBODY, name: nameIn(parent) };
    forks.push(refOf(shell));
    shell = parent;
  }
  return { kind: 'script', process: refOf(shell), forks, name: nameIn(shell) };
}

/**
 * Copies have the same arguments and the same code and stack addresses; a script that calls itself has
 * other addresses. Where the system shows none the arguments alone decide, and then such a script counts
 * as one with its caller: a shell too many only keeps the lock held longer.
 */
function isCopy(shell: Sight, parent: Sight): boolean {
  if (readInvocation(parent.argv, parent.comm).kind !== 'shell') return false;
  const sameWords =
    shell.argv.length === parent.argv.length && shell.argv.every((word, at) => word === parent.argv[at]);
  return sameWords && shell.image === parent.image;
}

function indirect(seen: Pick<Sight, 'pid' | 'started' | 'argv'>): Caller {
  return { kind: 'indirect', process: refOf(seen), forks: [], name: wordsOf(seen.argv) };
}

function nameIn(seen: Sight): string {
  return wordsOf(seen.argv[0] ? seen.argv : [seen.comm]);
}

function refOf({ pid, started }: ProcessRef): ProcessRef {
  return { pid, started };
}
