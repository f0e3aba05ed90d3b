import { formatDuration } from './clock.ts';
import { printable } from './printable.ts';
import type { LockRecord } from './record.ts';
import { type HeldReason, heartbeatAge, type LockSight, type StaleReason } from './rules.ts';

/*
 * Facts in words, for people: on the terminal, and as the reason in the history. Whatever came from elsewhere goes
 * through printable().
 */

/** Why a lock may be taken over: `no heartbeat for 52 min`. */
export function staleWords(reason: StaleReason, record: LockRecord | null): string {
  switch (reason.type) {
    case 'ended':
      return 'its run has ended';
    case 'noHeartbeat':
      return `no heartbeat for ${formatDuration(reason.ageMs)}`;
    case 'restarted':
      return 'the machine restarted';
    case 'runGone':
      return 'its supervisor and its command are gone';
    case 'holderGone':
      return `${holderWords(record)} ${goneWords(reason.how)}`;
    case 'unreadable':
      return `its content is no lock (${printable(reason.problem)}), and it is ${formatDuration(reason.ageMs)} old`;
  }
}

function goneWords(how: 'gone' | 'zombie' | 'thread' | 'reused'): string {
  switch (how) {
    case 'gone':
      return 'is gone';
    case 'zombie':
      return 'has ended';
    case 'thread':
      return 'is gone, its number is a thread of something else now';
    case 'reused':
      return 'is gone, its number is in use by another process now';
  }
}

/** Why a lock counts as held although its holder was not simply seen alive; null where it was. */
export function heldWords(reason: HeldReason, record: LockRecord | null): string | null {
  switch (reason.type) {
    case 'holderLives':
      return null;
    case 'orphan':
      return 'its supervisor is gone, the command is not';
    case 'leftovers':
      return 'its supervisor and its command are gone, something they started is not';
    case 'otherMachine':
      return otherWords(reason.what, record);
    case 'noPid':
      return 'the heartbeat alone decides';
    case 'unsure':
      return 'whether the holder still works can not be told from here';
    case 'survivors':
      return `${holderWords(record)} is gone, ${reason.names.map((name) => printable(name)).join(', ')} ${reason.names.length === 1 ? 'is' : 'are'} not`;
    case 'unreadable':
      return `its content is no lock (${printable(reason.problem)})`;
  }
}

function otherWords(what: 'platform' | 'host' | 'pidNamespace' | 'boot', record: LockRecord | null): string {
  switch (what) {
    case 'platform':
      return `it was taken on ${printable(record?.platform ?? 'another system')}, where processes can't be seen from here`;
    case 'host':
      return `it was taken on ${printable(record?.host ?? 'another host')}, where processes can't be seen from here`;
    case 'pidNamespace':
      return 'it was taken in another container, where processes can not be seen from here';
    case 'boot':
      return 'it was taken on another machine of this name';
  }
}

/** The holder in words: `bash ./publish.sh (pid 4121)`, `node publish.js (pid 4122)`. */
export function holderWords(record: LockRecord | null): string {
  if (record === null) return 'an unknown holder';
  if (record.command !== null) {
    const command = commandWords(record.command);
    if (record.commandPid !== null) return `${command} (pid ${record.commandPid})`;
    return `${command} (not started yet, runlock has pid ${record.pid})`;
  }
  const name = printable(record.startedBy ?? '', 80);
  if (record.pid !== null) return name === '' ? `pid ${record.pid}` : `${name} (pid ${record.pid})`;
  return name === '' ? 'a holder without a process' : `${name} (no pid)`;
}

/**
 * A command line, short: the program and what it runs. Further arguments may hold secrets, and these words go into
 * messages and the history.
 */
function commandWords([program = '', operand, ...rest]: readonly string[]): string {
  const safe = operand !== undefined && (operand === '-c' || !operand.startsWith('-'));
  const shown = safe ? [program, operand] : [program];
  const more = rest.length > 0 || (operand !== undefined && shown.length === 1);
  return printable(`${shown.join(' ')}${more ? ' …' : ''}`, 60);
}

/** One line on who holds a lock: run, item, holder, since when, heartbeat. */
export function heldByWords(sight: LockSight, now: number): string {
  const record = 'record' in sight.content ? sight.content.record : null;
  const parts = [
    `run ${record?.run ?? '?'}${record?.item === null || record === null ? '' : ` (${printable(record.item, 60)})`}: ${holderWords(record)}`,
    sinceWords(record, now),
    `heartbeat ${formatDuration(heartbeatAge(sight, now))} ago`,
  ];
  return parts.filter((part) => part !== '').join(', ');
}

function sinceWords(record: LockRecord | null, now: number): string {
  if (record?.acquiredAt == null) return '';
  const at = Date.parse(record.acquiredAt);
  return `since ${localTime(at, now)} (${formatDuration(Math.max(0, now - at))})`;
}

/** A time of day in the looker's zone; with the date where it is not today's. */
export function localTime(at: number, now: number): string {
  const time = new Date(at);
  const pad = (value: number) => String(value).padStart(2, '0');
  const clock = `${pad(time.getHours())}:${pad(time.getMinutes())}:${pad(time.getSeconds())}`;
  const day = `${time.getFullYear()}-${pad(time.getMonth() + 1)}-${pad(time.getDate())}`;
  return new Date(now).toDateString() === time.toDateString() ? clock : `${day} ${clock}`;
}
