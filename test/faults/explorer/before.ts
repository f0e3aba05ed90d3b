import { Lock } from '../../../src/lock.ts';
import { FileStore } from '../../../src/stores/file/file-store.ts';
import { candidate, FakeMachine } from '../../stores/fakes.ts';
import type { Scenario } from './scenarios.ts';

const MORNING = Date.UTC(2026, 5, 15, 11, 59);

/** Makes what stands in the state directory before a scenario begins. */
export function before(scenario: Scenario): (dir: string) => Promise<void> {
  return async (dir) => {
    if (scenario.before === 'nothing') return;
    const clock = { now: () => MORNING, monotonic: () => performance.now(), sleep: async () => {} };
    const store = new FileStore({ base: dir, folder: null, clock, singleMachine: true, notice: () => {} });
    const machine = new FakeMachine();
    const live = scenario.before === 'staleRun';
    await new Lock(store, machine, clock).acquire(candidate(machine.start(150), { item: 'ep-0', live }));
    store.letGo();
  };
}
