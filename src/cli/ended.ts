import type { Ended } from '../lock.ts';
import { printable } from '../printable.ts';
import type { Arguments } from './arguments.ts';
import { EXIT } from './exit-codes.ts';
import { answerJson, heldLine } from './output.ts';
import { say } from './streams.ts';
import type { Target } from './target.ts';

type Verb = 'hb' | 'finish' | 'release';

/**
 * Says what became of a `hb`, `finish` or `release`, and gives its exit code.
 *
 * @param ended null for `--run ''`: nothing was to be done
 */
export function reportEnded(args: Arguments, verb: Verb, target: Target | null, ended: Ended | null): number {
  const outcome = ended?.outcome ?? 'ok';
  const record = ended !== null && 'record' in ended ? ended.record : null;
  if (args.flag('json')) {
    answerJson({ outcome, run: ended?.run ?? null, ...(verb === 'finish' ? { record } : {}) });
  }
  if (target === null || ended === null) return EXIT.ok;
  const line = lineFor(verb, target, ended);
  if (line !== null) say(`runlock: ${line}`);
  return codeFor(verb, ended);
}

function codeFor(verb: Verb, ended: Ended): number {
  switch (ended.outcome) {
    case 'ok':
      return EXIT.ok;
    case 'lost':
      return EXIT.notYours;
    // A refused script's trap calls release on its way out: that must not spoil the script's own code.
    case 'none':
    case 'notYours':
      return verb === 'release' ? EXIT.ok : EXIT.notYours;
  }
}

function lineFor(verb: Verb, target: Target, ended: Ended): string | null {
  switch (ended.outcome) {
    case 'ok':
      return null;
    case 'lost': {
      const who = ended.run === null ? 'the lock' : `run ${ended.run}`;
      const kept =
        ended.record === null ? '' : `; what it handed in is kept as ${printable(ended.record, 4096)}`;
      return `${who} is over, its lock is lost: stop${kept} (${printable(target.dir, 4096)})`;
    }
    case 'none':
      return verb === 'release'
        ? null
        : `nothing is held in ${printable(target.dir, 4096)}: no run of yours to ${verb === 'hb' ? 'keep' : 'finish'}`;
    case 'notYours':
      return `not yours, nothing is changed: ${heldLine(target, ended.look)}`;
  }
}
