import { describe, expect, test } from 'vitest';
import { nextGoesOn } from './afterwards.ts';
import { atEveryCall } from './every-call.ts';
import { SCENARIOS } from './scenarios.ts';

describe('SIGKILL at any call on the state directory or the ledger leaves a state from which the next command goes on', () => {
  for (const scenario of SCENARIOS) {
    test(scenario.name, async () => {
      const { calls, wrong } = await atEveryCall(
        scenario,
        { kind: 'kill', calls: 'changes' },
        async ({ box, result }) => {
          // Inside a `run` it is that one's command which is killed.
          const killed =
            result.signal === 'SIGKILL' || (scenario.inside !== undefined && result.code === 137);
          return [
            ...(killed ? [] : [`it was not killed but ended with ${result.code}`]),
            ...(await nextGoesOn(box.runs)),
          ];
        },
      );
      expect(wrong).toEqual([]);
      // A command that made no change would prove nothing.
      expect(calls.length).toBeGreaterThan(0);
    });
  }
});
