import {
  counts,
  type Holder,
  type MarkerBounds,
  type MarkerItem,
  type MarkerSight,
  unreadableMarker,
} from '../marker.ts';
import { textKey } from '../names.ts';
import type { GateAnswer } from './gate.ts';

/** What is marked, and what decides whether a mark counts. */
export interface Marks {
  readonly sight: MarkerSight;
  readonly bounds: MarkerBounds;
  readonly holder: Holder | null;
  /** Epoch ms. */
  readonly now: number;
  /** The run that asks: its own mark never counts. */
  readonly ownRun: number | null;
  /** The lock's directory, for messages. */
  readonly where: string;
}

/**
 * The marks that count, by item in Unicode's composed form; of several of one item the last.
 *
 * @throws RunlockError `corrupt` while nobody knows what is marked
 */
export function countingMarks(marks: Marks): ReadonlyMap<string, MarkerItem> {
  const { sight, bounds, holder, now, ownRun } = marks;
  if ('problem' in sight) throw unreadableMarker(sight.problem, marks.where);
  const counting = sight.items.filter((entry) => entry.run !== ownRun && counts(entry, bounds, holder, now));
  return new Map(counting.map((entry) => [textKey(entry.item), entry]));
}

/** Closed while the item is in progress, or in an unknown state. */
export function askItem(gate: string, item: string, marks: Marks): GateAnswer {
  const mark = countingMarks(marks).get(textKey(item));
  if (mark === undefined) return { gate, open: true, code: 0, reason: null };
  return { gate, open: false, code: 6, reason: markWords(mark) };
}

function markWords({ state, run, since }: MarkerItem): string {
  return state === 'running'
    ? `in progress, run ${run}`
    : `in an unknown state since ${since}, run ${run}: look, then settle it`;
}
