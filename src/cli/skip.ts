import { RunlockError } from '../errors.ts';
import { ancestors, findCaller } from '../evidence/caller.ts';
import type { Candidate, Closed, Look } from '../lock.ts';
import { printable } from '../printable.ts';
import { isWithin, recordIn } from '../rules.ts';
import type { Arguments } from './arguments.ts';
import { EXIT } from './exit-codes.ts';
import { heldLine, heldReason } from './output.ts';
import { say } from './streams.ts';
import type { Target } from './target.ts';

/** Says why a run is skipped because the lock is held, and writes it down. */
export async function reportHeld(
  args: Arguments,
  target: Target,
  draft: Candidate['record'],
  look: Look,
): Promise<void> {
  const line = heldLine(target, look);
  if (!args.flag('quiet')) {
    const inside = await isInside(look);
    say(
      `runlock: ${inside ? `you are inside the very run that holds this lock: ${line}` : `skipped, ${line}`}`,
    );
  }
  await writeDown(args, target, draft, EXIT.held, heldReason(look));
}

/** A skip that can't be written down is a skip all the same: who may not write here still gets his answer. */
async function writeDown(
  args: Arguments,
  target: Target,
  draft: Candidate['record'],
  code: number,
  reason: string,
): Promise<void> {
  try {
    await target.lock.skip(draft, code, reason);
  } catch (error) {
    if (!(error instanceof RunlockError)) throw error;
    if (!args.flag('quiet')) say(`runlock: this skip is not in the history: ${error.message}`);
  }
}

/** Says why a run may not begin. That an answer can't be had is a failure, and said in any case. */
export function sayClosed(args: Arguments, target: Target, { code, reason }: Closed): void {
  if (code !== EXIT.failed && args.flag('quiet')) return;
  const what = code === EXIT.failed ? 'a gate can not be asked, so nothing is begun' : 'skipped';
  say(`runlock: ${what}: ${reason} (${printable(target.dir, 4096)})`);
}

/** Whether we are part of the run that holds the lock. */
export async function isInside(look: Look): Promise<boolean> {
  const record = recordIn(look.seen.lock);
  // Another tool's lock names a pid, and nothing of what that started.
  if (record === null || record.run === null) return false;
  const { forks, process } = await findCaller();
  const caller = [...forks, ...(process === null ? [] : [process])];
  return isWithin(record, look.evidence, { tokenHash: null, caller, ancestors: await ancestors() });
}
