import { spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { build } from 'esbuild';

const ROOT = path.resolve(import.meta.dirname, '../..');

/** What a case came to: the problem, or null. */
export interface Outcome {
  readonly name: string;
  readonly problem: string | null;
  readonly ms: number;
}

/** The node.exe to run the cases with, under Wine or on Windows itself. */
const NODE = process.platform === 'win32' ? process.execPath : process.env.RUNLOCK_WINDOWS_NODE;
if (NODE === undefined || !fs.existsSync(NODE))
  throw new Error(
    'RUNLOCK_WINDOWS_NODE must name a node.exe that Wine can run: scripts/ci/wine.sh sees to all of it',
  );

/** Runs the driver once. What it did not come to is missing. */
export async function runDriver(): Promise<Map<string, Outcome>> {
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'runlock-windows-'));
  try {
    const driver = path.join(dir, 'driver.cjs');
    await build({
      entryPoints: [path.join(import.meta.dirname, 'driver.ts')],
      outfile: driver,
      bundle: true,
      platform: 'node',
      format: 'cjs',
      logLevel: 'error',
    });
    const output = path.join(dir, 'outcomes.jsonl');
    fs.writeFileSync(output, '');
    await start(dir, [windowsPath(driver), windowsPath(output)]);
    const lines = fs.readFileSync(output, 'utf8').split('\n').slice(0, -1);
    return new Map(lines.map((line) => JSON.parse(line)).map((outcome: Outcome) => [outcome.name, outcome]));
  } finally {
    fs.rmSync(dir, { recursive: true, force: true });
  }
}

/** Wine knows no pipes from outside, hence files. */
async function start(dir: string, args: readonly string[]): Promise<void> {
  const said = path.join(dir, 'said.txt');
  const out = fs.openSync(said, 'w');
  const [program, ...before] = process.platform === 'win32' ? [NODE ?? ''] : ['wine', NODE ?? ''];
  const env = { ...process.env, RUNLOCK_BINARY: windowsPath(path.join(ROOT, 'dist/runlock.cjs')) };
  const child = spawn(program, [...before, ...args], { cwd: dir, env, stdio: ['ignore', out, out] });
  const [code] = await once(child, 'exit');
  fs.closeSync(out);
  if (code !== 0) throw new Error(`the driver ended with ${code}: ${fs.readFileSync(said, 'utf8')}`);
}

/** Wine shows our root as drive Z. */
function windowsPath(file: string): string {
  return process.platform === 'win32' ? file : `Z:${file.replaceAll('/', '\\')}`;
}
