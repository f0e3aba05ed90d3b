/** What an actor does, one after another; it is a process that ends with its last one. */
export type Op =
  | 'acquire'
  /** `status` */
  | 'look'
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
  /** It has passed when the exploration begins. */
  readonly late: boolean;
  /** How often one is interrupted although it could go on; null: as often as you like, so that every order is seen. */
  readonly preemptions: number | null;
  /** What a `run` has started lives on when its supervisor is killed. */
  readonly leftovers: boolean;
  /** Stops before reads under the guard too, which matter only where others may be writing all the same. */
  readonly everywhere: boolean;
}

const PLAIN = {
  before: 'nothing',
  crashes: 0,
  removals: 0,
  removable: [],
  holds: 0,
  late: false,
  preemptions: null,
  leftovers: false,
  everywhere: false,
} as const;

function does(...ops: Op[]): Actor {
  return { has: [], does: ops };
}

/** One of them is killed before any step, with the other before or after it. */
const KILLED = { ...PLAIN, crashes: 1, preemptions: 0 } as const;
/** A cleaner removes a file at any step. */
const CLEANED = { ...PLAIN, removals: 1, preemptions: 1 } as const;

const TAKE_FREE = { actors: [does('acquire'), does('acquire')] };
const TAKE_STALE = { ...TAKE_FREE, before: 'stale' } as const;
const FINISH = { actors: [{ has: ['acquire'], does: ['finish'] }, does('acquire')] } as const;
const RELEASE = { actors: [{ has: ['acquire'], does: ['release'] }, does('acquire')] } as const;
const RUN_STALE = { actors: [does('run'), does('run')], before: 'staleRun' } as const;
const RUN_ENDS = { actors: [{ has: ['run'], does: ['endRun'] }, does('run')] } as const;

const THREE_LIVES: Scenario = {
  ...PLAIN,
  promise: 'three contenders live one after another',
  actors: [does('acquire', 'hb', 'finish'), does('acquire', 'release'), does('acquire', 'finish')],
};

export const SCENARIOS: readonly Scenario[] = [
  { ...PLAIN, ...TAKE_FREE, promise: 'a free lock goes to one of two', preemptions: 2 },
  { ...PLAIN, ...TAKE_STALE, promise: 'a stale lock goes to one of two' },
  { ...KILLED, ...TAKE_STALE, promise: 'a stale lock goes to one of two, one of which is killed' },
  { ...PLAIN, ...FINISH, promise: 'who finishes while another asks has finished, once' },
  { ...KILLED, ...FINISH, promise: 'who is killed while it finishes has finished or is interrupted, once' },
  { ...PLAIN, ...RELEASE, promise: 'who releases while another asks leaves its item marked' },
  { ...KILLED, ...RELEASE, promise: 'who is killed while it releases leaves its item marked' },
  { ...PLAIN, ...RUN_STALE, promise: 'a stale `run` is followed by one of two', preemptions: 2 },
  { ...PLAIN, ...RUN_ENDS, promise: 'a `run` that ends while another asks has ended once' },
  {
    ...KILLED,
    ...RUN_ENDS,
    promise: 'a `run` that is killed while it ends has ended or is interrupted, once',
  },
  {
    ...KILLED,
    promise: 'what a killed `run` has left running keeps others out',
    actors: [does('run'), does('run')],
    leftovers: true,
  },
  {
    ...PLAIN,
    promise: 'a late heartbeat that was answered with success keeps the lock',
    actors: [{ has: ['acquire'], does: ['hb', 'hb'] }, does('acquire')],
    late: true,
    preemptions: 2,
  },
  {
    ...PLAIN,
    promise: 'who sleeps through its hold at any step touches nothing of its successor',
    actors: [{ has: ['acquire'], does: ['hb', 'finish'] }, does('acquire')],
    holds: 1,
    preemptions: 1,
  },
  {
    ...PLAIN,
    promise: 'who only looks never makes a stale `run` seem held',
    actors: [does('run'), does('look')],
    before: 'staleRun',
    preemptions: 2,
  },
  { ...THREE_LIVES, preemptions: 0 },
  {
    ...PLAIN,
    promise: 'a stranger frees nothing',
    actors: [{ has: ['acquire'], does: ['finish'] }, does('acquire', 'steal')],
    preemptions: 2,
  },
  {
    ...CLEANED,
    ...TAKE_STALE,
    promise: 'a cleaner that removes the guard lets no two take a stale lock',
    removable: ['lock.guard'],
  },
  {
    ...CLEANED,
    promise: 'a cleaner that removes any one file of a `run` lets no second one in',
    actors: [{ has: ['run'], does: ['beatRun'] }, does('run')],
    removable: ['lock.guard', 'lock.json', 'live/1'],
  },
];

/** The same kills, and three lives, in every order in which they interrupt each other once: minutes. */
export const LONG_SCENARIOS: readonly Scenario[] = [
  ...SCENARIOS.filter(({ crashes }) => crashes > 0),
  THREE_LIVES,
].map((scenario) => ({ ...scenario, preemptions: 1 }));

/** What is not promised: README says so, and this shows that it says enough. */
export const LIMITS: readonly Scenario[] = [
  {
    ...CLEANED,
    promise: 'two files removed at once, lock.json and the live file, let a second `run` in',
    actors: [{ has: ['run'], does: ['beatRun'] }, does('run')],
    removals: 2,
    removable: ['lock.json', 'live/1'],
  },
  {
    ...CLEANED,
    promise: 'lock.json of an `acquire` holder, removed, lets a second one in',
    actors: [{ has: ['acquire'], does: ['hb'] }, does('acquire')],
    removable: ['lock.json'],
  },
];
