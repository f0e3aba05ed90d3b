import { printable } from '../printable.ts';

/** What a gate answers. */
export interface GateAnswer {
  /** As it was asked: `quota:juejin`. */
  readonly gate: string;
  readonly open: boolean;
  /** The exit code that a closed gate gives; 1 where the answer can't be had, 0 if it is open. */
  readonly code: 0 | 1 | 5 | 6 | 7 | 9;
  /** Why, for people; null where an open gate has nothing to say. */
  readonly reason: string | null;
  /** A quota's figures. */
  readonly count?: number;
  readonly limit?: number;
  readonly sources?: readonly SourceCount[];
}

/** What one source of a quota has counted. */
export interface SourceCount {
  /** As the configuration names it: the file's pattern, or `history`. */
  readonly source: string;
  readonly count: number;
  /** The files that were there and read, absolute. */
  readonly files?: readonly string[];
  /** Lines about a success that may be of the period, but tell no time and so don't count; absent if there are none. */
  readonly untimed?: number;
}

/** `app.log 1`, and what of it could not be counted. */
export function countWords({ source, count, untimed = 0 }: SourceCount): string {
  const lines = untimed === 1 ? '1 line' : `${untimed} lines`;
  return `${printable(source, 120)} ${count}${untimed === 0 ? '' : `, and ${lines} without a time`}`;
}
