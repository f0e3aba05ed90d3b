import { describe, expect, test } from 'vitest';
import { failEveryChange, failEveryLook } from './errors.ts';
import { LOOKS, SCENARIOS } from './scenarios.ts';

describe.each(['EIO'] as const)('%s', (kind) => {
  describe('at any change gives 1 and a reason, nothing half-written, and never a wrong "free"', () => {
    for (const scenario of SCENARIOS) {
      test(scenario.name, async () => {
        const { calls, wrong } = await failEveryChange(scenario, kind);
        console.log(`${calls.length} calls, ${kind}: ${scenario.name}`);
        expect(wrong).toEqual([]);
        expect(calls.length).toBeGreaterThan(0);
      });
    }
  });

  describe('at any look is an error, never "free" and never "held"', () => {
    for (const scenario of LOOKS) {
      test(scenario.name, async () => {
        const { calls, wrong } = await failEveryLook(scenario, kind);
        console.log(`${calls.length} looks, ${kind}: ${scenario.name}`);
        expect(wrong).toEqual([]);
        expect(calls.length).toBeGreaterThan(0);
      });
    }
  });
});
