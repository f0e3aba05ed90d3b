import type { Clock } from './clock.ts';
import {
  beginningOf,
  endedEvent,
  endingBy,
  endingOfRun,
  interruption,
  numberOf,
  type RunEnd,
  type TookOver,
} from './endings.ts';
import { RunlockError } from './errors.ts';
import type { GateAnswer } from './gates/gate.ts';
import type { EndedEvent, Former, HistoryEvent, SkippedEvent } from './history.ts';
import { entriesOf, type MarkerItem, settleItem, unreadableMarker } from './marker.ts';
import type { HandedIn, LockRecord, ProcessRef } from './record.ts';
import { recordText, summaryOf } from './records.ts';
import {
  type Claim,
  type Evidence,
  isHolder,
  isOver,
  isWithin,
  judge,
  recordIn,
  samePids,
  sameProcess,
  showsToken,
  type Verdict,
} from './rules.ts';
import type { Change, Sighting, Store, Tie } from './store.ts';
import { hashToken } from './token.ts';
import { staleWords } from './words.ts';

/** Finds out about processes; apart from the lock, so that tests can say what they like. */
export interface Witness {
  gather(seen: Sighting, reference: string): Promise<Evidence>;
}

/** A lock, looked at and judged. */
export interface Look {
  readonly seen: Sighting;
  readonly evidence: Evidence;
  readonly verdict: Verdict;
}

/** Who will hold the lock, and how. */
export interface Candidate {
  readonly record: Omit<LockRecord, 'version' | 'run' | 'tokenHash' | 'acquiredAt' | 'deadline'>;
  readonly token: string;
  /** The token came from the user, who may have used it before. */
  readonly chosenToken: boolean;
  /** The time limit of a `run`, ms. */
  readonly timeoutMs?: number | null;
  /** Asked while the lock is held and before an item is marked. Undefined: nothing is to be asked. */
  readonly ask?: Ask;
  /** May make a held lock free, by ending what is overdue; tells whether to look again. */
  readonly makeRoom?: (look: Look) => Promise<boolean>;
}

/** What decides, under the lock, whether the run may begin. */
export interface Ask {
  /**
   * Who holds the lock while it asks: the asking process itself, so that its death frees the lock at once. Null:
   * the holder is that already.
   */
  readonly asker: ProcessRef | null;
  /** @throws RunlockError: the lock is freed, and nothing was begun */
  readonly permit: (look: Look, run: number) => Promise<Permission>;
}

export type Permission =
  | {
      readonly open: true;
      readonly item: string | null;
      readonly gates: readonly GateAnswer[];
      /** The last step before the item is marked, of what can't be undone; it may still find a gate closed. */
      readonly clear: (() => Promise<Closed | null>) | null;
    }
  | Closed;

/** Why a run may not begin. */
export interface Closed {
  readonly open: false;
  readonly code: number;
  readonly reason: string;
  readonly gates: readonly GateAnswer[];
}

export type Acquired =
  | {
      readonly outcome: 'acquired';
      readonly record: LockRecord;
      readonly run: number;
      readonly tookOver: TookOver | null;
      readonly tie: Tie | null;
      /** What earlier runs had left of the item. */
      readonly marks: readonly MarkerItem[];
      readonly gates: readonly GateAnswer[];
    }
  | { readonly outcome: 'held'; readonly look: Look }
  | {
      readonly outcome: 'closed';
      readonly run: number;
      readonly tookOver: TookOver | null;
      readonly closed: Closed;
    };

/** How to wait for a held lock. */
export interface Waiting {
  readonly forMs: number;
  readonly signal: AbortSignal;
  /** Whether the lock can't become free while we wait: its holder waits for us. */
  readonly inVain: (look: Look) => Promise<boolean>;
  /** Told again and again what is waited for. */
  readonly onWait: (look: Look) => void;
}

/** What became of a `hb`, `finish` or `release`. */
export type Ended =
  | {
      readonly outcome: 'ok';
      readonly run: number;
      readonly record: string | null;
      readonly handedIn: boolean;
    }
  | {
      readonly outcome: 'lost';
      readonly run: number | null;
      readonly record: string | null;
      readonly look: Look;
    }
  | { readonly outcome: 'none'; readonly run: number | null }
  | { readonly outcome: 'notYours'; readonly run: number | null; readonly look: Look };

export type SettledAs = 'done' | 'notDone' | null;
export type Settled =
  | { readonly outcome: 'settled'; readonly runs: readonly number[] }
  | { readonly outcome: 'held'; readonly look: Look }
  | { readonly outcome: 'absent' };

/** How far a heartbeat may be ahead before it is set back: file systems keep times to 2 s at the coarsest. */
const AHEAD_MS = 5_000;
/** So near to the end of the hold, ms, a heartbeat may meet a takeover. */
const LATE_MS = 10_000;

/** The verbs over one lock in a store. */
export class Lock {
  readonly store: Store;
  readonly #witness: Witness;
  readonly #clock: Clock;

  constructor(store: Store, witness: Witness, clock: Clock) {
    this.store = store;
    this.#witness = witness;
    this.#clock = clock;
  }

  /** Who holds it, as everyone may see. Changes nothing. */
  async look(): Promise<Look> {
    const seen = await this.store.look();
    const evidence = await this.#witness.gather(seen, this.store.where);
    return { seen, evidence, verdict: judge(seen.lock, evidence, seen.now) };
  }

  /**
   * Takes a free or stale lock. Of any number that try at once, one gets it.
   *
   * @throws RunlockError `usage` if the chosen token is that of the last run
   */
  async acquire(candidate: Candidate, waiting: Waiting | null = null): Promise<Acquired> {
    const tokenHash = hashToken(candidate.token);
    const until = waiting === null ? 0 : this.#clock.monotonic() + waiting.forMs;
    let roomMadeFor: string | null = null;
    for (let tries = 0; ; tries += 1) {
      const look = await this.look();
      if (candidate.chosenToken) refuseUsedToken(look.seen, tokenHash);
      if (look.verdict.state === 'held') {
        await this.#calm(look.seen);
        // Once for each lock: what can't be ended stays, and then the lock is just held.
        if (roomMadeFor !== look.seen.identity && candidate.makeRoom !== undefined) {
          roomMadeFor = look.seen.identity;
          if (await candidate.makeRoom(look)) continue;
        }
        if (waiting === null || waiting.signal.aborted || this.#clock.monotonic() >= until)
          return { outcome: 'held', look };
        if (tries === 0 && (await waiting.inVain(look))) return { outcome: 'held', look };
        waiting.onWait(look);
        const pause = Math.min(1_000, 100 + 50 * tries) * (0.75 + Math.random() / 2);
        await this.#pause(Math.min(pause, Math.max(0, until - this.#clock.monotonic())), waiting.signal);
        continue;
      }
      const taken = await this.#take(candidate, tokenHash, look);
      if (taken !== null) return taken;
    }
  }

  /** Sleeps, but not on when the waiting is called off. */
  async #pause(ms: number, signal: AbortSignal): Promise<void> {
    try {
      await this.#clock.sleep(ms, signal);
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }

  /** Null: what stands there has changed since the look. */
  async #take(candidate: Candidate, tokenHash: string, look: Look): Promise<Acquired | null> {
    const { value, tie } = await this.store.transact<Taking | null>((seen) => {
      // A death isn't undone, so evidence from before still holds, as long as it is about the same record.
      if (seen.identity !== look.seen.identity) return { value: null, change: null };
      const verdict = judge(seen.lock, look.evidence, seen.now);
      if (verdict.state === 'held') return { value: null, change: null };
      if (candidate.chosenToken) refuseUsedToken(seen, tokenHash);
      const taking = planTaking(candidate, tokenHash, seen, verdict);
      return { value: taking, change: taking.change };
    });
    if (value === null) return null;
    const { record, run, tookOver, marks } = value;
    const taken = { record, run, tookOver, marks, tie };
    if (candidate.ask === undefined) return { outcome: 'acquired', ...taken, gates: [] };
    try {
      return await this.#ask(candidate, candidate.ask, taken);
    } catch (error) {
      // Nobody was told of this run, so nobody would end it.
      const reason = error instanceof Error ? error.message : String(error);
      await this.cancel(record, 'error', reason, null);
      throw error;
    }
  }

  /**
   * Asks whether the run may begin, now that nobody else can, and begins it. Outside the guard: what is asked may
   * take its time, and the lock is ours.
   *
   * @returns null if the lock was taken over meanwhile (after the hold), or its files were removed
   */
  async #ask(candidate: Candidate, ask: Ask, taken: Taken): Promise<Acquired | null> {
    const { record, run, tookOver } = taken;
    const permission = await ask.permit(await this.look(), run);
    if (!permission.open) return this.#close(taken, permission);
    if ((await this.store.beat(run, record.tokenHash)) === 'other') return null;
    const closed = (await permission.clear?.()) ?? null;
    if (closed !== null) return this.#close(taken, closed);
    const { item, gates } = permission;
    const { value: begun } = await this.store.transact<LockRecord | null>((seen) => {
      if (!stands(record, seen)) return { value: null, change: null };
      const begun: LockRecord = { ...record, ...candidate.record, item };
      const begin = beginningOf(begun, iso(seen.now), tookOver);
      return { value: begun, change: { type: 'begin', record: begun, begin } };
    });
    return begun === null ? null : { outcome: 'acquired', ...taken, record: begun, gates };
  }

  /** Frees the lock of a run that may not begin, and writes down why. */
  async #close({ record, run, tookOver }: Taken, closed: Closed): Promise<Acquired> {
    await this.store.transact((seen) => {
      const { code, reason, gates } = closed;
      const event = { ...skipped(record, code, reason, iso(seen.now)), run, gates };
      return { value: null, change: { type: 'cancel', run, event } };
    });
    return { outcome: 'closed', run, tookOver, closed };
  }

  /** The first who meets a heartbeat from the future sets it to now, so that the hold bounds it. */
  async #calm(seen: Sighting): Promise<void> {
    if (seen.lock === null || seen.lock.source !== 'lock' || seen.lock.heartbeatAt <= seen.now + AHEAD_MS)
      return;
    await this.store.transact((again) => ({
      value: null,
      change: again.identity === seen.identity ? { type: 'refresh' } : null,
    }));
  }

  /** Writes down a run that did not begin. */
  async skip(record: Pick<LockRecord, 'item' | 'job' | 'pid'>, code: number, reason: string): Promise<void> {
    await this.store.append(skipped(record, code, reason, iso(this.#clock.now())));
  }

  /** Refreshes the heartbeat. From inside a `run` it asks only, and tells the watchdog. */
  async hb(claim: Claim, run: number | null): Promise<Ended> {
    const found = await this.#find(claim, run);
    if (found.type !== 'mine') return this.#notMine(found);
    const { record, look } = found;
    const number = numberOf(record);
    if (holderIsOver(record, look.evidence)) return { outcome: 'lost', run: number, record: null, look };
    if (record.live) {
      await this.store.ping(number);
      return { outcome: 'ok', run: number, record: null, handedIn: false };
    }
    // Late, it may meet a takeover that has judged the old heartbeat already: under the guard one comes first.
    const late =
      look.verdict.state === 'stale' ||
      (look.verdict.state === 'held' && (look.verdict.staleInMs ?? Infinity) < LATE_MS);
    const beat = late ? await this.#beatLate(record) : await this.store.beat(number, record.tokenHash);
    if (beat !== 'ok') return { outcome: 'lost', run: number, record: null, look };
    return { outcome: 'ok', run: number, record: null, handedIn: false };
  }

  async #beatLate(record: LockRecord): Promise<'ok' | 'other'> {
    const { value } = await this.store.transact<boolean>((seen) => {
      const mine = seen.lock?.source === 'lock' && ownRecord(record, seen) !== null;
      return { value: mine, change: mine ? { type: 'refresh' } : null };
    });
    return value ? 'ok' : 'other';
  }

  /**
   * Writes the record, settles the item, frees the lock. From inside a `run` it hands in the result only.
   *
   * @param result JSON text as it was handed in, or null
   */
  async finish(claim: Claim, run: number | null, result: string | null, how: HandedIn): Promise<Ended> {
    const found = await this.#find(claim, run);
    if (found.type !== 'mine') return this.#late(claim, found, run, result, how);
    const { record, look } = found;
    if (record.live) {
      if (!found.is.token && !found.is.within) return { outcome: 'notYours', run: record.run, look };
      return this.#handIn(record, look, result, how);
    }
    if (!found.is.token && !found.is.holder)
      return this.#late(claim, { type: 'other', look }, run, result, how);
    return this.#end(record, look, result, { outcome: how, exitCode: null, reason: null, settled: true });
  }

  /** Frees the lock without a result. `settledItem`: nothing was begun, the item need not stay marked. */
  async release(claim: Claim, run: number | null, settledItem: boolean): Promise<Ended> {
    const found = await this.#find(claim, run);
    if (found.type !== 'mine') return this.#notMine(found);
    const { record, look } = found;
    if (record.live) {
      return found.is.token || found.is.within
        ? { outcome: 'ok', run: numberOf(record), record: null, handedIn: false }
        : { outcome: 'notYours', run: record.run, look };
    }
    if (!found.is.token && !found.is.holder) return { outcome: 'notYours', run: record.run, look };
    return this.#end(record, look, undefined, {
      outcome: 'released',
      exitCode: null,
      reason: null,
      settled: settledItem,
    });
  }

  /** The number of the run that `finish` would end for this claim; null where there is none. */
  async ownRun(claim: Claim, run: number | null): Promise<number | null> {
    const found = await this.#find(claim, run);
    if (found.type !== 'mine') return null;
    const { record, is } = found;
    return is.token || (record.live ? is.within : is.holder) ? record.run : null;
  }

  /**
   * The supervisor's end of its run. Freed by nobody else.
   *
   * @returns how the run ended, and where something that the command handed in was kept because it is no JSON
   */
  async endRun(record: LockRecord, end: RunEnd): Promise<{ ended: EndedEvent; rejected: string | null }> {
    const run = numberOf(record);
    let told: { ended: EndedEvent; rejected: string | null } | null = null;
    await this.store.transact((seen) => {
      const outcome = stands(record, seen) ? end.outcome : 'lost';
      const ending = endingOfRun(record, iso(seen.now), { ...end, outcome }, (ended, { rejected }) => {
        told = { ended, rejected };
      });
      return { value: null, change: { type: 'end', run, ending } };
    });
    if (told === null) throw new Error('a store tells what a run has handed in when it ends');
    return told;
  }

  /** Takes back a run whose command could not begin: the item is as it was. */
  async cancel(
    record: LockRecord,
    outcome: 'error' | 'released',
    reason: string,
    exitCode: number | null,
  ): Promise<void> {
    await this.store.transact((seen) => {
      const event = endedEvent(record, iso(seen.now), { outcome, exitCode, reason, settled: true }, null);
      return { value: null, change: { type: 'cancel', run: numberOf(record), event } };
    });
  }

  /** Adds what became known of the run since it was taken. */
  async amend(record: LockRecord): Promise<void> {
    await this.store.transact(() => ({ value: null, change: { type: 'amend', record } }));
  }

  /**
   * The supervisor's heartbeat. If lock.json was deleted, it is put back, as long as the run is the last one given
   * out and its end stands nowhere.
   *
   * @returns false if the lock is lost
   */
  async beatRun(record: LockRecord): Promise<boolean> {
    const run = numberOf(record);
    const beat = await this.store.beat(run, record.tokenHash);
    if (beat !== 'missing') return beat === 'ok';
    const { value } = await this.store.transact<boolean>((seen) => {
      const { lock } = seen;
      const still =
        stands(record, seen) && lock?.ended !== true && seen.last?.run === run && !seen.last.ended;
      return { value: still, change: still && lock?.source !== 'lock' ? { type: 'amend', record } : null };
    });
    return value;
  }

  /** An operator has looked: drops the item from the marker. */
  async settle(item: string, as: SettledAs): Promise<Settled> {
    for (;;) {
      const look = await this.look();
      if (runsMarking(look.seen, item, this.store.where).length === 0) return { outcome: 'absent' };
      const { value } = await this.store.transact<Settled | null>((seen) => {
        if (seen.identity !== look.seen.identity) return { value: null, change: null };
        const runs = runsMarking(seen, item, this.store.where);
        if (runs.length === 0) return { value: { outcome: 'absent' }, change: null };
        const holder = recordIn(seen.lock)?.run ?? null;
        const verdict = judge(seen.lock, look.evidence, seen.now);
        if (verdict.state === 'held' && runs.some((run) => run === holder)) {
          return { value: { outcome: 'held', look }, change: null };
        }
        const event: HistoryEvent = { event: 'settled', at: iso(seen.now), item, as, runs };
        return {
          value: { outcome: 'settled', runs },
          change: { type: 'settle', marker: settleItem(item), event },
        };
      });
      if (value !== null) return value;
    }
  }

  async #handIn(record: LockRecord, look: Look, result: string | null, how: HandedIn): Promise<Ended> {
    const { value } = await this.store.transact<boolean>((seen) => {
      const current = ownRecord(record, seen);
      if (current === null) return { value: false, change: null };
      return { value: true, change: { type: 'handIn', record: { ...current, handedIn: how }, result } };
    });
    if (!value) return { outcome: 'lost', run: record.run, record: null, look };
    return { outcome: 'ok', run: numberOf(record), record: null, handedIn: true };
  }

  /** Ends the run of an `acquire` holder, if the lock is still its own. `result` undefined: no record. */
  async #end(record: LockRecord, look: Look, result: string | null | undefined, end: RunEnd): Promise<Ended> {
    const run = numberOf(record);
    const { value } = await this.store.transact<boolean>((seen) => {
      if (ownRecord(record, seen) === null) return { value: false, change: null };
      return {
        value: true,
        change: { type: 'end', run, ending: endingBy(record, iso(seen.now), end, result) },
      };
    });
    if (!value) return { outcome: 'lost', run, record: null, look };
    const path = result === undefined ? null : this.store.recordPath(run);
    return { outcome: 'ok', run, record: path, handedIn: false };
  }

  /** Which lock the claim is about, and what it is to the claim. */
  async #find(claim: Claim, run: number | null): Promise<Found> {
    const look = await this.look();
    const { lock, last } = look.seen;
    const record = recordIn(lock);
    const isUnended = record !== null && lock?.ended === false;
    if (run !== null && (!isUnended || record.run !== run)) return this.#earlier(run, last?.run ?? 0, look);
    if (lock === null || lock.ended) return { type: 'none', run: null };
    // Without a number it is another tool's lock, and that tool's to free.
    if (record === null || record.run === null) return { type: 'other', look };
    const is = {
      token: showsToken(record, claim),
      holder: isHolder(record, look.evidence, claim),
      within: isWithin(record, look.evidence, claim),
    };
    return is.token || is.holder || is.within ? { type: 'mine', record, look, is } : { type: 'other', look };
  }

  /** What became of an earlier run, named by `--run`. */
  async #earlier(run: number, last: number, look: Look): Promise<Found> {
    if (run > last) {
      throw new RunlockError(
        'usage',
        `--run ${run}: no such run was ever given out, the last one is ${last === 0 ? 'none' : last} (${this.store.where})`,
      );
    }
    const end = await this.store.endOf(run);
    const over = end?.event === 'ended' && (end.outcome === 'interrupted' || end.outcome === 'lost');
    return end === null || over ? { type: 'lost', run, look } : { type: 'ended', run };
  }

  /** Whether the caller held this lock until it was taken over from it. */
  async wasTakenFrom(claim: Claim, look: Look): Promise<boolean> {
    return (await this.#formerRun(claim, look, null)) !== null;
  }

  /** The last run that was taken over from the caller. */
  async #formerRun(claim: Claim, look: Look, run: number | null): Promise<EndedEvent | null> {
    const { events } = await this.store.events();
    const former = events.findLast(
      (event): event is EndedEvent =>
        event.event === 'ended' &&
        event.outcome === 'interrupted' &&
        (run === null || event.run === run) &&
        event.former !== null &&
        wasHolder(event.former, look.evidence, claim),
    );
    return former ?? null;
  }

  #notMine(found: Exclude<Found, { type: 'mine' }>): Ended {
    switch (found.type) {
      case 'none':
        return { outcome: 'none', run: null };
      case 'ended':
        return { outcome: 'ok', run: found.run, record: null, handedIn: false };
      case 'lost':
        return { outcome: 'lost', run: found.run, record: null, look: found.look };
      case 'other':
        return { outcome: 'notYours', run: runOf(found.look), look: found.look };
    }
  }

  /** A former holder comes back with a result: it is kept as the record of its own run, once. */
  async #late(
    claim: Claim,
    found: Exclude<Found, { type: 'mine' }>,
    run: number | null,
    result: string | null,
    how: HandedIn,
  ): Promise<Ended> {
    if (found.type === 'ended') return this.#notMine(found);
    const look = found.type === 'none' ? await this.look() : found.look;
    const former = await this.#formerRun(claim, look, run);
    if (former === null) return this.#notMine(found);
    await this.store.transact((seen) => {
      const at = iso(seen.now);
      const { item, reason } = former;
      const event: HistoryEvent = { event: 'late', at, run: former.run, item, outcome: how };
      const summary = summaryOf({ ...former, outcome: how, at, settled: false, reason, handedIn: how }, true);
      return {
        value: null,
        change: { type: 'late', run: former.run, record: recordText(summary, result), event },
      };
    });
    return { outcome: 'lost', run: former.run, record: this.store.recordPath(former.run), look };
  }
}

type Found =
  | {
      readonly type: 'mine';
      readonly record: LockRecord;
      readonly look: Look;
      readonly is: { readonly token: boolean; readonly holder: boolean; readonly within: boolean };
    }
  | { readonly type: 'other'; readonly look: Look }
  | { readonly type: 'none'; readonly run: null }
  | { readonly type: 'ended'; readonly run: number }
  | { readonly type: 'lost'; readonly run: number; readonly look: Look };

interface Taking {
  readonly record: LockRecord;
  readonly run: number;
  readonly tookOver: TookOver | null;
  readonly marks: readonly MarkerItem[];
  readonly change: Extract<Change, { type: 'take' }>;
}

/** A lock that is taken, and whose run has not begun perhaps. */
type Taken = Omit<Taking, 'change'> & { readonly tie: Tie | null };

/** Of the record to come, what tells of its holder. */
const NO_HOLDER = { forks: [], caller: null, startedBy: 'runlock, asking whether to begin' };

function planTaking(candidate: Candidate, tokenHash: string, seen: Sighting, verdict: Verdict): Taking {
  const at = iso(seen.now);
  const timeoutMs = candidate.timeoutMs ?? null;
  const asker = candidate.ask?.asker ?? null;
  const record: LockRecord = {
    version: 1,
    ...candidate.record,
    ...(asker === null ? {} : { ...NO_HOLDER, pid: asker.pid, pidStarted: asker.started }),
    run: seen.nextRun,
    tokenHash,
    acquiredAt: at,
    // From now on, not from when it was asked for: it may have waited.
    deadline: timeoutMs === null ? null : iso(seen.now + timeoutMs),
  };
  const former = recordIn(seen.lock);
  const tookOver =
    verdict.state === 'stale' && verdict.reason.type !== 'ended'
      ? { run: former?.run ?? null, reason: staleWords(verdict.reason, former) }
      : null;
  const after = tookOver === null ? null : interruption(seen, tookOver.reason);
  const begin = candidate.ask === undefined ? beginningOf(record, at, tookOver) : null;
  const marked = 'items' in seen.marker ? seen.marker.items : [];
  const marks = entriesOf(marked, record.item);
  return { record, run: seen.nextRun, tookOver, marks, change: { type: 'take', seen, record, after, begin } };
}

function skipped(
  { item, job, pid }: Pick<LockRecord, 'item' | 'job' | 'pid'>,
  code: number,
  reason: string,
  at: string,
): SkippedEvent {
  return { event: 'skipped', at, run: null, item, job, pid, code, reason };
}

/** The record that a run of ours has there still; null once it has ended or another has the lock. */
function ownRecord(record: LockRecord, { lock }: Sighting): LockRecord | null {
  const current = lock === null || lock.ended ? null : recordIn(lock);
  return current?.run === record.run && current?.tokenHash === record.tokenHash ? current : null;
}

/** Whether no other run has the lock; where lock.json was deleted, the last run given out decides. */
function stands(record: LockRecord, seen: Sighting): boolean {
  const { lock, last } = seen;
  if (lock?.source === 'lock') return ownRecord(record, seen) !== null;
  return last?.run === record.run && last.tokenHash === record.tokenHash;
}

function refuseUsedToken(seen: Sighting, tokenHash: string): void {
  const held = recordIn(seen.lock);
  if (seen.last?.tokenHash !== tokenHash && held?.tokenHash !== tokenHash) return;
  const run = held?.tokenHash === tokenHash ? held.run : seen.last?.run;
  throw new RunlockError(
    'usage',
    `--token: this is the token of run ${run}; each run needs a new one ($INVOCATION_ID, a build tag)`,
  );
}

function runsMarking(seen: Sighting, item: string, where: string): number[] {
  if ('problem' in seen.marker) throw unreadableMarker(seen.marker.problem, where);
  return entriesOf(seen.marker.items, item).map((entry) => entry.run);
}

/** Whether everything the holder consists of is known to be gone: then nobody may keep its lock alive. */
function holderIsOver(record: LockRecord, evidence: Evidence): boolean {
  if (record.pid === null || !samePids(record, evidence.here)) return false;
  const members = [evidence.holder, ...evidence.forks];
  if (record.live && record.commandPid !== null) members.push(evidence.command);
  return members.every(isOver);
}

function wasHolder(former: Former, evidence: Evidence, claim: Claim): boolean {
  if (former.tokenHash !== null && claim.tokenHash === former.tokenHash) return true;
  const { here } = evidence;
  if (former.bootId !== here.bootId || former.pidNamespace !== here.pidNamespace) return false;
  return former.processes.some((process) => claim.caller.some((caller) => sameProcess(caller, process)));
}

function runOf(look: Look): number | null {
  return recordIn(look.seen.lock)?.run ?? null;
}

function iso(ms: number): string {
  return new Date(ms).toISOString();
}
