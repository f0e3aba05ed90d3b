// @ts-check
// npm run soak [-- --minutes 60]
//
// What piles up? One `run` beats all the time, others come and go and are killed, and a year of minutes goes by on a
// fast clock. Memory, descriptors and files are looked at ten times on the way; what grows is an error.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { bundleLibrary, loadLibrary } from './stress/library.mjs';

const BINARY = fileURLToPath(new URL('../dist/runlock.cjs', import.meta.url));
const SAMPLES = 10;
/** What a supervisor's memory may move by after it has warmed up, kB: the collector is free in when it works. */
const MEMORY_KB = 16_384;
/** lock.json, lock.guard, current.json, and in live/ those of one run, with a temporary file that a kill has left. */
const FILES = 8;
const MINUTES_A_YEAR = 365 * 24 * 60;

const { values } = parseArgs({ options: { minutes: { type: 'string', default: '60' } } });
const seconds = Number(values.minutes) * 60;
if (!(seconds > 0)) {
  process.stderr.write(`soak: --minutes: expected a number above 0, got "${values.minutes}"\n`);
  process.exit(2);
}
const base = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), 'runlock-soak-')));
/** Half a million cycles: what they wait for must not be the disk. */
const memory = fs.mkdtempSync(
  path.join(fs.existsSync('/dev/shm') ? '/dev/shm' : os.tmpdir(), 'runlock-soak-'),
);
/** @type {string[]} */
const failures = [];
process.on('exit', () => {
  for (const dir of [base, memory]) fs.rmSync(dir, { recursive: true, force: true, maxRetries: 5 });
});
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(130));

await churn(path.join(base, 'churn'), seconds);
await year(path.join(memory, 'year'), Math.min(1, seconds / 3600));
for (const failure of failures) process.stdout.write(`FAILED ${failure}\n`);
process.stdout.write(failures.length === 0 ? 'passed: nothing piles up\n' : '');
process.exit(failures.length === 0 ? 0 : 1);

/** One long run on a lock of its own, and short ones that are killed at random beside it. @param {string} dir @param {number} forSeconds */
async function churn(dir, forSeconds) {
  const forever = [process.execPath, '-e', 'setInterval(() => {}, 1000)'];
  const long = runlock(['run', '--dir', dir, '--name', 'long', '--hold', '3s', '--', ...forever]);
  const until = performance.now() + forSeconds * 1000;
  /** @type {{ minute: number, rssKb: number, descriptors: number, files: number, cycles: number, kills: number }[]} */
  const samples = [];
  let cycles = 0;
  let kills = 0;
  while (performance.now() < until) {
    const short = runlock(['run', '--dir', dir, '--item', `item-${cycles % 50}`, '--', 'sleep', '0.02']);
    if (Math.random() < 0.3) {
      await setTimeout(Math.random() * 200);
      try {
        process.kill(-(short.pid ?? 0), 'SIGKILL');
        kills += 1;
      } catch {
        // It was faster.
      }
    }
    if (short.exitCode === null && short.signalCode === null) await once(short, 'exit');
    cycles += 1;
    const passed = forSeconds * 1000 - (until - performance.now());
    const due = Math.min(SAMPLES, Math.floor((passed / (forSeconds * 1000)) * SAMPLES));
    if (due <= samples.length) continue;
    const sample = {
      minute: Number((passed / 60_000).toFixed(1)),
      ...look(long.pid ?? 0, dir),
      cycles,
      kills,
    };
    samples.push(sample);
    process.stdout.write(`${JSON.stringify(sample)}\n`);
  }
  if (long.exitCode !== null) failures.push(`the long run ended with ${long.exitCode}`);
  long.kill('SIGTERM');
  await once(long, 'exit');
  const [first, warm] = samples;
  const last = samples.at(-1);
  if (first === undefined || warm === undefined || last === undefined)
    throw new Error('too short for a sample');
  if (kills === 0) failures.push('nothing was killed: this run proves nothing');
  if (last.rssKb > warm.rssKb + MEMORY_KB)
    failures.push(`memory grew from ${warm.rssKb} to ${last.rssKb} kB`);
  if (last.descriptors > first.descriptors)
    failures.push(`descriptors grew from ${first.descriptors} to ${last.descriptors}`);
  const most = Math.max(...samples.map(({ files }) => files));
  if (most > FILES) failures.push(`${most} files beside records and history`);
}

/** @param {number} pid @param {string} dir */
function look(pid, dir) {
  const rss = /VmRSS:\s+(\d+)/.exec(fs.readFileSync(`/proc/${pid}/status`, 'utf8'));
  const kept = fs
    .readdirSync(dir, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && !/locks\/long|history|records/.test(entry.parentPath));
  return {
    rssKb: Number(rss?.[1]),
    descriptors: fs.readdirSync(`/proc/${pid}/fd`).length,
    files: kept.length,
  };
}

/** A job each minute of a year, as fast as it goes. @param {string} dir @param {number} part of the year */
async function year(dir, part) {
  const file = path.join(base, 'library.cjs');
  await bundleLibrary(file);
  const { Lock, FileStore, hashToken, systemWitness, systemClock } = loadLibrary(file);
  let now = Date.UTC(2026, 0, 1);
  const clock = { now: () => now, monotonic: () => performance.now(), sleep: systemClock.sleep };
  const minutes = Math.round(MINUTES_A_YEAR * part);
  let begun = performance.now();
  for (let minute = 1; minute <= minutes; minute += 1) {
    now += 60_000;
    const store = new FileStore({ base: dir, folder: null, clock, singleMachine: false, notice: () => {} });
    const lock = new Lock(store, systemWitness, clock);
    const token = `minute-${minute}`;
    const acquired = await lock.acquire({ record: draft(), token, chosenToken: false });
    if (acquired.outcome !== 'acquired' || acquired.run !== minute)
      throw new Error(`minute ${minute}: ${acquired.outcome}`);
    const claim = { tokenHash: await hashToken(token), caller: [], ancestors: [] };
    // A release leaves no record: a year of those is half a million small files.
    const { outcome } = await lock.release(claim, minute, true);
    if (outcome !== 'ok') throw new Error(`minute ${minute}: ${outcome}`);
    if (minute % Math.ceil(minutes / SAMPLES) !== 0) continue;
    // Or nothing could end it: all that it waits for is done at once.
    await setTimeout(0);
    const ms = (performance.now() - begun) / Math.ceil(minutes / SAMPLES);
    const rssMb = Math.round(process.memoryUsage().rss / 2 ** 20);
    process.stdout.write(
      `${JSON.stringify({ day: Math.round(minute / 1440), msEach: Number(ms.toFixed(2)), rssMb, months: fs.readdirSync(path.join(dir, 'history')).length })}\n`,
    );
    begun = performance.now();
  }
}

function draft() {
  return {
    pid: null,
    job: null,
    item: 'every-minute',
    platform: process.platform,
    host: os.hostname(),
    bootId: null,
    pidNamespace: null,
    pidStarted: null,
    forks: [],
    caller: null,
    startedBy: null,
    session: null,
    command: null,
    commandPid: null,
    commandPidStarted: null,
    holdMs: 45 * 60_000,
    killAfterMs: null,
    live: false,
    liveIndex: null,
    handedIn: null,
  };
}

/** @param {string[]} args */
function runlock(args) {
  return spawn(process.execPath, [BINARY, ...args], { stdio: 'ignore', detached: true });
}
