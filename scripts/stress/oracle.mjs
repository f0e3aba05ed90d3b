// @ts-check
// Sees two living holders without the lock under test. Who believes to hold appends "enter", then looks who else is
// in; before it lets go it appends "leave". Of two that are in at once, the later one finds the earlier one's line:
// appends are atomic, and each looks after its own. The dead don't count.
import fs from 'node:fs';
import { lives, self } from './processes.mjs';

/**
 * @typedef {import('./processes.mjs').ProcessId} ProcessId
 * @typedef {{ what: 'enter' | 'leave' | 'double', run: number, id: ProcessId, other: string }} Entry
 */

export class Oracle {
  #fd;
  #offset = 0;
  #rest = '';
  #me = self();
  /** Who has entered and not left, by pid and start. @type {Map<string, Entry>} */
  #inside = new Map();

  /** @param {string} file */
  constructor(file) {
    this.#fd = fs.openSync(file, 'a+');
  }

  /** @param {number} run the number under which the lock was got */
  enter(run) {
    this.#append('enter', run, '-');
    const lines = this.#readOn();
    const mine = lines.findLastIndex(
      (entry) => entry.what === 'enter' && keyOf(entry.id) === keyOf(this.#me),
    );
    for (const entry of lines.slice(0, mine)) this.#keep(entry);
    const others = [...this.#inside.values()];
    const later = lines.slice(mine);
    for (const entry of later) this.#keep(entry);
    for (const { id, run: otherRun } of others) {
      // Whoever did anything after our line was alive then, even if it has left or died since.
      const acted = later.some((entry) => keyOf(entry.id) === keyOf(id));
      if (acted || lives(id)) this.#append('double', run, `${otherRun}:${id.pid}`);
      else this.#inside.delete(keyOf(id));
    }
  }

  /** @param {number} run */
  leave(run) {
    this.#append('leave', run, '-');
  }

  /** @param {string} what @param {number} run @param {string} other */
  #append(what, run, other) {
    fs.writeSync(this.#fd, `${what} ${run} ${this.#me.pid} ${this.#me.started} ${other}\n`);
  }

  /** @param {Entry} entry */
  #keep(entry) {
    if (entry.what === 'enter') this.#inside.set(keyOf(entry.id), entry);
    else if (entry.what === 'leave') this.#inside.delete(keyOf(entry.id));
  }

  /** @returns {Entry[]} what has come since the last time */
  #readOn() {
    const { size } = fs.fstatSync(this.#fd);
    const buffer = Buffer.alloc(size - this.#offset);
    const got = fs.readSync(this.#fd, buffer, 0, buffer.length, this.#offset);
    this.#offset += got;
    const lines = (this.#rest + buffer.toString('latin1', 0, got)).split('\n');
    this.#rest = lines.pop() ?? '';
    return lines.map(parse);
  }
}

/** @param {string} file @returns {Entry[]} */
export function readLog(file) {
  if (!fs.existsSync(file)) return [];
  return fs.readFileSync(file, 'latin1').split('\n').slice(0, -1).map(parse);
}

/** How often it was held, and by two, and whether the numbers rose. @param {readonly Entry[]} log */
export function summarize(log) {
  const entered = log.filter((entry) => entry.what === 'enter');
  const doubles = log.filter((entry) => entry.what === 'double');
  const falls = entered.filter((entry, index) => index > 0 && entry.run <= (entered[index - 1]?.run ?? 0));
  return { cycles: entered.length, doubles, falls };
}

/** @param {string} line @returns {Entry} */
function parse(line) {
  const [what, run, pid, started, other = '-'] = line.split(' ');
  if ((what !== 'enter' && what !== 'leave' && what !== 'double') || started === undefined) {
    throw new Error(`the oracle's log has a line that is none: ${line}`);
  }
  return { what, run: Number(run), id: { pid: Number(pid), started }, other };
}

/** @param {ProcessId} id */
function keyOf(id) {
  return `${id.pid} ${id.started}`;
}
