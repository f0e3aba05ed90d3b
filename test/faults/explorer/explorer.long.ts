import fs from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { bundleDirectory, bundleScript } from '../bundle.ts';
import { before } from './before.ts';
import { explore } from './explorer.ts';
import { INTERRUPTED_AND_KILLED } from './scenarios.ts';

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

describe('interrupted, and killed at any step', () => {
  for (const scenario of INTERRUPTED_AND_KILLED) {
    test(scenario.promise, async () => {
      const makeState = before(scenario);
      const { executions, states, counterexample } = await explore(scenario, {
        worker,
        makeState,
        maxExecutions: MAX_EXECUTIONS,
      });
      console.log(`${executions} executions, ${states} states: ${scenario.promise}`);
      expect(counterexample).toBeNull();
    });
  }
});
