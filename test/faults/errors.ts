import { isHeld, nextGoesOn } from './afterwards.ts';
import type { Call, Fault } from './command.ts';
import { atEveryCall, type Met } from './every-call.ts';
import type { Scenario } from './scenarios.ts';

type Kind = Exclude<Fault['kind'], 'kill'>;
interface Found {
  readonly calls: readonly Call[];
  readonly wrong: string[];
}

/** Lets each call that changes something fail: 1 and a reason, nothing half-written, and never a wrong "free". */
export function failEveryChange(scenario: Scenario, kind: Kind): Promise<Found> {
  return atEveryCall(scenario, { kind, calls: 'changes' }, async (met) => [
    ...said(met, kind, scenario.inside === undefined ? scenario.failure : [0, 1]),
    ...(await notDoneIsNotDone(met, scenario)),
    ...(await nextGoesOn(met.box.runs)),
  ]);
}

/** Lets each call that only looks fail: an error, never "free" and never "held". */
export function failEveryLook(scenario: Scenario, kind: Kind): Promise<Found> {
  return atEveryCall(scenario, { kind, calls: 'looks' }, async (met) => said(met, kind, [scenario.code, 1]));
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
