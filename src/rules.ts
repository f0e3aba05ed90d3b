import { commandOf, DEFAULT_HOLD_MS, holderOf, type LockRecord, type ProcessRef } from './record.ts';

/*
 * May the lock be taken, and who may end it. Pure: time and evidence are arguments.
 *
 *   no lock.json ──▶ the last run given out has ended, or left no live copy ──▶ free
 *        │ it has not: its copy in live/ is judged like a lock
 *        ▼
 *   its run has ended (a kill came between its end and the clean-up) ────────▶ stale
 *   content is no lock ───────── mtime older than 45 min? ── no ─▶ held ─ yes ▶ stale
 *   1 live, and this kernel ──┬─ supervisor or command lives ────────────────▶ held, no clock matters
 *                             ├─ only leftovers have the live file ── hold ──▶ held │ stale
 *                             ├─ can't tell ───────────────────────── hold ──▶ held │ stale
 *                             └─ nothing left ───────────────────────────────▶ stale
 *   2 heartbeat older than the hold ─────────────────────────────────────────▶ stale
 *   3 other platform, host or pid namespace ─────────────────────────────────▶ held
 *   4 same host, other boot ── heartbeat before this boot? ─ no ─▶ held ─ yes ▶ stale
 *   5 no pid ────────────────────────────────────────────────────────────────▶ held
 *   6 the holder ──┬─ lives, or can't tell ──────────────────────────────────▶ held
 *                  ├─ is gone, others of its process group live ─────────────▶ held
 *                  └─ is gone ───────────────────────────────────────────────▶ stale
 *
 * Every "held" but the first line of rule 1 ends with the hold (rule 2). A doubt is never "free".
 */

/**
 * What is known of a process.
 *
 * - `alive`: it is there, and it is the same one
 * - `gone`: the system says that nothing has this number
 * - `zombie`: it has ended, with all its threads, and only waits to be reaped
 * - `thread`: the number names a thread of something else
 * - `reused`: what has the number now was started at another time
 * - `unsure`: something is there, and there is no way to tell whether it is the one. Never read this as dead
 */
export type Liveness = 'alive' | 'gone' | 'zombie' | 'thread' | 'reused' | 'unsure';

/** Whether the live file of a run is kernel-locked; `unknown` where it is missing or can't be opened. */
export type LiveFile = 'locked' | 'unlocked' | 'unknown';

/** Where one looks from. */
export interface Here {
  readonly platform: string;
  readonly host: string;
  readonly bootId: string | null;
  readonly pidNamespace: string | null;
  /** When this machine started, epoch ms; 0 where it is not known, so that nothing is older than it. */
  readonly bootedAt: number;
}

/** What was found out about a lock, before the rules are asked. */
export interface Evidence {
  readonly here: Here;
  readonly holder: Liveness;
  /** In the order of the lock's `forks`. */
  readonly forks: readonly Liveness[];
  /**
   * The command of a `run`; `gone` where none was started. Killed before it could write down its command, a
   * supervisor leaves only what is seen of the tree: `unsure` where the live file is locked by nobody in sight.
   */
  readonly command: Liveness;
  readonly liveFile: LiveFile;
  /** Others of the dead holder's process group, in words (`node publish.js (pid 4130)`). */
  readonly survivors: readonly string[];
}

/** A lock as it was read: a record, or content that is none, with the age of its heartbeat. */
export interface LockSight {
  readonly content: { readonly record: LockRecord } | { readonly problem: string };
  /** When the heartbeat was, epoch ms. */
  readonly heartbeatAt: number;
  /** `live`: `lock.json` is missing, this is the copy in the live file. */
  readonly source: 'lock' | 'live';
  /** Its run has ended: what is missing of the end is the next taker's to complete. */
  readonly ended: boolean;
}

export type HeldReason =
  | { readonly type: 'holderLives' }
  | { readonly type: 'orphan' }
  | { readonly type: 'leftovers' }
  | { readonly type: 'otherMachine'; readonly what: 'platform' | 'host' | 'pidNamespace' | 'boot' }
  | { readonly type: 'noPid' }
  | { readonly type: 'unsure' }
  | { readonly type: 'survivors'; readonly names: readonly string[] }
  | { readonly type: 'unreadable'; readonly problem: string };

export type StaleReason =
  | { readonly type: 'ended' }
  | { readonly type: 'noHeartbeat'; readonly ageMs: number }
  | { readonly type: 'restarted' }
  | { readonly type: 'runGone' }
  | { readonly type: 'holderGone'; readonly how: 'gone' | 'zombie' | 'thread' | 'reused' }
  | { readonly type: 'unreadable'; readonly problem: string; readonly ageMs: number };

export type Verdict =
  | { readonly state: 'free' }
  /** `staleInMs`: null where no time limit ends it. */
  | { readonly state: 'held'; readonly reason: HeldReason; readonly staleInMs: number | null }
  | { readonly state: 'stale'; readonly reason: StaleReason };

/** The record of a lock, or null where there is none that can be read. */
export function recordIn(sight: Pick<LockSight, 'content'> | null): LockRecord | null {
  return sight !== null && 'record' in sight.content ? sight.content.record : null;
}

/** How old a heartbeat is, ms. One from the future counts as now: a clock that was wrong must not free a lock. */
export function heartbeatAge(sight: Pick<LockSight, 'heartbeatAt'>, now: number): number {
  return Math.max(0, now - sight.heartbeatAt);
}

/** The hold of a lock, ms; `null`: never. */
export function holdOf(sight: LockSight): number | null {
  return 'record' in sight.content ? sight.content.record.holdMs : DEFAULT_HOLD_MS;
}

/** Judges a lock. `now` is by the store's clock, epoch ms. */
export function judge(sight: LockSight | null, evidence: Evidence, now: number): Verdict {
  if (sight === null) return { state: 'free' };
  if (sight.ended) return { state: 'stale', reason: { type: 'ended' } };

  const ageMs = heartbeatAge(sight, now);
  const holdMs = holdOf(sight);
  const expired = holdMs !== null && ageMs > holdMs;
  const tooOld: Verdict = { state: 'stale', reason: { type: 'noHeartbeat', ageMs } };
  const untilHold = (reason: HeldReason): Verdict =>
    expired ? tooOld : { state: 'held', reason, staleInMs: holdMs === null ? null : holdMs - ageMs };

  if ('problem' in sight.content) {
    const { problem } = sight.content;
    if (expired) return { state: 'stale', reason: { type: 'unreadable', problem, ageMs } };
    return untilHold({ type: 'unreadable', problem });
  }
  const { record } = sight.content;

  if (record.live && sameKernel(record, evidence.here, sight.heartbeatAt)) {
    return judgeLive(record, evidence, untilHold);
  }
  if (expired) return tooOld;

  const elsewhere = whereElse(record, evidence.here);
  if (elsewhere !== null) return untilHold({ type: 'otherMachine', what: elsewhere });
  if (otherBoot(record, evidence.here)) {
    return sight.heartbeatAt < evidence.here.bootedAt
      ? { state: 'stale', reason: { type: 'restarted' } }
      : untilHold({ type: 'otherMachine', what: 'boot' });
  }
  if (record.pid === null) return untilHold({ type: 'noPid' });
  return judgeHolder(evidence, untilHold);
}

/** Rule 1. The kernel's word: no clock is asked while the supervisor or the command lives. */
function judgeLive(
  record: LockRecord,
  evidence: Evidence,
  untilHold: (reason: HeldReason) => Verdict,
): Verdict {
  const { liveFile } = evidence;
  // In another pid namespace the numbers mean nothing; the lock on the live file reaches through.
  const seesPids = samePidNamespace(record, evidence.here);
  const supervisor = seesPids ? evidence.holder : 'unsure';
  const command = seesPids ? evidence.command : 'unsure';

  if (seesPids && supervisor === 'alive') return held({ type: 'holderLives' });
  if (seesPids && command === 'alive') return held({ type: 'orphan' });
  if (liveFile === 'locked') {
    if (!seesPids) return held({ type: 'holderLives' });
    if (isOver(supervisor) && isOver(command)) return untilHold({ type: 'leftovers' });
    return held({ type: 'unsure' });
  }
  if (liveFile === 'unlocked' && !seesPids) return { state: 'stale', reason: { type: 'runGone' } };
  if (!isOver(supervisor) || !isOver(command)) return untilHold({ type: 'unsure' });
  if (evidence.survivors.length > 0) return untilHold({ type: 'survivors', names: evidence.survivors });
  return { state: 'stale', reason: { type: 'runGone' } };
}

/** Rule 6. */
function judgeHolder(evidence: Evidence, untilHold: (reason: HeldReason) => Verdict): Verdict {
  const members = [evidence.holder, ...evidence.forks];
  if (members.includes('alive')) return untilHold({ type: 'holderLives' });
  if (members.some((member) => !isOver(member))) return untilHold({ type: 'unsure' });
  if (evidence.survivors.length > 0) return untilHold({ type: 'survivors', names: evidence.survivors });
  const how = evidence.holder;
  return { state: 'stale', reason: { type: 'holderGone', how: isOver(how) ? how : 'gone' } };
}

function held(reason: HeldReason): Verdict {
  return { state: 'held', reason, staleInMs: null };
}

/** Whether a process is certainly not running any more. */
export function isOver(liveness: Liveness): liveness is 'gone' | 'zombie' | 'thread' | 'reused' {
  return liveness !== 'alive' && liveness !== 'unsure';
}

/** Whether the pids of a record can be compared with those seen here. */
export function samePids(record: LockRecord, here: Here): boolean {
  return whereElse(record, here) === null && !otherBoot(record, here);
}

function sameKernel(record: LockRecord, here: Here, heartbeatAt: number): boolean {
  if (record.bootId !== null && here.bootId !== null) return record.bootId === here.bootId;
  // A system that names no boot: the same host, and a heartbeat since it started.
  return record.platform === here.platform && record.host === here.host && heartbeatAt >= here.bootedAt;
}

function samePidNamespace(record: LockRecord, here: Here): boolean {
  return record.pidNamespace === null || record.pidNamespace === here.pidNamespace;
}

/** Rule 3. A field that another tool left out is taken to be as here: its pid is all there is to go by. */
function whereElse(record: LockRecord, here: Here): 'platform' | 'host' | 'pidNamespace' | null {
  if (record.platform !== null && record.platform !== here.platform) return 'platform';
  const sameBoot = record.bootId !== null && record.bootId === here.bootId;
  // The same boot is the same machine, whatever the host is called.
  if (!sameBoot && record.host !== null && record.host !== here.host) return 'host';
  // Namespaces of two boots have nothing to do with each other: rule 4 tells boots apart first.
  if (!otherBoot(record, here) && !samePidNamespace(record, here)) return 'pidNamespace';
  return null;
}

function otherBoot(record: LockRecord, here: Here): boolean {
  return record.bootId !== null && here.bootId !== null && record.bootId !== here.bootId;
}

/** Who asks to beat, finish or release. */
export interface Claim {
  readonly tokenHash: string | null;
  /** The caller, found the way `acquire` finds it: its forked copies innermost first, then the shell itself. */
  readonly caller: readonly ProcessRef[];
  /** Every process above the caller, nearest first. */
  readonly ancestors: readonly ProcessRef[];
}

/** Whether the claim shows the token of this lock. */
export function showsToken(record: LockRecord, claim: Claim): boolean {
  return record.tokenHash !== null && claim.tokenHash === record.tokenHash;
}

/**
 * Whether the caller *is* the holder: the innermost process of the holder that still lives must be the caller or
 * the shell it is a copy of. A script that the holder starts is somebody else.
 */
export function isHolder(record: LockRecord, evidence: Evidence, claim: Claim): boolean {
  const innermost = livingMembers(record, evidence)[0];
  return innermost !== undefined && claim.caller.some((process) => sameProcess(process, innermost));
}

/** Whether the caller is the holder or anything it started. */
export function isWithin(record: LockRecord, evidence: Evidence, claim: Claim): boolean {
  const members = livingMembers(record, evidence);
  const command = commandOf(record);
  if (record.live && command !== null && evidence.command === 'alive') members.push(command);
  return members.some((member) => claim.ancestors.some((ancestor) => sameProcess(ancestor, member)));
}

/** The processes that the holder consists of and that live, innermost first. */
function livingMembers(record: LockRecord, evidence: Evidence): ProcessRef[] {
  if (!samePids(record, evidence.here)) return [];
  const holder = holderOf(record) ?? record.caller;
  const members = record.forks.filter((_, index) => evidence.forks[index] === 'alive');
  if (holder !== null && (evidence.holder === 'alive' || evidence.holder === 'unsure')) members.push(holder);
  return members;
}

/** The same number, and the same start; a start that is not known on either side decides nothing. */
export function sameProcess(a: ProcessRef, b: ProcessRef): boolean {
  return a.pid === b.pid && (a.started === null || b.started === null || a.started === b.started);
}
