import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';
import os from 'node:os';
import { systemCode } from '../errors.ts';
import type { Tie } from '../store.ts';
import { withRawBytes } from './raw-bytes.ts';

export interface CommandOptions {
  readonly argv: readonly string[];
  readonly env: NodeJS.ProcessEnv;
  readonly tie: Tie | null;
  readonly liveIndex: number | null;
}

/** How a command ended, or why it never began. */
export type CommandEnd =
  | { readonly type: 'exited'; readonly code: number }
  | { readonly type: 'killed'; readonly signal: NodeJS.Signals }
  | { readonly type: 'notStarted'; readonly code: 125 | 126 | 127; readonly reason: string };

export interface RunningCommand {
  /** Undefined where it could not be started. */
  readonly pid: number | undefined;
  readonly ended: Promise<CommandEnd>;
  /** False once it has ended. */
  signal(signal: NodeJS.Signals): boolean;
}

/**
 * Starts the command: its arguments byte for byte, no shell, our stdin, stdout and stderr, and the live file. It
 * stays in our process group; a session of its own would lose the terminal.
 */
export async function startCommand(options: CommandOptions): Promise<RunningCommand> {
  const [name = ''] = options.argv;
  const [program = '', ...args] = withRawBytes(options.argv) ?? options.argv;
  const stdio: ('inherit' | 'ignore' | number)[] = ['inherit', 'inherit', 'inherit'];
  if (options.tie?.descriptor != null && options.liveIndex !== null) {
    // Beyond the first three, "ignore" leaves a descriptor closed.
    while (stdio.length < options.liveIndex) stdio.push('ignore');
    stdio[options.liveIndex] = options.tie.descriptor;
  }
  let child: ChildProcess;
  try {
    const start = await startWith(program, args, { stdio, env: options.env });
    child = spawn(start.command, start.args, start.options);
  } catch (error) {
    return notStarted(name, error);
  }
  if (child.pid === undefined) {
    const error = await new Promise((resolve) => child.once('error', resolve));
    return notStarted(name, error);
  }
  const ended = new Promise<CommandEnd>((resolve) => {
    child.once('exit', (code, signal) => {
      resolve(signal === null ? { type: 'exited', code: code ?? 0 } : { type: 'killed', signal });
    });
  });
  // A signal that can't be delivered is told by kill()'s answer.
  child.on('error', () => {});
  return { pid: child.pid, ended, signal: (signal) => child.kill(signal) };
}

async function startWith(command: string, args: readonly string[], options: SpawnOptions) {
  if (process.platform !== 'win32') return { command, args, options };
  return (await import('./windows-command.ts')).windowsCommand(command, args, options);
}

/** What says that the program itself can't be executed; anything else is our own failure to start it. */
const NOT_EXECUTABLE = new Set([
  'EACCES',
  'ENOEXEC',
  'EISDIR',
  'E2BIG',
  'ELOOP',
  'ENOTDIR',
  'EPERM',
  'ETXTBSY',
  // By our own word: see windows-command.ts.
  'UNSAFE_ARGUMENT',
]);

function notStarted(program: string, error: unknown): RunningCommand {
  const why = systemCode(error) ?? String(error);
  const words = why === 'UNSAFE_ARGUMENT' && error instanceof Error ? error.message : why;
  const end: CommandEnd =
    why === 'ENOENT'
      ? { type: 'notStarted', code: 127, reason: `${program}: not found` }
      : NOT_EXECUTABLE.has(why)
        ? { type: 'notStarted', code: 126, reason: `${program}: can't be executed (${words})` }
        : { type: 'notStarted', code: 125, reason: `${program} could not be started: ${why}` };
  return { pid: undefined, ended: Promise.resolve(end), signal: () => false };
}

/** The exit code that tells how a command ended, as a shell would. */
export function exitCodeOfCommand(end: CommandEnd): number {
  return end.type === 'killed' ? signalCode(end.signal) : end.code;
}

export function signalCode(signal: NodeJS.Signals): number {
  return 128 + (os.constants.signals[signal] ?? 0);
}
