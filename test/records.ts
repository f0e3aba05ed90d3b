import { DEFAULT_HOLD_MS, type LockRecord } from '../src/record.ts';

/** A lock record of which a test names only what matters to it. */
export function makeRecord(fields: Partial<LockRecord> & { bootedAt?: number } = {}): LockRecord {
  const { bootedAt: _, ...rest } = fields;
  return {
    version: 1,
    pid: null,
    job: null,
    item: null,
    run: 1,
    tokenHash: null,
    platform: null,
    host: null,
    bootId: null,
    pidNamespace: null,
    pidStarted: null,
    forks: [],
    caller: null,
    startedBy: null,
    session: null,
    command: null,
    commandPid: null,
    commandPidStarted: null,
    acquiredAt: null,
    holdMs: DEFAULT_HOLD_MS,
    deadline: null,
    killAfterMs: null,
    live: false,
    liveIndex: null,
    handedIn: null,
    ...rest,
  };
}
