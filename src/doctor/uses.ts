import path from 'node:path';
import { type LockPlace, type NamedPlace, refuseAccident, resolvePlace } from '../config/place.ts';
import { RunlockError, systemCode } from '../errors.ts';
import { readInvocation } from '../evidence/invocation.ts';
import { programName } from '../evidence/programs.ts';
import { redactArgv } from '../redact.ts';
import type { Entry, Step } from './entries.ts';
import type { Where } from './finding.ts';
import { mayStartRunlock, mentionsRunlock, namesRunlock } from './mentions.ts';
import type { Sandbox, Seen } from './sandbox.ts';
import { MAX_STARTED, type Started, startedByWords, UNKNOWN, type Word } from './started.ts';
import { SWEPT, type Visit } from './visit.ts';

/** What a command line of runlock's says, as runlock itself reads it. */
export interface Call {
  readonly verb: string;
  readonly named: NamedPlace;
  /** The command of `run`. */
  readonly command: readonly string[];
}

/**
 * Reads the arguments behind `runlock`. Null for a call that is about no lock (`--version`).
 * @throws RunlockError `usage`
 */
export type ReadCall = (argv: readonly string[]) => Call | null;

/** One call of runlock's in an entry, and the lock that it means. */
export interface Use {
  readonly entry: Entry;
  readonly where: Where;
  readonly started: Started;
  /** The word that names the program, and the Node before it, if one is named. */
  readonly program: string;
  readonly node: string | null;
  readonly call: Call;
  readonly sandbox: Sandbox | null;
  /** Null where it can't be told. */
  readonly place: UsedPlace | null;
}

export interface UsedPlace {
  /** The state directory, as that system calls it. */
  readonly base: string;
  readonly lock: string;
  readonly config: string | null;
  readonly singleMachine: boolean;
  readonly by: LockPlace['by'];
  /** Two places with the same one are the same lock. */
  readonly identity: string;
}

/** A program that is no runlock, and is started by an entry or by the `run` of one. */
export interface Job {
  readonly entry: Entry;
  readonly where: Where;
  readonly started: Started;
  /** The call that takes the lock around it. */
  readonly under: Use | null;
}

/** Commands that take or free a lock: they are what a job's entries must agree on. */
const TAKING = new Set(['acquire', 'run']);
/** Commands that write nothing. */
const LOOKING = new Set(['status', 'history']);

/** Finds the calls of runlock's in entries, and what runs under them. */
export function findUses(
  entries: readonly Entry[],
  visit: Visit,
  readCall: ReadCall,
): { uses: Use[]; jobs: Job[] } {
  const uses: Use[] = [];
  const jobs: Job[] = [];
  for (const entry of entries) {
    const own: Use[] = [];
    const bare: { where: Where; started: Started }[] = [];
    for (const step of entry.steps) {
      const { where } = step;
      let calls = 0;
      for (const one of step.started) {
        const found = readUse(entry, step, one, visit, readCall);
        if (found !== 'none') calls += 1;
        if (found === 'none') {
          if (!isAstray(one, where, visit)) bare.push({ where, started: one });
        } else if (found !== null) own.push(...usesWithin(found, visit, readCall, jobs, 0));
      }
      lookForMore(step, calls, visit);
    }
    const acquired = own.find(({ call }) => call.verb === 'acquire') ?? null;
    jobs.push(...bare.map(({ where, started }) => ({ entry, where, started, under: acquired })));
    uses.push(...own);
  }
  return { uses, jobs };
}

/** A command that may start runlock in a way that is not followed is no job of its own; it is told. */
function isAstray(started: Started, where: Where, visit: Visit): boolean {
  if (!mayStartRunlock(started, visit.root)) return false;
  const [program = ''] = redactArgv(started.words.slice(0, 1).map((word) => word.text));
  sayAstray(`its words name runlock, but how ${program} starts it is not followed`, where, visit);
  return true;
}

/** What names runlock, and no command that was found in it does. */
function lookForMore({ where, text, started }: Step, calls: number, visit: Visit): void {
  if (!mentionsRunlock(text)) return;
  if (started.length >= MAX_STARTED) sayAstray('it starts more than is looked at', where, visit);
  else if (calls === 0 && !started.some(namesRunlock))
    sayAstray('it names runlock, but no command that was found in it does', where, visit);
}

function sayAstray(what: string, where: Where, { findings }: Visit): void {
  findings.add(
    'note',
    'unsure',
    where,
    `whether this takes a lock, and which one, can't be told from here: ${what}`,
    'look by hand which directory and lock it means',
  );
}

/** `run` within `run`: nobody goes further, and a hostile line must come to an end. */
const MAX_DEPTH = 8;

/** A call, and those in the command of a `run`. */
function usesWithin(use: Use, visit: Visit, readCall: ReadCall, jobs: Job[], depth: number): Use[] {
  const { entry, where, started, call } = use;
  if (call.verb !== 'run' || depth > MAX_DEPTH) return [use];
  const words = started.words.slice(started.words.length - call.command.length);
  const inner = startedByWords(
    words,
    { user: started.user, cwd: started.cwd, env: started.env },
    visit.users,
  );
  const uses = [use];
  for (const one of inner) {
    const found = readUse(entry, use, one, visit, readCall);
    if (found === 'none') {
      if (!isAstray(one, where, visit)) jobs.push({ entry, where, started: one, under: use });
    } else if (found !== null) uses.push(...usesWithin(found, visit, readCall, jobs, depth + 1));
  }
  return uses;
}

/** `none`: it is not runlock. Null: it is, but about no lock, or can't be read. */
function readUse(
  entry: Entry,
  { where, sandbox }: Pick<Step, 'where' | 'sandbox'>,
  started: Started,
  visit: Visit,
  readCall: ReadCall,
): Use | 'none' | null {
  const program = programOf(started.words);
  if (program === null) return 'none';
  const argv = started.words.slice(program.at + 1);
  try {
    const call = readCall(argv.map((word) => word.text));
    if (call === null) return null;
    const place = placeOfCall(call, argv, started, { where, sandbox }, visit);
    // A task's user is the system's affair: no files say what he may do.
    if (started.user === null && entry.kind !== 'task' && !visit.findings.hasDoubt(where))
      visit.findings.add(
        'note',
        'unsure',
        where,
        "which user this runs as can't be told from here, so not what he may write to either",
      );
    return { entry, where, started, program: program.text, node: program.node, call, sandbox, place };
  } catch (error) {
    if (!(error instanceof RunlockError)) throw error;
    if (argv.some((word) => !word.certain)) {
      sayAstray('a part of its command line is only known when it runs', where, visit);
      return null;
    }
    const what = `runlock refuses this command line: ${harmless(readCall, argv) ?? 'see its own message'}`;
    visit.findings.add('problem', 'misuse', where, what, 'mend it: this entry fails with code 2');
    return null;
  }
}

/** What is wrong with a command line, in words that quote no secret of it. */
function harmless(readCall: ReadCall, argv: readonly Word[]): string | null {
  try {
    readCall(redactArgv(argv.map((word) => word.text)));
    return null;
  } catch (error) {
    return error instanceof RunlockError ? error.message : null;
  }
}

function programOf(words: readonly Word[]): { at: number; text: string; node: string | null } | null {
  const [first] = words;
  if (first === undefined) return null;
  if (isRunlock(first.text)) return { at: 0, text: first.text, node: null };
  if (!/^node(js)?(-?[\d.]+)?$/.test(programName(first.text))) return null;
  const { script } = readInvocation(words.map((word) => word.text));
  if (script === null || !isRunlock(script)) return null;
  return { at: words.findIndex((word) => word.text === script), text: script, node: first.text };
}

function isRunlock(text: string): boolean {
  return /^runlock(\.c?js|\.cmd|\.ps1)?$/.test(programName(text));
}

/** Something was needed that can't be told. */
class Unsure extends Error {}

function placeOfCall(
  call: Call,
  argv: readonly Word[],
  started: Started,
  { where, sandbox }: Pick<Step, 'where' | 'sandbox'>,
  visit: Visit,
): UsedPlace | null {
  const { root, findings } = visit;
  const { named } = call;
  const unsure = (what: string) => {
    findings.add(
      'note',
      'unsure',
      where,
      `which lock this is can't be told from here: ${what}`,
      'name it by --dir',
    );
    return null;
  };
  // What stands behind them is the command of `run`.
  const own = argv.slice(0, argv.length - call.command.length);
  const values = [named.dir, named.name, named.config].filter((value) => value !== undefined);
  const isDoubtful = ({ text, certain }: Word) => !certain && values.some((value) => text.endsWith(value));
  if (own.some(isDoubtful)) return unsure('what it says is only known when it runs');
  try {
    // A unit may not see a link on the way.
    const names = new Map<string, string>();
    const outer = (inner: string) => {
      names.set(root.outer(inner), inner);
      return root.outer(inner);
    };
    const place = resolvePlace(named, {
      resolve: (file) => {
        if (path.isAbsolute(file)) return outer(file);
        if (started.cwd === null) throw new Unsure('its current directory is only known when it runs');
        return outer(path.resolve(started.cwd, file));
      },
      variable: (name) => {
        const value = started.env.get(name);
        if (value === UNKNOWN) throw new Unsure(`${name} is set by then`);
        return value || undefined;
      },
      top: root.dir,
    });
    // A configuration's own absolute path is one of that system's.
    const base = root.inner(place.base);
    const seen = sandbox?.look(names.get(place.base) ?? base) ?? { type: 'plain' };
    if (seen.type === 'unsure') return unsure(`the unit may see another directory there (${seen.by})`);
    if (seen.type !== 'plain') saySeen(seen, base, call, where, visit);
    refuse(place, base, call, started, where, visit);
    return {
      base,
      lock: place.name.text,
      config: place.config.path === null ? null : root.inner(place.config.path),
      singleMachine: place.config.singleMachine,
      by: place.by,
      identity: `${seen.type === 'own' ? where.file : directoryIdentity(visit, base)}\0${place.name.key}`,
    };
  } catch (error) {
    if (error instanceof Unsure) return unsure(error.message);
    if (!(error instanceof RunlockError)) throw error;
    const closed = error.code === 'io' && ['EACCES', 'EPERM'].includes(systemCode(error.cause) ?? '');
    if (closed)
      findings.add('unseen', 'unreadable', where, `its configuration could not be read: ${error.message}`);
    else
      findings.add('problem', 'configuration', where, error.message, 'mend it: this entry fails with code 2');
    return null;
  }
}

/** What a unit's own file system makes of its state directory. */
function saySeen(
  { type, by }: Exclude<Seen, { type: 'plain' }>,
  base: string,
  call: Call,
  where: Where,
  { findings }: Visit,
): void {
  switch (type) {
    case 'own':
      findings.add(
        'problem',
        'privateTmp',
        where,
        `${base} is the unit's own (${by}): no other entry ever meets its lock, and it is gone when the unit ends`,
        SWEPT.test(base)
          ? 'name a directory outside of /tmp and /var/tmp'
          : 'name a directory that it shares',
      );
      return;
    case 'hidden':
      findings.add(
        'problem',
        'notWritable',
        where,
        `the unit does not see ${base} (${by})`,
        'name another directory',
      );
      return;
    case 'readOnly':
      if (!LOOKING.has(call.verb))
        findings.add(
          'problem',
          'notWritable',
          where,
          `the unit may not write to ${base} (${by})`,
          `ReadWritePaths=${base}`,
        );
      return;
    case 'passing':
      findings.add(
        'note',
        'unsure',
        where,
        `whether its lock is there when it is needed can't be told from here: ${base} is removed when the unit ends (${by}), whoever holds the lock then`,
        'RuntimeDirectoryPreserve=yes, or StateDirectory=',
      );
      return;
    case 'unsure':
      return;
  }
}

function refuse(
  place: LockPlace,
  base: string,
  call: Call,
  started: Started,
  where: Where,
  visit: Visit,
): void {
  if (place.by !== 'nothing' || !TAKING.has(call.verb)) return;
  const { root, findings } = visit;
  if (root.stat(base) === null) {
    try {
      refuseAccident(root.outer(base), [
        root.dir,
        ...(started.user === null ? [] : [root.outer(started.user.home)]),
      ]);
    } catch (error) {
      if (!(error instanceof RunlockError)) throw error;
      const dir = path.dirname(base);
      findings.add(
        'problem',
        'nowhere',
        where,
        `no state directory is named, and runlock makes no ./runs in ${dir}, where this starts`,
        'name one: --dir, or RUNLOCK_DIR',
      );
      return;
    }
  }
  findings.add(
    'note',
    'assumed',
    where,
    `no state directory is named: it is ${base} because this starts in ${path.dirname(base)}`,
    'name it by --dir, so that every entry means the same',
  );
}

/** By the directory itself where there is one: a path may be a link, or the mount of another. */
function directoryIdentity({ root }: Visit, base: string): string {
  const stat = root.stat(base);
  return stat === null ? root.real(base) : `${stat.dev}:${stat.ino}`;
}
