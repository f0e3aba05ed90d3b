import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { onTestFinished } from 'vitest';

/** The built command, as a user has it on the PATH. */
export const BINARY = path.resolve(import.meta.dirname, '../../dist/runlock.cjs');
if (!fs.existsSync(BINARY)) throw new Error(`${BINARY} is missing: npm run build`);

const BIN_DIR = fs.mkdtempSync(path.join(os.tmpdir(), 'runlock-bin-'));
fs.chmodSync(BIN_DIR, 0o755);
fs.symlinkSync(BINARY, path.join(BIN_DIR, 'runlock'));
process.on('exit', () => fs.rmSync(BIN_DIR, { recursive: true, force: true }));

/** The command under test: the built one, unless a test installs one. */
export interface Command {
  /** What runs it, before its own arguments. */
  readonly words: readonly [program: string, ...words: string[]];
  /** All that its processes have in their environment, if not that of the tests. */
  readonly env?: NodeJS.ProcessEnv;
  /** Who runs it, if not the user of the tests. */
  readonly user?: User;
}

const BUILT: Command = { words: [process.execPath, BINARY] };

export interface User {
  readonly uid: number;
  readonly gid: number;
}

export interface Result {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Options {
  readonly input?: string | Uint8Array;
  readonly env?: NodeJS.ProcessEnv;
  readonly cwd?: string;
  /** A process group and session of its own, as cron gives one. */
  readonly detached?: boolean;
  /** Another user, for a test that is root. */
  readonly user?: User;
}

/** A directory of its own for one test, with the state directory `runs` in it; gone when the test ends. */
export class Sandbox {
  readonly dir: string;
  readonly runs: string;
  readonly command: Command;
  readonly #children = new Set<Running>();

  constructor(command = BUILT, parent = os.tmpdir()) {
    this.command = command;
    this.dir = fs.realpathSync(fs.mkdtempSync(path.join(parent, 'runlock-test-')));
    if (command.user !== undefined) fs.chownSync(this.dir, command.user.uid, command.user.gid);
    this.runs = path.join(this.dir, 'runs');
    onTestFinished(async () => {
      for (const child of this.#children) child.killGroup();
      await Promise.all([...this.#children].map((child) => child.ended));
      for (const child of this.#children) forgetClock(child.pid);
      fs.rmSync(this.dir, { recursive: true, force: true });
    });
  }

  /** Another sandbox in which the same stands, heartbeats and all; processes stay with this one. */
  copy(): Sandbox {
    const box = new Sandbox(this.command);
    fs.cpSync(this.dir, box.dir, { recursive: true, preserveTimestamps: true, verbatimSymlinks: true });
    return box;
  }

  /** A path in the state directory. */
  file(...names: string[]): string {
    return path.join(this.runs, ...names);
  }

  /** Makes the state directory, so that a test can put files there before any command does. */
  makeRuns(): void {
    fs.mkdirSync(this.runs, { recursive: true });
  }

  read(...names: string[]): string {
    return fs.readFileSync(this.file(...names), 'utf8');
  }

  write(name: string, content: string | Uint8Array): string {
    const file = path.join(this.dir, name);
    fs.mkdirSync(path.dirname(file), { recursive: true });
    fs.writeFileSync(file, content);
    return file;
  }

  /** Sets a file's modification time back. */
  age(file: string, ms: number): void {
    const then = (Date.now() - ms) / 1000;
    fs.utimesSync(file, then, then);
  }

  /** Writes lock.json as another program might. */
  putLock(content: unknown, ageMs = 0): string {
    this.makeRuns();
    const file = this.file('lock.json');
    fs.writeFileSync(file, typeof content === 'string' ? content : JSON.stringify(content));
    this.age(file, ageMs);
    return file;
  }

  /** Events of the history, torn lines left out. */
  history(): Record<string, unknown>[] {
    const dir = this.file('history');
    if (!fs.existsSync(dir)) return [];
    const lines = fs
      .readdirSync(dir)
      .sort()
      .flatMap((name) => fs.readFileSync(path.join(dir, name), 'utf8').split('\n'));
    return lines.flatMap((line) => {
      try {
        return [JSON.parse(line) as Record<string, unknown>];
      } catch {
        return [];
      }
    });
  }

  /** Runs `runlock ARGS` in the sandbox to its end. The caller is this test's process: name --pid or --no-pid to acquire. */
  runlock(args: readonly string[], options: Options = {}): Promise<Result> {
    return this.startRunlock(args, options).result;
  }

  /** Starts `runlock ARGS` and lets it run. */
  startRunlock(args: readonly string[], options: Options = {}): Running {
    const [program, ...words] = this.command.words;
    return this.start(program, [...words, ...args], options);
  }

  /** `status --json`, parsed. */
  async status(...args: string[]): Promise<Record<string, unknown>> {
    const { stdout } = await this.runlock(['status', '--json', ...args]);
    return JSON.parse(stdout) as Record<string, unknown>;
  }

  /** Runs any command in the sandbox to its end, with `runlock` on its PATH. */
  exec(command: string, args: readonly string[], options: Options = {}): Promise<Result> {
    return this.start(command, args, options).result;
  }

  /** Runs a shell script to its end. */
  script(shell: string, text: string, options: Options = {}): Promise<Result> {
    return this.exec(shell, [this.write(`script-${Math.random().toString(36).slice(2)}.sh`, text)], options);
  }

  /** Starts a command and lets it run; killed with its group when the test ends, if detached. */
  start(command: string, args: readonly string[], options: Options = {}): Running {
    const child = spawn(command, args, {
      cwd: options.cwd ?? this.dir,
      env: { ...(this.command.env ?? environment()), ...options.env },
      stdio: ['pipe', 'pipe', 'pipe'],
      detached: options.detached ?? false,
      ...(options.user ?? this.command.user),
    });
    const running = new Running(child, options.detached ?? false);
    if (options.input !== undefined) child.stdin?.end(options.input);
    this.#children.add(running);
    return running;
  }

  /** Starts a shell script in a group of its own and lets it run. */
  startScript(shell: string, text: string, options: Options = {}): Running {
    const file = this.write(`script-${Math.random().toString(36).slice(2)}.sh`, text);
    return this.start(shell, [file], { detached: true, ...options });
  }
}

/** What libfaketime shares among the processes of a wrong clock, and leaves behind where the first was killed. */
function forgetClock(pid: number): void {
  for (const name of ['faketime_shm_', 'sem.faketime_sem_'])
    fs.rmSync(`/dev/shm/${name}${pid}`, { force: true });
}

function environment(): NodeJS.ProcessEnv {
  const clean = Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !name.startsWith('RUNLOCK_')),
  );
  return {
    ...clean,
    PATH: `${BIN_DIR}${path.delimiter}${path.dirname(process.execPath)}${path.delimiter}${process.env.PATH}`,
  };
}

/** A process that is under way; talks over its pipes, so that no test needs to sleep. */
export class Running {
  readonly child: ChildProcess;
  readonly ended: Promise<void>;
  readonly #group: boolean;
  #stdout = '';
  #stderr = '';

  constructor(child: ChildProcess, group: boolean) {
    this.child = child;
    this.#group = group;
    child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      this.#stdout += text;
    });
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#stderr += text;
    });
    child.stdin?.on('error', () => {});
    this.ended = once(child, 'close').then(() => {});
  }

  get pid(): number {
    if (this.child.pid === undefined) throw new Error('not started');
    return this.child.pid;
  }

  get stdout(): string {
    return this.#stdout;
  }

  get stderr(): string {
    return this.#stderr;
  }

  get result(): Promise<Result> {
    return this.ended.then(() => ({
      code: this.child.exitCode,
      signal: this.child.signalCode,
      stdout: this.#stdout,
      stderr: this.#stderr,
    }));
  }

  /** Waits until the output contains a text, or fails when the process ends without it. */
  async says(text: string | RegExp): Promise<string> {
    const has = () => (typeof text === 'string' ? this.#stdout.includes(text) : text.test(this.#stdout));
    while (!has()) {
      if (this.child.exitCode !== null || this.child.signalCode !== null) {
        await this.ended;
        if (has()) break;
        throw new Error(`ended without saying ${text}: ${this.#stdout}${this.#stderr}`);
      }
      await Promise.race([once(this.child.stdout ?? this.child, 'data'), this.ended]);
    }
    return this.#stdout;
  }

  /** Lets a script that waits in `read` go on. */
  tell(line: string): void {
    this.child.stdin?.write(`${line}\n`);
  }

  kill(signal: NodeJS.Signals = 'SIGKILL'): void {
    this.child.kill(signal);
  }

  killGroup(signal: NodeJS.Signals = 'SIGKILL'): void {
    try {
      process.kill(this.#group ? -this.pid : this.pid, signal);
    } catch {
      // Gone already.
    }
  }
}

/** Asks again until it is so; for facts that no pipe tells, such as the end of a process. */
export async function eventually(
  what: string,
  holds: () => boolean | Promise<boolean>,
  forMs = 20_000,
): Promise<void> {
  const until = Date.now() + forMs;
  while (!(await holds())) {
    if (Date.now() > until) throw new Error(`not within ${forMs} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

export function isRoot(): boolean {
  return process.geteuid?.() === 0;
}

/** The path of a program, or null where it is not installed. */
export function which(program: string): string | null {
  for (const dir of (process.env.PATH ?? '').split(path.delimiter)) {
    const file = path.join(dir, program);
    if (fs.existsSync(file)) return file;
  }
  return null;
}

export const MINUTE = 60_000;
