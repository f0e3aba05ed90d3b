import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

/*
 * Bundled into the driver, which Windows' node runs: no vitest in here. A case throws if its promise is broken.
 */

/** A promise, and what shows that it is kept. */
export type Case = (box: Box) => Promise<void> | void;

export interface Result {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** The built command, as this system sees it. */
const BINARY = process.env.RUNLOCK_BINARY ?? '';

/** Says its pid and lives until its stdin ends, or, told to be an orphan, until it is killed. */
const WORKER = `
  process.stdout.write(process.pid + '\\n');
  if (process.argv[2] === 'orphan') setInterval(() => {}, 60_000);
  else process.stdin.resume().on('end', () => process.exit(0));
`;

/** A directory of its own for one case. */
export class Box {
  readonly dir: string;
  readonly runs: string;
  /** A program for `run`; see above. */
  readonly worker: string;
  readonly #started: Running[] = [];

  constructor() {
    this.dir = fs.mkdtempSync(path.join(os.tmpdir(), 'runlock-'));
    this.runs = path.join(this.dir, 'runs');
    fs.mkdirSync(this.runs);
    this.worker = this.write('worker.cjs', WORKER);
  }

  file(...names: string[]): string {
    return path.join(this.runs, ...names);
  }

  write(name: string, content: string | Uint8Array): string {
    const file = path.join(this.dir, name);
    fs.writeFileSync(file, content);
    return file;
  }

  /** Starts `runlock` with this state directory, unless the arguments name another. */
  start(args: readonly string[], options: { cwd?: string; env?: NodeJS.ProcessEnv } = {}): Running {
    const env = { ...process.env, RUNLOCK_DIR: this.runs, ...options.env };
    const child = spawn(process.execPath, [BINARY, ...args], { cwd: options.cwd ?? this.dir, env });
    const running = new Running(child);
    this.#started.push(running);
    return running;
  }

  /** Runs `runlock` to its end. */
  async runlock(...args: string[]): Promise<Result> {
    return this.start(args).end();
  }

  /** `runlock status`, as it tells programs. */
  async status(): Promise<Record<string, unknown>> {
    return JSON.parse((await this.runlock('status', '--json')).stdout);
  }

  /** Puts a lock there, as another tool or an earlier run would have left it. */
  writeLock(record: object, ageMs = 0): void {
    fs.writeFileSync(this.file('lock.json'), JSON.stringify(record));
    this.age('lock.json', ageMs);
  }

  age(name: string, ms: number): void {
    const then = (Date.now() - ms) / 1000;
    fs.utimesSync(this.file(name), then, then);
  }

  async clear(): Promise<void> {
    for (const running of this.#started) if (!running.over) running.stop();
    await Promise.all(this.#started.map(({ ended }) => ended));
    fs.rmSync(this.dir, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
  }
}

/** A `runlock` that was started. Its pipes close when all of its tree have ended. */
export class Running {
  readonly child: ChildProcess;
  readonly ended: Promise<Result>;
  /** Whether all of its tree have ended. */
  over = false;
  #stdout = '';
  #stderr = '';

  constructor(child: ChildProcess) {
    this.child = child;
    child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      this.#stdout += text;
    });
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#stderr += text;
    });
    // What was killed reads no more.
    child.stdin?.on('error', () => {});
    this.ended = once(child, 'close').then(([code]) => {
      this.over = true;
      return { code, stdout: this.#stdout, stderr: this.#stderr };
    });
  }

  /** Ends what was started, the worker first: nobody else does when its supervisor is gone. */
  stop(): void {
    const pid = Number(this.#stdout.split('\n')[0]);
    if (pid > 0 && lives(pid)) process.kill(pid);
    this.child.kill();
  }

  /** The pid that a worker says when it works. */
  async worker(): Promise<number> {
    while (!this.#stdout.includes('\n')) {
      const which = await Promise.race([
        once(this.child.stdout ?? this.child, 'data'),
        this.ended.then(() => 'ended'),
      ]);
      if (which === 'ended' && !this.#stdout.includes('\n')) throw new Error(`no worker: ${this.#stderr}`);
    }
    return Number(this.#stdout.split('\n')[0]);
  }

  /** Ends stdin, so that a worker ends, and waits for all. */
  async end(): Promise<Result> {
    this.child.stdin?.end();
    return this.ended;
  }

  /** Ends the supervisor alone, at once, as the task manager does. */
  async kill(): Promise<void> {
    const exit = once(this.child, 'exit');
    this.child.kill('SIGKILL');
    await exit;
  }
}

/** The number of a process that has ended. */
export async function deadPid(): Promise<number> {
  const child = spawn(process.execPath, ['--version'], { stdio: 'ignore' });
  await once(child, 'exit');
  return child.pid ?? 0;
}

export function lives(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
