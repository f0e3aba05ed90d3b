import type { Clock } from '../clock.ts';
import { systemCode } from '../errors.ts';
import { ownSession, straysOf, type TreeMember, type TreeRef, treeOf } from '../evidence/tree.ts';

/** How long to wait for what got KILL: the kernel ends it at once, unless it hangs in a device. */
const AFTER_KILL_MS = 5_000;

/**
 * What of the tree is still in our session; what has left it is a daemon, and keeps nothing. An orphan of our group
 * that shows nothing is a doubt, and waited for.
 */
export async function membersInSession(ref: TreeRef): Promise<TreeMember[]> {
  const session = ownSession();
  const members = await treeOf(ref);
  if (session === null) return members;
  const { strays } = await straysOf(ref);
  return [...members.filter((member) => member.session === session), ...strays];
}

/** What is to be ended: the tree, and orphans of our group where nobody else can have left them. */
async function membersToEnd(ref: TreeRef): Promise<TreeMember[]> {
  const members = await treeOf(ref);
  const { strays, only } = await straysOf(ref);
  return only ? [...members, ...strays] : members;
}

/**
 * Ends the whole tree, daemons too: TERM, then after `killAfterMs` KILL.
 *
 * @returns what could not be ended
 */
export async function endTree(ref: TreeRef, killAfterMs: number, clock: Clock): Promise<TreeMember[]> {
  const start = clock.monotonic();
  const told = new Set<string>();
  for (let pause = 5; ; pause = Math.min(100, pause * 2)) {
    const members = await membersToEnd(ref);
    if (members.length === 0) return [];
    const waited = clock.monotonic() - start;
    if (waited > killAfterMs + AFTER_KILL_MS) return members;
    for (const member of members) {
      const key = `${member.pid} ${member.started}`;
      if (waited >= killAfterMs) send(member.pid, 'SIGKILL');
      else if (!told.has(key)) {
        told.add(key);
        send(member.pid, 'SIGTERM');
        // A stopped process takes its TERM only when it goes on.
        if (process.platform !== 'win32') send(member.pid, 'SIGCONT');
      }
    }
    await clock.sleep(Math.max(1, Math.min(pause, waited < killAfterMs ? killAfterMs - waited : pause)));
  }
}

/** Signals a process that may be gone by now, or not be ours to signal. */
export function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    const code = systemCode(error);
    if (code !== 'ESRCH' && code !== 'EPERM') throw error;
  }
}
