import fs from 'node:fs';
import path from 'node:path';
import { FakeMachine } from '../../stores/fakes.ts';
import { events, nextGoesOn } from '../afterwards.ts';

const LATER = Date.UTC(2026, 5, 15, 14);

/**
 * Everyone is dead. The next one must get in with a new number, and the files must tell one story.
 *
 * @param finished runs whose `finish` was answered with success, and who did it
 * @param endsOnce each run has one end in the history
 * @returns what is wrong, or null
 */
export async function aftermath(
  dir: string,
  finished: ReadonlyMap<number, number>,
  endsOnce: boolean,
): Promise<string | null> {
  const [wrong] = await nextGoesOn(dir, { witness: new FakeMachine(), now: () => LATER, endsOnce });
  return wrong ?? nothingLost(dir, finished);
}

/** A result that was handed in is in the record of its run, and the history says the same. */
function nothingLost(dir: string, finished: ReadonlyMap<number, number>): string | null {
  for (const [run, actor] of finished) {
    const end = events(dir).find((event) => event.event === 'ended' && event.run === run);
    if (end?.outcome !== 'finished') return `run ${run} was finished, and the history says ${end?.outcome}`;
    const file = path.join(dir, 'records', `${run}.json`);
    if (!fs.existsSync(file)) return `the record of run ${run} is gone`;
    const record = JSON.parse(fs.readFileSync(file, 'utf8')) as { result: { by: number } | null };
    if (record.result !== null && record.result.by !== actor) return `the record of run ${run} is another's`;
  }
  return null;
}
