// @ts-check
// Many who take the lock, work under the oracle's eyes and let go, while a reaper kills them anywhere on the way.
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { readLog, summarize } from './oracle.mjs';
import { BINARY, disturbance, script } from './part.mjs';
import { verify } from './verify.mjs';

/**
 * @typedef {import('./part.mjs').Part} Part
 * @typedef {import('node:child_process').ChildProcess} ChildProcess
 */

const CONTENDERS = 8;
/** How long a Node takes to start where nothing else is going on, ms. */
const USUAL_START_MS = 60;
/** Nobody getting the lock for so long, where all want it: it is stuck, ms. */
const STUCK_MS = 15_000;

/** What the binary may say on stderr while it and its callers are being killed. */
const EXPECTED = [
  /^runlock: skipped, held by /,
  /^runlock: took over from run \d+: /,
  /^runlock: \S+ is begun again, though nobody has settled /,
  /^runlock: made the state directory /,
  // The caller was killed while the command was on its way.
  /^runlock: --pid \d+: there is no such process, so it can't hold the lock$/,
  /^runlock: .*EPIPE/,
  // The same, and somebody has taken over from it.
  /^runlock: run \d+ is over, its lock is lost: stop/,
  // Released by a trap after an acquire that was killed before it took the lock.
  /^runlock: not yours, nothing is changed: held by /,
];

/**
 * In the contenders' own processes, with every file operation a place to be stopped or killed at.
 *
 * @param {Part} part
 * @param {{ algorithm: 'runlock' | 'naive', library: string, seconds: number, enough?: () => boolean }} how
 *   `enough`: to stop before the time is up
 */
export async function churnInProcess(part, { algorithm, library, seconds, enough }) {
  const pace = paceOf(150);
  const stop = new AbortController();
  const slots = Array.from({ length: CONTENDERS }, () =>
    keepStarting(part, stop.signal, () => {
      const orders = {
        ...{ mode: 'churn', algorithm, library, dir: part.dir, log: part.log, promises: part.promises },
        ...{ seed: part.random.seed(), disturb: { ...disturbance(algorithm), kill: 1 / 100 } },
      };
      const child = part.children.start([script('contender.mjs'), JSON.stringify(orders)], {
        stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
      });
      listen(part, child);
      return child;
    }),
  );
  const isOver = () => enough?.() === true || part.seconds > seconds;
  await reap(part, isOver, pace, () => {
    pickReady(part, slots)?.kill('SIGKILL');
  });
  return windUp(part, stop, slots, algorithm === 'runlock');
}

/**
 * With the built binary: scripts that call it, and jobs under `runlock run`.
 *
 * @param {Part} part
 * @param {{ seconds: number }} how
 */
export async function churnOfProcesses(part, { seconds }) {
  const pace = paceOf(80);
  const stop = new AbortController();
  const stderr = fs.openSync(part.stderr, 'a');
  const callers = Array.from({ length: CONTENDERS - 2 }, (_, index) =>
    keepStarting(part, stop.signal, () => startCaller(part, index % 2 === 0)),
  );
  const runs = Array.from({ length: 2 }, () => keepStarting(part, stop.signal, () => startRun(part, stderr)));
  await reap(
    part,
    () => part.seconds > seconds,
    pace,
    () => {
      const child = part.random.pick(callers)?.child;
      if (part.random.chance(0.4)) child?.kill('SIGKILL');
      else if (child?.connected) child.send({ what: 'killNext' }, () => {});
    },
  );
  const figures = await windUp(part, stop, [...callers, ...runs], true);
  fs.closeSync(stderr);
  for (const line of unexpected(fs.readFileSync(part.stderr, 'utf8'))) part.problem(`stderr: ${line}`);
  return figures;
}

/**
 * A script that takes the lock for itself.
 *
 * @param {Part} part
 * @param {boolean} leads its own process group, whose survivors keep the lock
 */
function startCaller(part, leads) {
  const orders = {
    ...{ binary: BINARY, dir: part.dir, log: part.log, promises: part.promises, stderr: part.stderr },
    seed: part.random.seed(),
  };
  const child = part.children.start([script('holder.mjs'), JSON.stringify(orders)], {
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
    detached: leads,
  });
  listen(part, child);
  return child;
}

/** A job under `runlock run`, killed with its supervisor or left without it. @param {Part} part @param {number} stderr */
function startRun(part, stderr) {
  const { random } = part;
  const wait = random.chance(0.7) ? ['--wait', '2s'] : [];
  const item = random.chance(0.5) ? ['--item', `item-${Math.floor(random.between(0, 20))}`] : [];
  const ms = random.chance(0.3) ? random.between(100, 300) : random.between(0, 30);
  const argv = [
    BINARY,
    'run',
    '--dir',
    part.dir,
    ...wait,
    ...item,
    '--',
    process.execPath,
    script('job.mjs'),
    part.log,
    `${ms}`,
  ];
  const child = part.children.start(argv, { stdio: ['ignore', 'pipe', stderr], detached: true });
  let stdout = '';
  child.stdout?.setEncoding('latin1').on('data', (text) => {
    stdout += text;
  });
  const whole = random.chance(0.5);
  const kill = () => {
    if (!whole || child.pid === undefined) child.kill('SIGKILL');
    // Safe while the leader has not been reaped, which is told by the same event that stops this timer.
    else process.kill(-child.pid, 'SIGKILL');
  };
  const killer = random.chance(0.6) ? setTimeout(kill, random.between(50, 600)) : undefined;
  child.once('exit', () => clearTimeout(killer));
  child.once('close', (code) => {
    if (code !== null && code !== 0 && code !== 3) part.problem(`run answered ${code}`);
    if (code === 0) fs.appendFileSync(part.promises, `finished ${Number(stdout)}\n`);
  });
  return child;
}

/** @type {WeakSet<ChildProcess>} */
const ready = new WeakSet();

/**
 * One that is at work: who was killed while it starts has not been near the lock.
 *
 * @param {Part} part
 * @param {{ child: ChildProcess | null }[]} slots
 */
function pickReady(part, slots) {
  return part.random.pick(slots.flatMap(({ child }) => (child !== null && ready.has(child) ? [child] : [])));
}

/** @param {Part} part @param {ChildProcess} child */
function listen(part, child) {
  child.stdout?.resume();
  child.on('message', (/** @type {{ what: string, text?: string }} */ message) => {
    if (message.what === 'ready') ready.add(child);
    if (message.what === 'killed') part.children.kills += 1;
    if (message.what === 'problem') part.problem(message.text ?? '');
  });
}

/**
 * Starts another whenever one has ended.
 *
 * @param {Part} part
 * @param {AbortSignal} stop
 * @param {() => ChildProcess} start
 */
function keepStarting(part, stop, start) {
  const slot = { child: /** @type {ChildProcess | null} */ (null), ended: Promise.resolve() };
  slot.ended = (async () => {
    while (!stop.aborted) {
      slot.child = start();
      await once(slot.child, 'exit');
      const { exitCode } = slot.child;
      if (exitCode !== null && exitCode > 3) part.problem(`a contender ended with ${exitCode}`);
    }
    slot.child = null;
  })();
  return slot;
}

/**
 * How fast this machine is just now: killed before they get anywhere, contenders prove nothing. Asked before there
 * are any.
 *
 * @param {number} everyMs how often to kill where nothing else is going on
 */
function paceOf(everyMs) {
  const times = Array.from({ length: 2 }, () => {
    const started = performance.now();
    spawnSync(process.execPath, ['-e', '0']);
    return performance.now() - started;
  });
  const slowness = Math.min(10, Math.max(1, Math.min(...times) / USUAL_START_MS));
  return { everyMs: everyMs * slowness, stuckMs: STUCK_MS * slowness };
}

/**
 * Kills again and again, and sees to it that the lock still goes round.
 *
 * @param {Part} part
 * @param {() => boolean} isOver
 * @param {{ everyMs: number, stuckMs: number }} pace
 * @param {() => void} strike
 */
async function reap(part, isOver, { everyMs, stuckMs }, strike) {
  let size = -1;
  let progressAt = performance.now();
  let strikeAt = progressAt;
  while (!isOver()) {
    await sleep(20);
    const now = performance.now();
    if (now >= strikeAt) {
      strike();
      strikeAt = now + everyMs * part.random.between(0.2, 1.8);
    }
    const sizeNow = fs.existsSync(part.log) ? fs.statSync(part.log).size : 0;
    if (sizeNow !== size) {
      size = sizeNow;
      progressAt = now;
    } else if (now - progressAt > stuckMs) {
      return part.sayStuck(`nobody got the lock for ${Math.round(stuckMs / 1000)} s`);
    }
  }
}

/**
 * @param {Part} part
 * @param {AbortController} stop
 * @param {{ ended: Promise<void> }[]} slots
 * @param {boolean} real whether what is left is a state directory to be checked
 */
async function windUp(part, stop, slots, real) {
  stop.abort();
  part.children.killAll();
  await Promise.all(slots.map((slot) => slot.ended));
  // Commands of killed callers, and jobs of killed supervisors, come to their own end.
  await part.children.allGone();
  const { cycles, doubles } = summarize(readLog(part.log));
  const { kills } = part.children;
  if (!real) return { count: cycles, doubles: doubles.length, takeovers: null, kills };
  part.checkNotStuck();
  const { problems, takeovers } = verify(part);
  for (const problem of problems) part.problem(problem);
  for (const { run, other } of doubles.slice(0, 5))
    part.problem(`double hold: run ${run} entered while ${other} (run:pid) was in`);
  return { count: cycles, doubles: doubles.length, takeovers, kills };
}

/** @param {string} text */
function unexpected(text) {
  return text.split('\n').filter((line) => line !== '' && !EXPECTED.some((pattern) => pattern.test(line)));
}
