import { RunlockError } from '../errors.ts';
import { ancestors, findCaller } from '../evidence/caller.ts';
import { printable } from '../printable.ts';
import { type Claim, isHolder, isWithin } from '../rules.ts';
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
  const processes = { caller: callerChain(await findCaller()), ancestors: await ancestors() };

  const here = inherited === null || namesLock(args) ? findTarget(args) : await ownLockHere(args, processes);
  const isInherited = inherited !== null && (here === null || here.dir === inherited.lock);
  // A token in the environment belongs to the lock that stands beside it there; alone it is the user's own.
  const shown =
    token ?? (isInherited ? inherited.token : inherited === null ? process.env.RUNLOCK_TOKEN : undefined);
  return {
    target: here ?? targetAt(inherited?.lock ?? ''),
    claim: { ...processes, tokenHash: shown === undefined || shown === '' ? null : await hashToken(shown) },
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

async function ownLockHere(args: Arguments, processes: Omit<Claim, 'tokenHash'>): Promise<Target | null> {
  const target = findTarget(args);
  const { seen, evidence } = await target.lock.look();
  if (seen.lock === null || !('record' in seen.lock.content)) return null;
  const { record } = seen.lock.content;
  const claim = { ...processes, tokenHash: null };
  return isHolder(record, evidence, claim) || isWithin(record, evidence, claim) ? target : null;
}

function callerChain(caller: Awaited<ReturnType<typeof findCaller>>): Claim['caller'] {
  return [...caller.forks, ...(caller.process === null ? [] : [caller.process])];
}

function parseRun(text: string, what: string): number {
  const run = /^\d{1,15}$/.test(text) ? Number(text) : 0;
  if (run > 0) return run;
  throw new RunlockError(
    'usage',
    `${what}: expected the number that acquire printed, got "${printable(text, 40)}"`,
  );
}
