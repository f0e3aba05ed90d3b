import { RunlockError } from '../../errors.ts';
import { parseItem } from '../../names.ts';
import { printable } from '../../printable.ts';
import type { Arguments } from '../arguments.ts';
import { EXIT } from '../exit-codes.ts';
import { answerJson, heldLine } from '../output.ts';
import { say } from '../streams.ts';
import { findTarget } from '../target.ts';

export async function main(args: Arguments): Promise<number> {
  const [operand] = args.operands;
  if (operand === undefined) throw new RunlockError('usage', 'runlock settle: expected the ITEM to settle');
  if (args.flag('done') && args.flag('not-done')) {
    throw new RunlockError('usage', 'runlock settle: expected --done or --not-done, got both');
  }
  const item = parseItem(operand);
  const target = findTarget(args);
  const as = args.flag('done') ? 'done' : args.flag('not-done') ? 'notDone' : null;
  const settled = await target.lock.settle(item, as);
  if (args.flag('json')) {
    answerJson({ outcome: settled.outcome, item, runs: settled.outcome === 'settled' ? settled.runs : [] });
  }
  switch (settled.outcome) {
    case 'settled':
      return EXIT.ok;
    case 'held':
      say(`runlock: ${printable(item)} is in progress: ${heldLine(target, settled.look)}`);
      return EXIT.held;
    case 'absent':
      say(`runlock: ${printable(item)} is not marked in ${printable(target.dir, 4096)}`);
      return EXIT.item;
  }
}
