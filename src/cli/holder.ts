import { parseDuration } from '../clock.ts';
import { RunlockError } from '../errors.ts';
import { findCaller } from '../evidence/caller.ts';
import { here } from '../evidence/host.ts';
import { sightProcess, startOf } from '../evidence/process.ts';
import { ownSession } from '../evidence/tree.ts';
import { nameOf } from '../evidence/words.ts';
import type { Candidate } from '../lock.ts';
import { parseItem, parseJob } from '../names.ts';
import { printable } from '../printable.ts';
import { MAX_PID } from '../record.ts';
import type { Arguments } from './arguments.ts';
import { say } from './streams.ts';

type Draft = Candidate['record'];

/** What a lock record says whoever the holder is: the work, the hold, and where it was taken. */
export function draftRecord(args: Arguments, item: string | undefined, holdMs: number | null): Draft {
  const job = args.text('job');
  const { platform, host, bootId, pidNamespace } = here();
  return {
    pid: null,
    job: job === undefined ? null : parseJob(job),
    item: item === undefined ? null : parseItem(item),
    platform,
    host,
    bootId,
    pidNamespace,
    pidStarted: null,
    forks: [],
    caller: null,
    startedBy: null,
    session: null,
    command: null,
    commandPid: null,
    commandPidStarted: null,
    holdMs,
    killAfterMs: null,
    live: false,
    liveIndex: null,
    handedIn: null,
  };
}

/** The hold: the option, else the configuration's. */
export function readHold(args: Arguments, configured: number | null): number | null {
  const text = args.text('hold');
  if (text === undefined) return configured;
  return text === 'never' ? null : parseDuration(text, '--hold', { or: 'never' });
}

/**
 * Adds who holds the lock: the script that called, a process that is named, or none.
 *
 * @throws RunlockError `usage` where nobody can be the holder
 */
export async function withHolder(draft: Draft, args: Arguments): Promise<Draft> {
  const pid = args.text('pid');
  if (args.flag('no-pid')) {
    if (pid !== undefined)
      throw new RunlockError('usage', '--no-pid and --pid contradict each other: give one of them');
    if (args.text('token') === undefined) {
      throw new RunlockError(
        'usage',
        '--no-pid needs --token ID: without a process, only the ID shows whose the lock is',
      );
    }
    if (draft.holdMs === null) throw neverWithoutPid('--no-pid');
    return draft;
  }
  return pid === undefined ? withCaller(draft) : withProcess(draft, pid);
}

async function withProcess(draft: Draft, text: string): Promise<Draft> {
  const pid = /^\d{1,10}$/.test(text) ? Number(text) : 0;
  if (pid < 1 || pid > MAX_PID) {
    throw new RunlockError('usage', `--pid: expected the number of a process, got "${printable(text, 40)}"`);
  }
  const started = await startOf(pid);
  const liveness = await sightProcess({ pid, started });
  if (liveness === 'alive' || liveness === 'unsure')
    return { ...draft, pid, pidStarted: started, startedBy: await nameOf(pid) };
  throw new RunlockError('usage', `--pid ${pid}: there is no such process, so it can't hold the lock`);
}

async function withCaller(draft: Draft): Promise<Draft> {
  const caller = await findCaller();
  const name = caller.name === '' ? 'the calling process' : caller.name;
  switch (caller.kind) {
    case 'script': {
      const { process, forks } = caller;
      return {
        ...draft,
        pid: process?.pid ?? null,
        pidStarted: process?.started ?? null,
        forks,
        startedBy: caller.name,
      };
    }
    case 'indirect':
      if (draft.holdMs === null) throw neverWithoutPid(name);
      say(
        `runlock: ${name}${caller.process === null ? '' : ` (pid ${caller.process.pid})`} is not plainly a script, so the heartbeat alone decides: call runlock hb, or name the holder with --pid`,
      );
      return { ...draft, caller: caller.process, startedBy: caller.name };
    case 'nobody':
      throw new RunlockError(
        'usage',
        `${name} starts jobs and outlives them, so it can't hold the lock: use --no-pid --token ID (in pre and post hooks), --pid N, or runlock run`,
      );
  }
}

function neverWithoutPid(who: string): RunlockError {
  return new RunlockError(
    'usage',
    `--hold never needs a holder with a process, or the lock could stay for ever: ${who} has none`,
  );
}

/** The supervisor of `run` is the holder itself. */
export async function withSupervisor(draft: Draft): Promise<Draft> {
  const caller = await findCaller();
  return {
    ...draft,
    pid: process.pid,
    pidStarted: await startOf(process.pid),
    startedBy: caller.name,
    session: ownSession(),
    live: true,
  };
}
