import fs from 'node:fs';
import path from 'node:path';
import { RunlockError } from '../errors.ts';
import { type LockName, parseLockName } from '../names.ts';
import { type Config, findConfig, loadConfig } from './config.ts';

/** Where locks are, and which one is meant. */
export interface LockPlace {
  /** The state directory, absolute. */
  readonly base: string;
  readonly name: LockName;
  readonly config: Config;
  /** What named the directory; `nothing`: it is ./runs because nothing else was said. */
  readonly by: 'flag' | 'variable' | 'config' | 'nothing';
}

/** What stands in the flags of a command line. */
export interface NamedPlace {
  readonly dir: string | undefined;
  readonly name: string | undefined;
  readonly config: string | undefined;
}

/** Where a command line is read: its current directory and its environment. */
export interface Surroundings {
  /** The absolute path of one that may be relative. */
  resolve(file: string): string;
  /** An empty variable counts as none. */
  variable(name: string): string | undefined;
  /** The search for a configuration goes no further up than this; unset: up to `/`. */
  readonly top?: string;
}

/**
 * Which lock is meant: flags, then the environment, then the configuration, then ./runs.
 *
 * @throws RunlockError `usage`, `config`, `input` or `io`
 */
export function resolvePlace(named: NamedPlace, around: Surroundings): LockPlace {
  const dir = named.dir ?? around.variable('RUNLOCK_DIR');
  const configFile = named.config ?? around.variable('RUNLOCK_CONFIG');
  const name = parseLockName(named.name ?? around.variable('RUNLOCK_NAME') ?? 'default');
  const namedBase = dir === undefined ? null : around.resolve(dir);
  const config = loadConfig(
    configFile === undefined
      ? findConfig(namedBase ?? around.resolve('.'), around.top)
      : around.resolve(configFile),
  );
  if (config.store !== null || around.variable('RUNLOCK_STORE') !== undefined) {
    throw new RunlockError(
      'usage',
      'store: this version keeps its locks in a directory only; unset "store" and RUNLOCK_STORE',
    );
  }
  const base = namedBase ?? config.dir ?? around.resolve('runs');
  const by = named.dir !== undefined ? 'flag' : dir !== undefined ? 'variable' : null;
  return { base, name, config, by: by ?? (config.dir === null ? 'nothing' : 'config') };
}

/**
 * Schedulers start things in a home directory, in / or in System32: a state directory there is an accident.
 *
 * @throws RunlockError `usage`
 */
export function refuseAccident(base: string, homes: readonly string[]): void {
  const parent = path.dirname(base);
  const real = realPath(parent);
  const windows = process.env.SystemRoot;
  const places = [...homes, path.parse(real).root, ...(windows === undefined ? [] : [windows])].map(realPath);
  const inWindows = windows !== undefined && real.toLowerCase().startsWith(realPath(windows).toLowerCase());
  if (!places.includes(real) && !inWindows) return;
  throw new RunlockError(
    'usage',
    `no state directory is named, and ./runs is not made in ${parent}: name one (--dir or RUNLOCK_DIR), or put a runlock.json with "dir" there`,
  );
}

function realPath(file: string): string {
  try {
    return fs.realpathSync(file);
  } catch {
    return file;
  }
}
