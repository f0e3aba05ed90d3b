import { expect, test } from 'vitest';
import { askItem, type Marks } from '../../src/gates/item.ts';
import type { MarkerItem } from '../../src/marker.ts';
import { MINUTE } from '../cli/harness.ts';

const NOW = Date.parse('2026-11-30T12:00:00Z');

function marks(entry: Partial<MarkerItem> & { ageMs: number }, more: Partial<Marks> = {}): Marks {
  const since = new Date(NOW - entry.ageMs).toISOString();
  const mark: MarkerItem = {
    ...{ item: 'ep', run: 3, job: null, pid: null, state: 'unknown', since, lastKnown: since },
    ...entry,
  };
  return {
    sight: { items: [mark] },
    bounds: { freshMs: 120 * MINUTE, unknownForMs: 60 * MINUTE },
    holder: null,
    now: NOW,
    ownRun: null,
    where: '/srv/app/runs',
    ...more,
  };
}

test('an unknown item closes within unknownFor, and not after', () => {
  expect(askItem('item', 'ep', marks({ ageMs: 59 * MINUTE }))).toMatchObject({ open: false, code: 6 });
  expect(askItem('item', 'ep', marks({ ageMs: 61 * MINUTE }))).toMatchObject({ open: true, code: 0 });
});

test('an unknown item that counts until it is settled closes whatever its age', () => {
  const bounds = { freshMs: MINUTE, unknownForMs: null };
  expect(askItem('item', 'ep', marks({ ageMs: 1e10 }, { bounds }))).toMatchObject({ code: 6 });
});

test('a running mark closes while it is fresh, and as long as its run holds the lock', () => {
  const running = { state: 'running', ageMs: 121 * MINUTE } as const;
  expect(askItem('item', 'ep', marks({ ...running, ageMs: 119 * MINUTE }))).toMatchObject({ code: 6 });
  expect(askItem('item', 'ep', marks(running))).toMatchObject({ code: 0 });
  const holder = { run: 3, held: true, heartbeatAt: 0 };
  expect(askItem('item', 'ep', marks(running, { holder }))).toMatchObject({ code: 6 });
});

test("a run's own mark never counts, another run's of the same item does", () => {
  const running = { state: 'running', ageMs: 0 } as const;
  expect(askItem('item', 'ep', marks(running, { ownRun: 3 }))).toMatchObject({ open: true });
  expect(askItem('item', 'ep', marks(running, { ownRun: 4 }))).toMatchObject({ open: false });
});

test('another item is not in its way', () => {
  expect(askItem('item', 'other', marks({ ageMs: 0 }))).toMatchObject({ open: true });
});

test('a marker that can not be read is not an empty one', () => {
  const sight = { problem: 'it is not JSON' };
  expect(() => askItem('item', 'ep', marks({ ageMs: 0 }, { sight }))).toThrow(/current\.json can't be read/);
});

test('an item is the same in any Unicode form', () => {
  const composed = marks({ ageMs: 0, item: '\u00e9' });
  expect(askItem('item', 'e\u0301', composed)).toMatchObject({ code: 6 });
});
