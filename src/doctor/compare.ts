import path from 'node:path';
import { readInvocation } from '../evidence/invocation.ts';
import { redactArgv } from '../redact.ts';
import { kindWords } from './entries.ts';
import { placeOf } from './finding.ts';
import type { Job, Use, UsedPlace } from './uses.ts';
import type { Visit } from './visit.ts';

/** What a job is told from another one by. */
interface JobKey {
  /** The script, or the program: an absolute path where there is one. */
  readonly program: string;
  readonly args: string;
  /** It is a file of somebody's own, not a tool that everybody starts. */
  readonly isFile: boolean;
}

/** Finds the entries of one job that would not keep each other out. */
export function compareJobs(uses: readonly Use[], jobs: readonly Job[], visit: Visit): void {
  const byProgram = new Map<string, { job: Job; key: JobKey }[]>();
  for (const job of jobs) {
    const key = keyOf(job, visit);
    if (key === null) continue;
    const known = byProgram.get(key.program);
    if (known === undefined) byProgram.set(key.program, [{ job, key }]);
    else known.push({ job, key });
  }
  for (const [program, all] of byProgram) {
    const byArgs = new Map<string, Job[]>();
    for (const { job, key } of all) {
      const known = byArgs.get(key.args);
      if (known === undefined) byArgs.set(key.args, [job]);
      else known.push(job);
    }
    for (const same of byArgs.values()) compareSame(program, same, visit);
    if (byArgs.size > 1 && all[0]?.key.isFile === true) noteOthers([...byArgs.values()], visit);
  }
  compareWithin(uses, visit);
}

/** Null for what is no job: a shell's own commands, what can't be told. */
function keyOf({ started, under }: Job, visit: Visit): JobKey | null {
  const words = started.words.map((word) => word.text);
  const [program = ''] = words;
  if (program === '' || started.words.some((word) => !word.certain) || NO_JOBS.has(program)) return null;
  const { kind, script, text, module } = readInvocation(words);
  if (kind !== 'other' && script === null && text === null && module === null) return null;
  const file = script ?? (program.includes('/') ? program : null);
  if (file === null) {
    // What stands beside an `acquire` may be anything, `logger` too; under `run` it is what is guarded.
    return under?.call.verb === 'acquire'
      ? null
      : { program, args: JSON.stringify(words.slice(1)), isFile: false };
  }
  if (!path.isAbsolute(file) && started.cwd === null) return null;
  const args = words.slice(words.indexOf(file) + 1);
  return {
    program: visit.root.real(path.resolve(started.cwd ?? '/', file)),
    args: JSON.stringify(args),
    isFile: true,
  };
}

const NO_JOBS = new Set(
  'exit return test [ [[ echo printf : true false sleep wait set trap read umask ulimit shift kill eval . source logger date mkdir rm touch'.split(
    ' ',
  ),
);

function compareSame(program: string, jobs: readonly Job[], visit: Visit): void {
  const { findings, root } = visit;
  const locked = firstOfEach(jobs);
  const [first, ...others] = locked;
  if (first === undefined) return;
  for (const other of others) {
    findings.add(
      'problem',
      'differentLocks',
      other.job.where,
      `${jobWords(other.job)} takes ${placeWords(other)}, but ${placeOf(first.job.where)} takes ${placeWords(first)}: the two never meet, and the job can run twice`,
      'name one directory and one lock in both',
    );
  }
  const bare = jobs.filter(({ under }) => under === null);
  // A script that asks for the lock by itself is locked wherever it is started.
  const asks = bare.length > 0 && /\brunlock\b/.test(root.textOf(program) ?? '');
  for (const { where } of asks ? [] : bare) {
    findings.add(
      'problem',
      'unguarded',
      where,
      `${jobWords(first.job)} is started without runlock, but with it by ${placeOf(first.job.where)}: the job can run twice`,
      'start it by runlock run here too',
    );
  }
  for (const job of jobs) {
    const { under } = job;
    if (under?.place == null || first.under.place === null || under === first.under) continue;
    if (under.place.identity !== first.place.identity) continue;
    const there = placeOf(first.job.where);
    if (under.place.config !== first.place.config)
      findings.add(
        'note',
        'differentConfigurations',
        job.where,
        `${jobWords(job)} reads ${configWords(under.place)}, but ${there} reads ${configWords(first.place)}`,
        'name one by --config in both, or their limits and gates differ',
      );
    const [user, other] = [under.started.user, first.under.started.user];
    if (user !== null && other !== null && user.uid !== other.uid)
      findings.add(
        'note',
        'differentUsers',
        job.where,
        `${jobWords(job)} takes the same lock as ${there} does, there as user ${other.name}: both must be able to write to what the job makes`,
      );
  }
}

interface Locked {
  readonly job: Job;
  readonly under: Use;
  readonly place: UsedPlace;
}

/** One job for each lock that is taken around the same thing. */
function firstOfEach(jobs: readonly Job[]): Locked[] {
  const found = new Map<string, Locked>();
  for (const job of jobs) {
    const place = job.under?.place ?? null;
    if (job.under === null || place === null || found.has(place.identity)) continue;
    found.set(place.identity, { job, under: job.under, place });
  }
  return [...found.values()];
}

/** With other arguments it may be another job, which then has a lock of its own. */
function noteOthers(groups: readonly (readonly Job[])[], { findings }: Visit): void {
  const locked = groups.flatMap((group) => firstOfEach(group).slice(0, 1));
  const [first, ...others] = locked;
  if (first === undefined) return;
  for (const other of others) {
    if (other.place.identity === first.place.identity) continue;
    findings.add(
      'note',
      'differentLocks',
      other.job.where,
      `${jobWords(other.job)} takes ${placeWords(other)}, but ${placeOf(first.job.where)}, with other arguments, takes ${placeWords(first)}`,
      'if that is the same job, name one lock in both',
    );
  }
}

/** The calls of one entry that take a lock and those that end it must mean the same one. */
function compareWithin(uses: readonly Use[], { findings }: Visit): void {
  for (const use of uses) {
    if (!['hb', 'finish', 'release'].includes(use.call.verb) || use.place === null) continue;
    const acquired = uses.filter(({ entry, call }) => entry === use.entry && call.verb === 'acquire');
    const places = acquired.flatMap(({ place }) => (place === null ? [] : [place]));
    const [first] = places;
    if (first === undefined || places.some(({ identity }) => identity === use.place?.identity)) continue;
    if (places.length < acquired.length) continue;
    findings.add(
      'problem',
      'differentLocks',
      use.where,
      `runlock ${use.call.verb} means the lock ${lockWords(use.place)}, but acquire takes ${lockWords(first)} at ${placeOf(acquired[0]?.where ?? null)}`,
      'name one directory and one lock in both',
    );
  }
}

/** The program and what it runs; further arguments may hold secrets. */
export function jobWords({ started, entry }: Job): string {
  const words = started.words.map((word) => word.text);
  const { script } = readInvocation(words);
  const shown = script === null ? words.slice(0, 1) : words.slice(0, words.indexOf(script) + 1);
  const more = shown.length < words.length ? ' …' : '';
  return `${redactArgv(shown).join(' ')}${more} (${kindWords(entry.kind)}, ${userWords(started.user?.name)})`;
}

function userWords(name: string | undefined): string {
  return name === undefined ? 'unknown user' : `user ${name}`;
}

export function lockWords({ base, lock }: UsedPlace): string {
  return lock === 'default' ? base : `${base}, lock ${lock}`;
}

function placeWords({ place }: Locked): string {
  return `${lockWords(place)} (${byWords(place)})`;
}

/** Why it is this directory. */
export function byWords({ by, config, base }: UsedPlace): string {
  switch (by) {
    case 'flag':
      return '--dir';
    case 'variable':
      return 'RUNLOCK_DIR';
    case 'config':
      return `by ${config ?? 'the configuration'}`;
    case 'nothing':
      return `nothing names it, and it starts in ${path.dirname(base)}`;
  }
}

function configWords({ config }: UsedPlace): string {
  return config === null ? 'no configuration' : `the configuration ${config}`;
}
