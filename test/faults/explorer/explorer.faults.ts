import fs from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { bundleDirectory, bundleScript } from '../bundle.ts';
import { before } from './before.ts';
import { explore } from './explorer.ts';
import { LIMITS, SCENARIOS, type Scenario } from './scenarios.ts';

/** Far more than there are: a scenario that has grown too large is an error, and not a hang. */
const MAX_EXECUTIONS = 50_000;

let dir: string;
let worker: string;
beforeAll(async () => {
  dir = bundleDirectory();
  worker = path.join(dir, 'actor.cjs');
  await bundleScript(path.join(import.meta.dirname, 'actor.ts'), worker);
});
afterAll(() => fs.rmSync(dir, { recursive: true, force: true }));

describe('every order of steps', () => {
  for (const scenario of SCENARIOS) {
    test(scenario.promise, async () => {
      const { executions, states, counterexample } = await exploreAll(scenario);
      console.log(`${executions} executions, ${states} states: ${scenario.promise}`);
      expect(counterexample).toBeNull();
      // One that is over after a few steps would have shown nothing.
      expect(states).toBeGreaterThan(100);
    });
  }
});

describe('what is not promised', () => {
  for (const scenario of LIMITS) {
    test(scenario.promise, async () => {
      const { counterexample } = await exploreAll(scenario);
      expect(counterexample?.broken).toMatch(/^1 gets the lock as run 2 while 0 has it as run 1$/);
    });
  }
});

function exploreAll(scenario: Scenario) {
  return explore(scenario, { worker, makeState: before(scenario), maxExecutions: MAX_EXECUTIONS });
}
