import fs from 'node:fs';
import path from 'node:path';
import type { Options, Result, Sandbox } from '../cli/harness.ts';
import { BINARY } from '../cli/harness.ts';

const HOOK = path.resolve(import.meta.dirname, 'hook.cjs');

/** What to do to a command, and at which of its calls on the state directory. */
export interface Fault {
  readonly kind: 'kill' | 'ENOSPC' | 'EIO' | 'EACCES';
  /** From 1; 0 does nothing. */
  readonly at: number;
}

/** Runs the built command with a fault, and tells which calls it made on the state directory. */
export async function runWithFault(
  box: Sandbox,
  args: readonly string[],
  fault: Fault,
  options: Options = {},
): Promise<Result & { calls: string[] }> {
  const log = path.join(box.dir, 'calls');
  fs.rmSync(log, { force: true });
  const result = await box.exec(process.execPath, ['--require', HOOK, BINARY, ...args], {
    ...options,
    env: {
      ...options.env,
      FAULT_DIR: box.runs,
      FAULT_AT: String(fault.at),
      FAULT_KIND: fault.kind,
      FAULT_LOG: log,
    },
  });
  const calls = fs.existsSync(log)
    ? fs
        .readFileSync(log, 'utf8')
        .split('\n')
        .filter((line) => line !== '')
    : [];
  return { ...result, calls };
}
