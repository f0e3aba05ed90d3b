import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { Worker } from 'node:worker_threads';
import {
  CALLS,
  type Channel,
  EXECUTION,
  get,
  give,
  inodeNumber,
  type Message,
  makeChannel,
  makeWorld,
  order,
  STATE,
  state,
  type World,
  waitWhile,
} from './channel.ts';
import { Promises } from './promises.ts';
import type { Scenario } from './scenarios.ts';

/** One thing that happens next. */
type Choice =
  | { readonly type: 'go'; readonly actor: number }
  /** Its wait for the guard has been too long. */
  | { readonly type: 'expire'; readonly actor: number }
  | { readonly type: 'crash'; readonly actor: number }
  | { readonly type: 'remove'; readonly file: string }
  | { readonly type: 'holdPasses' };

/** What is left of what may happen. */
interface Budget {
  readonly crashes: number;
  readonly removals: number;
  readonly holds: number;
  readonly preemptions: number;
}

export interface Explored {
  readonly executions: number;
  readonly states: number;
  /** The first order of events that breaks a promise, and how; null if none does. */
  readonly counterexample: { readonly broken: string; readonly events: readonly string[] } | null;
}

const NOON = Date.UTC(2026, 5, 15, 12);
const PATIENCE_MS = 20_000;
const AT_A_STRETCH = 1_000_000;

/**
 * Goes through the orders in which a scenario can happen: the real steps of the real file store, in threads of which
 * one at a time is let go on. A state that was seen before, with no more left of what may happen, is not gone
 * through again.
 *
 * @param worker the actor's bundle; a broken one shows that a promise can be seen broken
 */
export async function explore(
  scenario: Scenario,
  options: { worker: string; makeState: (dir: string) => Promise<void>; maxExecutions: number },
): Promise<Explored> {
  const explorer = new Explorer(scenario, options.worker);
  try {
    await explorer.prepare(options.makeState);
    return await explorer.explore(options.maxExecutions);
  } finally {
    await explorer.close();
  }
}

class Explorer {
  readonly #scenario: Scenario;
  readonly #base = fs.mkdtempSync('/dev/shm/runlock-explorer-');
  readonly #world: World = makeWorld();
  readonly #channels: Channel[];
  readonly #workers: Worker[];
  readonly #visited = new Set<string>();
  #executions = 0;

  constructor(scenario: Scenario, worker: string) {
    this.#scenario = scenario;
    this.#channels = scenario.actors.map(makeChannel);
    this.#workers = scenario.actors.map(
      ({ has, does }, index) =>
        new Worker(worker, {
          workerData: {
            index,
            channel: this.#channels[index],
            world: this.#world,
            base: this.#base,
            ops: [...has, ...does],
            everywhere: scenario.everywhere,
            exclusive: isExclusive(scenario),
            leftovers: scenario.leftovers,
          },
        }),
    );
  }

  async close(): Promise<void> {
    await Promise.all(this.#workers.map((worker) => worker.terminate()));
    fs.rmSync(this.#base, { recursive: true, force: true });
  }

  async prepare(makeState: (dir: string) => Promise<void>): Promise<void> {
    const dir = path.join(this.#base, 'before');
    for (const name of ['', 'live', 'history', 'records']) fs.mkdirSync(path.join(dir, name));
    await makeState(dir);
  }

  async explore(maxExecutions: number): Promise<Explored> {
    const open: Choice[][] = [[]];
    let counterexample: Explored['counterexample'] = null;
    for (let prefix = open.pop(); prefix !== undefined && counterexample === null; prefix = open.pop()) {
      if (this.#executions >= maxExecutions) {
        throw new Error(
          `more than ${maxExecutions} executions: the scenario is too large to be gone through`,
        );
      }
      counterexample = await this.#execute(prefix, (alternative) => open.push(alternative));
    }
    return { executions: this.#executions, states: this.#visited.size, counterexample };
  }

  /** Follows the prefix, then goes on in a straight line, and notes where it could have gone another way. */
  async #execute(
    prefix: readonly Choice[],
    alternative: (choices: Choice[]) => void,
  ): Promise<Explored['counterexample']> {
    const execution = this.#begin();
    const { promises } = execution;
    const events: string[] = [];
    const made: Choice[] = [];
    let budget: Budget = {
      crashes: this.#scenario.crashes,
      removals: this.#scenario.removals,
      holds: this.#scenario.holds,
      preemptions: this.#scenario.preemptions ?? Number.POSITIVE_INFINITY,
    };
    let last: number | null = null;
    let pruned = false;
    while (promises.broken === null) {
      const choices = this.#choices(execution, budget, last);
      const [first] = choices;
      if (first === undefined) break;
      let choice: Choice = first;
      let repeat = 1;
      if (made.length < prefix.length) {
        choice = prefix[made.length] ?? first;
        repeat = sameFrom(prefix, made.length);
      } else {
        const key = this.#key(execution, budget, last);
        if (this.#visited.has(key)) {
          pruned = true;
          break;
        }
        this.#visited.add(key);
        for (const other of choices.slice(1)) alternative([...made, other]);
      }
      budget = spend(budget, choice, last, execution.messages);
      const { event, times } = this.#make(execution, choice, repeat);
      events.push(event);
      if (choice.type === 'go' || choice.type === 'expire') last = choice.actor;
      for (let time = 0; time < times; time += 1) made.push(choice);
    }
    this.#abandon(execution);
    if (promises.broken === null && !pruned) await promises.atTheEnd(execution.dir);
    fs.rmSync(execution.dir, { recursive: true, force: true });
    return promises.broken === null ? null : { broken: promises.broken, events };
  }

  #begin(): Execution {
    this.#executions += 1;
    const dir = path.join(this.#base, String(this.#executions));
    fs.cpSync(path.join(this.#base, 'before'), dir, { recursive: true, preserveTimestamps: true });
    this.#world.inodes[0] = 0;
    this.#world.guards[0] = 0;
    this.#world.now[0] = NOON;
    const messages: Message[] = [];
    for (const [index, channel] of this.#channels.entries()) {
      this.#world.alive[index] = 1;
      waitWhile(channel, STATE, state.working, PATIENCE_MS);
      channel.words[EXECUTION] = this.#executions;
    }
    const promises = new Promises(this.#scenario);
    for (const [index, channel] of this.#channels.entries())
      messages.push(this.#start(index, channel, promises));
    if (this.#scenario.late) {
      this.#passHold();
      promises.beginLate();
    }
    return { dir, messages, moved: this.#channels.map(() => true), promises, disk: null };
  }

  /** Lets an actor do at a stretch what it has done before, and come to the first step that is explored. */
  #start(index: number, channel: Channel, promises: Promises): Message {
    let before = this.#scenario.actors[index]?.has.length ?? 0;
    let message = this.#order(channel, order.start, before > 0 ? AT_A_STRETCH : 0);
    for (; before > 0; before -= 1) {
      if (message.type !== 'result') throw new Error(`expected a result, got ${JSON.stringify(message)}`);
      promises.see(index, message.op, message.result);
      message = this.#order(channel, order.go, before > 1 ? AT_A_STRETCH : 0);
    }
    return message;
  }

  #passHold(): void {
    this.#world.now[0] = (this.#world.now[0] ?? 0) + 46 * 60_000;
  }

  /** Gives an order and waits until the actor has come to its next stop. */
  #order(channel: Channel, value: number, calls = 0): Message {
    give(channel, value, calls);
    waitWhile(channel, STATE, state.working, PATIENCE_MS);
    return get(channel);
  }

  /** Lets everyone die who is still under way. */
  #abandon({ messages }: Execution): void {
    for (const [index, channel] of this.#channels.entries()) {
      if (messages[index]?.type !== 'done') this.#order(channel, order.crash);
    }
  }

  /** What may happen next; first what happens if nobody interferes. */
  #choices({ dir, messages, moved }: Execution, budget: Budget, last: number | null): Choice[] {
    const choices: Choice[] = [];
    const guarded = Atomics.load(this.#world.guards, 0) > 0;
    const ready = (index: number) => {
      const type = messages[index]?.type;
      if (type === 'sleep') return moved[index] === true && (!guarded || !isExclusive(this.#scenario));
      return type === 'call' || type === 'result';
    };
    const actors = messages.map((_, index) => index);
    const straight = last !== null && ready(last);
    if (straight) choices.push({ type: 'go', actor: last });
    for (const actor of actors) {
      if (actor === last || !ready(actor)) continue;
      if (!straight || messages[last ?? 0]?.type === 'sleep' || budget.preemptions > 0)
        choices.push({ type: 'go', actor });
    }
    const asleep = actors.filter((index) => messages[index]?.type === 'sleep');
    if (choices.length === 0) for (const actor of asleep) choices.push({ type: 'expire', actor });
    if (choices.length === 0) return [];
    if (budget.crashes > 0) {
      for (const actor of actors)
        if (messages[actor]?.type !== 'done') choices.push({ type: 'crash', actor });
    }
    if (budget.removals > 0) {
      for (const file of this.#scenario.removable) {
        if (fs.existsSync(path.join(dir, file))) choices.push({ type: 'remove', file });
      }
    }
    if (budget.holds > 0) choices.push({ type: 'holdPasses' });
    return choices;
  }

  /** Does it, up to `repeat` times in a row without a word in between, and says what was done. */
  #make(execution: Execution, choice: Choice, repeat: number): { event: string; times: number } {
    const { dir, messages, moved, promises } = execution;
    switch (choice.type) {
      case 'remove':
        fs.unlinkSync(path.join(dir, choice.file));
        execution.disk = null;
        moved.fill(true);
        return { event: `a cleaner removes ${choice.file}`, times: 1 };
      case 'holdPasses':
        this.#passHold();
        promises.holdPassed();
        return { event: 'the hold passes', times: 1 };
      case 'go':
      case 'expire':
      case 'crash': {
        const { actor } = choice;
        const channel = this.#channels[actor];
        const before = messages[actor];
        if (channel === undefined || before === undefined) throw new Error(`there is no actor ${actor}`);
        const after = this.#order(channel, order[choice.type], repeat - 1);
        const times = repeat - (channel.words[CALLS] ?? 0);
        if (times > 1 || (before.type === 'call' && !LOOK.test(before.call))) execution.disk = null;
        messages[actor] = after;
        if (before.type !== 'sleep' || choice.type === 'crash' || times > 1) moved.fill(true);
        if (after.type === 'sleep') moved[actor] = false;
        if (after.type === 'result') promises.see(actor, after.op, after.result);
        if (after.type === 'done') promises.ended(actor, after.crashed);
        const what = before.type === 'call' ? before.call : before.type;
        const told = after.type === 'result' ? ` ▸ ${after.op}: ${JSON.stringify(after.result)}` : '';
        const more = times > 1 ? ` and ${times - 1} calls more` : '';
        return {
          event: `${choice.type === 'crash' ? 'killed before: ' : ''}${actor} ${what}${more}${told}`,
          times,
        };
      }
    }
  }

  #key(execution: Execution, budget: Budget, last: number | null): string {
    const { messages, moved, promises } = execution;
    execution.disk ??= this.#diskKey(execution.dir);
    const actors = messages.map((message, index) => `${message.type}${message.hash}${moved[index] ? 1 : 0}`);
    const turn = Number.isFinite(budget.preemptions) ? last : '';
    const { crashes, removals, holds, preemptions } = budget;
    const left = `${crashes} ${removals} ${holds} ${preemptions}`;
    const key = [actors, execution.disk, left, this.#world.now[0], turn, promises.key].join('|');
    return createHash('sha1').update(key).digest('base64');
  }

  #diskKey(dir: string): string {
    return fs
      .readdirSync(dir, { recursive: true, encoding: 'utf8' })
      .filter((name) => !name.endsWith('.tmp'))
      .sort()
      .map((name) => this.#fileKey(path.join(dir, name), name))
      .join();
  }

  #fileKey(file: string, name: string): string {
    const stat = fs.statSync(file);
    if (stat.isDirectory()) return name;
    return `${name} ${inodeNumber(this.#world, stat.ino)} ${stat.mtimeMs} ${fs.readFileSync(file, 'latin1')}`;
  }
}

interface Execution {
  readonly dir: string;
  readonly messages: Message[];
  /** Whether anything has happened since this actor went to sleep. */
  readonly moved: boolean[];
  readonly promises: Promises;
  /** What stands on the disk; null where something may have changed since it was read. */
  disk: string | null;
}

/** Calls after which the same stands on the disk. */
const LOOK = /^(open|read|stat|existsSync|readdirSync|lock|share|unlock|close)/;

/** Whether the guard can be relied on: nobody removes it, and it is not the one that is broken on purpose. */
function isExclusive({ removals, everywhere }: Scenario): boolean {
  return removals === 0 && !everywhere;
}

/** How many choices from `at` on are the same. */
function sameFrom(choices: readonly Choice[], at: number): number {
  const first = choices[at];
  let count = 0;
  while (
    first?.type === 'go' &&
    choices[at + count]?.type === 'go' &&
    (choices[at + count] as { actor: number }).actor === first.actor
  )
    count += 1;
  return Math.max(1, count);
}

function spend(budget: Budget, choice: Choice, last: number | null, messages: readonly Message[]): Budget {
  switch (choice.type) {
    case 'crash':
      return { ...budget, crashes: budget.crashes - 1 };
    case 'remove':
      return { ...budget, removals: budget.removals - 1 };
    case 'holdPasses':
      return { ...budget, holds: budget.holds - 1 };
    case 'expire':
      return budget;
    case 'go': {
      const before = last === null ? undefined : messages[last];
      const couldGoOn = before?.type === 'call' || before?.type === 'result';
      const preempted = couldGoOn && choice.actor !== last;
      return preempted ? { ...budget, preemptions: budget.preemptions - 1 } : budget;
    }
  }
}
