import { systemClock } from '../../clock.ts';
import { checkGates, chooseItems } from '../../gates/ask.ts';
import type { Arguments } from '../arguments.ts';
import { readCandidates } from '../candidates.ts';
import { EXIT } from '../exit-codes.ts';
import { closedBy, factsOf, readGates, sayRemarks } from '../gates.ts';
import { parseCount } from '../numbers.ts';
import { answerJson } from '../output.ts';
import { sayClosed } from '../skip.ts';
import { answer, say } from '../streams.ts';
import { findTarget } from '../target.ts';

export async function main(args: Arguments): Promise<number> {
  const limit = args.text('n');
  const most = limit === undefined ? Number.POSITIVE_INFINITY : parseCount(limit, '-n');
  const target = findTarget(args);
  const gates = readGates(args, target);
  const facts = factsOf(target, {
    at: systemClock.now(),
    look: () => target.lock.look(),
    // What its own run is working on is no candidate for anyone who asks within it.
    ownRun: async () => null,
  });
  await checkGates(gates, true, facts);
  const candidates = readCandidates('-');
  const choice = await chooseItems(candidates, gates, facts);
  const items = choice.items.slice(0, most);
  if (args.flag('json')) answerJson({ items, gates: choice.answers });
  else if (items.length > 0) answer(`${items.join('\n')}\n`);
  if (!args.flag('quiet')) sayRemarks(choice.answers);
  const closed = closedBy(choice.answers);
  if (closed !== null) {
    sayClosed(args, target, closed);
    return closed.code;
  }
  if (items.length > 0) return EXIT.ok;
  if (!args.flag('quiet'))
    say(
      candidates.length === 0
        ? 'runlock: there are no candidates'
        : `runlock: none of ${candidates.length} candidates may be started: ${choice.leftOut}`,
    );
  return EXIT.item;
}
