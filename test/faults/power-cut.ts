import { createHash } from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { BINARY, Sandbox } from '../cli/harness.ts';
import { nextGoesOn } from './afterwards.ts';
import { runWithFault } from './command.ts';
import { Disk, type Loss } from './disk.ts';
import type { Scenario } from './scenarios.ts';

const LOSSES: readonly Loss[] = ['names and data', 'data', 'names'];

/**
 * Runs a scenario once, then cuts the power after each of its calls, in each way in which that can go.
 *
 * @returns how many different states were left, and what was wrong with them
 */
export async function cutPower(
  scenario: Scenario,
  binary = BINARY,
): Promise<{ states: number; wrong: string[] }> {
  const start = await scenario.prepare();
  const before = start.copy();
  const { calls, stdout, code } = await runWithFault(
    start,
    scenario,
    { kind: 'kill', calls: 'changes', at: 0 },
    { binary },
  );
  if (code !== scenario.code) throw new Error(`without a fault it answers ${code}`);

  const left = new Map<string, { box: Sandbox; answered: boolean; where: string }>();
  for (let count = 0; count <= calls.length; count += 1) {
    const disk = new Disk(before.dir);
    for (const call of calls.slice(0, count)) disk.apply(call);
    const answered = count === calls.length;
    const last = calls[count - 1];
    for (const loss of LOSSES) {
      const box = new Sandbox();
      disk.leave(loss, box.dir, asFromAnotherBoot);
      age(box.dir);
      const where = `after call ${count} (${last?.call ?? 'none'} ${last?.file ?? ''}), lost: ${loss}`;
      const key = fingerprint(box.dir);
      // What holds for a state that an answered command left holds for the same state before.
      if (left.get(key)?.answered !== true) left.set(key, { box, answered, where });
    }
  }
  const wrong: string[] = [];
  const todo = [...left.values()];
  const next = async (): Promise<void> => {
    for (let state = todo.pop(); state !== undefined; state = todo.pop()) {
      const { box, answered, where } = state;
      const kept = answered ? scenario.keeps(box, stdout) : [];
      const found = [...kept, ...(scenario.always?.(box) ?? []), ...(await nextGoesOn(box.runs))];
      wrong.push(...found.map((what) => `${where}: ${what}`));
    }
  };
  await Promise.all(os.cpus().map(next));
  return { states: left.size, wrong };
}

/** The machine has started anew since. */
function asFromAnotherBoot(text: string): string {
  return text.replaceAll(/"bootId":"[^"]*"/g, '"bootId":"the-boot-before"');
}

function age(root: string): void {
  const before = Date.now() / 1000 - os.uptime() - 3600;
  for (const name of fs.readdirSync(root, { recursive: true, encoding: 'utf8' }))
    fs.utimesSync(path.join(root, name), before, before);
}

function fingerprint(root: string): string {
  const hash = createHash('sha256');
  for (const name of fs.readdirSync(root, { recursive: true, encoding: 'utf8' }).sort()) {
    const file = path.join(root, name);
    hash.update(`${name}\n`);
    if (fs.statSync(file).isFile()) hash.update(fs.readFileSync(file));
  }
  return hash.digest('hex');
}
