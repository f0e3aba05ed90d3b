import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll } from 'vitest';
import { loadConfig } from '../../../src/config/config.ts';
import type { Quota } from '../../../src/config/quotas.ts';
import { RunlockError } from '../../../src/errors.ts';
import type { HistoryEvidence } from '../../../src/gates/quota/history-source.ts';
import { countQuota, type QuotaCount } from '../../../src/gates/quota/quota.ts';

const root = mkdtempSync(join(realpathSync(tmpdir()), 'runlock-quota-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

let count = 0;
export type Files = Readonly<Record<string, string | Uint8Array>>;

/** A directory of its own with these files in it. */
export function folderWith(files: Files): string {
  count += 1;
  const dir = join(root, String(count));
  mkdirSync(dir);
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(dir, name)), { recursive: true });
    writeFileSync(join(dir, name), content);
  }
  return dir;
}

/** A quota read from a configuration in the folder; of a day in UTC, at most 1, unless it says otherwise. */
export function quotaIn(dir: string, fields: object): Quota {
  const quota = { limit: 1, period: 'day', timeZone: 'UTC', ...fields };
  const path = join(dir, 'runlock.json');
  writeFileSync(path, JSON.stringify({ quotas: { q: quota } }));
  const read = loadConfig(path).quotas.get('q');
  if (read === undefined) throw new Error('the configuration has lost its quota');
  return read;
}

export const NO_HISTORY: HistoryEvidence = {
  events: async () => ({ events: [], torn: [] }),
  endOf: async () => null,
};

/** Asks a quota with these sources in a folder with these files. */
export function ask(files: Files, at: string, fields: object): Promise<QuotaCount> {
  return countQuota(quotaIn(folderWith(files), fields), { at: Date.parse(at), history: NO_HISTORY });
}

export async function errorOf(asked: Promise<unknown>): Promise<RunlockError> {
  const answer = await asked.then(
    (value) => value,
    (error: unknown) => error,
  );
  if (answer instanceof RunlockError) return answer;
  throw answer instanceof Error ? answer : new Error(`expected an error, got ${JSON.stringify(answer)}`);
}
