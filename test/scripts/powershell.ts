import fs from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { onTestFinished } from 'vitest';
import { BINARY, which } from '../cli/harness.ts';

/** PowerShell 7: from the PATH, or where `dotnet tool install --global PowerShell` puts it. Null if there is none. */
export const PWSH = [which('pwsh'), path.join(os.homedir(), '.dotnet/tools/pwsh')].find(
  (file) => file !== null && fs.existsSync(file),
);

/** Said in the name of a test that is skipped. */
export const NEEDS_PWSH = PWSH === undefined ? ' (needs pwsh: dotnet tool install --global PowerShell)' : '';

/** No colours, nothing sent, nothing asked. */
export const PWSH_ENV: NodeJS.ProcessEnv = {
  NO_COLOR: '1',
  POWERSHELL_TELEMETRY_OPTOUT: '1',
  POWERSHELL_UPDATECHECK: 'Off',
};

/** The words that run a script, as a scheduler does. */
export function pwsh(file: string, ...args: string[]): [string, string[]] {
  return [PWSH ?? 'pwsh', ['-NoProfile', '-NonInteractive', '-File', file, ...args]];
}

/** A directory with the shims that npm writes on Windows, made by npm's own code; gone when the test ends. */
export async function npmShims(): Promise<string> {
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'runlock-shims-'));
  onTestFinished(() => fs.rmSync(dir, { recursive: true, force: true }));
  const npm = fs.realpathSync(which('npm') ?? process.execPath);
  const cmdShim = createRequire(npm)('cmd-shim') as (from: string, to: string) => Promise<void>;
  await cmdShim(BINARY, path.join(dir, 'runlock'));
  return dir;
}
