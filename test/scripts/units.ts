import type { TestContext } from 'vitest';
import type { Sandbox } from '../cli/harness.ts';
import { needs } from '../cli/jobs.ts';

/** What systemd has to say about a unit; the programs it starts must be there, and so must units that it names. */
export async function complaintsAbout(
  ctx: TestContext,
  box: Sandbox,
  name: string,
  text: string,
): Promise<string[]> {
  needs(ctx, 'systemd-analyze');
  const unit = box.write(name, text);
  const env = { SYSTEMD_UNIT_PATH: `${box.dir}:` };
  const { code, stdout, stderr } = await box.exec('systemd-analyze', ['verify', '--man=no', unit], { env });
  // Other units of this machine may have faults of their own.
  const said = `${stdout}${stderr}`.split('\n').filter((line) => line.includes(name));
  return code === 0 ? said : [...said, `exit code ${code}`];
}
