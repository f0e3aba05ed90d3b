import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { DEFAULT_HOLD_MS, type LockRecord, type ProcessRef } from '../src/record.ts';
import {
  type Claim,
  type Evidence,
  type Here,
  isHolder,
  isWithin,
  judge,
  type Liveness,
  type LockSight,
  showsToken,
} from '../src/rules.ts';
import { makeRecord } from './records.ts';

const NOW = Date.parse('2026-11-30T12:00:00Z');
const HERE: Here = {
  platform: 'linux',
  host: 'ci-7',
  bootId: 'boot-a',
  pidNamespace: 'pid:[1]',
  bootedAt: NOW - 10 * 3_600_000,
};
const OVER: readonly Liveness[] = ['gone', 'zombie', 'thread', 'reused'];

const local = makeRecord({ ...HERE, pid: 4121, pidStarted: '84' });

function sightOf(record: LockRecord, ageMs: number, over: Partial<LockSight> = {}): LockSight {
  return { content: { record }, heartbeatAt: NOW - ageMs, source: 'lock', ended: false, ...over };
}

function evidence(over: Partial<Evidence> = {}): Evidence {
  return {
    here: HERE,
    holder: 'alive',
    forks: [],
    command: 'gone',
    liveFile: 'unknown',
    survivors: [],
    ...over,
  };
}

const state = (record: LockRecord, ageMs: number, over: Partial<Evidence> = {}) =>
  judge(sightOf(record, ageMs), evidence(over), NOW).state;

// Everything a lock and its surroundings may look like.
const liveness = fc.constantFrom<Liveness>('alive', 'gone', 'zombie', 'thread', 'reused', 'unsure');
const anyEvidence: fc.Arbitrary<Evidence> = fc.record({
  here: fc.constant(HERE),
  holder: liveness,
  forks: fc.array(liveness, { maxLength: 2 }),
  command: liveness,
  liveFile: fc.constantFrom('locked' as const, 'unlocked' as const, 'unknown' as const),
  survivors: fc.constantFrom([], ['node publish.js (pid 4130)']),
});
const anyRecord: fc.Arbitrary<LockRecord> = fc
  .record({
    pid: fc.option(fc.integer({ min: 1, max: 2 ** 31 - 1 })),
    platform: fc.constantFrom(null, 'linux', 'win32'),
    host: fc.constantFrom(null, 'ci-7', 'ci-8'),
    bootId: fc.constantFrom(null, 'boot-a', 'boot-b'),
    pidNamespace: fc.constantFrom(null, 'pid:[1]', 'pid:[2]'),
    commandPid: fc.option(fc.integer({ min: 1, max: 2 ** 31 - 1 })),
    holdMs: fc.oneof(fc.constant(null), fc.integer({ min: 1, max: 10 * 3_600_000 })),
    live: fc.boolean(),
  })
  .map((fields) => makeRecord({ ...fields, pidStarted: '84', commandPidStarted: '85' }));
const anyAge = fc.integer({ min: -24 * 3_600_000, max: 24 * 3_600_000 });

describe('a doubt is never free', () => {
  test('a lock that stands there is held or stale, never just free', () => {
    fc.assert(
      fc.property(anyRecord, anyAge, anyEvidence, (record, age, seen) => {
        expect(judge(sightOf(record, age), seen, NOW).state).not.toBe('free');
      }),
    );
  });

  test('within its hold a lock is stale only if every process it names is known to be over, or the machine restarted', () => {
    fc.assert(
      fc.property(anyRecord, anyAge, anyEvidence, (record, age, seen) => {
        fc.pre(record.holdMs === null || age <= record.holdMs);
        const verdict = judge(sightOf(record, age), seen, NOW);
        if (verdict.state !== 'stale') return;
        if (verdict.reason.type === 'restarted') {
          expect(record.bootId).toBe('boot-b');
          expect(NOW - Math.max(0, age)).toBeLessThan(HERE.bootedAt);
          return;
        }
        const otherNamespace = record.pidNamespace === 'pid:[2]';
        if (record.live && record.bootId !== 'boot-b' && otherNamespace) {
          expect(seen.liveFile).toBe('unlocked');
          return;
        }
        expect(OVER).toContain(seen.holder);
        expect(seen.survivors).toEqual([]);
        if (!record.live) for (const fork of seen.forks) expect(OVER).toContain(fork);
        if (record.live && record.bootId === 'boot-a' && record.commandPid !== null)
          expect(OVER).toContain(seen.command);
      }),
    );
  });

  test('a live supervisor or command on this machine holds, whatever the clock says', () => {
    fc.assert(
      fc.property(anyRecord, anyAge, anyEvidence, fc.boolean(), (record, age, seen, orphan) => {
        const here = { ...record, live: true, bootId: 'boot-a', pidNamespace: 'pid:[1]', commandPid: 4122 };
        const lives = orphan ? { ...seen, command: 'alive' as const } : { ...seen, holder: 'alive' as const };
        expect(judge(sightOf(here, age), lives, NOW)).toMatchObject({ state: 'held', staleInMs: null });
      }),
    );
  });

  test('what is held with a bound is stale right after it, and not before', () => {
    fc.assert(
      fc.property(anyRecord, anyAge, anyEvidence, (record, age, seen) => {
        const sight = sightOf(record, age);
        const verdict = judge(sight, seen, NOW);
        fc.pre(verdict.state === 'held' && verdict.staleInMs !== null);
        if (verdict.state !== 'held' || verdict.staleInMs === null) return;
        // A heartbeat from the future stands still until its time has come.
        const from = Math.max(NOW, sight.heartbeatAt);
        expect(judge(sight, seen, from + verdict.staleInMs).state).toBe('held');
        expect(judge(sight, seen, from + verdict.staleInMs + 1).state).toBe('stale');
      }),
    );
  });
});

describe('the hold', () => {
  test('45 minutes are still held, a millisecond more is not, even if the process lives', () => {
    expect(state(local, DEFAULT_HOLD_MS)).toBe('held');
    expect(state(local, DEFAULT_HOLD_MS + 1)).toBe('stale');
  });

  test('the holder chooses it, and it binds who reads', () => {
    expect(state({ ...local, holdMs: 1_000 }, 1_001)).toBe('stale');
    expect(state({ ...local, holdMs: null }, 365 * 86_400_000)).toBe('held');
  });

  test('a heartbeat from the future counts as now', () => {
    expect(state(local, -86_400_000)).toBe('held');
    expect(judge(sightOf(local, -86_400_000), evidence(), NOW)).toMatchObject({ staleInMs: DEFAULT_HOLD_MS });
  });

  test('unreadable content is held until its own time has passed', () => {
    const sight = (age: number): LockSight => ({
      content: { problem: 'it is empty' },
      heartbeatAt: NOW - age,
      source: 'lock',
      ended: false,
    });
    expect(judge(sight(DEFAULT_HOLD_MS), evidence(), NOW).state).toBe('held');
    expect(judge(sight(DEFAULT_HOLD_MS + 1), evidence(), NOW).state).toBe('stale');
  });
});

describe('the holder', () => {
  test.each(OVER)('one that is %s leaves a stale lock at once', (holder) => {
    expect(state(local, 0, { holder })).toBe('stale');
  });

  test('one that may be another process holds until the hold ends', () => {
    expect(state(local, 0, { holder: 'unsure' })).toBe('held');
    expect(state(local, DEFAULT_HOLD_MS + 1, { holder: 'unsure' })).toBe('stale');
  });

  test('a forked copy of the shell that lives on holds for it', () => {
    const forked = { ...local, forks: [{ pid: 4125, started: '90' }] };
    expect(state(forked, 0, { holder: 'gone', forks: ['alive'] })).toBe('held');
    expect(state(forked, 0, { holder: 'gone', forks: ['gone'] })).toBe('stale');
  });

  test('others of its group hold until the hold ends, and are named', () => {
    const verdict = judge(
      sightOf(local, 0),
      evidence({ holder: 'gone', survivors: ['node x (pid 2)'] }),
      NOW,
    );
    expect(verdict).toMatchObject({
      state: 'held',
      reason: { type: 'survivors', names: ['node x (pid 2)'] },
    });
    expect(state(local, DEFAULT_HOLD_MS + 1, { holder: 'gone', survivors: ['node x (pid 2)'] })).toBe(
      'stale',
    );
  });

  test('without a pid the heartbeat alone decides', () => {
    expect(state({ ...local, pid: null }, 0, { holder: 'gone' })).toBe('held');
  });
});

describe('other machines', () => {
  test.each([
    ['platform', { platform: 'win32', bootId: null }],
    ['host', { host: 'ci-8', bootId: 'boot-c' }],
    ['pid namespace', { pidNamespace: 'pid:[2]' }],
  ])('of another %s a dead pid says nothing', (_, fields) => {
    expect(state({ ...local, ...fields }, 0, { holder: 'gone' })).toBe('held');
    expect(state({ ...local, ...fields }, DEFAULT_HOLD_MS + 1)).toBe('stale');
  });

  test('the same boot is the same machine, whatever the host is called', () => {
    expect(state({ ...local, host: 'renamed' }, 0, { holder: 'gone' })).toBe('stale');
  });

  test('a lock from before this boot is stale, one from another machine of this name is not', () => {
    const never = { ...local, bootId: 'boot-b', holdMs: null };
    expect(state(never, 11 * 3_600_000)).toBe('stale');
    expect(state(never, 9 * 3_600_000, { holder: 'gone' })).toBe('held');
  });
});

describe('a run', () => {
  const run = { ...local, live: true, commandPid: 4122, commandPidStarted: '85' };
  const dead = { holder: 'gone', command: 'gone' } as const;

  test('whose processes are gone and whose live file is free is over at once', () => {
    expect(state(run, 0, { ...dead, liveFile: 'unlocked' })).toBe('stale');
  });

  test('of which only leftovers have the live file is held as long as the hold, no longer', () => {
    expect(state(run, 0, { ...dead, liveFile: 'locked' })).toBe('held');
    expect(state(run, DEFAULT_HOLD_MS + 1, { ...dead, liveFile: 'locked' })).toBe('stale');
  });

  test('a live file that can not be opened says nothing', () => {
    expect(state(run, 0, { ...dead, liveFile: 'unknown' })).toBe('stale');
    expect(state(run, 0, { ...dead, command: 'alive', liveFile: 'unknown' })).toBe('held');
  });

  test('in another pid namespace is told by the kernel lock alone', () => {
    const inside = { ...run, pidNamespace: 'pid:[2]' };
    expect(state(inside, DEFAULT_HOLD_MS + 1, { ...dead, liveFile: 'locked' })).toBe('held');
    expect(state(inside, 0, { holder: 'alive', liveFile: 'unlocked' })).toBe('stale');
  });

  test('killed before it could write down its command is held as long as something of it may work', () => {
    const killed = { ...run, commandPid: null };
    const seen = (command: Liveness) =>
      state(killed, DEFAULT_HOLD_MS + 1, { holder: 'gone', liveFile: 'locked', command });
    expect(seen('alive')).toBe('held');
    expect(seen('unsure')).toBe('held');
    expect(seen('gone')).toBe('stale');
  });

  test('that has ended is stale whatever else is seen', () => {
    expect(judge(sightOf(run, 0, { ended: true }), evidence(), NOW)).toMatchObject({
      state: 'stale',
      reason: { type: 'ended' },
    });
  });
});

describe('whose it is', () => {
  const shell: ProcessRef = { pid: 4121, started: '84' };
  const copy: ProcessRef = { pid: 4125, started: '90' };
  const claim = (over: Partial<Claim>): Claim => ({ tokenHash: null, caller: [], ancestors: [], ...over });

  test('only the token of this very run counts', () => {
    const record = { ...local, tokenHash: 'a'.repeat(64) };
    expect(showsToken(record, claim({ tokenHash: 'a'.repeat(64) }))).toBe(true);
    expect(showsToken(record, claim({ tokenHash: 'b'.repeat(64) }))).toBe(false);
    expect(showsToken({ ...record, tokenHash: null }, claim({ tokenHash: null }))).toBe(false);
  });

  test('the holder itself may free it, a script it started may only beat', () => {
    const child = claim({
      caller: [{ pid: 5000, started: '1' }],
      ancestors: [{ pid: 5000, started: '1' }, shell],
    });
    expect(isHolder(local, evidence(), claim({ caller: [shell] }))).toBe(true);
    expect(isHolder(local, evidence(), child)).toBe(false);
    expect(isWithin(local, evidence(), child)).toBe(true);
  });

  test('a process that has the number now but started at another time is a stranger', () => {
    expect(isHolder(local, evidence(), claim({ caller: [{ pid: 4121, started: '99' }] }))).toBe(false);
  });

  test('while a forked copy lives, only what is inside it may free the lock', () => {
    const forked = { ...local, forks: [copy] };
    const inside = claim({ caller: [copy, shell] });
    const outside = claim({ caller: [shell] });
    expect(isHolder(forked, evidence({ forks: ['alive'] }), inside)).toBe(true);
    expect(isHolder(forked, evidence({ forks: ['alive'] }), outside)).toBe(false);
    expect(isHolder(forked, evidence({ forks: ['gone'] }), outside)).toBe(true);
  });

  test('a pid from another namespace, host or boot makes nobody the holder', () => {
    for (const fields of [
      { pidNamespace: 'pid:[2]' },
      { host: 'ci-8', bootId: 'boot-c' },
      { bootId: 'boot-b' },
    ]) {
      expect(isHolder({ ...local, ...fields }, evidence(), claim({ caller: [shell] }))).toBe(false);
    }
  });
});
