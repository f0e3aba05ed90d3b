import { RunlockError } from '../errors.ts';
import { nearest } from '../guess.ts';
import { printable } from '../printable.ts';
import { COMMON, FLAG_STYLE } from './spec.ts';

/**
 * The command may stand behind common options (`runlock --dir runs status`), or be spelt as a flag
 * (`runlock --acquire ITEM`).
 */
export function splitVerb(argv: readonly string[]): { verb: string | null; rest: string[] } {
  for (let at = 0; at < argv.length; at += 1) {
    const word = argv[at] ?? '';
    const flag = FLAG_STYLE.find((name) => word === `--${name}` || word.startsWith(`--${name}=`));
    if (flag !== undefined) {
      const value = word.includes('=') ? [word.slice(word.indexOf('=') + 1)] : [];
      return { verb: flag, rest: [...argv.slice(0, at), ...value, ...argv.slice(at + 1)] };
    }
    if (!word.startsWith('-')) return { verb: word, rest: [...argv.slice(0, at), ...argv.slice(at + 1)] };
    const name = word.replace(/^--?/, '').replace(/=.*/s, '');
    if (!Object.hasOwn(COMMON, name) && name !== 'version') throw unknownLeadingOption(word, name);
    if (COMMON[name]?.value !== undefined && !word.includes('=')) at += 1;
  }
  return { verb: null, rest: [] };
}

function unknownLeadingOption(word: string, name: string): RunlockError {
  const near = nearest(name, [...Object.keys(COMMON), ...FLAG_STYLE]);
  const hint = near === null ? 'expected a command, see runlock --help' : `did you mean --${near}?`;
  return new RunlockError('usage', `runlock has no option ${printable(word, 60)}: ${hint}`);
}
