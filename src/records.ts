import type { EndedEvent, EndOutcome } from './history.ts';

/** What is known of a run that ended, without the result it handed in. */
export interface RunSummary {
  readonly version: 1;
  readonly run: number;
  readonly item: string | null;
  readonly job: string | null;
  readonly outcome: EndOutcome;
  readonly startedAt: string | null;
  readonly endedAt: string;
  readonly durationMs: number | null;
  readonly exitCode: number | null;
  readonly settled: boolean;
  readonly reason: string | null;
  readonly handedIn: 'finished' | 'failed' | null;
  /** The lock had been taken over before the run handed this in. */
  readonly lost: boolean;
}

/**
 * The text of `records/<run>.json`. The result is put in as the text it was handed in as: parsing and writing it
 * again would round large numbers.
 */
export function recordText(summary: RunSummary, result: string | null): string {
  const head = JSON.stringify(summary, null, 2).slice(0, -2);
  return result === null ? `${head},\n  "result": null\n}\n` : `${head},\n  "result": ${result.trim()}\n}\n`;
}

export function summaryOf(event: EndedEvent, lost = false): RunSummary {
  return {
    version: 1,
    run: event.run,
    item: event.item,
    job: event.job,
    outcome: event.outcome,
    startedAt: event.startedAt,
    endedAt: event.at,
    durationMs: event.durationMs,
    exitCode: event.exitCode,
    settled: event.settled,
    reason: event.reason,
    handedIn: event.handedIn,
    lost,
  };
}

/** The event that a record stands for, or null if the text is no record. */
export function eventOfRecord(text: string): EndedEvent | null {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    return null;
  }
  if (typeof json !== 'object' || json === null) return null;
  const record = json as Partial<RunSummary>;
  if (
    typeof record.run !== 'number' ||
    typeof record.outcome !== 'string' ||
    typeof record.endedAt !== 'string'
  )
    return null;
  if (record.lost === true) return null;
  return {
    event: 'ended',
    outcome: record.outcome,
    at: record.endedAt,
    run: record.run,
    item: record.item ?? null,
    job: record.job ?? null,
    startedAt: record.startedAt ?? null,
    durationMs: record.durationMs ?? null,
    exitCode: record.exitCode ?? null,
    settled: record.settled === true,
    reason: record.reason ?? null,
    handedIn: record.handedIn ?? null,
    former: null,
  };
}
