import { type EndedEvent, type EndOutcome, endedMarks, type Former, type TakenEvent } from './history.ts';
import { markRunning, markUnknown, turnUnknown } from './marker.ts';
import { type HandedIn, holderOf, type LockRecord, parseRecord } from './record.ts';
import { recordText, summaryOf } from './records.ts';
import { recordIn } from './rules.ts';
import type { Beginning, Ending, HandedInResult, Sighting } from './store.ts';

/* What the beginning and the end of a run leave behind. Pure: made from what was seen, written by a store. */

/** How a run ended, as far as its holder or its supervisor knows. */
export interface RunEnd {
  readonly outcome: EndOutcome;
  readonly exitCode: number | null;
  readonly reason: string | null;
  /** The outcome of the item is known, or nothing was begun. */
  readonly settled: boolean;
  /** How long it ran by a clock that does not step; absent where only the wall clock can tell. */
  readonly durationMs?: number;
}

/** The lock that a run took over, and why it might. */
export interface TookOver {
  readonly run: number | null;
  readonly reason: string;
}

export function beginningOf(record: LockRecord, at: string, tookOver: TookOver | null): Beginning {
  const { item, job, pid, host, tokenHash } = record;
  const event: TakenEvent = {
    event: 'taken',
    at,
    run: numberOf(record),
    item,
    job,
    pid,
    host: host ?? '',
    tokenHash,
    tookOver,
  };
  return { marker: markRunning(record, at), event };
}

/** The end of a run by its holder: a record with the result, or none where `result` is undefined. */
export function endingBy(
  record: LockRecord,
  at: string,
  end: RunEnd,
  result: string | null | undefined,
): Ending {
  const event = endedEvent(record, at, end, null);
  return { ...endOf(record, event, result), adopt: null };
}

/**
 * The end of a run by its supervisor. What the command has handed in is looked at under the guard, when nobody
 * can hand in any more.
 *
 * @param tell is told how the run ended then
 */
export function endingOfRun(
  record: LockRecord,
  at: string,
  end: RunEnd,
  tell: (ended: EndedEvent, handedIn: HandedInResult) => void,
): Ending {
  const adopt = (handedIn: HandedInResult) => {
    const { said } = handedIn;
    const outcome = end.outcome === 'finished' && said === 'failed' ? 'failed' : end.outcome;
    const event = endedEvent(record, at, { ...end, outcome, settled: end.settled || said !== null }, said);
    tell(event, handedIn);
    return endOf(record, event, handedIn.text);
  };
  return { ...endOf(record, endedEvent(record, at, end, null), null), adopt };
}

/**
 * The end of a run that was found dead. What its command had handed in becomes its record; if it had said by
 * `finish` how it went, the run counts as ended so, and not as interrupted.
 */
export function interruption(seen: Sighting, reason: string): Ending | null {
  const former = formerOf(seen);
  if (former === null || former.run === null || seen.lock === null) return null;
  const at = new Date(seen.now).toISOString();
  const lastKnown = new Date(Math.min(seen.lock.heartbeatAt, seen.now)).toISOString();
  const facts = { outcome: 'interrupted', exitCode: null, reason, settled: false } as const;
  const event: EndedEvent = { ...endedEvent(former, at, facts, null), former: identityOf(former, lastKnown) };
  // Settled by an operator meanwhile, it has no mark any more, and gets none.
  const marker = turnUnknown(former, lastKnown);
  const adopt = ({ said, text }: HandedInResult) => {
    if (said === null) {
      return { event, marker, record: text === null ? null : recordText(summaryOf(event), text) };
    }
    const told = `was killed after it had handed in its result (${reason})`;
    const ended = endedEvent(
      former,
      at,
      { outcome: said, exitCode: null, reason: told, settled: true },
      said,
    );
    return endOf(former, ended, text);
  };
  return { event, marker, record: null, adopt: former.live ? adopt : null };
}

/**
 * Whose run is found dead: the one in the lock, else (its content is no lock) the last one given out, from its
 * copy or its mark.
 */
function formerOf({ lock, last, lastCopy, marker }: Sighting): LockRecord | null {
  const record = recordIn(lock);
  if (record !== null || last === null || last.ended) return record;
  if (lastCopy !== null) return lastCopy;
  const mark = 'items' in marker ? marker.items.find((entry) => entry.run === last.run) : undefined;
  const known = { run: last.run, tokenHash: last.tokenHash, item: mark?.item, job: mark?.job };
  const parsed = parseRecord(JSON.stringify(known), '');
  return parsed.type === 'record' ? parsed.record : null;
}

/** Who the holder was, so that it is known when it comes back. */
function identityOf(former: LockRecord, lastKnown: string): Former {
  const holder = holderOf(former) ?? former.caller;
  return {
    processes: [...former.forks, ...(holder === null ? [] : [holder])],
    bootId: former.bootId,
    pidNamespace: former.pidNamespace,
    tokenHash: former.tokenHash,
    lastKnown,
  };
}

export function endedEvent(
  record: LockRecord,
  at: string,
  end: RunEnd,
  handedIn: HandedIn | null,
): EndedEvent {
  return {
    event: 'ended',
    outcome: end.outcome,
    at,
    run: numberOf(record),
    item: record.item,
    job: record.job,
    startedAt: record.acquiredAt,
    durationMs: end.durationMs ?? null,
    exitCode: end.exitCode,
    settled: end.settled,
    reason: end.reason,
    handedIn,
    former: null,
  };
}

function endOf(record: LockRecord, event: EndedEvent, result: string | null | undefined) {
  const marker = event.settled ? endedMarks(event) : markUnknown(record, event.at);
  return { event, marker, record: result === undefined ? null : recordText(summaryOf(event), result) };
}

/** The run's number, which every lock of ours has. */
export function numberOf(record: LockRecord): number {
  if (record.run === null) throw new Error('a lock of ours has a run number');
  return record.run;
}
