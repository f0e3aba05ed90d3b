import type { Witness } from '../lock.ts';
import { commandOf, type LockRecord } from '../record.ts';
import { type Evidence, isOver, type Liveness, recordIn, samePids } from '../rules.ts';
import type { Sighting } from '../store.ts';
import { groupMembers } from './group.ts';
import { here } from './host.ts';
import { sightProcess } from './process.ts';

/** Looks at the processes of this machine. */
export const systemWitness: Witness = {
  async gather(seen: Sighting, reference: string): Promise<Evidence> {
    const place = here(seen.now);
    const record = recordIn(seen.lock);
    if (record === null) {
      return {
        here: place,
        holder: 'unsure',
        forks: [],
        command: 'unsure',
        liveFile: seen.liveFile,
        survivors: [],
      };
    }
    const holder = record.pid === null ? record.caller : { pid: record.pid, started: record.pidStarted };
    const evidence: Evidence = {
      here: place,
      holder: holder === null ? 'unsure' : byLiveFile(await sightProcess(holder), record, seen),
      forks: await Promise.all(record.forks.map(sightProcess)),
      command:
        record.commandPid === null
          ? 'gone'
          : await sightProcess({ pid: record.commandPid, started: record.commandPidStarted }),
      liveFile: seen.liveFile,
      survivors: [],
    };
    if (!samePids(record, place) || !isOver(evidence.holder)) return evidence;
    return record.live ? withTree(record, evidence, reference) : withGroup(record, evidence);
  },
};

/**
 * Windows tells no start, but there a supervisor has files open that nobody can remove meanwhile: where they are
 * locked, what has its number is the one, and where they are not, it is another.
 */
function byLiveFile(sight: Liveness, record: LockRecord, { liveFile }: Sighting): Liveness {
  if (process.platform !== 'win32' || sight !== 'unsure' || !record.live) return sight;
  switch (liveFile) {
    case 'locked':
      return 'alive';
    case 'unlocked':
      return 'reused';
    case 'unknown':
      return 'unsure';
  }
}

/** What is left of a run whose supervisor is gone. Asked only then: it looks through all processes. */
async function withTree(record: LockRecord, evidence: Evidence, reference: string): Promise<Evidence> {
  const locked = evidence.liveFile === 'locked';
  const unwritten = record.commandPid === null;
  if (!isOver(evidence.command) || (locked && !unwritten)) return evidence;
  const { treeOf } = await import('./tree.ts');
  const tree = await treeOf({
    lock: reference,
    run: record.run ?? 0,
    livePath: '',
    liveIndex: null,
    // Windows remembers the parent of a process although it is gone, and shows no other trace.
    command: process.platform === 'win32' && !unwritten ? commandOf(record) : null,
  });
  const inSession = tree.filter(({ session }) => record.session === null || session === record.session);
  if (!locked) return { ...evidence, survivors: inSession.map(words) };
  return { ...evidence, command: inSession.length > 0 ? 'alive' : tree.length > 0 ? 'gone' : 'unsure' };
}

/** Who is left of the process group of a holder that is gone. */
async function withGroup(record: LockRecord, evidence: Evidence): Promise<Evidence> {
  if (record.pid === null || !emptiesGroup(evidence.holder) || !evidence.forks.every(isOver)) return evidence;
  return { ...evidence, survivors: (await groupMembers(record.pid)).map(words) };
}

/** A number that is in use again, or by a thread, has no group of the old holder's: the kernel waits for that. */
function emptiesGroup(holder: Liveness): boolean {
  return holder === 'gone' || holder === 'zombie';
}

function words(process: { readonly name: string; readonly pid: number }): string {
  return `${process.name} (pid ${process.pid})`;
}
