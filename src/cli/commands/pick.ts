import type { Arguments } from '../arguments.ts';
import { readCandidates, startable } from '../candidates.ts';
import { EXIT } from '../exit-codes.ts';
import { parseCount } from '../numbers.ts';
import { answerJson } from '../output.ts';
import { answer, say } from '../streams.ts';
import { findTarget } from '../target.ts';

export async function main(args: Arguments): Promise<number> {
  const limit = args.text('n');
  const most = limit === undefined ? Number.POSITIVE_INFINITY : parseCount(limit, '-n');
  const target = findTarget(args);
  const candidates = readCandidates('-');
  const items = startable(candidates, target, await target.lock.look()).slice(0, most);
  if (args.flag('json')) answerJson({ items });
  else if (items.length > 0) answer(`${items.join('\n')}\n`);
  if (items.length > 0) return EXIT.ok;
  if (!args.flag('quiet')) say(`runlock: none of ${candidates.length} candidates may be started`);
  return EXIT.item;
}
