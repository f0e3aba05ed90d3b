import { RunlockError } from '../../src/errors.ts';
import type { HistoryEvent, TornLine } from '../../src/history.ts';
import type { MarkerEdit, MarkerItem } from '../../src/marker.ts';
import type { LockRecord } from '../../src/record.ts';
import type {
  Change,
  Committed,
  Ending,
  HandedInResult,
  LastRun,
  Sighting,
  Step,
  Store,
} from '../../src/store.ts';

/** What the clients of one lock share: an engine in a few lines, with leases that `letGo` ends. */
export class MemoryEngine {
  /** How far this engine's clock is ahead of the machine's, ms. */
  passed = 0;
  last: LastRun | null = null;
  lock: { record: LockRecord; heartbeatAt: number } | null = null;
  liveRuns = new Set<number>();
  items: readonly MarkerItem[] = [];
  history: HistoryEvent[] = [];
  records = new Map<number, string>();
  results = new Map<number, HandedInResult>();
  pings = new Map<number, number>();

  now(): number {
    return Date.now() + this.passed;
  }
}

/** The smallest store that keeps the contract: its transactions are atomic because nothing awaits in them. */
export class MemoryStore implements Store {
  readonly where = '/memory';
  readonly #engine: MemoryEngine;
  #tied: number | null = null;

  constructor(engine: MemoryEngine) {
    this.#engine = engine;
  }

  async look(): Promise<Sighting> {
    return this.#see();
  }

  #see(): Sighting {
    const { lock, last, liveRuns, items } = this.#engine;
    const run = lock?.record.run ?? null;
    return {
      now: this.#engine.now(),
      lock:
        lock === null
          ? null
          : { content: { record: lock.record }, heartbeatAt: lock.heartbeatAt, source: 'lock', ended: false },
      identity: lock === null ? 'none' : JSON.stringify(lock.record),
      liveFile: lock?.record.live && run !== null ? (liveRuns.has(run) ? 'locked' : 'unlocked') : 'unknown',
      last,
      nextRun: (last?.run ?? 0) + 1,
      lastCopy: null,
      marker: { items },
    };
  }

  async transact<T>(decide: (seen: Sighting) => Step<T>): Promise<Committed<T>> {
    const seen = this.#see();
    const { value, change } = decide(seen);
    if (change !== null) this.#make(change, seen.now);
    const tied = change?.type === 'take' && change.record.live;
    return {
      value,
      tie: tied
        ? {
            descriptor: null,
            path: `/memory/live/${change.record.run}`,
            resultPath: `/memory/live/${change.record.run}.result`,
          }
        : null,
    };
  }

  #make(change: Change, now: number): void {
    const engine = this.#engine;
    switch (change.type) {
      case 'take': {
        const run = change.record.run ?? 0;
        if (change.after !== null) this.#end(this.#adopted(change.after));
        engine.last = { run, ended: false, tokenHash: change.record.tokenHash };
        engine.lock = { record: change.record, heartbeatAt: now };
        if (change.record.live) {
          engine.liveRuns.add(run);
          this.#tied = run;
        }
        if (change.begin !== null) this.#begin(change.begin.marker, change.begin.event);
        return;
      }
      case 'begin':
        engine.lock = { record: change.record, heartbeatAt: now };
        this.#begin(change.begin.marker, change.begin.event);
        return;
      case 'cancel':
        if (change.event !== null) engine.history.push(change.event);
        engine.items = engine.items.filter((entry) => entry.run !== change.run);
        this.#free(change.run);
        return;
      case 'amend':
        engine.lock = { record: change.record, heartbeatAt: now };
        return;
      case 'end':
        this.#end(this.#adopted(change.ending));
        this.#free(change.run);
        return;
      case 'refresh':
        if (engine.lock !== null) engine.lock = { ...engine.lock, heartbeatAt: now };
        return;
      case 'handIn':
        engine.results.set(change.record.run ?? 0, {
          text: change.result,
          said: change.record.handedIn,
          rejected: null,
        });
        return;
      case 'late':
        if (!engine.records.has(change.run)) {
          engine.records.set(change.run, change.record);
          engine.history.push(change.event);
        }
        return;
      case 'settle':
        this.#begin(change.marker, change.event);
        return;
    }
  }

  #adopted(ending: Ending): Pick<Ending, 'event' | 'marker' | 'record'> {
    const handedIn = this.#engine.results.get(ending.event.run) ?? { text: null, said: null, rejected: null };
    return ending.adopt === null ? ending : ending.adopt(handedIn);
  }

  #begin(marker: MarkerEdit, event: HistoryEvent): void {
    this.#engine.items = marker(this.#engine.items);
    this.#engine.history.push(event);
  }

  #end(ending: Pick<Ending, 'event' | 'marker' | 'record'>): void {
    if (ending.record !== null) this.#engine.records.set(ending.event.run, ending.record);
    this.#begin(ending.marker, ending.event);
  }

  #free(run: number): void {
    const engine = this.#engine;
    engine.liveRuns.delete(run);
    if (engine.last?.run === run) engine.last = { ...engine.last, ended: true };
    if (engine.lock?.record.run === run) engine.lock = null;
  }

  async beat(run: number, tokenHash: string | null): Promise<'ok' | 'missing' | 'other'> {
    const { lock } = this.#engine;
    if (lock === null) return 'missing';
    if (lock.record.run !== run || lock.record.tokenHash !== tokenHash) return 'other';
    this.#engine.lock = { ...lock, heartbeatAt: this.#engine.now() };
    return 'ok';
  }

  async watch(): Promise<void> {}

  async ping(run: number): Promise<void> {
    this.#engine.pings.set(run, (this.#engine.pings.get(run) ?? 0) + 1);
  }

  async lastPing(run: number): Promise<string> {
    return String(this.#engine.pings.get(run) ?? '');
  }

  async endOf(run: number): Promise<HistoryEvent | null> {
    const ends = this.#engine.history.filter((event) => event.event === 'ended' || event.event === 'skipped');
    return ends.find((event) => event.run === run) ?? null;
  }

  async keepRejected(): Promise<string> {
    throw new RunlockError('io', 'memory keeps nothing that is no JSON');
  }

  async append(event: HistoryEvent): Promise<void> {
    this.#engine.history.push(event);
  }

  async events(): Promise<{ events: HistoryEvent[]; torn: TornLine[] }> {
    return { events: [...this.#engine.history], torn: [] };
  }

  recordPath(run: number): string {
    return `/memory/records/${run}.json`;
  }

  livePath(run: number): string {
    return `/memory/live/${run}`;
  }

  letGo(): void {
    if (this.#tied !== null) this.#engine.liveRuns.delete(this.#tied);
    this.#tied = null;
  }
}
