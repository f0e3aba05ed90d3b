// @ts-check
// npm run bench [-- --rounds 25]
//
// What a command costs on top of Node's own start: whole processes, started by a real bash script as in a crontab,
// each between two bare starts of the same Node, so that a machine that gets slower or faster meanwhile slows both.
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const BINARY = fileURLToPath(new URL('../dist/runlock.cjs', import.meta.url));

/**
 * The script is the holder of the locks that it takes. One round leaves the lock free, and prints for each command
 *   NAME BARE COMMAND CODE
 * with the times in µs.
 */
const SCRIPT = `#!/bin/bash
LC_ALL=C
now() { at=\${EPOCHREALTIME/./}; }
bare() { now; from=$at; "$NODE" -e 0; now; bare=$((at - from)); }
measure() { # NAME ARG…
  local name=$1; shift
  bare
  now; from=$at
  "$NODE" "$RUNLOCK" "$@" > answer 2>> errors
  code=$?
  now
  printf '%s\\t%s\\t%s\\t%s\\n' "$name" "$bare" $((at - from)) "$code"
}
for ((round = 0; round < ROUNDS; round++)); do
  measure 'status (free)' status
  measure 'acquire' acquire
  measure 'status (held)' status
  measure 'hb' hb
  measure 'finish' finish
  measure 'acquire --no-pid --token' acquire --no-pid --token "t$round"
  measure 'release --token' release --token "t$round"
  "$NODE" "$RUNLOCK" acquire > answer
  measure 'release' release
  measure 'run true' run true
  now; from=$at; "$NODE" rewrite.mjs bare.json "ep-$round"; now; bare=$((at - from))
  now; from=$at; "$NODE" "$RUNLOCK" ledger add 'ledger.json#publishes' "ep-$round" entry.json 2>> errors; code=$?; now
  printf '%s\\t%s\\t%s\\t%s\\n' "$LEDGER_ADD" "$bare" $((at - from)) "$code"
done
`;

/** Measured against the script below, and not against a bare start. */
const LEDGER_ADD = 'ledger add';
const LEDGER_ENTRIES = 10_000;

/** What people write instead: it rounds ids, loses entries to others who do the same, and halves files on full disks. */
const REWRITE = `import fs from 'node:fs';
const [file, key] = process.argv.slice(2);
const ledger = JSON.parse(fs.readFileSync(file, 'utf8'));
ledger.publishes[key] = JSON.parse(fs.readFileSync('entry.json', 'utf8'));
const fd = fs.openSync(file + '.tmp', 'w');
fs.writeSync(fd, JSON.stringify(ledger, null, 2));
fs.fsyncSync(fd);
fs.closeSync(fd);
fs.renameSync(file + '.tmp', file);
`;

/** What each command must answer, or its time is that of something else. */
const CODES = new Map([['status (held)', 3]]);

main();

function main() {
  const rounds = readRounds();
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'runlock-bench-'));
  try {
    fs.writeFileSync(path.join(dir, 'bench.sh'), SCRIPT);
    writeLedgers(dir);
    const env = {
      ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('RUNLOCK_'))),
      NODE: process.execPath,
      RUNLOCK: BINARY,
      ROUNDS: String(rounds),
      LEDGER_ADD,
    };
    const { stdout, status, error } = spawnSync('bash', ['bench.sh'], {
      cwd: dir,
      env,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    if (error !== undefined || status !== 0)
      throw new Error(`bash bench.sh: ${error?.message ?? `exit code ${status}`}`);
    const measured = collect(stdout, path.join(dir, 'errors'));
    const ledger = measured.get(LEDGER_ADD) ?? [];
    measured.delete(LEDGER_ADD);
    printTable(measured, rounds);
    printLedger(ledger);
  } finally {
    fs.rmSync(dir, { recursive: true, force: true });
  }
}

/**
 * @param {string} output of the script
 * @param {string} errors the file with what the commands said on stderr
 */
function collect(output, errors) {
  /** @type {Map<string, { bare: number, command: number }[]>} */
  const measured = new Map();
  for (const line of output.split('\n').slice(0, -1)) {
    const [name = '', bare, command, code] = line.split('\t');
    if (Number(bare) <= 0) throw new Error('this bash does not know EPOCHREALTIME: bash 5 is needed');
    if (Number(code) !== (CODES.get(name) ?? 0)) {
      throw new Error(`${name} answered ${code}: ${fs.readFileSync(errors, 'utf8').trim()}`);
    }
    const pairs = measured.get(name) ?? [];
    pairs.push({ bare: Number(bare), command: Number(command) });
    measured.set(name, pairs);
  }
  return measured;
}

/** @param {Map<string, { bare: number, command: number }[]>} measured @param {number} rounds */
function printTable(measured, rounds) {
  const bare = [...measured.values()].flat().map((pair) => pair.bare / 1000);
  console.log(
    `node ${process.versions.node} on ${os.availableParallelism()} cores; bare start (node -e 0): ` +
      `median ${median(bare).toFixed(0)} ms, ${Math.min(...bare).toFixed(0)} to ${Math.max(...bare).toFixed(0)}; ${rounds} rounds\n`,
  );
  console.log(
    `${'command'.padEnd(26)}${'times bare node'.padStart(16)}${'min'.padStart(8)}${'max'.padStart(8)}${'median ms'.padStart(12)}`,
  );
  for (const [name, pairs] of measured) {
    const ratios = pairs.map((pair) => pair.command / pair.bare);
    const columns = [
      name.padEnd(26),
      median(ratios).toFixed(2).padStart(16),
      Math.min(...ratios)
        .toFixed(2)
        .padStart(8),
      Math.max(...ratios)
        .toFixed(2)
        .padStart(8),
      median(pairs.map((pair) => pair.command / 1000))
        .toFixed(0)
        .padStart(12),
    ];
    console.log(columns.join(''));
  }
}

/** @param {string} dir gets one ledger for each of the two, and the entry to add */
function writeLedgers(dir) {
  const entry = { id: 7440123456, title: '第四十二期', rate: 1.1, at: '2026-10-14T16:00:00+08:00' };
  const entries = Array.from({ length: LEDGER_ENTRIES }, (_, n) => [`old-${n}`, entry]);
  const ledger = JSON.stringify({ version: 1, publishes: Object.fromEntries(entries) }, null, 2);
  for (const [name, content] of [
    ['bare.json', ledger],
    ['ledger.json', ledger],
    ['entry.json', JSON.stringify(entry)],
    ['rewrite.mjs', REWRITE],
  ])
    fs.writeFileSync(path.join(dir, name ?? ''), content ?? '');
}

/** @param {readonly { bare: number, command: number }[]} pairs */
function printLedger(pairs) {
  const ratios = pairs.map((pair) => pair.command / pair.bare);
  const ms = (/** @type {'bare' | 'command'} */ which) =>
    median(pairs.map((pair) => pair[which] / 1000)).toFixed(0);
  console.log(
    `\nledger add, to ${LEDGER_ENTRIES.toLocaleString('en')} entries: ${median(ratios).toFixed(2)} times a script that parses and rewrites the file ` +
      `(${Math.min(...ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)}; medians ${ms('command')} and ${ms('bare')} ms)`,
  );
}

/** @param {readonly number[]} numbers */
function median(numbers) {
  const sorted = [...numbers].sort((a, b) => a - b);
  const middle = sorted.length / 2;
  return ((sorted[Math.ceil(middle) - 1] ?? Number.NaN) + (sorted[Math.floor(middle)] ?? Number.NaN)) / 2;
}

function readRounds() {
  const { values } = parseArgs({ options: { rounds: { type: 'string', default: '25' } } });
  const rounds = Number(values.rounds);
  if (Number.isInteger(rounds) && rounds > 0) return rounds;
  console.error(`bench: --rounds: expected a whole number from 1, got "${values.rounds}"`);
  process.exit(2);
}
