import { describe, expect, test } from 'vitest';
import { killAtEveryCall } from './crash.ts';
import { SCENARIOS } from './scenarios.ts';

describe('SIGKILL at any call on the state directory leaves a state from which the next command goes on', () => {
  for (const scenario of SCENARIOS) {
    test(scenario.name, async () => {
      const { tried, wrong } = await killAtEveryCall(scenario);
      console.log(`${tried} kills: ${scenario.name}`);
      expect(wrong).toEqual([]);
      // A command that made no change would prove nothing.
      expect(tried).toBeGreaterThan(0);
    });
  }
});
