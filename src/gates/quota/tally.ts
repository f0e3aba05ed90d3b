/** What a source counted: a number for each of the periods it was asked for. */
export interface Tally {
  readonly counts: readonly number[];
  /** The files that were there and read, absolute. */
  readonly files: readonly string[];
  /** Log lines about a success that tell no time, and so don't count. */
  readonly untimed: number;
}

export function addTo(counts: number[], isIn: (index: number) => boolean): void {
  for (const [index, count] of counts.entries()) if (isIn(index)) counts[index] = count + 1;
}
