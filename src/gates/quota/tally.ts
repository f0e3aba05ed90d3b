/** What a source counted: a number for each of the periods it was asked for. */
export interface Tally {
  readonly counts: readonly number[];
  /** The files that were there and read, absolute. */
  readonly files: readonly string[];
  /** For each period, the log lines about a success that may be of it, but tell no time and so don't count. */
  readonly untimed: readonly number[];
}

export function addTo(counts: number[], isIn: (index: number) => boolean, more = 1): void {
  for (const [index, count] of counts.entries()) if (isIn(index)) counts[index] = count + more;
}
