import { RunlockError } from '../errors.ts';
import { ancestors, findCaller } from '../evidence/caller.ts';
import { startOf } from '../evidence/process.ts';
import { printable } from '../printable.ts';
import { type Claim, isHolder, isWithin, recordIn } from '../rules.ts';
import { hashToken } from '../token.ts';
import type { Arguments } from './arguments.ts';
import { findTarget, namesLock, type Target, targetAt } from './target.ts';

/** What `hb`, `finish` and `release` are about: which lock, on whose behalf, which run. */
export interface Subject {
  readonly target: Target;
  readonly claim: Claim;
  readonly run: number | null;
}

/**
 * Finds the lock that the caller means. Inside a `run` that is the run's lock, unless the command line names one,
 * or the caller holds the lock that `acquire` would take here: a nested script of another project frees its own.
 *
 * @returns null for `--run ''`: the acquire had failed, nothing is to be done
 */
export async function findSubject(args: Arguments): Promise<Subject | null> {
  const runOption = args.possiblyEmpty('run');
  if (runOption === '') return null;
  const run = runOption === undefined ? null : parseRun(runOption, '--run');
  const token = args.text('token');
  const inherited = inheritedIdentity();
  // A shell that makes us its last command becomes us: then the holder is this very process.
  const self = { pid: process.pid, started: await startOf(process.pid) };
  const processes = {
    caller: [self, ...callerChain(await findCaller())],
    ancestors: [self, ...(await ancestors())],
  };

  const here = inherited === null || namesLock(args) ? findTarget(args) : await ownLockHere(args, processes);
  const isInherited = inherited !== null && (here === null || here.dir === inherited.lock);
  // A token in the environment belongs to the lock that stands beside it there; alone it is the user's own.
  const shown =
    token ?? (isInherited ? inherited.token : inherited === null ? process.env.RUNLOCK_TOKEN : undefined);
  return {
    target: here ?? targetAt(inherited?.lock ?? ''),
    claim: { ...processes, tokenHash: shown === undefined || shown === '' ? null : hashToken(shown) },
    run: run ?? (isInherited ? inherited.run : null),
  };
}

interface Inherited {
  readonly lock: string;
  readonly run: number;
  readonly token: string | undefined;
}

/** What `run` gave its command. */
function inheritedIdentity(): Inherited | null {
  const lock = process.env.RUNLOCK_LOCK;
  if (lock === undefined || lock === '') return null;
  return {
    lock,
    run: parseRun(process.env.RUNLOCK_RUN ?? '', 'RUNLOCK_RUN'),
    token: process.env.RUNLOCK_TOKEN,
  };
}

/**
 * The lock that `acquire` would take here, if the caller holds it, or held it until it was taken over: asking about
 * the outer run then would tell it to go on.
 */
async function ownLockHere(args: Arguments, processes: Omit<Claim, 'tokenHash'>): Promise<Target | null> {
  // In a directory that was deleted there is no lock of one's own.
  if (!hasWorkingDirectory()) return null;
  const target = findTarget(args);
  if (target.dir === process.env.RUNLOCK_LOCK) return target;
  const look = await target.lock.look();
  const { seen, evidence } = look;
  const claim = { ...processes, tokenHash: null };
  const record = recordIn(seen.lock);
  const holds = record !== null && (isHolder(record, evidence, claim) || isWithin(record, evidence, claim));
  return holds || (seen.last !== null && (await target.lock.wasTakenFrom(claim, look))) ? target : null;
}

function hasWorkingDirectory(): boolean {
  try {
    process.cwd();
    return true;
  } catch {
    return false;
  }
}

function callerChain(caller: Awaited<ReturnType<typeof findCaller>>): Claim['caller'] {
  return [...caller.forks, ...(caller.process === null ? [] : [caller.process])];
}

function parseRun(text: string, what: string): number {
  const run = /^\d{1,15}$/.test(text) ? Number(text) : 0;
  if (run > 0) return run;
  throw new RunlockError(
    'usage',
    `${what}: expected the run number that acquire printed${text.includes('\t') ? ' before the tab' : ''}, got "${printable(text, 40)}"`,
  );
}
