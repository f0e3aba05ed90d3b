import { nextGoesOn } from './afterwards.ts';
import { atEveryCall } from './every-call.ts';
import type { Scenario } from './scenarios.ts';

/** Kills a scenario's command at each of its calls that change something, and tells what was wrong afterwards. */
export function killAtEveryCall(
  scenario: Scenario,
  binary?: string,
): Promise<{ tried: number; wrong: string[] }> {
  const fault = { kind: 'kill', calls: 'changes', repeated: true } as const;
  return atEveryCall(
    scenario,
    fault,
    async ({ box, result }) => {
      // Inside a `run` it is that one's command which is killed.
      const killed = result.signal === 'SIGKILL' || (scenario.inside !== undefined && result.code === 137);
      const alive = killed ? [] : [`it was not killed but ended with ${result.code}`];
      return [...alive, ...(await nextGoesOn(box.runs))];
    },
    binary,
  );
}
