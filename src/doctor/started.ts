import path from 'node:path';
import { readInvocation } from '../evidence/invocation.ts';
import { programName } from '../evidence/programs.ts';
import { type Part, readShell, type ShellWord } from './shell-words.ts';
import { findUser, type User } from './users.ts';
import { WRAPPERS, type Wrapper } from './wrappers.ts';

/** What a command is started in. */
export interface Start {
  /** Null where the system that is looked at does not know the user. */
  readonly user: User | null;
  /** Null where it can't be told: `cd "$(dirname "$0")"`. */
  readonly cwd: string | null;
  readonly env: ReadonlyMap<string, string>;
  /** Where the program itself is looked for, where that is not the PATH: systemd has a list of its own. */
  readonly searched?: string;
}

export interface Word {
  readonly text: string;
  /** It is what the program gets; else a part of it is known to the shell alone, and stands as it is written. */
  readonly certain: boolean;
  /** The text without its substitutions, where it has some: their commands are read by themselves. */
  readonly rest?: string;
}

/** A program that an entry starts, behind all that only leads to it. */
export interface Started extends Start {
  readonly words: readonly Word[];
}

export type Users = ReadonlyMap<string, User>;

/** Texts within texts: nobody writes more, and a hostile one must come to an end. */
const MAX_DEPTH = 8;
export const MAX_STARTED = 500;
/** The same for variables, as each command has them all. */
const MAX_VARIABLES = 1000;

/** The value of a variable that is only known when it runs; no value has this byte. */
export const UNKNOWN = '\0';

const KEYWORDS = new Set('if then elif else fi while until do done esac { } !'.split(' '));
/** What stands behind them, up to the next command, is a list of words. */
const HEADS = new Set(['for', 'case', 'select']);
const ASSIGNMENT = /^([A-Za-z_]\w*)=(.*)$/s;

/** What a shell's text starts, in order. Every branch of it counts as taken. */
export function startedByText(text: string, around: Start, users: Users): Started[] {
  const reader = new Reader(users);
  reader.readText(text, around, 0);
  return reader.found;
}

/** What an argument list starts: itself, or what its wrappers lead to. */
export function startedByWords(words: readonly Word[], around: Start, users: Users): Started[] {
  const reader = new Reader(users);
  reader.start(words, around, 0);
  return reader.found;
}

/** A shell in the middle of its text. */
interface ShellState {
  cwd: string | null;
  env: ReadonlyMap<string, string>;
  /** Not exported: they are filled in, but no program gets them. */
  own: ReadonlyMap<string, string>;
}

class Reader {
  readonly found: Started[] = [];
  readonly #users: Users;

  constructor(users: Users) {
    this.#users = users;
  }

  readText(text: string, around: Start, depth: number): void {
    if (depth > MAX_DEPTH) return;
    let state: ShellState = { cwd: around.cwd, env: around.env, own: new Map() };
    const outer: ShellState[] = [];
    let words: ShellWord[] = [];
    const endCommand = () => {
      if (words.length > 0) this.#readCommand(words, state, around.user, depth);
      words = [];
    };
    for (const token of readShell(text)) {
      if (this.found.length >= MAX_STARTED) return;
      if (token.type === 'word') words.push(token.word);
      // No subshell ends here: it was a pattern of `case`.
      else if (token.type === 'close' && outer.length === 0) words = [];
      else endCommand();
      // What a subshell changes ends with it.
      if (token.type === 'open') outer.push({ ...state });
      if (token.type === 'close') state = outer.pop() ?? state;
    }
    endCommand();
  }

  #readCommand(all: readonly ShellWord[], state: ShellState, user: User | null, depth: number): void {
    const inside = { user, cwd: state.cwd, env: state.env };
    for (const { parts } of all) {
      for (const part of parts) if (part.type === 'substitution') this.readText(part.text, inside, depth + 1);
    }
    const expanded = all.map((word) => expand(word, state));
    const begin = expanded.findIndex((word, at) => !(all[at]?.bare && KEYWORDS.has(word.text)));
    if (begin < 0 || (all[begin]?.bare && HEADS.has(expanded[begin]?.text ?? ''))) return;
    const assignments: [string, string][] = [];
    let at = begin;
    for (; all[at]?.bare; at++) {
      const assigned = assignmentIn(expanded[at]);
      if (assigned === null) break;
      assignments.push(assigned);
    }
    const words = expanded.slice(at);
    if (words.length === 0) for (const [name, value] of assignments) assign(state, name, value);
    else if (!builtIn(words, state))
      this.start(words, { ...inside, env: withAll(state.env, assignments) }, depth);
  }

  start(words: readonly Word[], around: Start, depth: number): void {
    const [program] = words;
    if (program === undefined || depth > MAX_DEPTH || this.found.length >= MAX_STARTED) return;
    const name = programName(program.text);
    const wrapper = program.certain ? WRAPPERS.get(name) : undefined;
    if (wrapper !== undefined) {
      this.#startWrapped(wrapper, name, words, around, depth);
      return;
    }
    const invocation = readInvocation(words.map((word) => word.text));
    if (invocation.kind === 'shell' && invocation.text !== null) {
      // A login or interactive shell reads the user's own files first.
      const reads = words
        .slice(1)
        .find(({ text }) => !/^[-+]/.test(text) || /^-\w*[li]|^--login$/.test(text));
      const env = /^-/.test(reads?.text ?? '') ? afterUnknown(around.env) : around.env;
      this.readText(invocation.text, { ...around, env }, depth + 1);
    } else this.found.push({ ...around, words });
  }

  #startWrapped(wrapper: Wrapper, name: string, words: readonly Word[], around: Start, depth: number): void {
    const { options, operands, at } = readOptions(wrapper, words);
    const given = (names: readonly string[] | true | undefined) =>
      options.filter((option) => Array.isArray(names) && names.includes(option.name));
    if (given(wrapper.astray).length > 0) {
      this.found.push({ ...around, words });
      return;
    }
    const inside = this.#inside(wrapper, { given, operand: operands[0] }, around);
    const env = new Map(inside.env);
    if (name === 'env') takeAway(options, words[at], env);
    let begin = name === 'env' && words[at]?.text === '-' ? at + 1 : at;
    for (; wrapper.assigns && begin < words.length; begin++) {
      const assigned = assignmentIn(words[begin]);
      if (assigned === null) break;
      env.set(...assigned);
    }
    const next = { ...inside, env };
    const text = given(wrapper.text)[0]?.value;
    const rest = words.slice(begin);
    if (text != null) this.readText(text.text, next, depth + 1);
    else if (name === 'flock' && rest[0]?.text === '-c') this.readText(rest[1]?.text ?? '', next, depth + 1);
    else if (wrapper.joins) this.readText(rest.map((word) => word.text).join(' '), next, depth + 1);
    else
      this.start(
        wrapper.appends === undefined ? rest : appended(rest, given(wrapper.appends)),
        next,
        depth + 1,
      );
  }

  /** What the command of a wrapper is started in; the assignments before it are not among it. */
  #inside(
    wrapper: Wrapper,
    {
      given,
      operand,
    }: { given: (names: readonly string[] | true | undefined) => Option[]; operand: Word | undefined },
    around: Start,
  ): Start {
    let { cwd, user } = around;
    const named = given(wrapper.user)[0]?.value ?? (wrapper.userOperand ? operand : undefined);
    if (named !== undefined) user = named.certain ? this.#userNamed(named.text, wrapper) : null;
    else if (wrapper.root) user = this.#users.get('root') ?? null;
    let env: ReadonlyMap<string, string> = wrapper.cleans ? new Map([['PATH', wrapper.cleans]]) : around.env;
    const home = user?.home ?? UNKNOWN;
    if ((named !== undefined || wrapper.root) && !wrapper.keepsHome) env = withAll(env, [['HOME', home]]);
    if (wrapper.cwd !== undefined) cwd = wrapper.cwd;
    if (given(wrapper.login).length > 0) {
      cwd = user?.home ?? null;
      env = afterUnknown(new Map([['HOME', home]]));
    }
    const dir = given(wrapper.dir)[0]?.value;
    if (dir != null) cwd = dir.certain ? path.resolve(cwd ?? '/', dir.text) : null;
    if (wrapper.setsUnknown === true || given(wrapper.setsUnknown).length > 0) env = afterUnknown(env);
    for (const { value } of given(wrapper.sets)) {
      // A name alone passes on the caller's value.
      const passed = () => [value?.text ?? '', around.env.get(value?.text ?? '') ?? ''] as const;
      env = withAll(env, [assignmentIn(value ?? undefined) ?? passed()]);
    }
    const searched = wrapper.finds ? { searched: around.env.get('PATH') ?? '' } : {};
    return { user, cwd, env, ...searched };
  }

  /** Behind the user's name may stand a group. */
  #userNamed(text: string, { number = null }: Wrapper): User | null {
    return findUser(this.#users, text.replace(/(?!^):.*$/s, ''), number);
  }
}

interface Option {
  readonly name: string;
  readonly value: Word | null;
}

/** The options of a wrapper, the words that belong to it, and where the command begins. */
function readOptions(wrapper: Wrapper, words: readonly Word[]) {
  const options: Option[] = [];
  const operands: Word[] = [];
  let at = 1;
  for (; at < words.length; at++) {
    const word = words[at];
    if (word === undefined) break;
    if (word.text === '--') {
      at++;
      break;
    }
    // su takes options behind the user's name too.
    const takes = wrapper.userOperand ? 1 : (wrapper.operands ?? 0);
    if (!word.text.startsWith('-') || (word.text === '-' && wrapper.login === undefined)) {
      const named = wrapper.userOperand && options.some(({ name }) => wrapper.user?.includes(name));
      if (operands.length >= takes || named) break;
      operands.push(word);
    } else {
      const read = readOption(wrapper, word, words[at + 1]);
      options.push(...read.options);
      at += read.taken;
    }
  }
  return { options, operands, at };
}

/** A command that goes on with words which are only known when it runs, at its end or in the place of a mark. */
function appended(words: readonly Word[], marks: readonly Option[]): readonly Word[] {
  if (words.length === 0) return words;
  if (marks.length === 0) return [...words, { text: '…', certain: false }];
  const texts = marks.map(({ value }) => value?.text ?? '{}');
  return words.map((word) =>
    texts.some((mark) => word.text.includes(mark)) ? { ...word, certain: false } : word,
  );
}

/** One word of options: `-n10`, `-n 10`, `--user=ann`; how many of the next words belong to it. */
function readOption(wrapper: Wrapper, word: Word, next: Word | undefined) {
  const { text, certain } = word;
  const options: Option[] = [];
  if (text.startsWith('--')) {
    const name = text.replace(/=.*$/s, '');
    const attached = name === text ? null : { text: text.slice(name.length + 1), certain };
    const takes = attached === null && wrapper.longValues?.includes(name) === true;
    return { options: [{ name, value: attached ?? (takes ? (next ?? null) : null) }], taken: takes ? 1 : 0 };
  }
  if (text === '-') return { options: [{ name: '-', value: null }], taken: 0 };
  for (let at = 1; at < text.length; at++) {
    const name = `-${text.charAt(at)}`;
    if (wrapper.values?.includes(text.charAt(at)) !== true) {
      options.push({ name, value: null });
      continue;
    }
    const rest = text.slice(at + 1);
    options.push({ name, value: rest === '' ? (next ?? null) : { text: rest, certain } });
    return { options, taken: rest === '' ? 1 : 0 };
  }
  return { options, taken: 0 };
}

/** What `env` takes away. */
function takeAway(options: readonly Option[], next: Word | undefined, env: Map<string, string>): void {
  const bare = options.some(({ name }) => ['-i', '-', '--ignore-environment'].includes(name));
  if (bare || next?.text === '-') env.clear();
  for (const { name, value } of options)
    if (name === '-u' || name === '--unset') env.delete(value?.text ?? '');
}

/** Whether it is one of the shell's own that say where and in what the next ones start. */
function builtIn(words: readonly Word[], state: ShellState): boolean {
  const [name = '', ...operands] = words.map((word) => word.text);
  switch (name) {
    case 'cd':
    case 'pushd': {
      const target = words.slice(1).find((word) => !/^-[LPe@]*$|^--$/.test(word.text));
      const home = knownHome(state);
      if (target === undefined) state.cwd = operands.includes('-') ? null : home;
      else if (!target.certain) state.cwd = null;
      else if (path.isAbsolute(target.text)) state.cwd = path.resolve(target.text);
      else state.cwd = state.cwd === null ? null : path.resolve(state.cwd, target.text);
      return true;
    }
    case 'export':
      state.env = withAll(
        state.env,
        words.slice(1).map((word) => {
          const known = () => state.own.get(word.text) ?? state.env.get(word.text) ?? '';
          return assignmentIn(word) ?? [word.text, known()];
        }),
      );
      return true;
    case 'unset': {
      const gone = new Set(operands);
      const kept = (variables: ReadonlyMap<string, string>) =>
        new Map([...variables].filter(([variable]) => !gone.has(variable)));
      state.env = kept(state.env);
      state.own = kept(state.own);
      return true;
    }
    case '.':
    case 'source':
    case 'eval':
      state.env = afterUnknown(state.env);
      return true;
    default:
      return false;
  }
}

function assign(state: ShellState, name: string, value: string): void {
  if (state.env.has(name)) state.env = withAll(state.env, [[name, value]]);
  else state.own = withAll(state.own, [[name, value]]);
}

function assignmentIn(word: Word | undefined): [string, string] | null {
  const [, name, value] = ASSIGNMENT.exec(word?.text ?? '') ?? [];
  return name === undefined || value === undefined ? null : [name, word?.certain ? value : UNKNOWN];
}

export function withAll(
  variables: ReadonlyMap<string, string>,
  more: readonly (readonly [string, string])[],
): ReadonlyMap<string, string> {
  if (more.length === 0) return variables;
  const all = new Map(variables);
  for (const [name, value] of more) if (all.has(name) || all.size < MAX_VARIABLES) all.set(name, value);
  return all;
}

/** After commands that nobody has read: they may set what says where runlock and its directory are. */
export function afterUnknown(env: ReadonlyMap<string, string>): ReadonlyMap<string, string> {
  return withAll(env, [
    ['PATH', UNKNOWN],
    ['RUNLOCK_DIR', UNKNOWN],
  ]);
}

function expand(word: ShellWord, state: ShellState): Word {
  let certain = true;
  const value = (part: Part): string => {
    if (part.type === 'text') return part.text;
    const known =
      part.type === 'variable' ? (state.own.get(part.name) ?? state.env.get(part.name)) : undefined;
    if (known !== undefined && known !== UNKNOWN) return known;
    certain = false;
    return part.raw;
  };
  let text = word.parts.map(value).join('');
  const home = knownHome(state);
  if (word.bare && home !== null && /^~(?=\/|$)/.test(text)) text = home + text.slice(1);
  else if (word.bare && text.startsWith('~')) certain = false;
  if (!word.parts.some(({ type }) => type === 'substitution')) return { text, certain };
  const rest = word.parts.map((part) => (part.type === 'substitution' ? ' ' : value(part))).join('');
  return { text, certain, rest };
}

function knownHome({ env }: ShellState): string | null {
  const home = env.get('HOME') ?? UNKNOWN;
  return home === UNKNOWN ? null : home;
}
