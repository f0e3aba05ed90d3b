// @ts-check
import fs from 'node:fs';

/** @typedef {import('./random.mjs').Random} Random */

/** What changes something: who is killed while it only looks, leaves nothing behind. */
const CHANGES = /^(write|appendFile|link|rename|unlink|rm|fsync|ftruncate|futimes|fchmod)/;

const never = new Int32Array(new SharedArrayBuffer(4));

/**
 * Makes every synchronous file operation of this process a place where it may be stopped for a moment, so that
 * others get between any two steps, and every change a place where it may be killed.
 *
 * @param {Random} random
 * @param {{ pause: number, pauseMs: number, kill: number }} how `pause` and `kill` are probabilities for each step and each change
 */
export function disturb(random, how) {
  /** @type {Record<string, unknown>} */
  const functions = /** @type {never} */ (fs);
  for (const [name, original] of Object.entries(functions)) {
    if (!name.endsWith('Sync') || typeof original !== 'function') continue;
    const kill = CHANGES.test(name) ? how.kill : 0;
    functions[name] = (/** @type {unknown[]} */ ...args) => {
      // Looking through the processes is many steps, none of which others can get between to any effect.
      if (String(args[0]).startsWith('/proc')) return original.apply(fs, args);
      if (random.chance(how.pause)) Atomics.wait(never, 0, 0, random.between(0, how.pauseMs));
      if (random.chance(kill)) process.kill(process.pid, 'SIGKILL');
      return original.apply(fs, args);
    };
  }
}
