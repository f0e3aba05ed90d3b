import type { Candidate, Witness } from '../../src/lock.ts';
import type { ProcessRef } from '../../src/record.ts';
import type { Claim, Evidence, Here, Liveness } from '../../src/rules.ts';
import type { Sighting } from '../../src/store.ts';
import { makeRecord } from '../records.ts';

export const HERE: Here = {
  platform: 'linux',
  host: 'ci-7',
  bootId: 'boot-a',
  pidNamespace: 'pid:[1]',
  bootedAt: 0,
};

/** A machine whose processes live and die as the test says. */
export class FakeMachine implements Witness {
  readonly #living = new Set<number>();

  start(pid: number): ProcessRef {
    this.#living.add(pid);
    return { pid, started: `start-${pid}` };
  }

  kill(process: ProcessRef): void {
    this.#living.delete(process.pid);
  }

  async gather(seen: Sighting): Promise<Evidence> {
    const record = seen.lock !== null && 'record' in seen.lock.content ? seen.lock.content.record : null;
    const sight = (pid: number | null | undefined): Liveness =>
      pid == null ? 'unsure' : this.#living.has(pid) ? 'alive' : 'gone';
    return {
      here: HERE,
      holder: sight(record?.pid),
      forks: (record?.forks ?? []).map((fork) => sight(fork.pid)),
      command: record?.commandPid == null ? 'gone' : sight(record.commandPid),
      liveFile: seen.liveFile,
      survivors: [],
    };
  }
}

/** A script that wants the lock. */
export function candidate(
  process: ProcessRef,
  fields: Partial<Candidate['record']> = {},
  token = `token-${process.pid}`,
): Candidate {
  const { version: _v, run: _r, tokenHash: _t, acquiredAt: _a, ...record } = makeRecord({ ...HERE });
  return {
    record: { ...record, pid: process.pid, pidStarted: process.started, ...fields },
    token,
    chosenToken: false,
  };
}

/** A script that asks to beat, finish or release. */
export function claimOf(process: ProcessRef, tokenHash: string | null = null): Claim {
  return { tokenHash, caller: [process], ancestors: [process] };
}
