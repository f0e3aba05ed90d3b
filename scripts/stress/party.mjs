// @ts-check
// One contender's way to the lock, in its own process: the real thing, or the naive one as the control.
import { loadLibrary } from './library.mjs';
import { NaiveLock } from './naive.mjs';

/**
 * @typedef {import('./processes.mjs').ProcessId} ProcessId
 * @typedef {{ algorithm: 'runlock' | 'naive', library: string, dir: string }} Place
 * @typedef {{ run: number, item: string | null }} Won
 * @typedef {{
 *   acquire(holder: ProcessId, how: { live: boolean, item: string | null }): Promise<number | string>,
 *   beat(): Promise<string>,
 *   end(how: 'finish' | 'release'): Promise<string>,
 *   letGo(): void,
 * }} Party `acquire` gives the run, or in words why not; `beat` and `end` give "ok", or in words what else
 */

/** @param {Place} place @returns {Party} */
export function joinParty(place) {
  return place.algorithm === 'naive' ? naiveParty(place) : runlockParty(place);
}

/** @param {Place} place @returns {Party} */
function runlockParty({ library, dir }) {
  const { Lock, FileStore, systemWitness, systemClock, here, hashToken, newToken } = loadLibrary(library);
  const store = new FileStore({
    base: dir,
    folder: null,
    clock: systemClock,
    singleMachine: false,
    notice() {},
  });
  const lock = new Lock(store, systemWitness, systemClock);
  /** @type {{ record: import('../../src/record.ts').LockRecord, run: number, token: string } | null} */
  let held = null;
  const mine = () => {
    if (held === null) throw new Error('this contender holds nothing');
    return held;
  };
  const claim = async () => ({ tokenHash: await hashToken(mine().token), caller: [], ancestors: [] });

  return {
    async acquire({ pid, started }, { live, item }) {
      const { platform, host, bootId, pidNamespace } = here();
      const token = await newToken();
      const record = {
        pid,
        pidStarted: started,
        item,
        live,
        job: null,
        platform,
        host,
        bootId,
        pidNamespace,
        forks: [],
        caller: null,
        startedBy: 'stress',
        session: null,
        command: live ? ['stress'] : null,
        commandPid: null,
        commandPidStarted: null,
        holdMs: 45 * 60_000,
        deadline: null,
        killAfterMs: null,
        liveIndex: null,
        handedIn: null,
      };
      const got = await lock.acquire({ record, token, chosenToken: false });
      if (got.outcome !== 'acquired') {
        return got.outcome === 'held' ? `held: ${JSON.stringify(got.look.verdict)}` : got.outcome;
      }
      held = { record: got.record, run: got.run, token };
      return got.run;
    },
    async beat() {
      const { record, run } = mine();
      if (record.live) return (await lock.beatRun(record)) ? 'ok' : 'lost';
      return (await lock.hb(await claim(), run)).outcome;
    },
    async end(how) {
      const { record, run } = mine();
      if (record.live) {
        const { ended } = await lock.endRun(record, {
          outcome: 'finished',
          exitCode: 0,
          reason: null,
          settled: true,
        });
        return ended.outcome === 'finished' ? 'ok' : ended.outcome;
      }
      const ended =
        how === 'finish'
          ? await lock.finish(await claim(), run, '{"done":true}', 'finished')
          : await lock.release(await claim(), run, false);
      return ended.outcome;
    },
    letGo: () => store.letGo(),
  };
}

/** @param {Place} place @returns {Party} */
function naiveParty({ dir }) {
  const lock = new NaiveLock(dir);
  let run = 0;
  return {
    async acquire(holder) {
      const got = lock.acquire(holder);
      if (got === null) return 'held';
      run = got;
      return run;
    },
    async beat() {
      return 'ok';
    },
    async end() {
      lock.release(run);
      return 'ok';
    },
    letGo() {},
  };
}
