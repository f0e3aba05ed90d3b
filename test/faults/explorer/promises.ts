import { aftermath } from './aftermath.ts';
import type { OpResult } from './channel.ts';
import type { Scenario } from './scenarios.ts';

/** Watches one execution and says which promise it breaks. */
export class Promises {
  /** In words; null as long as all are kept. */
  broken: string | null = null;
  readonly #scenario: Scenario;
  /** Who was told that it has the lock, and not yet that it has not; with its run. */
  readonly #holders = new Map<number, number>();
  readonly #finished = new Map<number, number>();
  readonly #did = new Map<number, number>();
  /** In whose present operation the hold has passed. */
  #slept = new Set<number>();
  #highest = 0;

  /** How many want the lock. */
  readonly #takers: number;

  constructor(scenario: Scenario) {
    this.#scenario = scenario;
    const takes = (ops: readonly string[]) => ops.includes('acquire') || ops.includes('run');
    this.#takers = scenario.actors.filter(({ has, does }) => takes([...has, ...does])).length;
  }

  get key(): string {
    return `${[...this.#holders]} ${[...this.#finished]} ${this.#highest} ${[...this.#slept]}`;
  }

  see(actor: number, op: string, result: OpResult): void {
    this.#judge(actor, op, result);
    this.#slept.delete(actor);
    const did = (this.#did.get(actor) ?? 0) + 1;
    this.#did.set(actor, did);
    const { has = [], does = [] } = this.#scenario.actors[actor] ?? {};
    const next = [...has, ...does][did];
    // Its work is done: whether another gets in before or after it is told so makes no difference.
    if (next === 'finish' || next === 'release' || next === 'endRun') this.#holders.delete(actor);
  }

  #judge(actor: number, op: string, { outcome, run, error }: OpResult): void {
    if (error !== undefined && !this.#mayFail(error)) this.#break(`${op} of ${actor} fails: ${error}`);
    switch (op) {
      case 'acquire':
      case 'run':
        if (outcome === 'acquired') this.#acquired(actor, run ?? 0);
        else if (this.#takers === 1)
          this.#break(`${op} of ${actor} answers ${outcome}, though nobody has the lock`);
        return;
      case 'look':
        return;
      case 'hb':
      case 'beatRun':
        if (outcome === 'ok') this.#kept(actor, op, run ?? 0);
        else if (outcome !== 'skipped') this.#lost(actor, op, outcome);
        return;
      case 'steal':
        return;
      case 'finish':
      case 'endRun':
        if (outcome === 'ok' || outcome === 'finished') this.#finished.set(run ?? 0, actor);
        else if (outcome !== 'skipped') this.#lost(actor, op, outcome);
        this.#holders.delete(actor);
        return;
      case 'release':
        if (outcome !== 'ok' && outcome !== 'skipped') this.#lost(actor, op, outcome);
        this.#holders.delete(actor);
        return;
      default:
        throw new Error(`what does ${op} promise?`);
    }
  }

  /** Its process has ended; what it has started may not have. */
  ended(actor: number, crashed: boolean): void {
    if (!(crashed && this.#scenario.leftovers)) this.#holders.delete(actor);
  }

  /** Who does not beat in time may lose the lock, and has to ask before it goes on. */
  beginLate(): void {
    this.#holders.clear();
  }

  /** The same while everyone is in the middle of something. */
  holdPassed(): void {
    this.beginLate();
    this.#slept = new Set(this.#scenario.actors.keys());
  }

  /** When everyone has ended: the next one gets in, and nothing was lost on the way. */
  async atTheEnd(dir: string): Promise<void> {
    const wrong = await aftermath(dir, this.#finished, this.#scenario.removals === 0);
    if (wrong !== null) this.#break(wrong);
  }

  #acquired(actor: number, run: number): void {
    const [other] = this.#holders;
    if (other !== undefined)
      this.#break(`${actor} gets the lock as run ${run} while ${other[0]} has it as run ${other[1]}`);
    if (run <= this.#highest) this.#break(`run ${run} is given out after run ${this.#highest}`);
    this.#highest = Math.max(this.#highest, run);
    this.#holders.set(actor, run);
  }

  #kept(actor: number, op: string, run: number): void {
    // Its answer was true when it was found, and is older than the hold now.
    if (this.#slept.has(actor)) return;
    const other = [...this.#holders].find(([holder]) => holder !== actor);
    if (other !== undefined)
      this.#break(`${op} of ${actor} answers ok, while ${other[0]} has the lock as run ${other[1]}`);
    this.#holders.set(actor, run);
  }

  /** Nobody is told that its lock is lost while no one else could have taken it. */
  #lost(actor: number, op: string, outcome: string): void {
    if (this.#scenario.holds === 0 && !this.#scenario.late && this.#scenario.removals === 0)
      this.#break(`${op} of ${actor} answers ${outcome}, though nobody may take the lock from it`);
    this.#holders.delete(actor);
  }

  /** A guard that a stopped process has, or files that vanish in mid-change, are errors, and errors only. */
  #mayFail(error: string): boolean {
    return this.#scenario.removals > 0 || /kept by another process/.test(error);
  }

  #break(what: string): void {
    this.broken ??= what;
  }
}
