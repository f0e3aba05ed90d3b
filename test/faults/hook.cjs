// Loaded with `node --require` before the built command: counts what it does to the files of one directory and,
// at the chosen call, kills the process or makes the call fail, as a crash or a broken disk would.
//
//   FAULT_DIR   the directory whose calls count
//   FAULT_AT    the number of the call, from 1; 0 only counts
//   FAULT_KIND  kill, or the code of the error: ENOSPC, EIO, EACCES
//   FAULT_LOG   where the calls are written to, one a line, when the process ends by itself
const fs = require('node:fs');
const path = require('node:path');

const { FAULT_DIR: dir, FAULT_KIND: kind, FAULT_LOG: log } = process.env;
const at = Number(process.env.FAULT_AT);
const real = { ...fs };
const ours = new Set();
const calls = [];

const inDir = (file) => typeof file === 'string' && (file === dir || file.startsWith(dir + path.sep));

/** Calls that change something: between two of them, all states of the disk are the same. */
const CHANGES = [
  'writeSync',
  'fsyncSync',
  'ftruncateSync',
  'futimesSync',
  'fchmodSync',
  'fchownSync',
  'chmodSync',
  'chownSync',
  'linkSync',
  'renameSync',
  'unlinkSync',
  'rmSync',
  'mkdirSync',
];
const LOOKS = [
  'openSync',
  'readSync',
  'closeSync',
  'fstatSync',
  'lstatSync',
  'statSync',
  'readdirSync',
  'readFileSync',
  'existsSync',
  'statfsSync',
];

function due(name, target) {
  calls.push(`${name} ${target}`);
  if (calls.length !== at) return;
  if (kind === 'kill') process.kill(process.pid, 'SIGKILL');
  const error = new Error(`${kind}: injected, ${name.replace('Sync', '')}`);
  throw Object.assign(error, { code: kind, syscall: name.replace('Sync', '') });
}

for (const name of [...CHANGES, ...LOOKS]) {
  fs[name] = (...args) => {
    const [target] = args;
    const counts = typeof target === 'number' ? ours.has(target) : inDir(target);
    const failing = CHANGES.includes(name) || (name === 'openSync' && (args[1] & fs.constants.O_CREAT) !== 0);
    if (counts && failing) due(name, typeof target === 'number' ? target : path.relative(dir, target));
    const result = real[name](...args);
    if (name === 'openSync' && inDir(target)) ours.add(result);
    if (name === 'closeSync') ours.delete(target);
    return result;
  };
}

process.on('exit', () => {
  if (log) real.writeFileSync(log, calls.join('\n'));
});
