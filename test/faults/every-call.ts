import os from 'node:os';
import { BINARY, type Result, type Sandbox } from '../cli/harness.ts';
import { type Fault, runWithFault } from './command.ts';
import type { Scenario } from './scenarios.ts';

/** A command that met a fault, and where it stands. */
export interface Met {
  readonly box: Sandbox;
  readonly result: Result;
}

/**
 * Goes through a scenario's calls one after another, each time from the same state, and lets the fault happen at
 * that call.
 *
 * @param fault `repeated`: also at a call that was made before of the same file
 * @param inspect says what is wrong afterwards
 * @returns at how many calls it happened, and all that was wrong
 */
export async function atEveryCall(
  scenario: Scenario,
  fault: Omit<Fault, 'at'> & { readonly repeated: boolean },
  inspect: (met: Met) => Promise<string[]>,
  binary = BINARY,
): Promise<{ tried: number; wrong: string[] }> {
  const start = await scenario.prepare();
  const { calls, code } = await runWithFault(start.copy(), scenario, { ...fault, at: 0 }, { binary });
  if (code !== scenario.code) throw new Error(`without a fault it answers ${code}`);
  const wrong: string[] = [];
  const met = new Set<string>();
  const places = calls.flatMap(({ call, file }, index) => {
    const isNew = met.size < met.add(`${call} ${file.replace(/\d+/g, 'N')}`).size;
    return canFail(call, fault.kind) && (isNew || fault.repeated) ? [index + 1] : [];
  });
  const tried = places.length;
  const next = async (): Promise<void> => {
    for (let at = places.shift(); at !== undefined; at = places.shift()) {
      const box = start.copy();
      const result = await runWithFault(box, scenario, { ...fault, at }, { binary });
      const call = calls[at - 1];
      const found = await inspect({ box, result });
      wrong.push(
        ...found.map((what) => `${fault.kind} at call ${at} (${call?.call} ${call?.file}): ${what}`),
      );
    }
  };
  await Promise.all(os.cpus().map(next));
  return { tried, wrong };
}

/** Room is asked for by what makes or lengthens something, permission by what goes by a path; a disk can break anywhere. */
function canFail(call: string, kind: Fault['kind']): boolean {
  if (kind === 'ENOSPC') return ['open', 'write', 'fsync', 'link', 'rename', 'mkdir'].includes(call);
  if (kind === 'EACCES') return !['write', 'fsync', 'ftruncate', 'read', 'fstat'].includes(call);
  return true;
}
