import { describe, expect, test } from 'vitest';
import { cutPower } from './power-cut.ts';
import { LEDGER, SCENARIOS } from './scenarios.ts';

describe('a power cut after any call, whatever of the unsynced it takes', () => {
  // A heartbeat writes nothing, and inside a `run` two commands write.
  for (const scenario of [...SCENARIOS, LEDGER].filter(
    ({ name, inside }) => name !== 'hb' && inside === undefined,
  )) {
    test(`${scenario.name}: the next command goes on, and what was answered with success is there`, async () => {
      const { states, wrong } = await cutPower(scenario);
      console.log(`${states} states left by power cuts: ${scenario.name}`);
      expect(wrong).toEqual([]);
      expect(states).toBeGreaterThan(1);
    });
  }
});
