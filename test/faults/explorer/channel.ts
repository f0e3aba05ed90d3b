/** Memory that the explorer and one actor share: exactly one of them is at work at a time. */
export interface Channel {
  /** STATE and ORDER. */
  readonly words: Int32Array<SharedArrayBuffer>;
  /** What the actor is about to do, or has done: JSON. */
  readonly text: Uint8Array<SharedArrayBuffer>;
}

/** Memory that all of them share. */
export interface World {
  /** Wall time of the explored world, epoch ms. */
  readonly now: Float64Array<SharedArrayBuffer>;
  /** 1 for each actor whose process lives. */
  readonly alive: Int32Array<SharedArrayBuffer>;
  /** How many have the guard. */
  readonly guards: Int32Array<SharedArrayBuffer>;
  /** How many inodes were seen, then the inodes: they are known by the order in which they appeared. */
  readonly inodes: Float64Array<SharedArrayBuffer>;
}

export const STATE = 0;
export const ORDER = 1;
export const LENGTH = 2;
/** The number of the execution, by which its directory is called. */
export const EXECUTION = 3;
/** How many calls more it makes before it stops. */
export const CALLS = 4;

export const state = { idle: 0, working: 1, waiting: 2 } as const;
export const order = { none: 0, start: 1, go: 2, crash: 3, expire: 4 } as const;

/** What an actor tells when it waits for an order. */
export type Message =
  /** It is about to make a call that others could see, or whose result depends on others. */
  | { readonly type: 'call'; readonly call: string; readonly hash: string }
  /** It waits for the guard that another has. */
  | { readonly type: 'sleep'; readonly hash: string }
  | { readonly type: 'result'; readonly op: string; readonly result: OpResult; readonly hash: string }
  | { readonly type: 'done'; readonly crashed: boolean; readonly hash: string };

/** What an operation answered, as far as promises go. */
export interface OpResult {
  readonly outcome: string;
  readonly run: number | null;
  readonly error?: string;
}

export function makeChannel(): Channel {
  const words = new Int32Array(new SharedArrayBuffer(32));
  // Until its thread has started.
  words[STATE] = state.working;
  return { words, text: new Uint8Array(new SharedArrayBuffer(8192)) };
}

export function makeWorld(): World {
  return {
    now: new Float64Array(new SharedArrayBuffer(8)),
    alive: new Int32Array(new SharedArrayBuffer(64)),
    guards: new Int32Array(new SharedArrayBuffer(4)),
    inodes: new Float64Array(new SharedArrayBuffer(8 * 4096)),
  };
}

/** The number by which an inode is known in this execution. */
export function inodeNumber(world: World, inode: number): number {
  const count = world.inodes[0] ?? 0;
  for (let at = 1; at <= count; at += 1) if (world.inodes[at] === inode) return at;
  world.inodes[count + 1] = inode;
  world.inodes[0] = count + 1;
  return count + 1;
}

export function put(channel: Channel, message: Message): void {
  const bytes = Buffer.from(JSON.stringify(message));
  channel.text.set(bytes);
  channel.words[LENGTH] = bytes.length;
}

export function get(channel: Channel): Message {
  const bytes = channel.text.subarray(0, channel.words[LENGTH] ?? 0);
  return JSON.parse(Buffer.from(bytes).toString()) as Message;
}

export function setState(channel: Channel, value: number): void {
  Atomics.store(channel.words, STATE, value);
  Atomics.notify(channel.words, STATE);
}

export function give(channel: Channel, value: number, calls = 0): void {
  channel.words[CALLS] = calls;
  Atomics.store(channel.words, STATE, state.working);
  Atomics.store(channel.words, ORDER, value);
  Atomics.notify(channel.words, ORDER);
}

/** To be told at once where the answer comes soon: waking a thread takes longer than most steps. */
const SPINS = 3_000;

/** Blocks this thread until the word is no longer `value`. */
export function waitWhile(channel: Channel, word: number, value: number, forMs: number): void {
  for (let spin = 0; spin < SPINS; spin += 1) if (Atomics.load(channel.words, word) !== value) return;
  const until = performance.now() + forMs;
  while (Atomics.load(channel.words, word) === value) {
    const left = until - performance.now();
    if (left <= 0) throw new Error('an actor does not answer: it waits for something that is no step');
    Atomics.wait(channel.words, word, value, Math.min(left, 1_000_000));
  }
}
