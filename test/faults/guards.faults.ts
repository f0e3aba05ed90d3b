import fs from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { buildCommand } from '../../scripts/build.mjs';
import { bundleDirectory, bundleScript, withMutation } from './bundle.ts';
import { killAtEveryCall } from './crash.ts';
import { failEveryChange } from './errors.ts';
import { before } from './explorer/before.ts';
import { explore } from './explorer/explorer.ts';
import { SCENARIOS as ORDERS } from './explorer/scenarios.ts';
import { GUARDS, type Guard } from './guards.ts';
import { cutPower } from './power-cut.ts';
import { SCENARIOS } from './scenarios.ts';

let dir: string;
beforeAll(() => {
  dir = bundleDirectory();
});
afterAll(() => fs.rmSync(dir, { recursive: true, force: true }));

describe('without one of its guards the matrix is red', () => {
  for (const [index, guard] of GUARDS.entries()) {
    test(`${guard.what} (${guard.seenBy.row})`, async () => {
      const found = await whatIsSeen(guard, path.join(dir, `${index}`));
      expect(found).toContainEqual(expect.stringMatching(guard.says));
    });
  }
});

/** What the row finds wrong with a build that lacks the guard. */
async function whatIsSeen(guard: Guard, directory: string): Promise<string[]> {
  const { seenBy } = guard;
  switch (seenBy.row) {
    case 'orders': {
      const file = path.join(directory, 'actor.cjs');
      const actor = path.join(import.meta.dirname, 'explorer/actor.ts');
      await withMutation(guard, (plugins) => bundleScript(actor, file, plugins));
      const scenario = must(ORDERS.find(({ promise }) => promise === seenBy.promise));
      // The explorer's own look-out for two in the guard must not be what sees it.
      const everywhere = { ...scenario, everywhere: scenario.removals === 0, preemptions: 2 };
      const options = { worker: file, makeState: before(scenario), maxExecutions: 50_000 };
      const { counterexample } = await explore(everywhere, options);
      return counterexample === null ? [] : [counterexample.broken, ...counterexample.events];
    }
    case 'crash':
      return (await killAtEveryCall(scenarioOf(seenBy.scenario), await buildWithout(guard, directory))).wrong;
    case 'errors': {
      const binary = await buildWithout(guard, directory);
      return (await failEveryChange(scenarioOf(seenBy.scenario), 'EIO', binary)).wrong;
    }
    case 'power cut':
      return (await cutPower(scenarioOf(seenBy.scenario), await buildWithout(guard, directory))).wrong;
  }
}

function buildWithout(guard: Guard, directory: string): Promise<string> {
  return withMutation(guard, (plugins) => buildCommand(directory, plugins));
}

function scenarioOf(name: string) {
  return must(SCENARIOS.find((scenario) => scenario.name === name));
}

function must<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('there is no such row');
  return value;
}
