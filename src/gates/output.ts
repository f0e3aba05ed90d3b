import fs from 'node:fs';
import path from 'node:path';
import type { JsonSource, LogSource } from '../config/quotas.ts';
import { ioError, RunlockError, systemCode } from '../errors.ts';
import { type Opener, openersOf } from '../evidence/openers.ts';
import { printable } from '../printable.ts';
import type { GateAnswer } from './gate.ts';
import type { OutputGate } from './parse.ts';
import { isFileOf } from './quota/source-files.ts';

/** libuv's way to open a file so that nobody else may have it open: Windows refuses if somebody has. */
const UV_FS_O_EXLOCK = 0x1000_0000;

/**
 * The file at an output gate's path must not be one that runlock itself was given as stdin, stdout or stderr: the
 * command would write into a file that is removed under its feet.
 *
 * @throws RunlockError `usage`
 */
export function refuseOwnStreams(gate: OutputGate, file: string): void {
  const stat = statOrNull(() => fs.statSync(file, { bigint: true }));
  if (stat === null) return;
  for (const [fd, name] of ['stdin', 'stdout', 'stderr'].entries()) {
    const own = statOrNull(() => fs.fstatSync(fd, { bigint: true }));
    if (own === null || own.ino !== stat.ino || own.dev !== stat.dev) continue;
    throw new RunlockError(
      'usage',
      `gate ${printable(gate.text)}: ${printable(file, 4096)} is runlock's own ${name}, so it can't be removed before the run: let the command write the file itself, or to another one`,
      { path: file },
    );
  }
}

/** What must not be removed, and what it is in words: a file or a directory, or all files that a quota may count. */
export type Kept = { readonly what: string } & (
  | { readonly place: string }
  | { readonly source: JsonSource | LogSource }
);

/**
 * What runlock itself keeps, and the evidence that gates answer from, is nobody's output.
 *
 * @throws RunlockError `usage`
 */
export function refuseKept(gate: OutputGate, file: string, kept: readonly Kept[]): void {
  const entry = entryPlace(file);
  const found = kept.find((one) =>
    'place' in one ? isAt(entry, one.place) : isEvidence(entry, file, one.source),
  );
  if (found === undefined) return;
  throw new RunlockError(
    'usage',
    `gate ${printable(gate.text)}: ${printable(file, 4096)} is ${printable(found.what)}, and not the output of a job`,
    { path: file },
  );
}

/** By any of its names, as far as links can be followed where a date stands in the path. */
function isEvidence(entry: string, file: string, source: JsonSource | LogSource): boolean {
  const { pieces, base, text, folder } = source.path;
  if (pieces.every((piece) => typeof piece === 'string') && isAt(entry, path.resolve(base, text)))
    return true;
  return [entry, path.resolve(file)].some(
    (name) => isFileOf(source, name) || isFileOf(source, name, realPlace(folder)),
  );
}

/**
 * Whether what would be removed is that file or directory, the link that leads to it, or lies in it. A directory has
 * many names (links, letter case, mounts) and one inode.
 */
function isAt(entry: string, place: string): boolean {
  const places = [entryPlace(place), realPlace(place)];
  if (places.some((own) => entry === own || entry.startsWith(`${own}${path.sep}`))) return true;
  const own = [identityOf(fs.lstatSync, place), identityOf(fs.statSync, place)];
  const removed = [
    identityOf(fs.lstatSync, entry),
    ...parentsOf(entry).map((parent) => identityOf(fs.statSync, parent)),
  ];
  return removed.some((one) => one !== null && own.includes(one));
}

/** Where a name stands, links on the way to it followed, but not one that stands there: that is what is removed. */
function entryPlace(file: string): string {
  return path.join(realPlace(path.dirname(file)), path.basename(file));
}

/** The place itself, all links followed; of what is not there yet, as far as it is. */
function realPlace(file: string): string {
  try {
    return fs.realpathSync(file);
  } catch {
    return path.dirname(file) === file ? file : entryPlace(file);
  }
}

function identityOf(look: typeof fs.statSync | typeof fs.lstatSync, file: string): string | null {
  const stat = statOrNull(() => look(file, { bigint: true, throwIfNoEntry: true }));
  return stat === null ? null : `${stat.dev}:${stat.ino}`;
}

function parentsOf(file: string): string[] {
  const parent = path.dirname(file);
  return parent === file ? [] : [parent, ...parentsOf(parent)];
}

function statOrNull(stat: () => fs.BigIntStats): fs.BigIntStats | null {
  try {
    return stat();
  } catch {
    // Not there, or closed; what can't be looked at is found when the gate is asked.
    return null;
  }
}

/**
 * Closed while a process has the file open. What stands there must be something that may be removed: a file, or a
 * link (of which the link is removed, never what it points to).
 *
 * @throws RunlockError `io`, `corrupt` for a directory, a FIFO or a device
 */
export async function askOutput(gate: OutputGate, file: string): Promise<GateAnswer> {
  const open = (reason: string | null): GateAnswer => ({ gate: gate.text, open: true, code: 0, reason });
  const stat = guarded(file, () => fs.lstatSync(file));
  if (stat === null) return open(null);
  if (!stat.isFile() && !stat.isSymbolicLink()) {
    const what = stat.isDirectory() ? 'a directory' : 'no regular file';
    throw new RunlockError('corrupt', `${printable(file, 4096)}: expected a file, got ${what}`, {
      path: file,
    });
  }
  const target = guarded(file, () => fs.statSync(file));
  // A link that leads nowhere: nobody can have it open.
  if (target === null) return open(null);
  // Such a link says which release is the current one, and is no output.
  if (target.isDirectory())
    throw new RunlockError(
      'corrupt',
      `${printable(file, 4096)}: expected a file, got a link to a directory`,
      {
        path: file,
      },
    );
  if (process.platform === 'win32') return isRefused(file) ? closed(gate, file, []) : open(null);
  const openers = await look(file);
  if (openers === null) return open(null);
  if (openers.processes.length > 0) return closed(gate, file, openers.processes);
  return open(unseenWords(openers.unseen));
}

/** Null: it was there, and is gone now. */
async function look(file: string) {
  try {
    return await openersOf(file);
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return null;
    throw ioError('look at', printable(file, 4096), error);
  }
}

/** Removes the file, or the link, at the path of a gate that was open. */
export function removeOutput(file: string): void {
  try {
    fs.unlinkSync(file);
  } catch (error) {
    if (systemCode(error) !== 'ENOENT') throw ioError('remove the output', printable(file, 4096), error);
  }
}

function closed(gate: OutputGate, file: string, openers: readonly Opener[]): GateAnswer {
  const names = openers
    .slice(0, 3)
    .map(({ pid, name }) => (name === '' ? `pid ${pid}` : `${name} (pid ${pid})`));
  const more = openers.length > 3 ? ` and ${openers.length - 3} more` : '';
  const by = names.length === 0 ? 'another process' : `${names.join(', ')}${more}`;
  return {
    gate: gate.text,
    open: false,
    code: 9,
    reason: `${printable(file, 4096)} is open in ${by}`,
  };
}

function unseenWords(unseen: number | null): string | null {
  if (unseen === 0) return null;
  return unseen === null
    ? 'which processes have it open can not be seen here'
    : 'no process that can be seen has it open; those of other users can not be seen';
}

function isRefused(file: string): boolean {
  try {
    fs.closeSync(fs.openSync(file, fs.constants.O_RDONLY | UV_FS_O_EXLOCK));
    return false;
  } catch (error) {
    if (systemCode(error) === 'EBUSY') return true;
    if (systemCode(error) === 'ENOENT') return false;
    throw ioError('open', printable(file, 4096), error);
  }
}

function guarded(file: string, stat: () => fs.Stats): fs.Stats | null {
  try {
    return stat();
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return null;
    throw ioError('look at', printable(file, 4096), error);
  }
}
