// @ts-check
// A job script as users write them: takes the lock for itself with the built binary, works, beats, ends. It and its
// binaries may be killed at any time.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Oracle } from './oracle.mjs';
import { Random } from './random.mjs';
import { complain, endWithStarter, report } from './starter.mjs';

/**
 * @typedef {{ binary: string, dir: string, log: string, promises: string, stderr: string, seed: number }} Orders
 * @typedef {{ code: number | null, stdout: string }} Answer `code` null: it was killed
 */

/** How often a holder leaves a stale lock behind. */
const DIES_HOLDING = 0.2;

/** @type {Orders} */
const orders = JSON.parse(process.argv[2] ?? '');
const random = new Random(orders.seed);
const oracle = new Oracle(orders.log);
const promises = fs.openSync(orders.promises, 'a');
const stderr = fs.openSync(orders.stderr, 'a');

/** Kills that were asked for and have not been done. */
let killsDue = 0;
/** How long a command takes here, ms; follows what is seen. */
let usualMs = 120;

endWithStarter();
process.on('message', () => {
  killsDue = 1;
});

report({ what: 'ready' });
for (;;) await cycle();

async function cycle() {
  const token = random.chance(0.5) ? Math.floor(random.between(0, 2 ** 48)).toString(36) : null;
  const shown = token === null ? [] : ['--token', token];
  const item = random.chance(0.5) ? [`item-${Math.floor(random.between(0, 20))}`] : [];
  const wait = random.chance(0.7) ? ['--wait', '2s'] : [];
  const acquired = await runlock('acquire', ...item, '--pid', String(process.pid), ...wait, ...shown);
  if (acquired.code === null) {
    // Killed, so nobody knows whether it took the lock: a script ends here, or its trap releases.
    if (random.chance(0.5)) process.exit(0);
    return expect('release', [0], await persist('release', ...shown));
  }
  expect('acquire', [0, 3], acquired);
  if (acquired.code !== 0) return sleep(random.between(10, 80));

  const run = Number(/^(\d+)\n$/.exec(acquired.stdout)?.[1] ?? Number.NaN);
  if (Number.isNaN(run)) return complain(`acquire printed ${JSON.stringify(acquired.stdout)}`);
  oracle.enter(run);
  await sleep(random.between(0, 30));
  if (random.chance(DIES_HOLDING)) process.kill(process.pid, 'SIGKILL');
  if (random.chance(0.4)) {
    const beat = await runlock('hb', ...shown);
    if (beat.code !== null) expect(`hb of run ${run}`, [0], beat);
  }
  oracle.leave(run);

  const verb = random.chance(0.6) ? 'finish' : 'release';
  // Named by its number, an end that was cut short can be asked for again.
  const ended = await persist(verb, '--run', String(run), ...shown);
  expect(`${verb} of run ${run}`, [0], ended);
  if (ended.code !== 0) return;
  fs.writeSync(promises, `${verb === 'finish' ? 'finished' : 'released'} ${run}\n`);
  const record = path.join(orders.dir, 'records', `${run}.json`);
  if (verb === 'finish' && !fs.existsSync(record))
    complain(`finish of run ${run} answered 0, but there is no ${record}`);
}

/** Asks again until it is not killed. @param {string[]} args */
async function persist(...args) {
  for (;;) {
    const answer = await runlock(...args);
    if (answer.code !== null) return answer;
  }
}

/** @param {string[]} args @returns {Promise<Answer>} */
async function runlock(...args) {
  const started = performance.now();
  // It also has our stdout: while that is open, our starter knows that something of us is left.
  const child = spawn(process.execPath, [orders.binary, ...args, '--dir', orders.dir], {
    stdio: ['ignore', 'pipe', stderr, 1],
  });
  let stdout = '';
  child.stdout?.setEncoding('latin1').on('data', (text) => {
    stdout += text;
  });
  // The first half of the time it is only Node starting.
  const killer =
    killsDue > 0 ? setTimeout(() => child.kill('SIGKILL'), usualMs * random.between(0.4, 1)) : undefined;
  await once(child, 'close');
  clearTimeout(killer);
  if (child.signalCode === 'SIGKILL') {
    killsDue = 0;
    report({ what: 'killed' });
    return { code: null, stdout };
  }
  const took = performance.now() - started;
  if (took < 3 * usualMs) usualMs += (took - usualMs) / 8;
  if (child.signalCode !== null) complain(`${args.join(' ')} ended by ${child.signalCode}`);
  return { code: child.exitCode ?? -1, stdout };
}

/** @param {string} what @param {number[]} codes @param {Answer} answer */
function expect(what, codes, answer) {
  if (!codes.includes(answer.code ?? -1))
    complain(`${what} answered ${answer.code}, expected ${codes.join(' or ')}`);
}
