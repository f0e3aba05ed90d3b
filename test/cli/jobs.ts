import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import { onTestFinished, type TestContext } from 'vitest';
import { eventually, isRoot, type Options, type Running, type Sandbox, which } from './harness.ts';

/** A script that stays, and does line by line what the test tells it, as a job with several steps does. */
export class Job {
  readonly running: Running;
  #lines = 0;

  constructor(box: Sandbox, options: Options & { shell?: string } = {}) {
    const { shell = 'bash', ...rest } = options;
    const loop = 'n=0; while read -r line; do n=$((n+1)); eval "$line"; echo "<$n:$?>"; done';
    this.running = box.startScript(shell, loop, rest);
  }

  /** Does a line of shell and gives its exit code. */
  async do(line: string): Promise<number> {
    this.#lines += 1;
    this.running.tell(line);
    const mark = new RegExp(`<${this.#lines}:(\\d+)>`);
    return Number(mark.exec(await this.running.says(mark))?.[1]);
  }

  /** Killed as a whole, without a chance to tidy up. */
  async die(): Promise<void> {
    this.running.killGroup();
    await this.running.ended;
  }
}

/** Starts `runlock run ARGS` with a session of its own. */
export function startRun(box: Sandbox, args: readonly string[], options: Options = {}): Running {
  return box.startRunlock(['run', ...args], { detached: true, ...options });
}

/** A node program that says `ready`, then a line for each signal it gets, and ends when its stdin does. */
export const SIGNAL_TELLER = [
  process.execPath,
  '-e',
  `for (const s of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.on(s, () => console.log(s));
   process.stdin.resume().on('end', () => process.exit(0)); console.log('ready')`,
] as const;

/** Waits for `NAME=PID` on the output; what has that pid is killed when the test ends. */
export async function pidFrom(running: Running, name: string): Promise<number> {
  const line = new RegExp(`^${name}=(\\d+)$`, 'm');
  const pid = Number(line.exec(await running.says(line))?.[1]);
  onTestFinished(() => kill(pid));
  return pid;
}

export function kill(pid: number, signal: NodeJS.Signals = 'SIGKILL'): void {
  try {
    process.kill(pid, signal);
  } catch {
    // Gone already.
  }
}

/** Whether a process runs; one that has ended and was not waited for does not. */
export function isAlive(pid: number): boolean {
  try {
    const stat = fs.readFileSync(`/proc/${pid}/stat`, 'latin1');
    return !/[ZX]/.test(stat.charAt(stat.lastIndexOf(')') + 2));
  } catch {
    return false;
  }
}

export async function gone(pid: number): Promise<void> {
  await eventually(`the end of process ${pid}`, () => !isAlive(pid));
}

/** A file as nobody may change it: what it holds and when it was written. */
export function snapshot(file: string): { bytes: string; mtime: bigint; inode: bigint } {
  const { mtimeNs, ino } = fs.lstatSync(file, { bigint: true });
  return { bytes: fs.readFileSync(file, 'latin1'), mtime: mtimeNs, inode: ino };
}

/** All files under a directory with their bytes. */
export function filesUnder(dir: string): Record<string, string> {
  const files = fs
    .readdirSync(dir, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile());
  const paths = files.map((entry) => `${entry.parentPath}/${entry.name}`).sort();
  return Object.fromEntries(paths.map((file) => [file, fs.readFileSync(file, 'latin1')]));
}

/** Skips the test, visibly, where one of the programs is missing. */
export function needs(ctx: TestContext, ...programs: string[]): void {
  for (const program of programs) if (which(program) === null) ctx.skip(`needs ${program}`);
}

export function needsRoot(ctx: TestContext): void {
  if (!isRoot()) ctx.skip('needs root');
}

/** `nobody`, who may look into the sandbox but owns nothing there. */
export function asNobody(box: Sandbox): { user: { uid: number; gid: number } } {
  fs.chmodSync(box.dir, 0o755);
  return { user: { uid: 65534, gid: 65534 } };
}

/** Mounts a file system over the state directory until the test ends; skips the test where that is not allowed. */
export function mountOver(ctx: TestContext, box: Sandbox, args: readonly string[]): void {
  mountAt(ctx, box.runs, 'mount', args);
}

/** Mounts with `COMMAND ARGS DIRECTORY` until the test ends; skips the test where that is not allowed. */
export function mountAt(ctx: TestContext, directory: string, command: string, args: readonly string[]): void {
  needsRoot(ctx);
  needs(ctx, command, 'umount');
  fs.mkdirSync(directory, { recursive: true });
  try {
    execFileSync(command, [...args, directory], { stdio: 'pipe' });
  } catch (error) {
    ctx.skip(`needs ${command} ${args.join(' ')}: ${error instanceof Error ? error.message : error}`);
  }
  // Hooks run in reverse order: this one before the sandbox is removed, after its processes were told to end.
  onTestFinished(() => {
    execFileSync('umount', ['--lazy', directory]);
  });
}

/** One line on stderr that tells the reason: no more, and never a stack trace. */
export function lines(text: string): string[] {
  return text.split('\n').filter((line) => line !== '');
}
