import { after, type Clock, formatDuration } from '../clock.ts';
import type { RunEnd } from '../endings.ts';
import { RunlockError } from '../errors.ts';
import { startOf } from '../evidence/process.ts';
import { type TreeMember, type TreeRef, treeOf } from '../evidence/tree.ts';
import type { EndOutcome } from '../history.ts';
import type { Lock } from '../lock.ts';
import { printable } from '../printable.ts';
import type { LockRecord, ProcessRef } from '../record.ts';
import type { Tie } from '../store.ts';
import {
  type CommandEnd,
  exitCodeOfCommand,
  type RunningCommand,
  signalCode,
  startCommand,
} from './command.ts';
import type { Signals } from './signals.ts';
import { endTree, membersInSession, send } from './tree.ts';

/** Beat at least this often, ms, so that cleaners that go by age leave the files alone. */
const BEAT_AT_LEAST_MS = 30_000;
/** How often the tree is looked at while the command works, ms. */
const REMEMBER_AT_LEAST_MS = 3_000;
/** Differences below this between two clocks, ms, are no step. */
const STEP_MS = 5_000;
/** How long a tree may outlive its command before that is said, ms. */
const SAY_AFTER_MS = 3_000;

export interface Supervision {
  readonly lock: Lock;
  readonly record: LockRecord;
  readonly tie: Tie | null;
  readonly token: string;
  readonly argv: readonly string[];
  readonly timeoutMs: number | null;
  readonly killAfterMs: number;
  readonly watchdogMs: number | null;
  readonly signals: Signals;
  readonly clock: Clock;
  readonly say: (line: string) => void;
}

/** How the run ended, and the code to exit with. */
export interface Supervised {
  readonly outcome: EndOutcome;
  readonly exitCode: number;
  readonly durationMs: number;
}

/** Why the tree is being ended; the first reason counts. */
type Termination = {
  readonly outcome: 'timedOut' | 'lost';
  readonly exitCode: 124 | 4;
  readonly reason: string;
};

/** Runs the command under the lock that has been taken, and ends the run on every way out. */
export async function supervise(options: Supervision): Promise<Supervised> {
  return new Supervisor(options).run();
}

class Supervisor {
  readonly #options: Supervision;
  readonly #run: number;
  #record: LockRecord;
  #termination: Termination | null = null;
  #ending: Promise<TreeMember[]> | null = null;
  #saidBeatFails = false;
  /** When the time limit ends, by the monotonic clock. */
  #limitAt: number | null = null;
  /** Who of the tree lived at the last look; a child whose parent ends and that hides its traces is known by this alone. */
  #seen: readonly ProcessRef[] = [];

  constructor(options: Supervision) {
    this.#options = options;
    this.#record = options.record;
    this.#run = options.record.run ?? 0;
  }

  async run(): Promise<Supervised> {
    const { clock, signals } = this.#options;
    const start = clock.monotonic();
    // A signal that came while the lock was being taken reaches its handler two turns of the event loop later.
    await turn();
    await turn();
    const early = signals.first;
    if (early !== null)
      return this.#neverBegan(
        'released',
        signalCode(early),
        `${early} before the command was started`,
        start,
      );

    if (this.#options.watchdogMs !== null) {
      try {
        await this.#options.lock.store.watch(this.#run);
      } catch (error) {
        return this.#neverBegan('error', 125, `the watchdog can't be set up: ${messageOf(error)}`, start);
      }
    }
    const command = await startCommand({
      argv: this.#options.argv,
      env: this.#environment(),
      tie: this.#options.tie,
      liveIndex: this.#record.liveIndex,
    });
    if (command.pid === undefined) {
      const end = await command.ended;
      const reason = end.type === 'notStarted' ? end.reason : 'not started';
      return this.#neverBegan('error', exitCodeOfCommand(end), reason, start);
    }
    signals.passTo((signal) => void this.#passOn(command, signal));
    await this.#writeDownCommand(command.pid);

    const timers = this.#startTimers();
    const end = await command.ended;
    await this.#waitForTree();
    for (const timer of timers) timer.cancel();
    return this.#finish(end, clock.monotonic() - start);
  }

  async #neverBegan(
    outcome: 'released' | 'error',
    exitCode: number,
    reason: string,
    start: number,
  ): Promise<Supervised> {
    const { lock, clock, say } = this.#options;
    say(printable(reason, 400));
    await lock.cancel(this.#record, outcome, reason, exitCode);
    return { outcome, exitCode, durationMs: clock.monotonic() - start };
  }

  #environment(): NodeJS.ProcessEnv {
    const { lock, tie, token } = this.#options;
    const { RUNLOCK_ITEM: _outer, ...env } = process.env;
    return {
      ...env,
      RUNLOCK_LOCK: lock.store.where,
      RUNLOCK_RUN: String(this.#run),
      RUNLOCK_TOKEN: token,
      ...(this.#record.item === null ? {} : { RUNLOCK_ITEM: this.#record.item }),
      ...(tie === null ? {} : { RUNLOCK_RESULT: tie.resultPath }),
    };
  }

  /** The command's pid counts beside the live file: programs close the descriptors they inherit. */
  async #writeDownCommand(pid: number): Promise<void> {
    this.#record = { ...this.#record, commandPid: pid, commandPidStarted: await startOf(pid) };
    try {
      await this.#options.lock.amend(this.#record);
    } catch (error) {
      this.#options.say(`the command's pid could not be written down: ${messageOf(error)}`);
    }
  }

  /** Once: to the command itself, or, when only its children are left, to those. */
  async #passOn(command: RunningCommand, signal: NodeJS.Signals): Promise<void> {
    if (command.signal(signal)) return;
    for (const member of await membersInSession(this.#treeRef())) send(member.pid, signal);
  }

  #startTimers(): { cancel(): void }[] {
    const { timeoutMs, watchdogMs, clock } = this.#options;
    const holdMs = this.#record.holdMs;
    const beatMs = holdMs === null ? BEAT_AT_LEAST_MS : Math.max(1, Math.min(BEAT_AT_LEAST_MS, holdMs / 3));
    const timers = [every(beatMs, clock, () => this.#beat()), this.#remember()];
    if (timeoutMs !== null) {
      this.#limitAt = clock.monotonic() + timeoutMs;
      const reason = `ran longer than its time limit of ${formatDuration(timeoutMs)}`;
      timers.push(after(timeoutMs, () => this.#terminate({ outcome: 'timedOut', exitCode: 124, reason })));
    }
    if (watchdogMs !== null) timers.push(this.#watch(watchdogMs));
    return timers;
  }

  /** Often at first, when most of a tree is started, then every few seconds: a look costs about 10 ms. */
  #remember(): { cancel(): void } {
    let pause = 50;
    let timer = after(pause, tick);
    let cancelled = false;
    const look = async () => {
      // A look that fails (no descriptor left for /proc) is made up for by the next.
      this.#seen = await treeOf(this.#treeRef()).catch(() => this.#seen);
      pause = Math.min(REMEMBER_AT_LEAST_MS, pause * 2);
      if (!cancelled) timer = after(pause, tick);
    };
    function tick(): void {
      void look();
    }
    return {
      cancel() {
        cancelled = true;
        timer.cancel();
      },
    };
  }

  async #beat(): Promise<void> {
    try {
      if (!(await this.#options.lock.beatRun(this.#record))) {
        this.#terminate({ outcome: 'lost', exitCode: 4, reason: 'the lock was taken over' });
      } else {
        await this.#moveDeadline();
      }
    } catch (error) {
      // The kernel's lock on the live file still keeps others out.
      if (!this.#saidBeatFails) this.#options.say(`the heartbeat fails: ${messageOf(error)}`);
      this.#saidBeatFails = true;
    }
  }

  /** Where the wall clock has stepped, the time limit ends at another time by it than was written down. */
  async #moveDeadline(): Promise<void> {
    const { lock, clock } = this.#options;
    const { deadline: written } = this.#record;
    if (this.#limitAt === null || written === null) return;
    const deadline = clock.now() + this.#limitAt - clock.monotonic();
    if (Math.abs(Date.parse(written) - deadline) < STEP_MS) return;
    const record = { ...this.#record, deadline: new Date(deadline).toISOString() };
    await lock.amend(record);
    this.#record = record;
  }

  /** Counts time from the last change of the ping file, by our own clock: the wall clock may step. */
  #watch(watchdogMs: number): { cancel(): void } {
    const { lock, clock } = this.#options;
    let seen = '';
    let since = clock.monotonic();
    return every(Math.min(1_000, watchdogMs / 10), clock, async () => {
      // A ping that can't be read is none.
      const ping = await lock.store.lastPing(this.#run).catch(() => seen);
      if (ping !== seen) {
        seen = ping;
        since = clock.monotonic();
      } else if (clock.monotonic() - since > watchdogMs) {
        const reason = `called no runlock hb for ${formatDuration(watchdogMs)}`;
        this.#terminate({ outcome: 'timedOut', exitCode: 124, reason });
      }
    });
  }

  #terminate(termination: Termination): void {
    if (this.#termination !== null) return;
    this.#termination = termination;
    this.#options.say(`${termination.reason}: ending it`);
    this.#ending = endTree(this.#treeRef(), this.#options.killAfterMs, this.#options.clock);
  }

  /** Waits until nothing of the tree is left in our session, or until the tree has been ended. */
  async #waitForTree(): Promise<void> {
    const { clock, say } = this.#options;
    const start = clock.monotonic();
    let said = false;
    for (let pause = 5; ; pause = Math.min(250, pause * 1.5)) {
      if (this.#ending !== null) {
        const left = await this.#ending;
        if (left.length > 0) say(`could not be ended: ${left.map(memberWords).join(', ')}`);
        return;
      }
      const members = await membersInSession(this.#treeRef());
      if (members.length === 0) return;
      if (!said && clock.monotonic() - start > SAY_AFTER_MS) {
        said = true;
        say(
          `the command has ended, still waiting for what it started: ${members.map(memberWords).join(', ')}`,
        );
      }
      await clock.sleep(pause);
    }
  }

  async #finish(end: CommandEnd, durationMs: number): Promise<Supervised> {
    const { lock, say } = this.#options;
    const runEnd = { ...this.#judge(end), durationMs: Math.round(durationMs) };
    const exitCode = runEnd.exitCode ?? 0;
    try {
      const { ended, rejected } = await lock.endRun(this.#record, runEnd);
      if (rejected !== null)
        say(`what the command handed in is no JSON; it is kept as ${printable(rejected, 4096)}`);
      const lost = ended.outcome === 'lost' && this.#termination === null;
      if (lost) say('the lock was lost before the end: another run may have started');
      return { outcome: ended.outcome, exitCode: lost ? 4 : exitCode, durationMs };
    } catch (error) {
      lock.store.letGo();
      say(
        `the record of run ${this.#run} could not be written: ${messageOf(error)}; its item stays marked, what was handed in stays in live/`,
      );
      return { outcome: 'error', exitCode: exitCode === 0 ? 125 : exitCode, durationMs };
    }
  }

  #judge(end: CommandEnd): RunEnd {
    if (this.#termination !== null) return { ...this.#termination, settled: false };
    const exitCode = exitCodeOfCommand(end);
    const ok = exitCode === 0;
    const reason = end.type === 'killed' ? `ended by ${end.signal}` : null;
    return { outcome: ok ? 'finished' : 'failed', exitCode, reason, settled: ok };
  }

  #treeRef(): TreeRef {
    const { lock, tie } = this.#options;
    const { commandPid, commandPidStarted, liveIndex } = this.#record;
    return {
      lock: lock.store.where,
      run: this.#run,
      livePath: tie?.path ?? '',
      liveIndex: tie?.descriptor == null ? null : liveIndex,
      command: commandPid === null ? null : { pid: commandPid, started: commandPidStarted },
      seen: this.#seen,
    };
  }
}

/** Calls again and again, never twice at once. */
function every(ms: number, clock: Clock, act: () => Promise<void>): { cancel(): void } {
  let timer = after(ms, tick);
  let cancelled = false;
  function tick(): void {
    const due = clock.monotonic() + ms;
    void act().then(() => {
      if (!cancelled) timer = after(Math.max(1, due - clock.monotonic()), tick);
    });
  }
  return {
    cancel() {
      cancelled = true;
      timer.cancel();
    },
  };
}

function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

function memberWords(member: TreeMember): string {
  return `${printable(member.name, 80)} (pid ${member.pid})`;
}

function messageOf(error: unknown): string {
  if (error instanceof RunlockError) return printable(error.message, 400);
  return error instanceof Error ? printable(error.message, 400) : String(error);
}
