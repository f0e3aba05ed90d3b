import { describe, expect, test } from 'vitest';
import { isHeld, nextGoesOn } from './afterwards.ts';
import type { Fault } from './command.ts';
import { atEveryCall, type Met } from './every-call.ts';
import { LOOKS, SCENARIOS, type Scenario } from './scenarios.ts';

type Kind = Exclude<Fault['kind'], 'kill'>;
interface Found {
  readonly tried: number;
  readonly wrong: string[];
}

/**
 * A row for each command and each thing that can fail.
 *
 * @param looks whether each look fails in turn, or of those of a kind at one file the first
 */
export function errorRows(kind: Kind, looks: 'every one' | 'the first of each kind'): void {
  describe(`${kind} at any change gives 1 and a reason, or all that was promised is done; nothing half-written, never a wrong "free"`, () => {
    row(SCENARIOS, (scenario) => failEveryChange(scenario, kind));
  });
  describe(`${kind} at ${looks} of the looks is an error, never "free" and never "held"`, () => {
    row(LOOKS, (scenario) => failEveryLook(scenario, kind, looks === 'every one'));
  });
}

function row(scenarios: readonly Scenario[], fail: (scenario: Scenario) => Promise<Found>): void {
  for (const scenario of scenarios) {
    test(scenario.name, async () => {
      const { tried, wrong } = await fail(scenario);
      console.log(`${tried} failures: ${scenario.name}`);
      expect(wrong).toEqual([]);
      // A command that made no such call would prove nothing.
      expect(tried).toBeGreaterThan(0);
    });
  }
}

/** Lets each call that changes something fail in turn, and tells what was wrong afterwards. */
export function failEveryChange(scenario: Scenario, kind: Kind, binary?: string): Promise<Found> {
  const inspect = async (met: Met) => [
    ...said(met, kind, scenario.inside === undefined ? scenario.failure : [0, 1]),
    ...(met.result.code === 0 ? scenario.keeps(met.box, met.result.stdout) : []),
    ...(await notDoneIsNotDone(met, scenario)),
    ...(await nextGoesOn(met.box.runs)),
  ];
  return atEveryCall(scenario, { kind, calls: 'changes', repeated: true }, inspect, binary);
}

function failEveryLook(scenario: Scenario, kind: Kind, repeated: boolean): Promise<Found> {
  return atEveryCall(scenario, { kind, calls: 'looks', repeated }, async (met) =>
    said(met, kind, [scenario.code, 1]),
  );
}

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
