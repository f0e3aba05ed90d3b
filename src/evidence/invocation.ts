import { type Grammar, grammarOf } from './interpreters.ts';
import { baseName, familyOf, isShell, programName } from './programs.ts';

/** A command line, read as far as it tells what the process does: its program, and the script or the code it runs. */
export interface Invocation {
  program: string;
  kind: 'shell' | 'interpreter' | 'other';
  /** The script file as named, or null. */
  script: string | null;
  /** `python -m NAME`. */
  module: string | null;
  /** Code that stands on the command line itself (`sh -c TEXT`, `node -e CODE`). */
  text: string | null;
}

/** Options of shells that take the next word: `-euo pipefail`, `+O extglob`, `--rcfile FILE`. */
const SHELL_VALUE = /^([-+]\w*[oO]|--(rcfile|init-file|init-command))$/;

/** Reads an argument list. `comm`, the kernel's name, stands in where a process shows no arguments. */
export function readInvocation(argv: readonly string[], comm = ''): Invocation {
  const words = spread(argv);
  const program = programOf(words[0] ?? '', comm);
  const plain = { program, script: null, module: null, text: null };
  if (program === 'busybox' && words.length > 1) return readInvocation(words.slice(1));
  if (program === 'dotnet') {
    // PowerShell installed as a tool of .NET is a library that `dotnet` runs.
    const library = words.findIndex((word) => /\.dll$/i.test(word));
    if (baseName(words[library] ?? '') === 'pwsh.dll')
      return readInvocation(['pwsh', ...words.slice(library + 1)]);
  }
  if (isShell(program)) return { ...plain, kind: 'shell', ...readShell(familyOf(program), words.slice(1)) };
  const grammar = grammarOf(program);
  if (grammar === undefined) return { ...plain, kind: 'other' };
  return { ...plain, kind: 'interpreter', ...readOperands(grammar, words.slice(1)) };
}

function programOf(first: string, comm: string): string {
  // A login shell's first argument begins with a dash and need not name the shell: `-su`.
  const named = programName(first || comm);
  return first.startsWith('-') && isShell(programName(comm)) ? programName(comm) : named;
}

/** A process that gives itself a title (`npm exec runlock`, `sshd: ann@pts/0`) shows it as one single argument. */
function spread(argv: readonly string[]): readonly string[] {
  const [title] = argv;
  return argv.length === 1 && title !== undefined ? title.split(' ').filter((word) => word !== '') : argv;
}

type Operands = Pick<Invocation, 'script' | 'module' | 'text'>;
const NONE: Operands = { script: null, module: null, text: null };

function readShell(family: string, words: readonly string[]): Partial<Operands> {
  if (family === 'pwsh' || family === 'powershell') return readPowerShell(family, words);
  let letters = '';
  let at = 0;
  for (; at < words.length; at++) {
    const word = words[at] ?? '';
    if (word.startsWith('--command=')) return { text: word.slice('--command='.length) };
    if (word === '--command') letters += 'c';
    else if (word.startsWith('-') && !word.startsWith('--')) letters += word;
    else if (!/^(--|\+)./.test(word)) break;
    if (SHELL_VALUE.test(word)) at++;
    if (word === '-') break;
  }
  if (words[at] === '--' || words[at] === '-') at++;
  const operand = words[at] ?? null;
  // The text of `-c` is the first operand, behind all further options: `bash -c -e TEXT`.
  if (letters.includes('c')) return { text: operand ?? '' };
  // With `-s` the operands are arguments of what comes on stdin.
  return letters.includes('s') ? {} : { script: operand };
}

const POWERSHELL_FLAGS = 'noprofile nologo noninteractive login mta sta interactive'.split(' ');

/** Options may be cut short (`-nop`, `-fi`), and begin with a dash or, on Windows, a slash. */
function readPowerShell(family: string, words: readonly string[]): Partial<Operands> {
  let stays = false;
  for (let at = 0; at < words.length; at++) {
    const word = words[at] ?? '';
    const after = words.slice(at + 1);
    const name = /^[-/]([a-z]+)$/i.exec(word)?.[1]?.toLowerCase();
    // Without an option PowerShell 7 takes a file, Windows PowerShell code.
    if (name === undefined) return family === 'pwsh' ? { script: word } : codeUnless(stays, words.slice(at));
    if ('file'.startsWith(name)) return { script: after[0] ?? null };
    if (name === 'cwa' || name === 'commandwithargs') return codeUnless(stays, after.slice(0, 1));
    if ('command'.startsWith(name)) return codeUnless(stays, after);
    if (name.length > 2 && 'noexit'.startsWith(name)) stays = true;
    else if (!POWERSHELL_FLAGS.some((flag) => flag.startsWith(name))) at++;
  }
  return {};
}

/** With `-NoExit` the shell stays whatever its code is. */
function codeUnless(stays: boolean, words: readonly string[]): Partial<Operands> {
  return stays ? {} : { text: plainCode(words.join(' ')) };
}

/**
 * PowerShell's code as far as another shell would spell it: no call operator, none of its escapes, and without the
 * `exit $LASTEXITCODE` that it takes to pass on a command's code.
 */
function plainCode(code: string): string {
  return code
    .replace(/`\r?\n/g, ' ')
    .replace(/`(.)/g, '$1')
    .replace(/^\s*[&.]\s+/, '')
    .replace(/;\s*exit\s+\$LASTEXITCODE\s*;?\s*$/i, '');
}

function readOperands(grammar: Grammar, words: readonly string[]): Operands {
  let verbs = grammar.verbs;
  for (let at = 0; at < words.length; at++) {
    const word = words[at] ?? '';
    if (word === '-') return NONE;
    if (word === '--') return { ...NONE, script: words[at + 1] ?? null };
    if (word.startsWith('--')) {
      const name = word.replace(/=.*$/s, '');
      if (grammar.longCode?.includes(name))
        return { ...NONE, text: codeOf(word.slice(name.length + 1), words[at + 1]) };
      if (grammar.longValue?.includes(name) && name === word) at++;
    } else if (/^[-+]/.test(word)) {
      const read = readLetters(grammar, word, words[at + 1]);
      if (typeof read !== 'number') return read;
      at += read;
    } else if (verbs?.includes(word)) {
      verbs = undefined;
    } else {
      return { ...NONE, script: word };
    }
  }
  return NONE;
}

/** One word of single-letter options: what it settles, or how many of the next words belong to it. */
function readLetters(grammar: Grammar, word: string, next: string | undefined): Operands | number {
  for (let at = 1; at < word.length; at++) {
    const letter = word.charAt(at);
    const rest = word.slice(at + 1);
    if (grammar.code?.includes(letter)) return { ...NONE, text: codeOf(rest, next) };
    if (grammar.module?.includes(letter)) return { ...NONE, module: rest || (next ?? null) };
    if (grammar.file?.includes(letter)) return { ...NONE, script: rest || (next ?? null) };
    if (grammar.value?.includes(letter)) return rest === '' ? 1 : 0;
    if (grammar.attached?.includes(letter)) return 0;
  }
  return 0;
}

function codeOf(attached: string, next: string | undefined): string {
  return attached || (next ?? '');
}
