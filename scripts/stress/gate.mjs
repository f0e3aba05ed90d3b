// @ts-check
// Loaded before the binary (node --require): stops it at one step until its stdin says so, that processes with unlike
// starting times arrive there together.
//
//   STRESS_GATE=look    before its first look into the state directory
//   STRESS_GATE=guard   when it has seen the stale lock, and goes to take it
import fs from 'node:fs';
import path from 'node:path';

const dir = process.env.STRESS_DIR ?? '';
const guard = path.join(dir, 'lock.guard');
const { statSync, openSync } = fs;
let open = false;

function stop() {
  if (open) return;
  open = true;
  fs.writeSync(3, '.');
  fs.readSync(0, Buffer.alloc(1));
}

if (process.env.STRESS_GATE === 'look') {
  Object.assign(fs, {
    statSync: (/** @type {Parameters<typeof statSync>} */ ...args) => {
      if (args[0] === dir) stop();
      return statSync.apply(fs, args);
    },
  });
} else {
  Object.assign(fs, {
    openSync: (/** @type {Parameters<typeof openSync>} */ ...args) => {
      if (args[0] === guard && (Number(args[1]) & fs.constants.O_RDWR) !== 0) stop();
      return openSync.apply(fs, args);
    },
  });
}
