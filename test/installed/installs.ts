import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { inject } from 'vitest';

export const PLACE = inject('place');
export const TARBALL = inject('tarball');

/** package.json of the checkout, which the package has to keep. */
export const MANIFEST = JSON.parse(
  fs.readFileSync(path.resolve(import.meta.dirname, '../../package.json'), 'utf8'),
) as { readonly version: string; readonly dependencies: Record<string, string> };

/** A folder as people have them, which no shim may take apart. */
export const ODD_NAME = "Übung mit ' und 日本";

/** What a user's shell has: nothing of vitest, of the `npm run` that started it, or of the checkout. */
export const ENV: NodeJS.ProcessEnv = {
  ...Object.fromEntries(
    Object.entries(process.env).filter(
      ([name]) =>
        !/^(RUNLOCK|VITEST|NODE_ENV|NODE_OPTIONS|NODE_PATH|INIT_CWD)/.test(name) &&
        (!/^npm_/i.test(name) || /^npm_config_(registry|.*proxy|cafile)$/i.test(name)),
    ),
  ),
  PATH: [
    path.dirname(process.execPath),
    ...(process.env.PATH ?? '').split(':').filter((dir) => !/node_modules|runlock/.test(dir)),
  ].join(':'),
  // Whatever is installed comes from the registry, and leaves nothing in the home directory.
  npm_config_cache: path.join(PLACE, 'npm-cache'),
  npm_config_audit: 'false',
  npm_config_fund: 'false',
  npm_config_update_notifier: 'false',
  npm_config_yes: 'true',
  XDG_CACHE_HOME: path.join(PLACE, 'cache'),
  XDG_DATA_HOME: path.join(PLACE, 'data'),
  XDG_STATE_HOME: path.join(PLACE, 'state'),
  YARN_GLOBAL_FOLDER: path.join(PLACE, 'yarn'),
  YARN_ENABLE_IMMUTABLE_INSTALLS: 'false',
  YARN_ENABLE_TELEMETRY: 'false',
};

/** A new folder for one installation. */
export function folder(...names: string[]): string {
  const own = fs.mkdtempSync(path.join(PLACE, 'install-'));
  fs.chmodSync(own, 0o755);
  const dir = path.join(own, ...names);
  fs.mkdirSync(dir, { recursive: true });
  return dir;
}

/** Runs a program to its end and gives what it wrote to stdout. */
export function output(cwd: string, program: string, ...args: string[]): string {
  try {
    return execFileSync(program, args, { cwd, env: ENV, encoding: 'utf8', stdio: 'pipe' });
  } catch (error) {
    // What Yarn complains of it says on stdout.
    const said = error instanceof Error && 'stdout' in error ? String(error.stdout) : '';
    throw new Error(said, { cause: error });
  }
}

/** Words for a shell. */
export function quoted(words: readonly string[]): string {
  return words
    .map((word) => (/^[\w./@=:-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`))
    .join(' ');
}
