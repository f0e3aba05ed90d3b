/** Where something stands; `line` counts from 1. */
export interface Where {
  /** As it is called on the system that is looked at, also under `--root`. */
  readonly file: string;
  readonly line: number | null;
}

/**
 * - `ok`: looked at, nothing is wrong
 * - `note`: right as it may be, but worth knowing
 * - `problem`: a job will not run, or can run twice
 * - `unseen`: could not be looked at, so that nothing is known of it
 */
export type Level = 'ok' | 'note' | 'problem' | 'unseen';

/** One thing that `doctor` tells. */
export interface Finding {
  readonly level: Level;
  /** What kind of finding it is, for programs: it does not change with the wording. */
  readonly about: string;
  /** The fact, in words; not yet safe for a terminal. */
  readonly what: string;
  readonly where: Where | null;
  /** What to do about it; null where there is nothing to do. */
  readonly advice: string | null;
}

/** Notes by which something is left open: what they are about is not said to be `ok`. */
const DOUBTS = new Set(['unsure', 'foreignRunlock', 'unknownNode']);

/** Findings as they come up. */
export class Findings {
  readonly #list: Finding[] = [];
  readonly #known = new Set<string>();
  /** Places that are not known to be right. */
  readonly #doubted = new Set<string>();

  /** Says each thing once. */
  add(level: Level, about: string, where: Where | null, what: string, advice: string | null = null): void {
    const place = placeOf(where);
    const key = JSON.stringify([about, place, what]);
    if (this.#known.has(key)) return;
    this.#known.add(key);
    if (level === 'problem' || level === 'unseen' || DOUBTS.has(about)) this.doubt(where);
    this.#list.push({ level, about, what, where, advice });
  }

  /** What stands there is not known to be right, for a reason that is told of another place. */
  doubt(where: Where | null): void {
    this.#doubted.add(placeOf(where));
  }

  hasDoubt(where: Where): boolean {
    return this.#doubted.has(placeOf(where));
  }

  /** The gravest first, each level in the order in which they came up. */
  get list(): readonly Finding[] {
    const order: readonly Level[] = ['problem', 'unseen', 'note', 'ok'];
    return order.flatMap((level) => this.#list.filter((one) => one.level === level));
  }
}

export function placeOf(where: Where | null): string {
  if (where === null) return '';
  return where.line === null ? where.file : `${where.file}:${where.line}`;
}
