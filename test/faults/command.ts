import fs from 'node:fs';
import path from 'node:path';
import type { Options, Result, Sandbox } from '../cli/harness.ts';
import { BINARY } from '../cli/harness.ts';

const HOOK = path.resolve(import.meta.dirname, 'hook.cjs');

/** What to do to a command, and at which of its calls on the files of the sandbox. */
export interface Fault {
  readonly kind: 'kill' | 'ENOSPC' | 'EIO' | 'EACCES';
  readonly calls: 'changes' | 'looks';
  /** From 1; 0 does nothing. */
  readonly at: number;
}

/** A call on the sandbox's files, with what is needed to do it again. */
export interface Call {
  readonly call: string;
  /** Relative to the sandbox. */
  readonly file: string;
  /** Tells descriptors apart: the how-manieth open of the process it came from, or would be. */
  readonly opening: number;
  readonly to?: string;
  readonly bytes?: string;
  readonly position?: number | null;
  readonly length?: number;
  readonly truncates?: boolean;
}

/** What a scenario runs, and whether the command under test is run by another one. */
export interface CommandLine {
  readonly args: readonly string[];
  readonly input?: string;
  /** Arguments of a `run` inside which it is started. */
  readonly inside?: readonly string[];
}

/**
 * Runs the built command with a fault, and tells which calls it made.
 *
 * @param under a command line that runs it
 */
export async function runWithFault(
  box: Sandbox,
  { args, input, inside }: CommandLine,
  fault: Fault,
  { binary = BINARY, under = [] }: { binary?: string; under?: readonly string[] } = {},
): Promise<Result & { calls: Call[] }> {
  const log = path.join(path.dirname(box.dir), `${path.basename(box.dir)}-calls`);
  const env = {
    FAULT_DIR: box.dir,
    FAULT_CALLS: fault.calls,
    FAULT_AT: String(fault.at),
    FAULT_KIND: fault.kind,
    FAULT_LOG: log,
  };
  const hooked = ['--require', HOOK, binary, ...args];
  const options: Options = { env, ...(input === undefined ? {} : { input }) };
  const line = inside === undefined ? hooked : [binary, ...inside, '--', process.execPath, ...hooked];
  const [command = '', ...rest] = [...under, process.execPath, ...line];
  const result = await box.exec(command, rest, options);
  const calls = fs.existsSync(log)
    ? fs
        .readFileSync(log, 'utf8')
        .split('\n')
        .filter((text) => text !== '')
        .map((text) => JSON.parse(text) as Call)
    : [];
  fs.rmSync(log, { force: true });
  return { ...result, calls };
}
