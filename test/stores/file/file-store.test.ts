import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { FileStore } from '../../../src/stores/file/file-store.ts';
import { lockDirectory } from '../../../src/stores/file/paths.ts';
import { storeContract } from '../contract.ts';

const root = fs.mkdtempSync(path.join(os.tmpdir(), 'runlock-store-'));
afterAll(() => fs.rmSync(root, { recursive: true, force: true }));

let made = 0;
for (const folder of [null, 'video']) {
  storeContract(folder === null ? 'a directory' : 'a named lock in a directory', () => {
    made += 1;
    const base = path.join(root, String(made));
    return {
      open: () => new FileStore({ base, folder, clock: systemClock, singleMachine: false, notice: () => {} }),
      pass: (ms) => age(path.join(lockDirectory(base, folder), 'lock.json'), ms),
    };
  });
}

/** Heartbeats are file times: time passes by setting them back. */
function age(file: string, ms: number): void {
  const then = (fs.statSync(file).mtimeMs - ms) / 1000;
  fs.utimesSync(file, then, then);
}
