import { beforeAll, expect, test } from 'vitest';
import { CASES } from './cases.ts';
import { type Outcome, runDriver } from './windows.ts';

let outcomes: ReadonlyMap<string, Outcome>;

beforeAll(async () => {
  outcomes = await runDriver();
}, 1_200_000);

test.each(Object.keys(CASES))('%s', (name) => {
  const outcome = outcomes.get(name);
  expect(outcome, 'the driver did not come to it').toBeDefined();
  if (outcome?.problem) throw new Error(outcome.problem);
});
