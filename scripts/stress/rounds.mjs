// @ts-check
// One stale lock, many who want it, let go together: one wins, with the next number.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { BINARY, disturbance, Part, script } from './part.mjs';

const CONTENDERS = 8;
/** One who doesn't answer for so long hangs, ms. */
const PATIENCE_MS = 20_000;

/**
 * In the contenders' own processes, with every file operation a place to be stopped at.
 *
 * @param {Part} part
 * @param {{ algorithm: 'runlock' | 'naive', library: string, rounds: number, seconds: number, enough?: (doubles: number) => boolean }} how
 *   `enough`: to stop before the time is up
 */
export async function roundsInProcess(part, { algorithm, library, rounds, seconds, enough }) {
  const contenders = await Promise.all(
    Array.from({ length: CONTENDERS }, async () => {
      const orders = {
        ...{ mode: 'rounds', algorithm, library, dir: part.dir, log: part.log, promises: part.promises },
        ...{ seed: part.random.seed(), disturb: { ...disturbance(algorithm), kill: 0 } },
      };
      const child = part.children.start([script('contender.mjs'), JSON.stringify(orders)], {
        stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      });
      await answer(child);
      return child;
    }),
  );

  const tally = new Tally(part);
  while (tally.rounds < rounds && part.seconds < seconds && enough?.(tally.doubles) !== true) {
    // Every second lock is that of a `run`, which the kernel's lock on its live file keeps too.
    const live = tally.rounds % 2 === 1;
    const outcomes = await Promise.all(
      contenders.map((child) => {
        child.send({ what: 'try', live });
        return answer(child);
      }),
    );
    const winners = contenders.filter((_, index) => typeof outcomes[index] === 'number');
    tally.add(outcomes);
    tally.kills += winners.length;
    await Promise.all(
      winners.map((child) => {
        child.send({ what: 'die', live });
        return answer(child);
      }),
    );
  }
  part.children.killAll();
  await part.children.allGone();
  return tally.figures(algorithm === 'runlock');
}

/** @param {import('node:child_process').ChildProcess} child @returns {Promise<number | string>} */
async function answer(child) {
  const [message] = await once(child, 'message', { signal: AbortSignal.timeout(PATIENCE_MS) });
  if (message.what === 'problem') throw new Error(message.text);
  return message.outcome;
}

/**
 * With the built binary, a process for each try.
 *
 * @param {Part} part
 * @param {{ rounds: number, seconds: number }} how
 */
export async function roundsOfProcesses(part, { rounds, seconds }) {
  const tally = new Tally(part);
  const companions = Array.from({ length: CONTENDERS }, startCompanion);
  try {
    while (tally.rounds < rounds && part.seconds < seconds) {
      // The first round finds nothing stale yet. After it, every second one stops them where they have seen it.
      const gate = tally.rounds % 2 === 0 ? 'look' : 'guard';
      const tries = companions.map((companion) => startTry(part, companion.pid ?? 0, gate));
      await Promise.all(tries.map((one) => one.arrived));
      for (const one of tries) one.letGo();
      const outcomes = await Promise.all(tries.map((one) => one.outcome));
      tally.add(outcomes);
      for (const [index, outcome] of outcomes.entries()) {
        const companion = companions[index];
        if (typeof outcome !== 'number' || companion === undefined) continue;
        companion.kill('SIGKILL');
        tally.kills += 1;
        await once(companion, 'exit');
        companions[index] = startCompanion();
      }
    }
    await part.children.allGone();
  } finally {
    for (const companion of companions) companion.kill('SIGKILL');
  }
  return tally.figures(true);
}

/** The process for which the lock is taken. It ends with us. */
function startCompanion() {
  return spawn('cat', { stdio: ['pipe', 'ignore', 'ignore'] });
}

/** @param {Part} part @param {number} pid @param {string} gate */
function startTry(part, pid, gate) {
  const child = part.children.start(
    ['--require', script('gate.mjs'), BINARY, 'acquire', '--pid', String(pid), '--dir', part.dir],
    {
      stdio: ['pipe', 'pipe', 'pipe', 'pipe'],
      env: { ...process.env, STRESS_GATE: gate, STRESS_DIR: part.dir },
      timeout: PATIENCE_MS,
      killSignal: 'SIGKILL',
    },
  );
  let stdout = '';
  let stderr = '';
  child.stdout?.setEncoding('utf8').on('data', (text) => {
    stdout += text;
  });
  child.stderr?.setEncoding('utf8').on('data', (text) => {
    stderr += text;
  });
  child.stdin?.on('error', () => {});
  const closed = once(child, 'close');
  const arrival = child.stdio[3];
  return {
    arrived: Promise.race([
      arrival === null || arrival === undefined ? sleep(0) : once(arrival, 'data'),
      closed,
    ]),
    letGo() {
      child.stdin?.end('.');
    },
    /** @type {Promise<number | string>} */
    outcome: closed.then(() => {
      if (child.exitCode === 0) return Number(stdout);
      return child.exitCode === 3
        ? `held: ${stderr}`
        : `exit ${child.exitCode} ${child.signalCode ?? ''}: ${stderr}`;
    }),
  };
}

/** Counts what the rounds gave. */
class Tally {
  rounds = 0;
  doubles = 0;
  /** Of the companions whose death makes a lock stale. */
  kills = 0;
  #last = 0;
  #part;

  /** @param {Part} part */
  constructor(part) {
    this.#part = part;
  }

  /** @param {(number | string)[]} outcomes of one round: the number of who won, words of who did not */
  add(outcomes) {
    this.rounds += 1;
    const runs = outcomes.filter((outcome) => typeof outcome === 'number');
    if (runs.length > 1) this.doubles += 1;
    const [run] = runs;
    const round = `round ${this.rounds}`;
    if (run === undefined) {
      this.#part.stuck += 1;
      this.#part.problem(`stuck: ${round}: nobody got the lock: ${outcomes[0]}`);
    } else if (run !== this.#last + 1) {
      this.#part.problem(`${round}: the winner got number ${run} after ${this.#last}`);
    }
    for (const outcome of outcomes) {
      if (typeof outcome === 'string' && !outcome.startsWith('held'))
        this.#part.problem(`${round}: ${outcome}`);
    }
    this.#last = Math.max(this.#last, ...runs);
  }

  /** @param {boolean} real whether it was runlock that took over */
  figures(real) {
    const takeovers = real ? Math.max(0, this.rounds - 1) : null;
    return { count: this.rounds, doubles: this.doubles, takeovers, kills: this.kills };
  }
}
