import type { Witness } from '../lock.ts';
import type { LockRecord } from '../record.ts';
import { type Evidence, isOver, type Liveness, samePids } from '../rules.ts';
import type { Sighting } from '../store.ts';
import { groupMembers } from './group.ts';
import { here } from './host.ts';
import { sightProcess } from './process.ts';

/** Looks at the processes of this machine. */
export const systemWitness: Witness = {
  async gather(seen: Sighting, reference: string): Promise<Evidence> {
    const place = here(seen.now);
    const record = seen.lock !== null && 'record' in seen.lock.content ? seen.lock.content.record : null;
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
      holder: holder === null ? 'unsure' : await sightProcess(holder),
      forks: await Promise.all(record.forks.map(sightProcess)),
      command:
        record.commandPid === null
          ? 'gone'
          : await sightProcess({ pid: record.commandPid, started: record.commandPidStarted }),
      liveFile: seen.liveFile,
      survivors: [],
    };
    return { ...evidence, survivors: await survivorsOf(record, evidence, reference) };
  },
};

/** Who is left of a holder that is gone. Asked only then: it looks through all processes. */
async function survivorsOf(record: LockRecord, evidence: Evidence, reference: string): Promise<string[]> {
  if (!samePids(record, evidence.here)) return [];
  if (record.live) {
    if (!isOver(evidence.holder) || !isOver(evidence.command) || evidence.liveFile === 'locked') return [];
    const { treeOf } = await import('./tree.ts');
    const tree = await treeOf({
      lock: reference,
      run: record.run ?? 0,
      livePath: '',
      liveIndex: null,
      command: null,
    });
    return tree.filter((member) => member.session === record.session).map(words);
  }
  if (record.pid === null || !emptiesGroup(evidence.holder) || !evidence.forks.every(isOver)) return [];
  return (await groupMembers(record.pid)).map(words);
}

/** A number that is in use again, or by a thread, has no group of the old holder's: the kernel waits for that. */
function emptiesGroup(holder: Liveness): boolean {
  return holder === 'gone' || holder === 'zombie';
}

function words(process: { readonly name: string; readonly pid: number }): string {
  return `${process.name} (pid ${process.pid})`;
}
