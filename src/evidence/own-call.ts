import { grammarOf } from './interpreters.ts';
import { baseName, isLauncher, isShell, programName } from './programs.ts';
import { simpleCommand } from './shell-text.ts';

/** This very call, as a parent's command line would spell it. */
export interface OwnCall {
  /** Names of this program, without the ending. */
  names: ReadonlySet<string>;
  /** What came after the name. */
  args: readonly string[];
}

/** From `process.argv`: the interpreter, the file, the arguments. */
export function ownCall(argv: readonly string[]): OwnCall {
  return { names: new Set(['runlock', stem(argv[1] ?? 'runlock')]), args: argv.slice(2) };
}

/** `/opt/bin/runlock.cmd`, `runlock@1.2` (as `npx` takes it) and `dist/runlock.cjs` are all `runlock`. */
export function namesUs(own: OwnCall, word: string): boolean {
  return own.names.has(stem(word).replace(/@.*$/, ''));
}

/** Whether this text is one simple command, and that is this call: directly, or by way of launchers, shells, `node`. */
export function isOwnCall(own: OwnCall, text: string): boolean {
  const words = simpleCommand(text) ?? [];
  const [first, ...rest] = words.slice(words.findIndex((word) => !PREFIXES.has(word)));
  if (first === undefined) return false;
  if (namesUs(own, first)) return true;
  // `$RUNLOCK acquire x`: what the variable holds can't be seen, but the verb can.
  if (first.includes('$') && rest[0] !== undefined && rest[0] === own.args[0]) return true;
  return (first.includes('$') || leadsOn(first)) && isOwnWords(own, rest);
}

/**
 * Whether this argument list ends with this whole call, word for word. Who was handed all of it (a
 * wrapper that nobody has listed) runs it and ends with it.
 */
export function endsWithOwnCall(own: OwnCall, argv: readonly string[]): boolean {
  const at = argv.length - own.args.length - 1;
  return (
    at > 0 &&
    own.args.length > 0 &&
    namesUs(own, argv[at] ?? '') &&
    own.args.every((word, offset) => word === argv[at + 1 + offset])
  );
}

/** Words before a command that leave it the one command it is. */
const PREFIXES = new Set(['exec', 'command', '!']);

function leadsOn(word: string): boolean {
  const program = programName(word);
  return isLauncher(program) || isShell(program) || grammarOf(program) !== undefined;
}

/** Options of launchers are many, so any of their words may be the call, or a text that is. */
function isOwnWords(own: OwnCall, words: readonly string[]): boolean {
  return words.some((word) => namesUs(own, word) || (/\s/.test(word) && isOwnCall(own, word)));
}

function stem(path: string): string {
  return baseName(path).replace(/\.([cm]?[jt]s|cmd|exe|ps1|bat)$/i, '');
}
