import fs from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { bundleDirectory, bundleScript } from '../bundle.ts';
import { before } from './before.ts';
import { explore } from './explorer.ts';
import { SCENARIOS } from './scenarios.ts';

const MAX_EXECUTIONS = 200_000;

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
      const explored = await explore(scenario, {
        worker,
        makeState: before(scenario),
        maxExecutions: MAX_EXECUTIONS,
      });
      console.log(`${explored.executions} executions, ${explored.states} states: ${scenario.promise}`);
      expect(explored.counterexample).toBeNull();
      // One that is over after a few steps would have shown nothing.
      expect(explored.states).toBeGreaterThan(100);
    });
  }
});
