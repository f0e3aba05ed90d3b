import type { GateAnswer } from './gates/gate.ts';
import {
  type MarkerEdit,
  type MarkerItem,
  markRunning,
  markUnknown,
  settleItem,
  turnUnknown,
  unmark,
} from './marker.ts';
import type { ProcessRef } from './record.ts';

/** How a run ended. Success is `finished` alone. */
export type EndOutcome = 'finished' | 'failed' | 'timedOut' | 'released' | 'interrupted' | 'lost' | 'error';

/** A run began. */
export interface TakenEvent {
  readonly event: 'taken';
  readonly at: string;
  readonly run: number;
  readonly item: string | null;
  readonly job: string | null;
  readonly pid: number | null;
  readonly host: string;
  readonly tokenHash: string | null;
  readonly tookOver: { readonly run: number | null; readonly reason: string } | null;
}

/** A run ended; of two ends of one run the first counts. */
export interface EndedEvent {
  readonly event: 'ended';
  readonly outcome: EndOutcome;
  readonly at: string;
  readonly run: number;
  readonly item: string | null;
  readonly job: string | null;
  readonly startedAt: string | null;
  /** By the supervisor's own clock, which does not step; null where only the times tell. */
  readonly durationMs: number | null;
  readonly exitCode: number | null;
  /** The outcome of the item is known, or nothing of it was begun. */
  readonly settled: boolean;
  readonly reason: string | null;
  /** Whether the command itself had said by `finish` how it went. */
  readonly handedIn: 'finished' | 'failed' | null;
  /** With `interrupted`: who the holder was, so that it is known when it comes back. */
  readonly former: Former | null;
}

/** The identity of a holder whose lock was taken over. */
export interface Former {
  readonly processes: readonly ProcessRef[];
  readonly bootId: string | null;
  readonly pidNamespace: string | null;
  readonly tokenHash: string | null;
  readonly lastKnown: string;
}

/** A run that did not begin. `run` is the number it had taken when a gate closed, else null. */
export interface SkippedEvent {
  readonly event: 'skipped';
  readonly at: string;
  readonly run: number | null;
  readonly item: string | null;
  readonly job: string | null;
  readonly pid: number | null;
  readonly code: number;
  readonly reason: string;
  /** What the gates had answered, where they were asked. */
  readonly gates?: readonly GateAnswer[];
}

/** An operator has looked at an item, or dropped it. */
export interface SettledEvent {
  readonly event: 'settled';
  readonly at: string;
  readonly item: string;
  readonly as: 'done' | 'notDone' | null;
  readonly runs: readonly number[];
}

/** A former holder came back and handed in its result after its lock had been taken over. */
export interface LateEvent {
  readonly event: 'late';
  readonly at: string;
  readonly run: number;
  readonly item: string | null;
  readonly outcome: 'finished' | 'failed';
}

export type HistoryEvent = TakenEvent | EndedEvent | SkippedEvent | SettledEvent | LateEvent;

/** A line of the history that can't be read: torn by a crash, or not ours. */
export interface TornLine {
  readonly text: string;
  /** When the last event before it was written that can be read, and the next one behind it; null if there is none. */
  readonly after: string | null;
  readonly before: string | null;
}

export type Outcome = EndOutcome | 'skipped' | 'running';

/** One line of `runlock history`. */
export interface HistoryRun {
  readonly run: number | null;
  readonly item: string | null;
  readonly job: string | null;
  readonly outcome: Outcome;
  readonly startedAt: string;
  readonly endedAt: string | null;
  readonly durationMs: number | null;
  readonly exitCode: number | null;
  readonly reason: string | null;
  /** Of a skipped run: what its gates had answered. */
  readonly gates: readonly GateAnswer[];
}

/** Reads one line; null for a line that can't be read (torn by a crash, or not ours). */
export function parseEvent(line: string): HistoryEvent | null {
  let json: unknown;
  try {
    json = JSON.parse(line);
  } catch {
    return null;
  }
  if (typeof json !== 'object' || json === null || Array.isArray(json)) return null;
  const fields = json as Record<string, unknown>;
  const shape =
    typeof fields.event === 'string' && Object.hasOwn(SHAPES, fields.event)
      ? SHAPES[fields.event]
      : undefined;
  if (shape === undefined || !isTime(fields.at)) return null;
  // Each field is of the type that its event gives it, so the cast is checked.
  return Object.entries(shape).every(([name, fits]) => fits(fields[name] ?? null))
    ? (json as HistoryEvent)
    : null;
}

type Fits = (value: unknown) => boolean;
const isRun: Fits = (value) => typeof value === 'number' && Number.isSafeInteger(value) && value > 0;
const isText: Fits = (value) => typeof value === 'string';
const isTime: Fits = (value) => typeof value === 'string' && !Number.isNaN(Date.parse(value));
const isNumber: Fits = (value) => typeof value === 'number';
const isFlag: Fits = (value) => typeof value === 'boolean';
const orNull =
  (fits: Fits): Fits =>
  (value) =>
    value === null || fits(value);
const isOneOf =
  (...allowed: readonly string[]): Fits =>
  (value) =>
    allowed.some((one) => one === value);
const isObject: Fits = (value) => typeof value === 'object' && value !== null;

const isGateAnswers: Fits = (value) =>
  Array.isArray(value) &&
  value.every((one) => isObject(one) && isText((one as GateAnswer).gate) && isFlag((one as GateAnswer).open));

const WORK = { item: orNull(isText), job: orNull(isText) };
const SHAPES: Readonly<Record<string, Readonly<Record<string, Fits>>>> = {
  taken: {
    ...WORK,
    run: isRun,
    pid: orNull(isNumber),
    tokenHash: orNull(isText),
    tookOver: orNull(isObject),
  },
  ended: {
    ...WORK,
    run: isRun,
    outcome: isOneOf('finished', 'failed', 'timedOut', 'released', 'interrupted', 'lost', 'error'),
    startedAt: orNull(isTime),
    durationMs: orNull(isNumber),
    exitCode: orNull(isNumber),
    settled: isFlag,
    reason: orNull(isText),
    handedIn: orNull(isOneOf('finished', 'failed')),
    former: orNull(
      (value) =>
        isObject(value) && Array.isArray((value as Former).processes) && isTime((value as Former).lastKnown),
    ),
  },
  skipped: {
    ...WORK,
    run: orNull(isRun),
    pid: orNull(isNumber),
    code: isNumber,
    reason: isText,
    gates: orNull(isGateAnswers),
  },
  settled: { item: isText, as: orNull(isOneOf('done', 'notDone')), runs: Array.isArray },
  late: { ...WORK, run: isRun, outcome: isOneOf('finished', 'failed') },
};

/** Folds events into runs and skips, in the order in which they began. */
export function runsOf(events: Iterable<HistoryEvent>): HistoryRun[] {
  const runs = new Map<number, HistoryRun>();
  const rows: (number | HistoryRun)[] = [];
  const put = (run: number, row: HistoryRun) => {
    if (!runs.has(run)) rows.push(run);
    runs.set(run, row);
  };
  for (const event of events) {
    switch (event.event) {
      case 'taken':
        if (!runs.has(event.run)) put(event.run, began(event));
        break;
      case 'ended': {
        const row = runs.get(event.run);
        if (row === undefined || row.outcome === 'running') put(event.run, ended(event, row));
        break;
      }
      case 'skipped':
        rows.push(skipped(event));
        if (event.run !== null) runs.delete(event.run);
        break;
      case 'late': {
        const row = runs.get(event.run);
        const note = `handed in a result later (${event.outcome})`;
        if (row !== undefined)
          runs.set(event.run, { ...row, reason: row.reason === null ? note : `${row.reason}; ${note}` });
        break;
      }
      case 'settled':
        break;
    }
  }
  return rows.flatMap((row) => (typeof row === 'number' ? (runs.get(row) ?? []) : row));
}

function began(event: TakenEvent): HistoryRun {
  const { run, item, job, at } = event;
  return {
    run,
    item,
    job,
    outcome: 'running',
    startedAt: at,
    endedAt: null,
    durationMs: null,
    exitCode: null,
    reason: null,
    gates: [],
  };
}

function ended(event: EndedEvent, row: HistoryRun | undefined): HistoryRun {
  const startedAt = row?.startedAt ?? event.startedAt ?? event.at;
  // An interrupted run is found later: it worked until its last heartbeat at least.
  const endedAt = event.former?.lastKnown ?? event.at;
  return {
    run: event.run,
    item: event.item ?? row?.item ?? null,
    job: event.job ?? row?.job ?? null,
    outcome: event.outcome,
    startedAt,
    endedAt,
    durationMs: Math.max(0, event.durationMs ?? Date.parse(endedAt) - Date.parse(startedAt)),
    exitCode: event.exitCode ?? null,
    reason: event.reason ?? null,
    gates: [],
  };
}

function skipped(event: SkippedEvent): HistoryRun {
  const { run, item, job, at, reason } = event;
  return {
    run,
    item,
    job,
    outcome: 'skipped',
    startedAt: at,
    endedAt: at,
    durationMs: 0,
    exitCode: null,
    reason,
    gates: event.gates ?? [],
  };
}

/** Rebuilds the marker from the events: what is running or unknown, and was not settled since. */
export function markerOf(events: Iterable<HistoryEvent>): MarkerItem[] {
  let items: readonly MarkerItem[] = [];
  for (const event of events) {
    switch (event.event) {
      case 'taken':
        items = markRunning(event, event.at)(items);
        break;
      case 'ended':
        items = (event.settled ? endedMarks(event) : unknownMarks(event))(items);
        break;
      case 'skipped':
        if (event.run !== null) items = unmark(event.run)(items);
        break;
      case 'settled':
        items = settleItem(event.item)(items);
        break;
      case 'late':
        break;
    }
  }
  return [...items];
}

/** What an end that leaves the item unknown does to the marker. */
export function unknownMarks(event: EndedEvent): MarkerEdit {
  const mark = event.outcome === 'interrupted' ? turnUnknown : markUnknown;
  return mark({ pid: null, ...event }, event.former?.lastKnown ?? event.at);
}

/** What a settled end does to the marker: a known outcome clears the item, "nothing was begun" only the own mark. */
export function endedMarks(event: Pick<EndedEvent, 'outcome' | 'item' | 'run'>) {
  return event.outcome === 'released' || event.outcome === 'error'
    ? unmark(event.run)
    : settleItem(event.item, event.run);
}
