// @ts-check
import { spawn } from 'node:child_process';
import { once } from 'node:events';

/** @typedef {import('node:child_process').ChildProcess} ChildProcess */

/** All child processes of this run, so that none is left behind on any way out. */
export class Children {
  /** @type {Set<ChildProcess>} */
  #living = new Set();
  /** Those whose output is still open: they themselves, or what they started. @type {Set<Promise<unknown>>} */
  #open = new Set();
  /** How many ended by SIGKILL. */
  kills = 0;

  /**
   * @param {string[]} argv run by this same Node
   * @param {import('node:child_process').SpawnOptions} options
   */
  start(argv, options) {
    const child = spawn(process.execPath, argv, options);
    this.#living.add(child);
    child.once('exit', (_code, signal) => {
      this.#living.delete(child);
      if (signal === 'SIGKILL') this.kills += 1;
    });
    const closed = once(child, 'close').finally(() => this.#open.delete(closed));
    this.#open.add(closed);
    return child;
  }

  /** Kills all; a child that leads a group goes with the group as long as it lives itself. */
  killAll() {
    for (const child of this.#living) {
      child.kill('SIGKILL');
    }
  }

  /** When they and all that holds their output are gone. */
  async allGone() {
    while (this.#open.size > 0) await Promise.all(this.#open);
  }
}
