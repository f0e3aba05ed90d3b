/** What an actor does, one after another; it is a process that ends with its last one. */
export type Op =
  | 'acquire'
  | 'hb'
  | 'finish'
  | 'release'
  /** `release` with a token that is not the lock's. */
  | 'steal'
  /** As the supervisor of `run` does. */
  | 'run'
  | 'beatRun'
  | 'endRun';

/** A contender: what it has done before the exploration begins, and what it does in it. */
export interface Actor {
  readonly has: readonly Op[];
  readonly does: readonly Op[];
}

/** What is explored: contenders, what stood there before, and what may happen in between. */
export interface Scenario {
  readonly promise: string;
  readonly actors: readonly Actor[];
  /** `stale`: of a dead `acquire` holder with an item; `staleRun`: of a dead `run`. */
  readonly before: 'nothing' | 'stale' | 'staleRun';
  /** How many actors may be killed. */
  readonly crashes: number;
  /** How many files a cleaner may remove, and which. */
  readonly removals: number;
  readonly removable: readonly string[];
  /** How often more time than the hold passes. */
  readonly holds: number;
  /** How often one is interrupted although it could go on; null: as often as you like, so that every order is seen. */
  readonly preemptions: number | null;
  /** Stops before reads under the guard too: where it may be removed or broken, it keeps nobody out. */
  readonly everywhere: boolean;
}

const PLAIN = {
  before: 'nothing',
  crashes: 0,
  removals: 0,
  removable: [],
  holds: 0,
  preemptions: null,
  everywhere: false,
} as const;

function does(...ops: Op[]): Actor {
  return { has: [], does: ops };
}

/** Any order, and anyone killed before any step. */
const ANY = { ...PLAIN, crashes: 1 } as const;
/** Whole lives side by side: interrupted up to twice. */
const LIVES = { ...PLAIN, preemptions: 2 } as const;
/** A cleaner removes a file at any step. */
const CLEANED = { ...PLAIN, removals: 1, preemptions: 2, everywhere: true } as const;

export const SCENARIOS: readonly Scenario[] = [
  { ...ANY, promise: 'a free lock goes to one of two', actors: [does('acquire'), does('acquire')] },
  {
    ...ANY,
    promise: 'a stale lock goes to one of two',
    actors: [does('acquire'), does('acquire')],
    before: 'stale',
  },
  {
    ...ANY,
    promise:
      'who finishes while another asks has finished, and the other gets the lock or is told that it is held',
    actors: [{ has: ['acquire'], does: ['finish'] }, does('acquire')],
  },
  {
    ...ANY,
    promise: 'who releases while another asks leaves its item marked',
    actors: [{ has: ['acquire'], does: ['release'] }, does('acquire')],
  },
  {
    ...PLAIN,
    promise: 'a heartbeat that was answered with success keeps the lock, however late it was',
    actors: [{ has: ['acquire'], does: ['hb', 'finish'] }, does('acquire')],
    holds: 1,
  },
  {
    ...ANY,
    promise: 'a stale `run` is followed by one of two',
    actors: [does('run'), does('run')],
    before: 'staleRun',
  },
  {
    ...ANY,
    promise: 'a `run` that ends while another asks has ended once',
    actors: [{ has: ['run'], does: ['endRun'] }, does('run')],
  },
  {
    ...LIVES,
    promise: 'three contenders live one after another',
    actors: [does('acquire', 'hb', 'finish'), does('acquire', 'release'), does('acquire', 'finish')],
    preemptions: 1,
  },
  {
    ...LIVES,
    promise: 'a stranger frees nothing',
    actors: [{ has: ['acquire'], does: ['finish'] }, does('steal'), does('acquire')],
    preemptions: 1,
  },
  {
    ...CLEANED,
    promise: 'a cleaner that removes the guard lets no two take a stale lock',
    actors: [does('acquire'), does('acquire')],
    before: 'stale',
    removable: ['lock.guard'],
  },
  {
    ...CLEANED,
    promise: 'a cleaner that removes any one file of a `run` lets no second one in',
    actors: [{ has: ['run'], does: ['beatRun', 'endRun'] }, does('run')],
    removable: ['lock.guard', 'lock.json', 'live/1'],
    preemptions: 1,
  },
];
