// @ts-check

/** Numbers that a seed decides (mulberry32). What the scheduler makes of them, no seed decides. */
export class Random {
  #state;

  /** @param {number} seed */
  constructor(seed) {
    this.#state = seed >>> 0;
  }

  /** Evenly from [0, 1). */
  next() {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  /** @param {number} from @param {number} to */
  between(from, to) {
    return from + this.next() * (to - from);
  }

  /** @param {number} probability */
  chance(probability) {
    return this.next() < probability;
  }

  /** A seed for someone else. */
  seed() {
    return Math.floor(this.next() * 2 ** 32);
  }

  /** @template T @param {readonly T[]} list @returns {T | undefined} */
  pick(list) {
    return list[Math.floor(this.next() * list.length)];
  }
}
