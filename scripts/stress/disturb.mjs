// @ts-check
import fs from 'node:fs';

/** @typedef {import('./random.mjs').Random} Random */

const never = new Int32Array(new SharedArrayBuffer(4));

/**
 * Makes every synchronous file operation of this process a place where it may be stopped for a moment, so that
 * others get between any two steps, or killed.
 *
 * @param {Random} random
 * @param {{ pause: number, pauseMs: number, kill: number }} how `pause` and `kill` are probabilities for each step
 */
export function disturb(random, how) {
  /** @type {Record<string, unknown>} */
  const functions = /** @type {never} */ (fs);
  for (const [name, original] of Object.entries(functions)) {
    if (!name.endsWith('Sync') || typeof original !== 'function') continue;
    functions[name] = (/** @type {unknown[]} */ ...args) => {
      // Looking through the processes is many steps, none of which others can get between to any effect.
      if (String(args[0]).startsWith('/proc')) return original.apply(fs, args);
      if (random.chance(how.pause)) Atomics.wait(never, 0, 0, random.between(0, how.pauseMs));
      if (random.chance(how.kill)) process.kill(process.pid, 'SIGKILL');
      return original.apply(fs, args);
    };
  }
}
