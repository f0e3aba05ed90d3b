// @ts-check
// A contender that asks the lock in its own process.
//
//   churn    takes the lock for itself again and again, and is killed anywhere on the way
//   rounds   tries once each time it is told to, for a companion process that dies when it is told to
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { disturb } from './disturb.mjs';
import { Oracle } from './oracle.mjs';
import { joinParty } from './party.mjs';
import { identify, self } from './processes.mjs';
import { Random } from './random.mjs';
import { complain, endWithStarter, report } from './starter.mjs';

/**
 * @typedef {import('./party.mjs').Place & {
 *   mode: 'churn' | 'rounds', log: string, promises: string, seed: number,
 *   disturb: { pause: number, pauseMs: number, againMs: number, kill: number },
 * }} Orders
 */

/** How often a holder leaves a stale lock behind. */
const DIES_HOLDING = 0.2;

/** @type {Orders} */
const orders = JSON.parse(process.argv[2] ?? '');
const random = new Random(orders.seed);
const party = joinParty(orders);
endWithStarter();

try {
  if (orders.mode === 'churn') await churn();
  else rounds();
} catch (error) {
  complain(error instanceof Error ? (error.stack ?? error.message) : String(error));
  process.exitCode = 1;
  process.disconnect();
}

async function churn() {
  const oracle = new Oracle(orders.log);
  const me = self();
  const promises = fs.openSync(orders.promises, 'a');
  disturb(random, orders.disturb);
  report({ what: 'ready' });
  for (;;) {
    const item = random.chance(0.5) ? `item-${Math.floor(random.between(0, 20))}` : null;
    const live = random.chance(0.3);
    const run = await party.acquire(me, { live, item });
    if (typeof run === 'string') {
      await sleep(random.between(0, orders.disturb.againMs));
      continue;
    }
    oracle.enter(run);
    await sleep(random.between(0, 15));
    if (random.chance(DIES_HOLDING)) process.kill(process.pid, 'SIGKILL');
    if (random.chance(0.5)) expectOk(await party.beat(), `the heartbeat of run ${run}`);
    oracle.leave(run);
    const how = random.chance(0.6) ? 'finish' : 'release';
    const ended = await party.end(how);
    expectOk(ended, `the end of run ${run}`);
    if (ended !== 'ok') continue;
    fs.writeSync(promises, `${live || how === 'finish' ? 'finished' : 'released'} ${run}\n`);
  }
}

function rounds() {
  let companion = startCompanion();
  disturb(random, orders.disturb);
  process.on('message', (/** @type {{ what: 'try' | 'die', live: boolean }} */ message) => {
    void (message.what === 'try' ? tryOnce(message.live) : die()).catch((error) => {
      report({ what: 'tried', outcome: `failed: ${error instanceof Error ? error.stack : error}` });
    });
  });
  report({ what: 'ready' });

  /** @param {boolean} live */
  async function tryOnce(live) {
    const outcome = await party.acquire(companion.id, { live, item: null });
    report({ what: 'tried', outcome });
  }

  async function die() {
    party.letGo();
    companion.child.kill('SIGKILL');
    await once(companion.child, 'exit');
    companion = startCompanion();
    report({ what: 'died' });
  }
}

/** Lives until its stdin ends, so that it never outlives us. */
function startCompanion() {
  const child = spawn('cat', { stdio: ['pipe', 'ignore', 'ignore'] });
  const id = child.pid === undefined ? null : identify(child.pid);
  if (id === null) throw new Error('could not start "cat"');
  return { child, id };
}

/** @param {string} outcome @param {string} what */
function expectOk(outcome, what) {
  if (outcome !== 'ok') complain(`${what}, whose holder lives, was answered "${outcome}"`);
}
