import type { EndedEvent, HistoryEvent, TornLine } from './history.ts';
import type { MarkerEdit, MarkerSight } from './marker.ts';
import type { HandedIn, LockRecord } from './record.ts';
import type { LiveFile, LockSight } from './rules.ts';

/** The last run number given out, and what is remembered of that run. */
export interface LastRun {
  readonly run: number;
  readonly ended: boolean;
  /** SHA-256 of its token, hex; null where it is not known. */
  readonly tokenHash: string | null;
}

/** Everything a store knows of one lock at one moment. */
export interface Sighting {
  /** By the store's clock, epoch ms. An engine's own, never the client's. */
  readonly now: number;
  readonly lock: LockSight | null;
  /** Two sightings of the same `identity` saw the same record; heartbeats don't change it. */
  readonly identity: string;
  readonly liveFile: LiveFile;
  /** Null where no run was ever given out. */
  readonly last: LastRun | null;
  /** The number that the next run gets. */
  readonly nextRun: number;
  /** The copy that the last run given out left, if it has not ended; for a lock whose own content is lost. */
  readonly lastCopy: LockRecord | null;
  readonly marker: MarkerSight;
}

/** What the command of a `run` handed in. */
export interface HandedInResult {
  /** The JSON text it was handed in as; null where there was none, or none that can be used. */
  readonly text: string | null;
  /** What it said by `finish`; null where it wrote the file itself. */
  readonly said: HandedIn | null;
  /** Where something that is no JSON was kept. */
  readonly rejected: string | null;
}

/** The end of a run, with what it leaves behind. */
export interface Ending {
  readonly event: EndedEvent;
  readonly marker: MarkerEdit;
  /** The text of the record to commit, or null where the history line is the commit. */
  readonly record: string | null;
  /** For a `run`: what the end is, given what its command has handed in. */
  readonly adopt: ((handedIn: HandedInResult) => Pick<Ending, 'event' | 'marker' | 'record'>) | null;
}

/** What a run leaves when it begins its work: the mark of its item, and its line in the history. */
export interface Beginning {
  readonly marker: MarkerEdit;
  readonly event: HistoryEvent;
}

/** A change that a store makes whole or not at all; a kill in the middle is completed by whoever comes next. */
export type Change =
  /**
   * Gives out `record.run` and makes it the holder of a lock that is as `seen`. `after`: the end of the run it
   * takes over from, if that had a number.
   */
  | {
      readonly type: 'take';
      readonly seen: Sighting;
      readonly record: LockRecord;
      readonly after: Ending | null;
      readonly begin: Beginning | null;
    }
  /** The run begins its work, where that is a step of its own because something was asked in between. */
  | { readonly type: 'begin'; readonly record: LockRecord; readonly begin: Beginning }
  /** Takes the run back without a trace but its number; needs no room on a full disk. */
  | { readonly type: 'cancel'; readonly run: number; readonly event: HistoryEvent | null }
  /** Replaces the record of the holder by a fuller one of the same run. */
  | { readonly type: 'amend'; readonly record: LockRecord }
  | { readonly type: 'end'; readonly run: number; readonly ending: Ending }
  /** Sets the heartbeat to now: one from the future, so that the hold bounds it, or a late one. */
  | { readonly type: 'refresh' }
  /** The command of a `run` hands in its result. */
  | { readonly type: 'handIn'; readonly record: LockRecord; readonly result: string | null }
  /** A former holder's record, after its lock was taken over. */
  | { readonly type: 'late'; readonly run: number; readonly record: string; readonly event: HistoryEvent }
  | { readonly type: 'settle'; readonly marker: MarkerEdit; readonly event: HistoryEvent };

export interface Step<T> {
  readonly value: T;
  readonly change: Change | null;
}

/** What ties a `run` and its tree to the lock; held by the kernel, or by an engine's session. */
export interface Tie {
  /** A descriptor to hand to the command, so that its tree keeps the tie; null where the engine has none. */
  readonly descriptor: number | null;
  /** The live file, by which the tree is known. */
  readonly path: string;
  /** Where the command may leave its result. */
  readonly resultPath: string;
}

export interface Committed<T> {
  readonly value: T;
  /** After a `take` of a `live` record. */
  readonly tie: Tie | null;
}

/**
 * One lock in a store. It does one thing: make a read-decide-write atomic. What is the same for all stores is
 * written once, above this interface.
 *
 * Methods throw RunlockError `io`, `corrupt`, `guardBusy` or `noKernelLock`: an error is never "free" and never
 * "held".
 */
export interface Store {
  /** Where, in words for people: an absolute path, or an engine's address without secrets. */
  readonly where: string;
  /** Reads without changing anything and without keeping anyone out. */
  look(): Promise<Sighting>;
  /** Keeps everyone else out while `decide` sees what stands there and its change is made. `decide` is pure. */
  transact<T>(decide: (seen: Sighting) => Step<T>): Promise<Committed<T>>;
  /**
   * Refreshes the heartbeat of run `run` if it is still that run's, and nothing of a successor's.
   * `missing`: no lock stands there.
   */
  beat(run: number, tokenHash: string | null): Promise<'ok' | 'missing' | 'other'>;
  /** Begins to watch the command of a run (`--watchdog`): from now on its pings are kept. */
  watch(run: number): Promise<void>;
  /** Tells the supervisor of a run that its command is alive. Where nobody watches, nothing is written. */
  ping(run: number): Promise<void>;
  /** What the supervisor's watchdog compares: changes with each ping. */
  lastPing(run: number): Promise<string>;
  /** Keeps something handed in that is no JSON, so that it is not lost. Returns where. */
  keepRejected(run: number, bytes: Uint8Array): Promise<string>;
  /** Appends to the history outside any change. */
  append(event: HistoryEvent): Promise<void>;
  /** How a run ended, by its record or the history; null where neither says so. */
  endOf(run: number): Promise<HistoryEvent | null>;
  /** The history, oldest first; torn lines apart. */
  events(): Promise<{ events: HistoryEvent[]; torn: TornLine[] }>;
  /** Where the record of a run is, or would be. */
  recordPath(run: number): string;
  /** Where the live file of a run is, or would be. */
  livePath(run: number): string;
  /** Unties the run that this process supervises although its end could not be written: the next taker ends it. */
  letGo(): void;
}
