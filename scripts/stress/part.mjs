// @ts-check
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { Children } from './children.mjs';
import { Random } from './random.mjs';

/**
 * @typedef {{ what: 'problem', text: string }} Problem
 * @typedef {{ name: string, count: number, doubles: number, stuck: number, notes: string }} Figures
 */

export const BINARY = fileURLToPath(new URL('../../dist/runlock.cjs', import.meta.url));

/** A script of this directory. @param {string} name */
export function script(name) {
  return fileURLToPath(new URL(name, import.meta.url));
}

/**
 * How likely a file operation is one to be stopped at, and for how long; how often a contender asks again. The naive
 * lock has a tenth of the steps: it is stopped less often, and costs less, each time that it is asked.
 *
 * @param {'runlock' | 'naive'} algorithm
 */
export function disturbance(algorithm) {
  const isNaive = algorithm === 'naive';
  return { pause: isNaive ? 0.4 : 0.08, pauseMs: 1, againMs: isNaive ? 6 : 25 };
}

/** One part of the stress run: its state directory, its processes, and what went wrong. */
export class Part {
  children = new Children();
  /** @type {string[]} */
  problems = [];
  stuck = 0;
  started = performance.now();

  /** @param {string} name @param {string} base where everything of this run is @param {number} seed */
  constructor(name, base, seed) {
    this.name = name;
    this.random = new Random(seed);
    const home = path.join(base, name.replaceAll(/\W+/g, '-'));
    fs.mkdirSync(home);
    this.dir = path.join(home, 'runs');
    this.log = path.join(home, 'oracle.log');
    this.promises = path.join(home, 'promises.log');
    this.stderr = path.join(home, 'stderr.log');
    fs.writeFileSync(this.promises, '');
    fs.writeFileSync(this.stderr, '');
  }

  get seconds() {
    return (performance.now() - this.started) / 1000;
  }

  /** @param {string} text */
  problem(text) {
    this.problems.push(text);
  }

  /** Nobody is left: the next acquire must succeed at once, whatever they have left behind. */
  checkNotStuck() {
    const command = [BINARY, 'acquire', '--pid', String(process.pid), '--dir', this.dir];
    const { status, stderr } = spawnSync(process.execPath, command, { encoding: 'utf8', timeout: 20_000 });
    if (status !== 0)
      return this.sayStuck(`after all were killed, acquire answered ${status}: ${stderr.trim()}`);
    spawnSync(process.execPath, [BINARY, 'release', '--settled', '--dir', this.dir]);
  }

  /** @param {string} why */
  sayStuck(why) {
    this.stuck += 1;
    const { stdout } = spawnSync(process.execPath, [BINARY, 'status', '--dir', this.dir], {
      encoding: 'utf8',
    });
    this.problem(`stuck: ${why}\n${stdout.trimEnd()}`);
  }
}
