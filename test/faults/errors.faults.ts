import { describe, expect, test } from 'vitest';
import { isHeld, nextGoesOn } from './afterwards.ts';
import { atEveryCall, type Met } from './every-call.ts';
import { LOOKS, SCENARIOS, type Scenario } from './scenarios.ts';

describe('a disk that fails at any change gives 1 and a reason, nothing half-written, and never a wrong "free"', () => {
  for (const kind of ['ENOSPC', 'EIO', 'EACCES'] as const) {
    for (const scenario of SCENARIOS) {
      test(`${kind}: ${scenario.name}`, async () => {
        const { calls, wrong } = await atEveryCall(scenario, { kind, calls: 'changes' }, async (met) => [
          ...said(met, kind, scenario.inside === undefined ? scenario.failure : [0, 1]),
          ...(await notDoneIsNotDone(met, scenario)),
          ...(await nextGoesOn(met.box.runs)),
        ]);
        console.log(`${calls.length} calls, ${kind}: ${scenario.name}`);
        expect(wrong).toEqual([]);
        expect(calls.length).toBeGreaterThan(0);
      });
    }
  }
});

describe('a disk that fails at any look is an error, never "free" and never "held"', () => {
  for (const kind of ['EIO', 'EACCES'] as const) {
    for (const scenario of LOOKS) {
      test(`${kind}: ${scenario.name}`, async () => {
        const { calls, wrong } = await atEveryCall(scenario, { kind, calls: 'looks' }, async (met) =>
          said(met, kind, [scenario.code, 1]),
        );
        console.log(`${calls.length} calls, ${kind}: ${scenario.name}`);
        expect(wrong).toEqual([]);
        expect(calls.length).toBeGreaterThan(0);
      });
    }
  }
});

/** One of the codes, and where it is a failure one line with the reason. */
function said({ result }: Met, kind: string, codes: readonly number[]): string[] {
  const { code, stderr } = result;
  const wrong: string[] = [];
  if (code === null || !codes.includes(code)) wrong.push(`code ${code}: ${stderr}`);
  if (/^\s+at /m.test(stderr)) wrong.push(`a stack trace: ${stderr}`);
  if ((code === 1 || code === 125) && !stderr.includes(kind)) wrong.push(`no reason: ${stderr}`);
  return wrong;
}

/** What was not done can be done again; what holds the lock holds it still. */
async function notDoneIsNotDone({ box, result }: Met, scenario: Scenario): Promise<string[]> {
  if (result.code === 0 || scenario.inside !== undefined) return [];
  if (scenario.holds) {
    const wrong = (await isHeld(box.runs)) ? [] : ['it failed, and yet the lock is free'];
    const options = scenario.input === undefined ? {} : { input: scenario.input };
    const again = await box.runlock(scenario.args, options);
    return again.code === 0 ? wrong : [...wrong, `again: ${again.code} ${again.stderr}`];
  }
  return (await isHeld(box.runs)) ? ['it failed, and yet the lock is held'] : [];
}
