// @ts-check
// What people write first: read the lock, remove it if its holder is dead, create one that must not exist yet. The
// control: the harness is worth nothing if it doesn't see this one fail.
import fs from 'node:fs';
import path from 'node:path';
import { lives } from './processes.mjs';

/** @typedef {import('./processes.mjs').ProcessId} ProcessId */

export class NaiveLock {
  #file;
  #last;

  /** @param {string} dir */
  constructor(dir) {
    fs.mkdirSync(dir, { recursive: true });
    this.#file = path.join(dir, 'lock.json');
    this.#last = path.join(dir, 'last');
  }

  /** @param {ProcessId} holder @returns {number | null} the run, or null while another holds it */
  acquire(holder) {
    const found = this.#read();
    if (found !== null) {
      if (lives(found.holder)) return null;
      fs.rmSync(this.#file, { force: true });
    }
    const run =
      (found?.run ?? (fs.existsSync(this.#last) ? Number(fs.readFileSync(this.#last, 'utf8')) : 0)) + 1;
    const temporary = `${this.#file}.${process.pid}`;
    fs.writeFileSync(temporary, JSON.stringify({ holder, run }));
    try {
      fs.linkSync(temporary, this.#file);
      return run;
    } catch {
      return null;
    } finally {
      fs.rmSync(temporary, { force: true });
    }
  }

  /** @param {number} run */
  release(run) {
    fs.writeFileSync(this.#last, String(run));
    if (this.#read()?.run === run) fs.rmSync(this.#file, { force: true });
  }

  /** @returns {{ holder: ProcessId, run: number } | null} */
  #read() {
    try {
      return JSON.parse(fs.readFileSync(this.#file, 'utf8'));
    } catch {
      return null;
    }
  }
}
