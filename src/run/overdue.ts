import type { Clock } from '../clock.ts';
import type { Look } from '../lock.ts';
import type { LockRecord } from '../record.ts';
import { recordIn, samePids } from '../rules.ts';
import { endTree } from './tree.ts';

/**
 * Ends the tree of a run whose supervisor is gone and whose time limit has passed, as the supervisor would have.
 *
 * @param livePathOf where the live file of a run is
 * @returns whether nothing of it is left
 */
export async function endOverdue(
  look: Look,
  place: { readonly where: string; readonly livePathOf: (run: number) => string; readonly clock: Clock },
): Promise<boolean> {
  const record = overdueRecord(look);
  if (record === null || record.run === null) return false;
  const { commandPid, commandPidStarted, liveIndex } = record;
  const left = await endTree(
    {
      lock: place.where,
      run: record.run,
      livePath: place.livePathOf(record.run),
      liveIndex,
      command: commandPid === null ? null : { pid: commandPid, started: commandPidStarted },
    },
    record.killAfterMs ?? 10_000,
    place.clock,
  );
  return left.length === 0;
}

function overdueRecord({ seen, evidence, verdict }: Look): LockRecord | null {
  if (verdict.state !== 'held' || seen.lock === null) return null;
  const supervisorGone = ['orphan', 'leftovers', 'survivors'].includes(verdict.reason.type);
  const record = recordIn(seen.lock);
  if (
    record === null ||
    !record.live ||
    !supervisorGone ||
    record.deadline === null ||
    !samePids(record, evidence.here)
  )
    return null;
  return Date.parse(record.deadline) < seen.now ? record : null;
}
