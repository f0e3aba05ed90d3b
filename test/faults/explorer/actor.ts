import { workerData } from 'node:worker_threads';
import { Lock } from '../../../src/lock.ts';
import type { LockRecord } from '../../../src/record.ts';
import type { Evidence, Liveness } from '../../../src/rules.ts';
import type { Sighting } from '../../../src/store.ts';
import { FileStore } from '../../../src/stores/file/file-store.ts';
import { hashToken } from '../../../src/token.ts';
import { candidate, claimOf, HERE } from '../../stores/fakes.ts';
import {
  type Channel,
  EXECUTION,
  type OpResult,
  ORDER,
  order,
  put,
  setState,
  state,
  type World,
  waitWhile,
} from './channel.ts';
import type { Op } from './scenarios.ts';
import { Crash, Stepper } from './stepper.ts';

/* One contender: a thread that does what a scenario says, with the real lock over the real file store. */

interface Setup {
  readonly index: number;
  readonly channel: Channel;
  readonly world: World;
  /** Names of executions are numbers under this directory; the number is in the channel. */
  readonly base: string;
  /** What it did before the exploration begins is done the same way, but the explorer does not interrupt it. */
  readonly ops: readonly Op[];
  readonly everywhere: boolean;
  readonly exclusive: boolean;
  readonly leftovers: boolean;
}

const { index, channel, world, base, ops, everywhere, exclusive, leftovers } = workerData as Setup;
const process_ = { pid: 100 + index, started: `start-${index}` };
const token = `token-${index}`;
const stepper = new Stepper(channel, world, { everywhere, exclusive });
/** Set by an expired wait for the guard: then its deadline has passed. */
let monotonic = 0;

const clock = {
  now: () => world.now[0] ?? 0,
  monotonic: () => monotonic,
  sleep: async () => {
    stepper.hash = waitsFrom;
    if (!stepper.stop({ type: 'sleep', hash: stepper.hash })) return;
    monotonic += 60_000;
    stepper.note('waited too long');
  },
};

/** The state at the beginning of a change: who has waited for the guard is there again. */
let waitsFrom = '7';

class WatchedStore extends FileStore {
  override transact: FileStore['transact'] = (decide) => {
    waitsFrom = stepper.hash;
    return super.transact(decide);
  };
}

const witness = {
  async gather(seen: Sighting): Promise<Evidence> {
    const record = seen.lock !== null && 'record' in seen.lock.content ? seen.lock.content.record : null;
    const liveness = (pid: number | null | undefined): Liveness => {
      if (pid == null) return 'unsure';
      return world.alive[pid - 100] === 1 ? 'alive' : 'gone';
    };
    const evidence = {
      here: HERE,
      holder: liveness(record?.pid),
      forks: [],
      command: record?.commandPid == null ? ('gone' as const) : liveness(record.commandPid),
      liveFile: seen.liveFile,
      survivors: [],
    };
    stepper.note(`${evidence.holder} ${evidence.command} ${evidence.liveFile}`);
    return evidence;
  },
};

class Contender {
  readonly #lock: Lock;
  #record: LockRecord | null = null;

  constructor(dir: string) {
    const store = new WatchedStore({ base: dir, folder: null, clock, singleMachine: true, notice: () => {} });
    this.#lock = new Lock(store, witness, clock);
  }

  async do(op: Op): Promise<OpResult> {
    switch (op) {
      case 'acquire':
      case 'run':
        return this.#acquire(op === 'run');
      case 'look':
        return { outcome: (await this.#lock.look()).verdict.state, run: null };
      case 'hb':
        return this.#verb(async () => this.#lock.hb(await this.#claim(), this.#run()));
      case 'finish':
        return this.#verb(async () =>
          this.#lock.finish(await this.#claim(), this.#run(), `{"by":${index}}`, 'finished'),
        );
      case 'release':
        return this.#verb(async () => this.#lock.release(await this.#claim(), this.#run(), false));
      case 'steal': {
        const { outcome, run } = await this.#lock.release(claimOf(process_, 'f'.repeat(64)), null, false);
        return { outcome, run };
      }
      case 'beatRun':
        return this.#supervise(async (record) => ({
          outcome: (await this.#lock.beatRun(record)) ? 'ok' : 'lost',
        }));
      case 'endRun':
        return this.#supervise(async (record) => {
          const end = { outcome: 'finished', exitCode: 0, reason: null, settled: true } as const;
          const { ended } = await this.#lock.endRun(record, end);
          return { outcome: ended.outcome };
        });
    }
  }

  async #acquire(live: boolean): Promise<OpResult> {
    const wanted = candidate(process_, { live, item: `by-${index}` }, token);
    const acquired = await this.#lock.acquire(wanted);
    if (acquired.outcome !== 'acquired') return { outcome: acquired.outcome, run: null };
    this.#record = acquired.record;
    return { outcome: 'acquired', run: acquired.run };
  }

  #run(): number | null {
    return this.#record?.run ?? null;
  }

  async #claim() {
    return claimOf(process_, hashToken(token));
  }

  async #verb(act: () => Promise<{ outcome: string; run: number | null }>): Promise<OpResult> {
    if (this.#record === null) return { outcome: 'skipped', run: null };
    const { outcome, run } = await act();
    return { outcome, run };
  }

  async #supervise(act: (record: LockRecord) => Promise<{ outcome: string }>): Promise<OpResult> {
    if (this.#record === null) return { outcome: 'skipped', run: null };
    return { ...(await act(this.#record)), run: this.#record.run };
  }
}

async function execute(): Promise<void> {
  const dir = `${base}/${channel.words[EXECUTION]}`;
  monotonic = 0;
  stepper.begin(dir, 1000 + index);
  let crashed = false;
  try {
    const contender = new Contender(dir);
    for (const op of ops) {
      const result = await contender.do(op).catch((error: unknown) => {
        if (error instanceof Crash) throw error;
        return { outcome: 'error', run: null, error: String(error).replaceAll(dir, 'DIR') };
      });
      stepper.note(JSON.stringify(result));
      stepper.stop({ type: 'result', op, result, hash: stepper.hash });
    }
  } catch (error) {
    if (!(error instanceof Crash)) throw error;
    crashed = true;
  }
  // Dead before its descriptors are closed, as with a process: nobody sees one without the other.
  world.alive[index] = 0;
  stepper.end(crashed && leftovers);
  put(channel, { type: 'done', crashed, hash: stepper.hash });
}

async function main(): Promise<void> {
  for (;;) {
    Atomics.store(channel.words, ORDER, order.none);
    setState(channel, state.idle);
    waitWhile(channel, ORDER, order.none, Number.POSITIVE_INFINITY);
    await execute();
  }
}

void main();
