// @ts-check
// Shows the main job to a newcomer, with the real command: two copies of a job meet, one is skipped; a killed run
// is taken over. Fails if anything turns out other than promised.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const BINARY = fileURLToPath(new URL('../dist/runlock.cjs', import.meta.url));
/** The demo takes about three seconds; what hangs must not hang the reader, ms. */
const DEADLINE_MS = 60_000;

/**
 * The job: says that it works, and goes on until its stdin ends, so that nothing here has to sleep. It finds out by
 * itself, without runlock, whether another copy is at work.
 */
const JOB = `import fs from 'node:fs';
try {
  fs.closeSync(fs.openSync('at-work', 'wx'));
} catch {
  console.log('TWO COPIES AT WORK');
  process.exit(70);
}
fs.appendFileSync('begun.txt', process.env.RUNLOCK_RUN + '\\n');
console.log('publishing ' + process.env.RUNLOCK_ITEM + ' … (pid ' + process.pid + ')');
process.stdin.resume().on('end', () => {
  fs.rmSync('at-work');
  console.log('published ' + process.env.RUNLOCK_ITEM);
});
`;

const dir = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), 'runlock-demo-')));
/** @type {Set<Running>} */
const running = new Set();

/** A `runlock` that was typed; its output is shown as it comes. */
class Running {
  /** @param {string[]} args @param {string} [label] who typed it, where two do */
  constructor(args, label) {
    const env = Object.fromEntries(
      Object.entries(process.env).filter(([name]) => !name.startsWith('RUNLOCK_')),
    );
    const words = args.map((word) => (word === process.execPath ? 'node' : word));
    tell(`$ runlock ${words.join(' ')}${label === undefined ? '' : `        # ${label}`}`);
    this.child = spawn(process.execPath, [BINARY, ...args], { cwd: dir, env, stdio: 'pipe' });
    this.label = label;
    this.stdout = '';
    this.stderr = '';
    this.#show(this.child.stdout, (text) => {
      this.stdout += text;
    });
    this.#show(this.child.stderr, (text) => {
      this.stderr += text;
    });
    // Who has ended already needs no stdin any more.
    this.child.stdin.on('error', () => {});
    running.add(this);
    /** Settled when the command's output has ended too, so that nobody writes there any more. */
    this.closed = once(this.child, 'close').then(() => {
      running.delete(this);
      return this.child.exitCode;
    });
  }

  /** @param {import('node:stream').Readable} stream @param {(text: string) => void} keep */
  #show(stream, keep) {
    const prefix = this.label === undefined ? '  ' : `  ${this.label.padEnd(6)} | `;
    let rest = '';
    stream.setEncoding('utf8');
    stream.on('data', (/** @type {string} */ text) => {
      keep(text);
      const lines = (rest + text).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) tell(`${prefix}${line}`);
    });
    stream.on('end', () => {
      if (rest !== '') tell(`${prefix}${rest}`);
    });
  }

  /** Waits for the job's word that it has begun. @returns {Promise<number>} its pid */
  async begun() {
    for (;;) {
      const match = /^publishing .*\(pid (\d+)\)$/m.exec(this.stdout);
      if (match !== null) return Number(match[1]);
      await Promise.race([once(this.child.stdout, 'data'), this.closed]);
      const ended = this.child.exitCode !== null || this.child.signalCode !== null;
      if (ended && !this.stdout.includes('publishing')) throw new Error('the job ended before it began');
    }
  }

  /** Lets the job come to its end. */
  goOn() {
    this.child.stdin.end();
  }
}

/** @param {string} text */
function tell(text) {
  process.stdout.write(`${text}\n`);
}

/** @param {string} text */
function explain(text) {
  tell(`\n# ${text}`);
}

/** @param {string} promise @param {boolean} kept */
function check(promise, kept) {
  if (!kept) throw new Error(`not as promised: ${promise}`);
}

/** Runs a command that needs no company. @param {string[]} args */
async function type(...args) {
  const command = new Running(args);
  command.goOn();
  const code = await command.closed;
  tell(`  (exit code ${code})`);
  return { code, stdout: command.stdout, stderr: command.stderr };
}

/** @param {string} item */
function publish(item) {
  return ['run', '--item', item, '--', process.execPath, 'publish.mjs'];
}

async function demo() {
  fs.writeFileSync(path.join(dir, 'publish.mjs'), JOB);
  tell(`# In ${dir}, publish.mjs is a slow job that must not run twice at a time.`);

  explain('Cron starts it, and at the same moment somebody presses "continue":');
  const copies = [new Running(publish('ep-42'), 'cron'), new Running(publish('ep-42'), 'button')];
  const first = await Promise.race(copies.map((copy) => copy.closed.then((code) => ({ copy, code }))));
  tell(`  ${first.copy.label} was skipped: exit code ${first.code}`);
  const [winner] = copies.filter((copy) => copy !== first.copy);
  if (winner === undefined) throw new Error('nobody is left');
  check('who meets a running copy is skipped with exit code 3', first.code === 3);
  check('the skip is explained on stderr', first.copy.stderr.includes('runlock: skipped, held by run 1'));
  await winner.begun();

  explain('Who is it?');
  const held = await type('status');
  check(
    'status is 3 while the lock is held',
    held.code === 3 && held.stdout.startsWith('held   run 1  ep-42'),
  );

  explain("The other copy comes to its end, and its exit code is the job's own:");
  winner.goOn();
  const code = await winner.closed;
  tell(`  ${winner.label} has finished: exit code ${code}`);
  check('the other copy finishes with 0', code === 0);

  explain('The next run and its supervisor are killed with SIGKILL (out of memory, a power button):');
  const doomed = new Running(publish('ep-43'));
  const job = await doomed.begun();
  tell(`  kill -9 ${doomed.child.pid} ${job}`);
  doomed.child.kill('SIGKILL');
  kill(job);
  await doomed.closed;
  await gone(job);
  fs.rmSync(path.join(dir, 'at-work'));

  explain('Nobody could clean up. The next run sees that they are dead, and takes over at once:');
  const heir = await type(...publish('ep-44'));
  check('a dead run is taken over', heir.code === 0 && heir.stderr.includes('runlock: took over from run 2'));

  explain('Was ep-43 published? Nobody knows, so it stays marked until someone has looked:');
  const free = await type('status');
  check('status is 0 when the lock is free', free.code === 0 && free.stdout.startsWith('free'));
  check('the interrupted item is marked', /^marked ep-43 +unknown/m.test(free.stdout));

  explain('All of it is in the history:');
  await type('history');
  const { runs } = JSON.parse(await ask('history', '--json'));
  const outcomes = runs.map(
    (/** @type {{ run: number | null, outcome: string }} */ one) => `${one.run} ${one.outcome}`,
  );
  const expected = ['1 finished', 'null skipped', '2 interrupted', '3 finished'];
  check(`the history has ${expected.join(', ')}`, outcomes.sort().join() === expected.sort().join());
  const begun = fs.readFileSync(path.join(dir, 'begun.txt'), 'utf8').trim().split('\n');
  check('the job began three times, one at a time', begun.join() === '1,2,3');
}

/** Like `type`, but not for show. @param {string[]} args @returns {Promise<string>} */
async function ask(...args) {
  const child = spawn(process.execPath, [BINARY, '--dir', path.join(dir, 'runs'), ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let text = '';
  child.stdout.setEncoding('utf8').on('data', (/** @type {string} */ part) => {
    text += part;
  });
  await once(child, 'close');
  return text;
}

/** @param {number} pid */
function kill(pid) {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // On Windows the job goes with its supervisor.
  }
}

/** Waits for a process that is no child of ours; a zombie that nobody reaps is as good as gone. @param {number} pid */
async function gone(pid) {
  for (let tries = 0; tries < 50; tries += 1) {
    try {
      process.kill(pid, 0);
    } catch {
      return;
    }
    await sleep(10);
  }
}

/** Leaves nothing behind: the jobs end with their stdin. */
async function cleanUp() {
  for (const command of running) {
    command.goOn();
    command.child.kill();
  }
  await Promise.race([Promise.all([...running].map((command) => command.closed)), sleep(2_000)]);
  fs.rmSync(dir, { recursive: true, force: true, maxRetries: 5 });
}

const started = performance.now();
const deadline = setTimeout(
  () => void fail(new Error(`not done within ${DEADLINE_MS / 1000} s`)),
  DEADLINE_MS,
);
process.once('SIGINT', () => void cleanUp().then(() => process.exit(130)));

/** @param {unknown} error */
async function fail(error) {
  await cleanUp();
  process.stderr.write(`\ndemo: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exit(1);
}

try {
  await demo();
  clearTimeout(deadline);
  await cleanUp();
  tell(`\n# All as promised, in ${((performance.now() - started) / 1000).toFixed(1)} s.`);
} catch (error) {
  await fail(error);
}
