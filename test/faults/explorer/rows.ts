import fs from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { bundleDirectory, bundleScript } from '../bundle.ts';
import { before } from './before.ts';
import { type Explored, explore } from './explorer.ts';
import type { Scenario } from './scenarios.ts';

/** Far more than there are: a scenario that has grown too large is an error, and not a hang. */
const MAX_EXECUTIONS = 50_000;

/** A row for each scenario: no order of its steps breaks a promise. */
export function keptInEveryOrder(scenarios: readonly Scenario[]): void {
  rows('every order of steps', scenarios, ({ executions, states, counterexample }, { promise }) => {
    console.log(`${executions} executions, ${states} states: ${promise}`);
    expect(counterexample).toBeNull();
    // One that is over after a few steps would have shown nothing.
    expect(states).toBeGreaterThan(100);
  });
}

/** A row for each scenario: some order lets two have the lock. */
export function brokenInSomeOrder(scenarios: readonly Scenario[]): void {
  rows('what is not promised', scenarios, ({ counterexample }) => {
    expect(counterexample?.broken).toMatch(/^1 gets the lock as run 2 while 0 has it as run 1$/);
  });
}

function rows(
  name: string,
  scenarios: readonly Scenario[],
  judge: (explored: Explored, scenario: Scenario) => void,
): void {
  describe(name, () => {
    let dir: string;
    let worker: string;
    beforeAll(async () => {
      dir = bundleDirectory();
      worker = path.join(dir, 'actor.cjs');
      await bundleScript(path.join(import.meta.dirname, 'actor.ts'), worker);
    });
    afterAll(() => fs.rmSync(dir, { recursive: true, force: true }));

    for (const scenario of scenarios) {
      test(scenario.promise, async () => {
        const options = { worker, makeState: before(scenario), maxExecutions: MAX_EXECUTIONS };
        judge(await explore(scenario, options), scenario);
      });
    }
  });
}
