import { RunlockError } from '../../errors.ts';
import type { Acquired } from '../../lock.ts';
import { newToken } from '../../token.ts';
import { holderWords } from '../../words.ts';
import type { Arguments } from '../arguments.ts';
import { EXIT } from '../exit-codes.ts';
import { draftRecord, readHold, withHolder } from '../holder.ts';
import { answerJson, statusJson } from '../output.ts';
import { reportHeld, sayClosed } from '../skip.ts';
import { answer, isTerminal, say } from '../streams.ts';
import { clearWaiting, readAsk, readWaiting, sayMarks, sayTookOver } from '../taking.ts';
import { findTargetToTake, type Target } from '../target.ts';

export async function main(args: Arguments): Promise<number> {
  const target = findTargetToTake(args);
  const [item] = args.operands;
  if (item !== undefined && args.flag('from'))
    throw new RunlockError('usage', 'ITEM and --from contradict each other: give one of them');
  const draft = await withHolder(draftRecord(args, item, readHold(args, target.settings.holdMs)), args);
  const ask = await readAsk(args, target, { item: draft.item, isHolder: false, isEnding: async () => false });
  const chosen = args.text('token');
  const token = chosen ?? newToken();
  const waiting = await readWaiting(args, target, new AbortController().signal);

  const acquired = await target.lock.acquire(
    { record: draft, token, chosenToken: chosen !== undefined, ...(ask === undefined ? {} : { ask }) },
    waiting,
  );
  clearWaiting(args, waiting);
  switch (acquired.outcome) {
    case 'held':
      await reportHeld(args, target, draft, acquired.look);
      if (args.flag('json'))
        answerJson({ ...NOTHING, outcome: 'held', heldBy: statusJson(target, acquired.look) });
      return EXIT.held;
    case 'closed': {
      const { run, tookOver, closed } = acquired;
      sayTookOver(tookOver);
      sayClosed(args, target, closed);
      if (args.flag('json'))
        answerJson({ ...NOTHING, outcome: 'closed', run, tookOver, gates: closed.gates });
      return closed.code;
    }
    case 'acquired':
      return report(args, target, acquired, token);
  }
}

const NOTHING = { outcome: '', run: null, token: null, item: null, tookOver: null, heldBy: null, gates: [] };

async function report(
  args: Arguments,
  target: Target,
  acquired: Extract<Acquired, { outcome: 'acquired' }>,
  token: string,
): Promise<number> {
  const { record, run, tookOver, marks, gates } = acquired;
  sayTookOver(tookOver);
  sayMarks(target, marks);
  try {
    if (args.flag('json')) {
      answerJson({ ...NOTHING, outcome: 'acquired', run, token, item: record.item, tookOver, gates });
    } else {
      answer(args.flag('from') ? `${run}\t${record.item}\n` : `${run}\n`);
    }
  } catch (error) {
    // Who is not told the number takes it for a failure, and must not hold the lock.
    await target.lock.cancel(record, 'released', 'the answer could not be written to stdout', null);
    throw error;
  }
  if (isTerminal(2)) say(`runlock: run ${run} is held by ${holderWords(record)}`);
  return EXIT.ok;
}
