// @ts-check
// npm run stress [-- --seconds 60 --seed N --dir DIR --keep]
//
// Tries to make two hold the lock at once, or nobody able to, with SIGKILLs everywhere. An oracle that knows nothing
// of the lock watches, and a naive lock goes through the same: if that one does not fail, the run proves nothing.
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { churnInProcess, churnOfProcesses } from './churn.mjs';
import { bundleLibrary } from './library.mjs';
import { readLog, summarize } from './oracle.mjs';
import { Part } from './part.mjs';
import { Random } from './random.mjs';
import { roundsInProcess, roundsOfProcesses } from './rounds.mjs';

/** What a run of the default length should get to. With less it was little of a stress, and says so. */
const KILLS = 200;
const ROUNDS = 200;
const DEFAULT_SECONDS = 60;

const { seconds, seed, dir, keep } = readOptions();
const random = new Random(seed);
const base = fs.realpathSync(fs.mkdtempSync(path.join(dir, 'runlock-stress-')));
const library = path.join(base, 'library.cjs');
const scale = seconds / DEFAULT_SECONDS;
const started = performance.now();
/** @type {Part | null} */
let current = null;
/** @type {string[][]} */
const table = [['part', 'rounds/cycles', 'takeovers', 'SIGKILLs', 'double holds', 'stuck', 'seconds']];
/** @type {string[]} */
const failures = [];

process.on('exit', () => {
  current?.children.killAll();
  if (!keep) fs.rmSync(base, { recursive: true, force: true, maxRetries: 5 });
});
for (const [signal, code] of /** @type {const} */ ([
  ['SIGINT', 130],
  ['SIGTERM', 143],
  ['SIGHUP', 129],
])) {
  process.on(signal, () => process.exit(code));
}

tell(
  `stress: ${seconds} s, --seed ${seed}, ${os.availableParallelism()} cores${keep ? `, kept in ${base}` : ''}`,
);
await bundleLibrary(library);
const RUNLOCK = /** @type {const} */ ({ algorithm: 'runlock', library });
const NAIVE = /** @type {const} */ ({ algorithm: 'naive', library });
let kills = 0;

await control('control: rounds', async (part) => {
  return roundsInProcess(part, {
    ...NAIVE,
    rounds: count(500),
    seconds: 15 * scale,
    enough: (found) => found >= 5,
  });
});
await control('control: churn', async (part) => {
  const enough = () => hasDouble(part);
  return churnInProcess(part, { ...NAIVE, seconds: 15 * scale, enough });
});
await measure('stale together', async (part) => {
  return roundsInProcess(part, {
    ...RUNLOCK,
    rounds: count(ROUNDS),
    seconds: 26 * scale,
  });
});
await measure('stale together, binary', async (part) => {
  return roundsOfProcesses(part, { rounds: count(20), seconds: 6 * scale });
});
await measure('churn', async (part) => {
  return churnInProcess(part, { ...RUNLOCK, seconds: 6 * scale });
});
await measure('churn, binary', async (part) => {
  // What is left of the time, without what the winding up takes.
  const left = Math.max(6 * scale, seconds - (performance.now() - started) / 1000 - 4);
  return churnOfProcesses(part, { seconds: left });
});
finish();

/**
 * @typedef {{ count: number, doubles: number, takeovers: number | null, kills: number }} Figures
 * @typedef {(part: Part) => Promise<Figures>} Act
 */

/** A part in which the real lock must hold. @param {string} name @param {Act} act */
async function measure(name, act) {
  const { part, figures } = await perform(name, act);
  if (!name.startsWith('control')) kills += figures.kills;
  if (figures.doubles > 0) part.problem(`${figures.doubles} double holds`);
  failures.push(...part.problems.map((problem) => `${name}: ${problem}`));
}

/** A part in which the naive lock must fail. @param {string} name @param {Act} act */
async function control(name, act) {
  const { figures } = await perform(name, act);
  if (figures.doubles === 0) failures.push(`${name}: the control did not fail: this run proves nothing`);
}

/** @param {string} name @param {Act} act */
async function perform(name, act) {
  const part = new Part(name, base, random.seed());
  current = part;
  /** @type {Figures} */
  let figures = { count: 0, doubles: 0, takeovers: null, kills: 0 };
  try {
    figures = await act(part);
  } catch (error) {
    part.problem(`broken off: ${error instanceof Error ? error.message : error}`);
    part.children.killAll();
  }
  current = null;
  const { count, takeovers, doubles } = figures;
  const numbers = [count, takeovers ?? '-', figures.kills, doubles, part.stuck];
  table.push([name, ...numbers.map(String), part.seconds.toFixed(1)]);
  tell(`  ${name}: done in ${part.seconds.toFixed(1)} s`);
  return { part, figures };
}

function finish() {
  const widths = (table[0] ?? []).map((_, column) =>
    Math.max(...table.map((row) => row[column]?.length ?? 0)),
  );
  tell('');
  for (const row of table) {
    const cells = row.map((cell, column) => {
      return column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0);
    });
    tell(cells.join('   '));
  }
  tell(
    `\n${kills} SIGKILLs of holders and commands, ${((performance.now() - started) / 1000).toFixed(1)} s, --seed ${seed}`,
  );
  const wanted = count(KILLS);
  if (kills < wanted) tell(`a busy machine: ${wanted} SIGKILLs were meant; try --seconds ${2 * seconds}`);
  if (kills === 0) failures.push('nothing was killed: this run proves nothing');
  for (const failure of failures.slice(0, 30)) tell(`FAILED ${failure}`);
  if (failures.length > 30) tell(`… and ${failures.length - 30} more`);
  if (failures.length === 0) tell('passed: the naive lock was held by two, runlock never');
  process.exit(failures.length === 0 ? 0 : 1);
}

/** @param {string} text */
function tell(text) {
  process.stdout.write(`${text}\n`);
}

/** @param {Part} part */
function hasDouble(part) {
  return summarize(readLog(part.log)).doubles.length > 0;
}

/** @param {number} forDefault */
function count(forDefault) {
  return Math.max(1, Math.round(forDefault * scale));
}

function readOptions() {
  try {
    const { values } = parseArgs({
      options: {
        seconds: { type: 'string' },
        seed: { type: 'string' },
        dir: { type: 'string' },
        keep: { type: 'boolean', default: false },
      },
    });
    const seconds = Number(values.seconds ?? DEFAULT_SECONDS);
    const seed = Number(values.seed ?? Math.floor(Math.random() * 2 ** 32));
    if (!(seconds >= 1)) throw new Error(`--seconds: expected a number from 1, got "${values.seconds}"`);
    if (!Number.isSafeInteger(seed)) throw new Error(`--seed: expected a whole number, got "${values.seed}"`);
    if (process.platform !== 'linux') throw new Error('needs Linux: the oracle reads /proc');
    // Kills, unlike power cuts, don't care about fsync: in memory many more of them fit into the time.
    const dir = values.dir ?? (fs.existsSync('/dev/shm') ? '/dev/shm' : os.tmpdir());
    return { seconds, seed, dir, keep: values.keep };
  } catch (error) {
    process.stderr.write(`stress: ${error instanceof Error ? error.message : error}\n`);
    process.exit(2);
  }
}
