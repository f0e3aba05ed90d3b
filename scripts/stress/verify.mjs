// @ts-check
// What must be true of a state directory after it all, read from its files alone.
import fs from 'node:fs';
import path from 'node:path';
import { readLog } from './oracle.mjs';

/** @typedef {{ event: string, run: number | null, outcome?: string, tookOver?: object | null }} Event */

/**
 * @param {{ dir: string, log: string, promises: string }} place
 * @returns {{ problems: string[], takeovers: number, runs: number }}
 */
export function verify({ dir, log, promises }) {
  /** @type {string[]} */
  const problems = [];
  const { events, torn } = readHistory(path.join(dir, 'history'));
  if (torn > 0) problems.push(`${torn} torn lines in the history`);

  const taken = events.filter((event) => event.event === 'taken');
  taken.forEach((event, index) => {
    const before = taken[index - 1]?.run ?? 0;
    if ((event.run ?? 0) <= before)
      problems.push(`in the history run ${event.run} was taken after run ${before}`);
  });
  const numbers = new Set(taken.map((event) => event.run));
  /** @type {Map<number, string>} */
  const ends = new Map();
  for (const { event, run, outcome = '' } of events) {
    if (event === 'ended' && run !== null && !ends.has(run)) ends.set(run, outcome);
  }

  let previous = 0;
  for (const { what, run } of readLog(log)) {
    if (what !== 'enter') continue;
    if (run <= previous) problems.push(`run ${run} was held after run ${previous}`);
    if (!numbers.has(run)) problems.push(`run ${run} was held, but the history does not have it`);
    previous = run;
  }
  for (const line of fs.readFileSync(promises, 'latin1').split('\n').slice(0, -1)) {
    const [outcome = '', run = ''] = line.split(' ');
    if (ends.get(Number(run)) !== outcome) {
      problems.push(
        `run ${run} was told that it has ${outcome}, the history says ${ends.get(Number(run)) ?? 'nothing'}`,
      );
    }
    const record = path.join(dir, 'records', `${run}.json`);
    if (outcome === 'finished' && !isJson(record))
      problems.push(`the record of finished run ${run} is missing or no JSON`);
  }
  const takeovers = taken.filter((event) => event.tookOver != null).length;
  return { problems, takeovers, runs: taken.at(-1)?.run ?? 0 };
}

/** @param {string} dir */
function readHistory(dir) {
  /** @type {Event[]} */
  const events = [];
  let torn = 0;
  for (const name of fs.readdirSync(dir).sort()) {
    for (const line of fs.readFileSync(path.join(dir, name), 'utf8').split('\n')) {
      if (line === '') continue;
      try {
        events.push(JSON.parse(line));
      } catch {
        torn += 1;
      }
    }
  }
  return { events, torn };
}

/** @param {string} file */
function isJson(file) {
  try {
    JSON.parse(fs.readFileSync(file, 'utf8'));
    return true;
  } catch {
    return false;
  }
}
