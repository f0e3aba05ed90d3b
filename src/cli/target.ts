import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { systemClock } from '../clock.ts';
import { type Config, findConfig, type LockSettings, loadConfig } from '../config/config.ts';
import { type LockPlace, refuseAccident, resolvePlace } from '../config/place.ts';
import { ioError, RunlockError } from '../errors.ts';
import { systemWitness } from '../evidence/witness.ts';
import { Lock } from '../lock.ts';
import { nameOfFolder, parseLockName } from '../names.ts';
import { printable } from '../printable.ts';
import { FileStore, listLockFolders, type Notice } from '../stores/file/file-store.ts';
import { type Arguments, requireText } from './arguments.ts';
import { say } from './streams.ts';

/** The lock that a command line names, with what the configuration says about it. */
export interface Target {
  readonly lock: Lock;
  /** As people call it. */
  readonly name: string;
  /** The state directory, absolute. */
  readonly base: string;
  /** The lock's directory, absolute: what RUNLOCK_LOCK refers to. */
  readonly dir: string;
  readonly settings: LockSettings;
  readonly config: Config;
  readonly configPath: string | null;
}

/**
 * Which lock a command is about: flags, then the environment, then the configuration, then ./runs.
 *
 * @throws RunlockError `usage`, `config`, `input` or `io`
 */
export function findTarget(args: Arguments): Target {
  return targetOf(findPlace(args));
}

/** The same for a command that makes the directory if there is none. */
export function findTargetToTake(args: Arguments): Target {
  const place = findPlace(args);
  if (place.by === 'nothing' && !fs.existsSync(place.base)) refuseAccident(place.base, homes());
  return targetOf(place);
}

/** The configuration alone, for a command that is about no lock. */
export function findSettings(args: Arguments): Config {
  return findPlace(args).config;
}

/** Every lock under the state directory, the default one first. */
export function findAllTargets(args: Arguments): Target[] {
  const place = findPlace(args);
  const named = listLockFolders(place.base).map((folder) => ({ folder, name: nameOfFolder(folder) }));
  return [
    targetOf({ ...place, name: parseLockName('default') }),
    ...named.map(({ folder, name }) => {
      const lockName = name === null ? null : parseLockName(name);
      return makeTarget(
        place,
        folder,
        lockName?.text ?? folder,
        place.config.settingsFor(lockName ?? parseLockName('default')),
      );
    }),
  ];
}

/** The lock at an absolute directory, as RUNLOCK_LOCK names it. */
export function targetAt(dir: string): Target {
  if (!path.isAbsolute(dir)) {
    throw new RunlockError('usage', `RUNLOCK_LOCK: expected an absolute path, got "${printable(dir, 80)}"`);
  }
  const folder = path.basename(path.dirname(dir)) === 'locks' ? path.basename(dir) : null;
  const base = folder === null ? dir : path.dirname(path.dirname(dir));
  const name = parseLockName((folder === null ? null : nameOfFolder(folder)) ?? 'default');
  const config = loadConfig(findConfig(base));
  return makeTarget({ base, name, config, by: 'flag' }, folder, name.text, config.settingsFor(name));
}

/** Whether a flag of the command line names the lock. */
export function namesLock(args: Arguments): boolean {
  return ['dir', 'name', 'config'].some((option) => args.flag(option));
}

/** Where the lock of a command line is, without a look at it. */
export function findPlace(args: Arguments): LockPlace {
  const named = { dir: args.text('dir'), name: args.text('name'), config: args.text('config') };
  return resolvePlace(named, { resolve: absolute, variable: fromEnvironment });
}

function targetOf(place: LockPlace): Target {
  return makeTarget(place, place.name.folder, place.name.text, place.config.settingsFor(place.name));
}

function makeTarget(place: LockPlace, folder: string | null, name: string, settings: LockSettings): Target {
  const store = new FileStore({
    base: place.base,
    folder,
    clock: systemClock,
    singleMachine: place.config.singleMachine,
    notice: (notice) => say(`runlock: ${noticeWords(notice)}`),
  });
  const lock = new Lock(store, systemWitness, systemClock);
  return {
    lock,
    name,
    base: place.base,
    dir: store.where,
    settings,
    config: place.config,
    configPath: place.config.path,
  };
}

function noticeWords(notice: Notice): string {
  switch (notice.type) {
    case 'madeDirectory':
      return `made the state directory ${printable(notice.path, 4096)}`;
    case 'markerSetAside':
      return `${printable(notice.path, 4096)} could not be read: set aside as ${printable(notice.to, 4096)} and rebuilt from the history`;
    case 'leftToNext':
      return `done, but not tidied up: ${printable(notice.error.message, 400)}; the next command does`;
  }
}

/** None for a user whom the system doesn't know, or whose HOME is empty or relative. */
function homes(): string[] {
  try {
    return [os.homedir()].filter((home) => path.isAbsolute(home));
  } catch {
    return [];
  }
}

export function absolute(file: string): string {
  let resolved: string;
  try {
    resolved = path.resolve(file);
  } catch (cause) {
    // The current directory was deleted.
    throw ioError('find the current directory for', file, cause);
  }
  requireText(resolved, file === '.' ? 'the current directory' : file);
  return resolved;
}

/** An empty variable counts as none. */
export function fromEnvironment(name: string): string | undefined {
  const value = process.env[name];
  if (value === undefined || value === '') return undefined;
  requireText(value, name);
  return value;
}
