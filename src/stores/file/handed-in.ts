import fs from 'node:fs';
import path from 'node:path';
import { type Ownership, openPlain, readAll, Staged } from '../../disk/files.ts';
import { RunlockError } from '../../errors.ts';
import { recordIn } from '../../rules.ts';
import type { HandedInResult } from '../../store.ts';
import { decodeText } from '../../text.ts';
import { readCopy } from './live.ts';
import { type LockPaths, livePath, resultPath } from './paths.ts';

const MAX_BYTES = 1 << 28;

/**
 * What the command of a run handed in by `finish`, or wrote to its result file itself. What can't be used (it is no
 * JSON, no plain file, not ours to read) is kept aside and never stands in the way; an empty file is nothing.
 */
export function collectHandedIn(paths: LockPaths, run: number): HandedInResult {
  const file = resultPath(livePath(paths, run));
  const said = recordIn(readCopy(paths, run))?.handedIn ?? null;
  try {
    const text = readResult(file);
    return { text, said, rejected: null };
  } catch {
    return { text: null, said, rejected: setAside(paths, run, file) };
  }
}

function readResult(file: string): string | null {
  const fd = openPlain(file, 'read');
  if (fd === null) return null;
  try {
    const bytes = readAll(fd, MAX_BYTES);
    if (bytes === null)
      throw new RunlockError('input', `${file} is larger than ${MAX_BYTES} bytes`, { path: file });
    const text = decodeText(bytes, file);
    if (text.trim() === '') return null;
    JSON.parse(text);
    return text;
  } finally {
    fs.closeSync(fd);
  }
}

/** Moves a file whatever it is; one that can't even be moved stays. */
function setAside(paths: LockPaths, run: number, file: string): string {
  const to = freeName(paths, run);
  try {
    fs.renameSync(file, to);
    return to;
  } catch {
    return file;
  }
}

function freeName(paths: LockPaths, run: number): string {
  for (let n = 1; ; n += 1) {
    const file = path.join(paths.recordsDir, n === 1 ? `${run}.rejected` : `${run}.rejected-${n}`);
    if (fs.lstatSync(file, { throwIfNoEntry: false }) === undefined) return file;
  }
}

/** Keeps what was handed in but is no JSON. Earlier ones stay: nothing handed in is lost. */
export function keepRejected(paths: LockPaths, run: number, bytes: Uint8Array, ownership: Ownership): string {
  for (;;) {
    const file = freeName(paths, run);
    if (Staged.write(file, bytes, ownership, { sync: true }).createFile({ sync: true })) return file;
  }
}
