import fs from 'node:fs';
import path from 'node:path';
import { FILE_NAME, findConfig, loadConfig } from '../../config/config.ts';
import { ownershipOfNew, Staged } from '../../disk/files.ts';
import { ioError, RunlockError } from '../../errors.ts';
import { resolveLedger } from '../../ledger/reference.ts';
import { printable } from '../../printable.ts';
import { makeStateDirectory } from '../../stores/file/file-store.ts';
import type { Arguments } from '../arguments.ts';
import { EXIT } from '../exit-codes.ts';
import { answerJson } from '../output.ts';
import { answer, say } from '../streams.ts';
import { absolute, fromEnvironment } from '../target.ts';

/** What a new configuration says: the bounds that hold without one, and a time limit for `run`. */
const BOUNDS = { hold: '45m', fresh: '2h', unknownFor: '2h', timeout: '45m', killAfter: '10s' };

const DEFAULT_DIR = 'runs';

/** Without a configuration there is none: who begins with `init` should know why a long run ends. */
const LIMIT_WORDS = ` (every run ends after "timeout": ${BOUNDS.timeout})`;

/**
 * Makes what is missing, and never changes what is there, so that it may be called again when a ledger was added to
 * the configuration.
 */
export async function main(args: Arguments): Promise<number> {
  if (args.flag('name'))
    throw new RunlockError('usage', 'runlock init: expected no --name: a named lock is made by who takes it');
  const named = args.text('config') ?? fromEnvironment('RUNLOCK_CONFIG');
  const file = absolute(named ?? FILE_NAME);
  const dirText = args.text('dir') ?? fromEnvironment('RUNLOCK_DIR');
  const dir = dirText === undefined ? null : absolute(dirText);
  const above = configurationAbove(file);
  const made = write(file, dir);
  if (made.length > 0 && above !== null) {
    say(
      `runlock: what is started in or below ${printable(path.dirname(file), 4096)} no longer means ${printable(above, 4096)}, but the new configuration`,
    );
  }
  const config = loadConfig(file);
  if (dir !== null && config.dir !== dir) {
    throw new RunlockError(
      'usage',
      `${printable(file, 4096)} is there already and names the state directory ${printable(config.dir ?? '', 4096)}, not ${printable(dir, 4096)}: change "dir" in it, or leave out --dir and RUNLOCK_DIR`,
      { path: file },
    );
  }
  const stateDir = config.dir ?? path.dirname(file);
  if (makeStateDirectory(stateDir)) made.push(stateDir);

  const { makeLedger } = await import('../../ledger/ledger.ts');
  for (const name of config.ledgers.keys()) {
    const ledger = resolveLedger(name, config, stateDir);
    if (makeLedger(ledger)) made.push(ledger.file);
  }
  if (args.flag('json')) answerJson({ config: file, dir: stateDir, made });
  else {
    const lines = made.map((one) => `made ${printable(one, 4096)}${one === file ? LIMIT_WORDS : ''}`);
    answer(
      `${(lines.length === 0 ? [`nothing to make: ${printable(file, 4096)} stands`] : lines).join('\n')}\n`,
    );
  }
  return EXIT.ok;
}

/** The one that a new file hides from whoever looks for it upwards. */
function configurationAbove(file: string): string | null {
  if (path.basename(file) !== FILE_NAME) return null;
  try {
    return findConfig(path.dirname(path.dirname(file)));
  } catch {
    // Where nobody can look, nobody finds one.
    return null;
  }
}

/**
 * Writes the configuration, after it has made the directory that it names: one that can't be made must not be named.
 *
 * @returns what was made; nothing if there is a configuration: it is left as it is
 */
function write(file: string, dir: string | null): string[] {
  const folder = path.dirname(file);
  try {
    if (fs.lstatSync(file, { throwIfNoEntry: false }) !== undefined) return [];
    fs.statSync(folder);
  } catch (error) {
    throw ioError('make the configuration', printable(file, 4096), error);
  }
  const stateDir = dir ?? path.join(folder, DEFAULT_DIR);
  const madeDir = makeStateDirectory(stateDir) ? [stateDir] : [];
  const text = `${JSON.stringify({ dir: dirWords(folder, dir), ...BOUNDS }, null, 2)}\n`;
  const madeFile = Staged.write(file, text, ownershipOfNew(file), { sync: true }).createFile({ sync: true });
  return [...(madeFile ? [file] : []), ...madeDir];
}

/** Relative where it is inside the project, so that the project can be moved. */
function dirWords(folder: string, dir: string | null): string {
  if (dir === null) return DEFAULT_DIR;
  const relative = path.relative(folder, dir);
  return relative === '' || relative.startsWith('..') || path.isAbsolute(relative) ? dir : relative;
}
