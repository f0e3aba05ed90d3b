import { type HistoryEvent, runsOf, type TornLine } from '../../history.ts';
import { isWithin, type Moment } from './moments.ts';
import type { Period } from './periods.ts';
import { addTo, type Tally } from './tally.ts';

/** What a quota asks of the lock's own history; a Store has all of it. */
export interface HistoryEvidence {
  events(): Promise<{ events: readonly HistoryEvent[]; torn: readonly TornLine[] }>;
  /** How a run ended, by its record or the history; null where neither says so. */
  endOf(run: number): Promise<HistoryEvent | null>;
}

/**
 * Counts the lock's own successes, each run once: those that finished, those that an operator settled as done or
 * whose result came late (somewhere in their time, so wherever that reaches), and lines that can't be read, unless
 * their run's record knows better.
 */
export async function countHistory(history: HistoryEvidence, periods: readonly Period[]): Promise<Tally> {
  const { events, torn } = await history.events();
  const successes = successesIn(events);
  for (const [index, line] of torn.entries()) {
    const run = runIn(line.text);
    const end = run === null || isLate(line) ? null : await history.endOf(run);
    const moment = end === null ? momentOf(line) : finishedAt(end);
    const key = run ?? `line ${index}`;
    if (moment !== null && !successes.has(key)) successes.set(key, moment);
  }
  // Killed between the record, which is the commit, and its line in the history.
  for (const run of withoutEnd(events)) {
    const end = await history.endOf(run);
    const moment = end === null ? null : finishedAt(end);
    if (moment !== null && !successes.has(run)) successes.set(run, moment);
  }
  const counts = periods.map(() => 0);
  for (const moment of successes.values()) {
    addTo(counts, (index) => {
      const period = periods[index];
      return period !== undefined && isWithin(moment, period);
    });
  }
  return { counts, files: [], untimed: periods.map(() => 0) };
}

function withoutEnd(events: readonly HistoryEvent[]): number[] {
  const ended = new Set(events.flatMap((event) => (event.event === 'ended' ? [event.run] : [])));
  return events.flatMap((event) => (event.event === 'taken' && !ended.has(event.run) ? [event.run] : []));
}

/** By run number; what has none by a text of its own. */
function successesIn(events: readonly HistoryEvent[]): Map<number | string, Moment> {
  const spans = new Map<number, Moment>();
  for (const { run, startedAt, endedAt } of runsOf(events)) {
    if (run === null) continue;
    const earliest = Date.parse(startedAt);
    spans.set(run, { earliest, latest: Math.max(earliest, Date.parse(endedAt ?? startedAt)) });
  }
  const successes = new Map<number | string, Moment>();
  const ended = new Set<number>();
  const add = (key: number | string, moment: Moment) => {
    if (!successes.has(key)) successes.set(key, moment);
  };
  for (const event of events) {
    const at = Date.parse(event.at);
    if (event.event === 'ended') {
      // Of two ends of one run the first counts.
      if (!ended.has(event.run) && event.outcome === 'finished') add(event.run, { earliest: at, latest: at });
      ended.add(event.run);
    } else if (event.event === 'late' && event.outcome === 'finished') {
      add(event.run, { earliest: spans.get(event.run)?.earliest ?? at, latest: at });
    } else if (event.event === 'settled' && event.as === 'done') {
      for (const run of event.runs) add(run, spans.get(run) ?? { earliest: at, latest: at });
      if (event.runs.length === 0) add(`${event.at} ${event.item}`, { earliest: at, latest: at });
    }
  }
  return successes;
}

/** The number of the run that a torn line was about, if all its digits are there. */
function runIn(text: string): number | null {
  const digits = /"run":(\d{1,15})[,}]/.exec(text)?.[1];
  return digits === undefined ? null : Number(digits);
}

/** A lost run's own word came after its end, which says `interrupted` all the same. */
function isLate({ text }: TornLine): boolean {
  return text.includes('"event":"late"');
}

/** A torn line's own time if it can be read, else anywhere between its neighbours'. */
function momentOf({ text, after, before }: TornLine): Moment {
  const own = Date.parse(/"at":"([^"]+)"/.exec(text)?.[1] ?? '');
  if (!Number.isNaN(own)) return { earliest: own, latest: own };
  const earliest = after === null ? Number.NEGATIVE_INFINITY : Date.parse(after);
  const latest = before === null ? Number.POSITIVE_INFINITY : Date.parse(before);
  return { earliest: Math.min(earliest, latest), latest: Math.max(earliest, latest) };
}

function finishedAt(end: HistoryEvent): Moment | null {
  if (end.event !== 'ended' || end.outcome !== 'finished') return null;
  const at = Date.parse(end.at);
  return { earliest: at, latest: at };
}
