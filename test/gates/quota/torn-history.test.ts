import fs from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { countQuota } from '../../../src/gates/quota/quota.ts';
import type { EndedEvent } from '../../../src/history.ts';
import { recordText, summaryOf } from '../../../src/records.ts';
import { FileStore } from '../../../src/stores/file/file-store.ts';
import { folderWith, quotaIn } from './harness.ts';

const at = '2026-10-15T09:00:00.000Z';

function ended(run: number, outcome: 'finished' | 'failed'): EndedEvent {
  const nothing = {
    item: null,
    job: null,
    startedAt: null,
    exitCode: null,
    reason: null,
    former: null,
    durationMs: null,
  };
  return { event: 'ended', outcome, at, run, settled: true, handedIn: null, ...nothing };
}

test('after a power cut the new line is whole; the cut one counts unless its record says otherwise', async () => {
  const dir = folderWith({});
  const quota = quotaIn(dir, { limit: 2, sources: [{ history: 'finished' }] });
  const history = new FileStore({
    base: path.join(dir, 'runs'),
    folder: null,
    clock: systemClock,
    singleMachine: false,
    notice: () => {},
  });
  const count = async () => (await countQuota(quota, { at: Date.parse(at), history })).count;
  fs.mkdirSync(path.join(dir, 'runs'));
  await history.append(ended(1, 'finished'));
  const [month = ''] = fs.readdirSync(path.join(dir, 'runs/history'));
  const file = path.join(dir, 'runs/history', month);
  // A record is committed before its line.
  fs.truncateSync(file, fs.statSync(file).size - 20);
  expect(await count()).toBe(1);

  await history.append(ended(2, 'finished'));
  const { events, torn } = await history.events();
  expect(events).toEqual([ended(2, 'finished')]);
  expect(torn).toEqual([{ text: expect.stringContaining('"run":1,'), after: null, before: at }]);
  expect(await count()).toBe(2);

  fs.writeFileSync(history.recordPath(1), recordText(summaryOf(ended(1, 'failed')), null));
  expect(await count()).toBe(1);
});
