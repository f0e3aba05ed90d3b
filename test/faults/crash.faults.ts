import { describe, expect, test } from 'vitest';
import { Sandbox } from '../cli/harness.ts';
import { runWithFault } from './command.ts';
import { nextGoesOn, SCENARIOS, startHolder } from './scenarios.ts';

describe('SIGKILL at any call on the state directory leaves a state from which the next command goes on', () => {
  for (const scenario of SCENARIOS) {
    test(scenario.name, async () => {
      const wrong: string[] = [];
      let at = 1;
      for (; ; at += 1) {
        const box = new Sandbox();
        const holder = startHolder(box);
        await scenario.prepare(box, holder);
        const options = scenario.input === undefined ? {} : { input: scenario.input };
        const killed = await runWithFault(box, scenario.args(holder), { kind: 'kill', at }, options);
        if (killed.signal !== 'SIGKILL') break;
        const found = await nextGoesOn(box, holder);
        wrong.push(...found.map((what) => `killed at call ${at}: ${what}`));
      }
      // All its changes were gone through; a command that made none would prove nothing.
      expect(at).toBeGreaterThan(1);
      expect(wrong).toEqual([]);
    });
  }
});
