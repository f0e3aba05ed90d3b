import type { Arguments } from '../arguments.ts';
import { EXIT } from '../exit-codes.ts';
import { answerJson, statusJson, statusLines } from '../output.ts';
import { answer } from '../streams.ts';
import { findAllTargets, findTarget } from '../target.ts';

export async function main(args: Arguments): Promise<number> {
  const targets = args.flag('all') ? findAllTargets(args) : [findTarget(args)];
  const looks = [];
  for (const target of targets) looks.push({ target, look: await target.lock.look() });

  if (args.flag('json')) {
    const locks = looks.map(({ target, look }) => statusJson(target, look));
    answerJson(args.flag('all') ? { locks } : (locks[0] ?? {}));
  } else {
    answer(`${looks.map(({ target, look }) => statusLines(target, look).join('\n')).join('\n\n')}\n`);
  }
  return looks.some(({ look }) => look.verdict.state === 'held') ? EXIT.held : EXIT.ok;
}
