import { programName } from '../evidence/programs.ts';
import type { Root } from './root.ts';
import type { Started, Word } from './started.ts';
import { PRINTERS, START_NOTHING } from './wrappers.ts';

/** The word runlock, a path that ends in it, or a variable of that name. */
const MENTION =
  /(?:^|[\s'"`=;|&(){}<>$%@+!/\\:,])runlock(?:\.c?js|\.cmd|\.ps1|\.exe)?(?=$|[\s'"`;|&(){}<>,:])/i;
/** In what is printed: a command that takes the lock, and no word about it. */
const COMMAND = /runlock['"]?\s+(?:run|acquire)\b/i;

/** Whether a text names runlock at all: then something should be found in it. */
export function mentionsRunlock(text: string): boolean {
  return MENTION.test(text);
}

/** Whether a command that is no call of runlock's may start one all the same, in a way that is not followed. */
export function mayStartRunlock({ words }: Started, root: Root): boolean {
  const name = programName(words[0]?.text ?? '');
  if (START_NOTHING.has(name)) return false;
  if (PRINTERS.has(name)) return COMMAND.test(words.map(textOf).join(' '));
  return words.some((word) => mentionsRunlock(textOf(word)) && root.stat(word.text)?.isDirectory() !== true);
}

/** Whether a command names runlock, be it that it starts nothing. */
export function namesRunlock({ words }: Started): boolean {
  return words.some((word) => mentionsRunlock(textOf(word)));
}

function textOf({ text, rest }: Word): string {
  return rest ?? text;
}
