import { expect, test } from 'vitest';
import { countHistory } from '../../../src/gates/quota/history-source.ts';
import type { EndedEvent, EndOutcome, HistoryEvent, TakenEvent, TornLine } from '../../../src/history.ts';

const TODAY = { from: Date.parse('2026-10-15T00:00:00Z'), to: Date.parse('2026-10-16T00:00:00Z') };
const YESTERDAY = { from: TODAY.from - 86_400_000, to: TODAY.from };
const at = (time: string) => `2026-10-15T${time}:00.000Z`;
const LAST_NIGHT = '2026-10-14T23:50:00.000Z';

function ended(run: number, time: string, outcome: EndOutcome = 'finished'): EndedEvent {
  return {
    event: 'ended',
    outcome,
    at: time,
    run,
    item: 'ep',
    job: null,
    startedAt: null,
    exitCode: null,
    settled: true,
    reason: null,
    handedIn: null,
    former: null,
    durationMs: null,
  };
}

function taken(run: number, time: string): TakenEvent {
  const nobody = { pid: null, host: 'h', tokenHash: null, tookOver: null };
  return { event: 'taken', at: time, run, item: 'ep', job: null, ...nobody };
}

const settled = (
  as: 'done' | 'notDone' | null,
  runs: readonly number[],
  time = at('09:00'),
): HistoryEvent => ({
  event: 'settled',
  at: time,
  item: 'ep',
  as,
  runs,
});

const late = (run: number, outcome: 'finished' | 'failed', time = at('09:00')): HistoryEvent => ({
  event: 'late',
  at: time,
  run,
  item: 'ep',
  outcome,
});

/** What was counted yesterday and today. */
async function count(
  events: readonly HistoryEvent[],
  torn: readonly TornLine[] = [],
  records: readonly EndedEvent[] = [],
) {
  const history = {
    events: async () => ({ events, torn }),
    endOf: async (run: number) => records.find((record) => record.run === run) ?? null,
  };
  return (await countHistory(history, [YESTERDAY, TODAY])).counts;
}

const line = (
  text: string,
  after: string | null = at('08:00'),
  before: string | null = at('09:00'),
): TornLine => ({
  text,
  after,
  before,
});

test('success is `finished` alone, at the time of the end', async () => {
  const others: EndOutcome[] = ['failed', 'timedOut', 'released', 'interrupted', 'lost', 'error'];
  expect(await count(others.map((outcome, index) => ended(index + 1, at('01:00'), outcome)))).toEqual([0, 0]);
  expect(await count([taken(1, LAST_NIGHT), ended(1, at('00:10')), ended(2, LAST_NIGHT)])).toEqual([1, 1]);
});

test('each run counts once, and of two ends the first', async () => {
  expect(await count([ended(1, at('01:00')), ended(1, at('02:00')), late(1, 'finished')])).toEqual([0, 1]);
  expect(await count([ended(1, at('01:00'), 'failed'), ended(1, at('02:00'))])).toEqual([0, 0]);
});

test('a run settled as done counts when it worked, not when the operator looked', async () => {
  const run = [taken(1, '2026-10-14T10:00:00.000Z'), ended(1, '2026-10-14T11:00:00.000Z', 'interrupted')];
  expect(await count([...run, settled('done', [1])])).toEqual([1, 0]);
  expect(await count([...run, settled('notDone', [1])])).toEqual([0, 0]);
  expect(await count([...run, settled(null, [1])])).toEqual([0, 0]);
  // Across midnight it may have been on either day.
  expect(
    await count([taken(1, LAST_NIGHT), ended(1, at('00:20'), 'interrupted'), settled('done', [1])]),
  ).toEqual([1, 1]);
});

test('settled as done without a run that is known, the operator’s time counts', async () => {
  expect(await count([settled('done', [7])])).toEqual([0, 1]);
  expect(await count([settled('done', [])])).toEqual([0, 1]);
});

test('a lost run that says later that it had finished counts', async () => {
  const run = [taken(1, at('01:00')), ended(1, at('02:00'), 'interrupted')];
  expect(await count([...run, late(1, 'finished'), settled('done', [1])])).toEqual([0, 1]);
  expect(await count([...run, late(1, 'failed')])).toEqual([0, 0]);
});

test('a line that can’t be read counts unless the record of its run says otherwise', async () => {
  const cut = `{"event":"ended","outcome":"failed","at":"${at('08:30')}","run":5,"it`;
  expect(await count([], [line(cut)])).toEqual([0, 1]);
  expect(await count([], [line(cut)], [ended(5, at('08:30'), 'failed')])).toEqual([0, 0]);
  expect(await count([], [line(cut)], [ended(5, at('08:30'))])).toEqual([0, 1]);
  // It began as the line of a run that has counted already.
  expect(await count([ended(5, at('08:30'))], [line(cut)], [ended(5, at('08:30'))])).toEqual([0, 1]);
  expect(await count([ended(5, LAST_NIGHT)], [line(cut)])).toEqual([1, 0]);
  // The number may have more digits than are left.
  expect(await count([], [line('{"event":"ended","run":5')], [ended(5, at('08:30'), 'failed')])).toEqual([
    0, 1,
  ]);
});

test('what a lost run says late may be in a torn line, which the record of its end knows nothing of', async () => {
  const cut = `{"event":"late","at":"${at('08:30')}","run":5,"it`;
  const events = [taken(5, LAST_NIGHT), ended(5, at('00:10'), 'interrupted')];
  expect(await count(events, [line(cut)], [ended(5, at('00:10'), 'interrupted')])).toEqual([0, 1]);
});

test('a line of which nothing is left lies between its neighbours in time', async () => {
  const nuls = '\0'.repeat(40);
  expect(await count([], [line(nuls)])).toEqual([0, 1]);
  expect(await count([], [line(nuls, LAST_NIGHT, at('01:00'))])).toEqual([1, 1]);
  expect(await count([], [line(nuls, '2026-09-01T00:00:00.000Z', '2026-09-02T00:00:00.000Z')])).toEqual([
    0, 0,
  ]);
  expect(await count([], [line(nuls, null, LAST_NIGHT)])).toEqual([1, 0]);
  expect(await count([], [line(nuls, at('01:00'), null), line(nuls, at('01:00'), null)])).toEqual([0, 2]);
});
