// Loaded with `node --require` before the built command: counts what it does to the files of one directory and,
// at the chosen call, kills the process or makes the call fail, as a crash or a broken disk would.
//
//   FAULT_DIR    the directory whose calls count
//   FAULT_CALLS  changes: the calls that change something; looks: those that read
//   FAULT_AT     the number of the call, from 1; 0 only counts
//   FAULT_KIND   kill, or the code of the error: ENOSPC, EIO, EACCES
//   FAULT_LOG    where the calls are written to, one JSON a line, when the process ends by itself
const fs = require('node:fs');
const path = require('node:path');

const { FAULT_DIR: dir, FAULT_CALLS: which, FAULT_KIND: kind, FAULT_LOG: log } = process.env;
const at = Number(process.env.FAULT_AT);
const real = { ...fs };
/** Descriptors of files in the directory: by which name they were opened, and as the how-manieth. */
const open = new Map();
let opened = 0;
const calls = [];

const inDir = (file) => typeof file === 'string' && (file === dir || file.startsWith(dir + path.sep));
const nameOf = (target) => (typeof target === 'number' ? open.get(target).name : path.relative(dir, target));

/** Between two of these, all states of the disk are the same. */
const CHANGES = [
  'writeSync',
  'fsyncSync',
  'ftruncateSync',
  'futimesSync',
  'utimesSync',
  'fchmodSync',
  'fchownSync',
  'chmodSync',
  'chownSync',
  'linkSync',
  'symlinkSync',
  'renameSync',
  'unlinkSync',
  'rmSync',
  'mkdirSync',
  'writeFileSync',
  'appendFileSync',
];
const LOOKS = [
  'openSync',
  'readSync',
  'fstatSync',
  'lstatSync',
  'statSync',
  'readdirSync',
  'readFileSync',
  'existsSync',
  'statfsSync',
  'realpathSync',
];

function due(name, target, args) {
  const call = name.replace(/Sync$/, '');
  const opening = typeof target === 'number' ? open.get(target).opening : opened + 1;
  calls.push({ call, file: nameOf(target), opening, ...detail(call, args) });
  if (calls.length !== at) return;
  if (kind === 'kill') process.kill(process.pid, 'SIGKILL');
  throw Object.assign(new Error(`${kind}: injected, ${call}`), { code: kind, syscall: call });
}

/** What is needed to do the call once more. */
function detail(call, [, ...rest]) {
  if (call === 'link' || call === 'rename') return { to: path.relative(dir, rest[0]) };
  if (call === 'ftruncate') return { length: rest[0] };
  if (call === 'open') return { truncates: (rest[0] & fs.constants.O_TRUNC) !== 0 };
  if (call !== 'write') return {};
  const [data, offset, length, position] = rest;
  if (typeof data === 'string')
    return { bytes: Buffer.from(data).toString('base64'), position: offset ?? null };
  const begin = offset ?? 0;
  const bytes = Buffer.from(data).subarray(begin, length === undefined ? undefined : begin + length);
  return { bytes: bytes.toString('base64'), position: position ?? null };
}

const makes = (name, flags) => name === 'openSync' && (flags & fs.constants.O_CREAT) !== 0;

for (const name of [...CHANGES, ...LOOKS]) {
  fs[name] = (...args) => {
    const [target] = args;
    const counts = typeof target === 'number' ? open.has(target) : inDir(target);
    const changes = CHANGES.includes(name) || makes(name, args[1]);
    if (counts && changes === (which === 'changes')) due(name, target, args);
    const result = real[name](...args);
    if (name === 'openSync' && inDir(target)) {
      opened += 1;
      open.set(result, { name: path.relative(dir, target), opening: opened });
    }
    return result;
  };
}

fs.closeSync = (fd) => {
  open.delete(fd);
  real.closeSync(fd);
};

process.on('exit', () => {
  if (log) real.writeFileSync(log, calls.map((call) => JSON.stringify(call)).join('\n'));
});
