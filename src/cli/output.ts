import fs from 'node:fs';
import { formatDuration } from '../clock.ts';
import type { RunlockError } from '../errors.ts';
import type { Look } from '../lock.ts';
import { counts, countsUntil, type Holder, type MarkerItem } from '../marker.ts';
import { asciiJson, printable } from '../printable.ts';
import type { LockRecord } from '../record.ts';
import { heartbeatAge, holdOf, recordIn } from '../rules.ts';
import { heldByWords, heldWords, holderWords, localTime, staleWords } from '../words.ts';
import { answer } from './streams.ts';
import type { Target } from './target.ts';

/** Prints one JSON object on stdout. */
export function answerJson(value: object): void {
  answer(`${asciiJson(value)}\n`);
}

/** What `run --json` tells where there was no run. */
export const NO_RUN = { run: null, item: null, durationMs: 0, heldBy: null, gates: [] };

/** What a program is told of a lock. */
export function statusJson(target: Target, look: Look) {
  const { seen, verdict } = look;
  const record = recordIn(look.seen.lock);
  return {
    state: verdict.state,
    name: target.name,
    dir: target.dir,
    run: record?.run ?? null,
    pid: record?.pid ?? null,
    job: record?.job ?? null,
    item: record?.item ?? null,
    host: record?.host ?? null,
    startedBy: record?.startedBy ?? null,
    command: record?.command ?? null,
    commandPid: record?.commandPid ?? null,
    acquiredAt: record?.acquiredAt ?? null,
    heartbeatAgeMs: seen.lock === null ? null : Math.round(heartbeatAge(seen.lock, seen.now)),
    holdMs: seen.lock === null ? null : holdOf(seen.lock),
    staleInMs: verdict.state === 'held' && verdict.staleInMs !== null ? Math.round(verdict.staleInMs) : null,
    deadline: record?.deadline ?? null,
    reason: reasonOf(look),
    lastRun: seen.last?.run ?? null,
    marker: 'items' in seen.marker ? seen.marker.items.map((entry) => markJson(entry, target, look)) : [],
    markerProblem: 'problem' in seen.marker ? seen.marker.problem : null,
    config: target.configPath,
  };
}

function markJson(entry: MarkerItem, target: Target, look: Look) {
  const { item, run, state, since } = entry;
  return { item, run, state, since, fresh: counts(entry, target.settings, holderIn(look), look.seen.now) };
}

/** Who has the lock, as far as marks are concerned. */
export function holderIn(look: Look): Holder | null {
  const { lock } = look.seen;
  if (lock === null) return null;
  return {
    run: recordIn(look.seen.lock)?.run ?? null,
    held: look.verdict.state === 'held',
    heartbeatAt: lock.heartbeatAt,
  };
}

function reasonOf(look: Look): string | null {
  const { verdict } = look;
  if (verdict.state === 'stale') return staleWords(verdict.reason, recordIn(look.seen.lock));
  return verdict.state === 'held' ? heldWords(verdict.reason, recordIn(look.seen.lock)) : null;
}

/** What a person is told of a lock. */
export function statusLines(target: Target, look: Look): string[] {
  const { seen, verdict } = look;
  const lines: string[] = [];
  if (verdict.state === 'free')
    lines.push(
      `free   ${seen.last === null ? `no run yet${fs.existsSync(target.dir) ? '' : ', and no such directory yet'}` : `last run ${seen.last.run}`}`,
    );
  else lines.push(...lockLines(look));
  if (seen.lock !== null && recordIn(look.seen.lock) === null)
    lines.push(`       the file: ${printable(target.dir, 4096)}/lock.json`);
  lines.push(`       ${whereWords(target)}`);
  if (verdict.state === 'held') lines.push(`       ${stopWords(look)}`);
  if ('problem' in seen.marker) {
    lines.push(
      `marked current.json can't be read (${printable(seen.marker.problem)}): the next acquire rebuilds it from the history`,
    );
  } else {
    for (const entry of seen.marker.items) lines.push(markLine(entry, target, look));
  }
  return lines;
}

function lockLines(look: Look): string[] {
  const { seen, verdict } = look;
  const record = recordIn(look.seen.lock);
  const { lock } = seen;
  if (lock === null) return [];
  const item = record?.item == null ? '' : `  ${printable(record.item)}`;
  const lines = [`${verdict.state.padEnd(5)}  run ${record?.run ?? '?'}${item}   ${describeHolder(record)}`];
  const times = [
    record?.acquiredAt == null ? '' : `since ${sinceWords(record.acquiredAt, seen.now)}`,
    `heartbeat ${formatDuration(heartbeatAge(lock, seen.now))} ago`,
    endWords(look),
  ];
  lines.push(`       ${times.filter((text) => text !== '').join(', ')}`);
  const reason = reasonOf(look);
  if (verdict.state === 'stale') lines.push(`       the next acquire takes over: ${reason}`);
  else if (reason !== null) lines.push(`       ${reason}`);
  return lines;
}

function describeHolder(record: LockRecord | null): string {
  const words = holderWords(record);
  if (record === null) return words;
  const by =
    record.command !== null && record.startedBy ? `, started by ${printable(record.startedBy, 80)}` : '';
  return `${words}${by}${record.host === null ? '' : ` on ${printable(record.host, 80)}`}`;
}

function sinceWords(iso: string, now: number): string {
  const at = Date.parse(iso);
  return `${localTime(at, now)} (${formatDuration(Math.max(0, now - at))})`;
}

/** When the lock ends by itself, if by anything. */
function endWords(look: Look): string {
  const { verdict, seen } = look;
  const deadline = recordIn(look.seen.lock)?.deadline ?? null;
  if (verdict.state !== 'held') return '';
  if (deadline !== null) return `ends by its time limit at ${localTime(Date.parse(deadline), seen.now)}`;
  if (verdict.staleInMs === null) return 'no time limit';
  return `goes stale in ${formatDuration(verdict.staleInMs)} without a heartbeat`;
}

function whereWords(target: Target): string {
  const lock = target.name === 'default' ? 'default lock' : `lock ${printable(target.name)}`;
  const config =
    target.configPath === null ? 'no configuration' : `configuration ${printable(target.configPath, 4096)}`;
  return `${printable(target.dir, 4096)}  (${lock}, ${config})`;
}

/** What to type to stop the holder. A number is only offered for a process that was seen alive. */
function stopWords(look: Look): string {
  const record = recordIn(look.seen.lock);
  const { verdict, evidence } = look;
  if (record === null || verdict.state !== 'held') {
    return 'it is taken over when it is old enough, or move the file away after a look at it';
  }
  if (verdict.reason.type === 'otherMachine') {
    return `to stop it: on ${printable(record.host ?? 'the machine that took it')}, kill ${record.pid ?? record.commandPid ?? 'it'}`;
  }
  const free = 'the lock is free when it has ended';
  const fork = record.forks.find((_, index) => evidence.forks[index] === 'alive');
  if (record.live && record.pid !== null && evidence.holder === 'alive') {
    const itself =
      process.platform === 'win32' ? free : 'it frees the lock by itself, when what it started has ended';
    return `to stop it: ${killWords(record.pid)} (${itself})`;
  }
  if (record.live && record.commandPid !== null && evidence.command === 'alive') {
    return `to stop it: ${killWords(record.commandPid)} (its supervisor is gone; ${free})`;
  }
  if (record.pid !== null && evidence.holder === 'alive')
    return `to stop it: ${killWords(record.pid)} (${free})`;
  if (fork !== undefined) return `to stop it: ${killWords(fork.pid)} (${free})`;
  if (record.pid === null && record.caller === null)
    return 'to end it: runlock release --token with the ID it was taken with';
  return 'to stop it: end what is left of it; else it is taken over when the hold is over';
}

/** On Windows nothing asks a process to end: it is ended, and what it started with it. */
function killWords(pid: number): string {
  return process.platform === 'win32' ? `taskkill /f /t /pid ${pid}` : `kill ${pid}`;
}

function markLine(entry: MarkerItem, target: Target, look: Look): string {
  const { now } = look.seen;
  const holder = holderIn(look);
  const item = printable(entry.item, 80);
  const running = entry.state === 'running' && holder?.held === true && holder.run === entry.run;
  if (running) return `marked ${item}   in progress, run ${entry.run}`;
  const until = countsUntil(entry, target.settings, holder);
  const state = entry.state === 'unknown' ? 'unknown' : 'in progress when its run ended';
  const end =
    until === Number.POSITIVE_INFINITY
      ? 'counts until it is settled'
      : now <= until
        ? `counts until ${localTime(until, now)}`
        : `no longer counts since ${localTime(until, now)}`;
  const settle = settleWords(entry.item);
  return `marked ${item}   ${state} since ${localTime(Date.parse(entry.since), now)}, run ${entry.run}; ${end}, or: ${settle}`;
}

/** How to settle an item, to be pasted into a shell as it is; one that can't be shown whole is not offered. */
function settleWords(item: string): string {
  const choice = '--done | --not-done';
  if (printable(item, 80) !== item) return `runlock settle ITEM ${choice}`;
  const word = /^[\w@%+=:,./-]+$/.test(item) ? item : `'${item.replaceAll("'", "'\\''")}'`;
  return item.startsWith('-') ? `runlock settle ${choice} -- ${word}` : `runlock settle ${word} ${choice}`;
}

/** The one line that says why a run is skipped. */
export function heldLine(target: Target, look: Look): string {
  return `${heldReason(look)} in ${printable(target.dir, 4096)}`;
}

/** The same for the history of the lock, which need not say where it is. */
export function heldReason(look: Look): string {
  const { lock, now } = look.seen;
  const reason = reasonOf(look);
  const words = lock === null ? '' : heldByWords(lock, now);
  return `held by ${words}${reason === null ? '' : ` (${reason})`}`;
}

export function errorJson(error: RunlockError) {
  return { error: { code: error.code, message: error.message, path: error.path ?? null } };
}
