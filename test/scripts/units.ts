import { expect, type TestContext } from 'vitest';
import type { Sandbox } from '../cli/harness.ts';
import { needs } from '../cli/jobs.ts';

/** Whether systemd takes a unit without a word; the programs it starts must be there. */
export async function expectUnit(ctx: TestContext, box: Sandbox, name: string, text: string): Promise<void> {
  needs(ctx, 'systemd-analyze');
  const unit = box.write(name, text);
  // Units next to it are found; those of this machine may have faults of their own.
  const env = { SYSTEMD_UNIT_PATH: `${box.dir}:` };
  const { code, stdout, stderr } = await box.exec('systemd-analyze', ['verify', '--man=no', unit], { env });
  const about = `${stdout}${stderr}`.split('\n').filter((line) => line.includes(name));
  expect([code, about]).toEqual([0, []]);
}
