import { beforeEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { runsOf } from '../../src/history.ts';
import { type Acquired, type Closed, Lock, type Look, type Permission } from '../../src/lock.ts';
import type { Store } from '../../src/store.ts';
import { hashToken } from '../../src/token.ts';
import { candidate, claimOf, FakeMachine } from './fakes.ts';

/** One lock, and any number of clients of it. */
export interface StoreFixture {
  open(): Store;
  /** Lets time pass on the store's clock, ms. */
  pass(ms: number): void;
}

const HOUR = 3_600_000;

/** What every store must keep. Each store's test calls this with a way to make a fresh lock. */
export function storeContract(name: string, make: () => StoreFixture): void {
  describe(`${name}: what every store keeps`, () => {
    let machine: FakeMachine;
    let fixture: StoreFixture;
    const open = () => new Lock(fixture.open(), machine, systemClock);
    const script = (pid: number) => machine.start(pid);

    beforeEach(() => {
      machine = new FakeMachine();
      fixture = make();
    });

    const acquired = (got: Acquired) => {
      if (got.outcome !== 'acquired') throw new Error(`expected the lock, got ${got.outcome}`);
      return got;
    };
    const outcomes = async () =>
      runsOf((await open().store.events()).events).map((run) => [run.run, run.outcome]);
    const marks = async () => {
      const { marker } = (await open().look()).seen;
      if ('problem' in marker) throw new Error(marker.problem);
      return marker.items.map((entry) => [entry.item, entry.run, entry.state]);
    };

    test('of ten contenders for a free lock exactly one wins', async () => {
      const got = await Promise.all(
        Array.from({ length: 10 }, (_, n) => open().acquire(candidate(script(100 + n)))),
      );
      expect(got.filter((one) => one.outcome === 'acquired')).toHaveLength(1);
      expect(got.filter((one) => one.outcome === 'held')).toHaveLength(9);
    });

    test('of ten contenders for a stale lock exactly one wins', async () => {
      const first = script(1);
      await open().acquire(candidate(first, { item: 'ep-1' }));
      machine.kill(first);
      const got = await Promise.all(
        Array.from({ length: 10 }, (_, n) => open().acquire(candidate(script(100 + n)))),
      );
      expect(got.filter((one) => one.outcome === 'acquired')).toHaveLength(1);
      expect((await outcomes())[0]).toEqual([1, 'interrupted']);
    });

    test('run numbers rise, whatever way a run ends', async () => {
      const numbers: number[] = [];
      for (const end of ['finish', 'release', 'cancel', 'die', 'finish'] as const) {
        const me = script(200 + numbers.length);
        const lock = open();
        const got = acquired(await lock.acquire(candidate(me)));
        numbers.push(got.run);
        if (end === 'finish') await lock.finish(claimOf(me), null, null, 'finished');
        if (end === 'release') await lock.release(claimOf(me), null, false);
        if (end === 'cancel') await lock.cancel(got.record, 'error', 'not found', 127);
        if (end === 'die') machine.kill(me);
      }
      expect(numbers).toEqual([1, 2, 3, 4, 5]);
    });

    test('a lock whose heartbeat is older than the hold is taken over though its holder lives', async () => {
      await open().acquire(candidate(script(1)));
      fixture.pass(HOUR);
      expect(acquired(await open().acquire(candidate(script(2)))).tookOver).toMatchObject({ run: 1 });
    });

    test('a heartbeat keeps the lock', async () => {
      const me = script(1);
      const lock = open();
      await lock.acquire(candidate(me));
      for (let n = 0; n < 3; n += 1) {
        fixture.pass(HOUR / 2);
        expect((await lock.hb(claimOf(me), null)).outcome).toBe('ok');
      }
      expect((await open().acquire(candidate(script(2)))).outcome).toBe('held');
    });

    test('a late heartbeat cannot revive a lost lock, nor refresh the successor', async () => {
      const old = script(1);
      const oldLock = open();
      await oldLock.acquire(candidate(old));
      fixture.pass(HOUR);
      await open().acquire(candidate(script(2)));
      const before = (await open().look()).seen.lock;
      expect((await oldLock.hb(claimOf(old), null)).outcome).toBe('notYours');
      expect((await oldLock.hb(claimOf(old), 1)).outcome).toBe('lost');
      expect((await open().look()).seen.lock).toEqual(before);
    });

    test('nobody keeps the lock of a dead holder alive, not even with its token', async () => {
      const dead = script(1);
      await open().acquire(candidate(dead));
      machine.kill(dead);
      const claim = claimOf(script(2), hashToken('token-1'));
      expect((await open().hb(claim, null)).outcome).toBe('lost');
    });

    test('a stranger can neither finish nor release, and is told whose the lock is', async () => {
      await open().acquire(candidate(script(1), { item: 'ep-1' }));
      const stranger = claimOf(script(2));
      expect((await open().finish(stranger, null, null, 'finished')).outcome).toBe('notYours');
      expect(await open().release(stranger, null, false)).toMatchObject({ outcome: 'notYours', run: 1 });
      expect((await open().look()).verdict.state).toBe('held');
      expect(await marks()).toEqual([['ep-1', 1, 'running']]);
    });

    test('the token is as good as being the holder', async () => {
      await open().acquire(candidate(script(1), { pid: null }, 'build-7'));
      const claim = claimOf(script(2), hashToken('build-7'));
      expect((await open().hb(claim, null)).outcome).toBe('ok');
      expect((await open().finish(claim, null, '{"a":1}', 'finished')).outcome).toBe('ok');
      expect((await open().look()).verdict.state).toBe('free');
    });

    test('the token of the last run is refused, while it holds and after', async () => {
      const hook = { ...candidate(script(1), { pid: null }, 'same'), chosenToken: true };
      await open().acquire(hook);
      await expect(open().acquire(hook)).rejects.toMatchObject({ code: 'usage' });
      await open().release(claimOf(script(1), hashToken('same')), null, true);
      await expect(open().acquire(hook)).rejects.toMatchObject({ code: 'usage' });
    });

    test('finish settles the item, release leaves it unknown, release --settled takes the mark back', async () => {
      const me = script(1);
      const lock = open();
      await lock.acquire(candidate(me, { item: 'a' }));
      await lock.finish(claimOf(me), null, null, 'finished');
      expect(await marks()).toEqual([]);
      await lock.acquire(candidate(me, { item: 'b' }));
      await lock.release(claimOf(me), null, false);
      expect(await marks()).toEqual([['b', 2, 'unknown']]);
      await lock.acquire(candidate(me, { item: 'b' }));
      await lock.release(claimOf(me), null, true);
      expect(await marks()).toEqual([['b', 2, 'unknown']]);
      expect(await outcomes()).toEqual([
        [1, 'finished'],
        [2, 'released'],
        [3, 'released'],
      ]);
    });

    test('the item of an interrupted run stays marked until it is settled', async () => {
      const dead = script(1);
      await open().acquire(candidate(dead, { item: 'ep-1' }));
      machine.kill(dead);
      await open().acquire(candidate(script(2), { item: 'ep-2' }));
      expect(await marks()).toEqual([
        ['ep-1', 1, 'unknown'],
        ['ep-2', 2, 'running'],
      ]);
      expect((await open().settle('ep-2', null)).outcome).toBe('held');
      expect(await open().settle('ep-1', 'done')).toMatchObject({ outcome: 'settled', runs: [1] });
      expect((await open().settle('ep-1', null)).outcome).toBe('absent');
      expect(await marks()).toEqual([['ep-2', 2, 'running']]);
    });

    test('a former holder that comes back keeps its result, once, and frees nothing', async () => {
      const old = script(1);
      const oldLock = open();
      await oldLock.acquire(candidate(old, { item: 'ep-1' }));
      fixture.pass(HOUR);
      await open().acquire(candidate(script(2)));
      expect(await oldLock.finish(claimOf(old), null, '{"a":1}', 'finished')).toMatchObject({
        outcome: 'lost',
        run: 1,
      });
      expect((await oldLock.release(claimOf(old), 1, false)).outcome).toBe('lost');
      const look = await open().look();
      expect(look.verdict.state).toBe('held');
      expect(look.seen.last?.run).toBe(2);
      const late = async () =>
        (await open().store.events()).events.filter((event) => event.event === 'late').length;
      expect(await late()).toBe(1);
      await oldLock.finish(claimOf(old), null, '{"a":2}', 'failed');
      expect(await late()).toBe(1);
    });

    test("a run that is not the lock's any more is told how it ended", async () => {
      const me = script(1);
      const lock = open();
      await lock.acquire(candidate(me));
      await lock.finish(claimOf(me), null, null, 'finished');
      expect((await lock.finish(claimOf(me), null, null, 'finished')).outcome).toBe('none');
      expect((await lock.finish(claimOf(me), 1, null, 'finished')).outcome).toBe('ok');
      await expect(lock.release(claimOf(me), 2, false)).rejects.toMatchObject({ code: 'usage' });
    });

    test('looking changes nothing', async () => {
      await open().acquire(candidate(script(1), { item: 'ep-1' }));
      const one = await open().look();
      const two = await open().look();
      expect({ ...two.seen, now: 0 }).toEqual({ ...one.seen, now: 0 });
    });

    describe('with a supervised run', () => {
      const live = { live: true, item: 'ep-1' };

      test('the lock is held while the tie holds, though no heartbeat came', async () => {
        const supervisor = script(1);
        const store = fixture.open();
        await new Lock(store, machine, systemClock).acquire(candidate(supervisor, live));
        fixture.pass(24 * HOUR);
        expect((await open().look()).verdict.state).toBe('held');
        machine.kill(supervisor);
        store.letGo();
        expect((await open().look()).verdict.state).toBe('stale');
      });

      test('release from inside changes nothing, finish hands in, and the supervisor ends the run', async () => {
        const supervisor = script(1);
        const lock = open();
        const { record } = acquired(await lock.acquire(candidate(supervisor, live)));
        const inside = claimOf(script(2), record.tokenHash);
        expect((await open().release(inside, 1, false)).outcome).toBe('ok');
        expect(await open().finish(inside, 1, '{"a":1}', 'failed')).toMatchObject({
          outcome: 'ok',
          handedIn: true,
        });
        expect((await open().look()).verdict.state).toBe('held');
        const { ended } = await lock.endRun(record, {
          outcome: 'finished',
          exitCode: 0,
          reason: null,
          settled: true,
        });
        expect(ended.outcome).toBe('failed');
        expect((await open().look()).verdict.state).toBe('free');
        expect(await marks()).toEqual([]);
      });

      test('what a killed run had handed in becomes its record, and it is not called interrupted', async () => {
        const supervisor = script(1);
        const store = fixture.open();
        const { record } = acquired(
          await new Lock(store, machine, systemClock).acquire(candidate(supervisor, live)),
        );
        await open().finish(claimOf(script(2), record.tokenHash), 1, '{"a":1}', 'finished');
        machine.kill(supervisor);
        store.letGo();
        acquired(await open().acquire(candidate(script(3))));
        expect((await outcomes())[0]).toEqual([1, 'finished']);
        expect(await marks()).toEqual([]);
      });

      test('a beat of the supervisor is good until another run has the lock', async () => {
        const supervisor = script(1);
        const store = fixture.open();
        const lock = new Lock(store, machine, systemClock);
        const { record } = acquired(await lock.acquire(candidate(supervisor, live)));
        expect(await lock.beatRun(record)).toBe(true);
        machine.kill(supervisor);
        store.letGo();
        await open().acquire(candidate(script(2)));
        expect(await lock.beatRun(record)).toBe(false);
      });

      test('a ping is seen by the watchdog', async () => {
        const lock = open();
        const { record } = acquired(await lock.acquire(candidate(script(1), live)));
        await lock.store.watch(1);
        const before = await lock.store.lastPing(1);
        await open().hb(claimOf(script(2), record.tokenHash), 1);
        expect(await lock.store.lastPing(1)).not.toBe(before);
      });
    });

    describe('what is asked under the lock', () => {
      const permit = (item: string): Permission => ({ open: true, item, gates: [], clear: null });
      const closed: Closed = {
        open: false,
        code: 5,
        reason: 'quota:q: 1 of 1 used',
        gates: [{ gate: 'quota:q', open: false, code: 5, reason: '1 of 1 used', count: 1, limit: 1 }],
      };
      const asking = (pid: number, answer: (look: Look) => Promise<Permission>, asker = script(99)) => ({
        ...candidate(script(pid)),
        ask: { asker, permit: answer },
      });
      const state = async () => (await open().look()).verdict.state;

      test('the item is chosen there, and the holder has the lock then', async () => {
        const one = await open().acquire(asking(1, async () => permit('ep-9')));
        expect(acquired(one).record).toMatchObject({ item: 'ep-9', pid: 1 });
        expect(await marks()).toEqual([['ep-9', 1, 'running']]);
        expect(await open().release(claimOf(script(1)), null, true)).toMatchObject({ outcome: 'ok' });
      });

      test('a closed gate frees the lock again, marks nothing, and is in the history with its figures', async () => {
        const none = await open().acquire(asking(1, async () => closed));
        expect(none).toMatchObject({ outcome: 'closed', run: 1, closed: { code: 5 } });
        expect(await state()).toBe('free');
        expect(await marks()).toEqual([]);
        const [row] = runsOf((await open().store.events()).events);
        expect(row).toMatchObject({ run: 1, outcome: 'skipped', gates: [{ gate: 'quota:q', count: 1 }] });
      });

      test('the lock is held while it is asked, and nothing is marked yet', async () => {
        let seen: unknown = null;
        await open().acquire(
          asking(1, async (look) => {
            seen = [look.verdict.state, await marks(), await open().acquire(candidate(script(2)))];
            return permit('ep-9');
          }),
        );
        expect(seen).toMatchObject(['held', [], { outcome: 'held' }]);
      });

      test('a failure while it is asked frees the lock again', async () => {
        const failing = asking(1, async () => Promise.reject(new Error('no disk')));
        await expect(open().acquire(failing)).rejects.toThrow('no disk');
        expect(await state()).toBe('free');
        expect(await outcomes()).toEqual([[1, 'error']]);
      });

      test('what can not be undone comes after all else, and may still close', async () => {
        const got = await open().acquire(
          asking(1, async () => ({ ...permit('ep-9'), clear: async () => closed })),
        );
        expect(got).toMatchObject({ outcome: 'closed' });
        expect(await state()).toBe('free');
        expect(await marks()).toEqual([]);
      });

      test('an asker that was killed leaves the lock to the next, though the holder to be lives', async () => {
        const asker = script(99);
        let cleared = false;
        const clear = async () => {
          cleared = true;
          return null;
        };
        const got = await open().acquire(
          asking(
            1,
            async () => {
              machine.kill(asker);
              const next = await open().acquire(candidate(script(2)));
              expect(next).toMatchObject({ outcome: 'acquired', tookOver: { run: 1 } });
              return { ...permit('ep-9'), clear };
            },
            asker,
          ),
        );
        // And should it not be dead after all, it has begun nothing.
        expect(got).toMatchObject({ outcome: 'held' });
        expect(cleared).toBe(false);
        expect(await marks()).toEqual([]);
      });

      test('a run whose lock was taken over in its last step before it begins does not begin', async () => {
        const asker = script(99);
        const clear = async () => {
          machine.kill(asker);
          await open().acquire(candidate(script(2), { item: 'ep-2' }));
          return null;
        };
        const got = await open().acquire(asking(1, async () => ({ ...permit('ep-9'), clear }), asker));
        expect(got).toMatchObject({ outcome: 'held' });
        expect(await marks()).toEqual([['ep-2', 2, 'running']]);
      });
    });
  });
}
