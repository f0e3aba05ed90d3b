import fs from 'node:fs';
import path from 'node:path';
import { RunlockError } from '../../errors.ts';
import type { HandedInResult } from '../../store.ts';
import { decodeText } from '../../text.ts';
import { type Ownership, openPlain, readAll, Staged } from './files.ts';
import { readCopy } from './live.ts';
import { type LockPaths, livePath, resultPath } from './paths.ts';

const MAX_BYTES = 1 << 28;

/**
 * What the command of a run handed in by `finish`, or wrote to its result file itself. What is no JSON is kept
 * aside; an empty file is nothing.
 */
export function collectHandedIn(paths: LockPaths, run: number, ownership: Ownership): HandedInResult {
  const file = resultPath(livePath(paths, run));
  const bytes = readBytes(file);
  const copy = readCopy(paths, run);
  const said = copy !== null && 'record' in copy.content ? copy.content.record.handedIn : null;
  if (bytes === null) return { text: null, said, rejected: null };
  try {
    const text = decodeText(bytes, file);
    if (text.trim() === '') return { text: null, said, rejected: null };
    JSON.parse(text);
    return { text, said, rejected: null };
  } catch {
    return { text: null, said, rejected: keepRejected(paths, run, bytes, ownership) };
  }
}

function readBytes(file: string): Buffer | null {
  const fd = openPlain(file, 'read');
  if (fd === null) return null;
  try {
    const bytes = readAll(fd, MAX_BYTES);
    if (bytes === null)
      throw new RunlockError('input', `${file} is larger than ${MAX_BYTES} bytes`, { path: file });
    return bytes;
  } finally {
    fs.closeSync(fd);
  }
}

/** Keeps what was handed in but is no JSON. Earlier ones stay: nothing handed in is lost. */
export function keepRejected(paths: LockPaths, run: number, bytes: Uint8Array, ownership: Ownership): string {
  for (let n = 1; ; n += 1) {
    const file = path.join(paths.recordsDir, n === 1 ? `${run}.rejected` : `${run}.rejected-${n}`);
    if (fs.existsSync(file)) continue;
    if (Staged.write(file, bytes, ownership, { sync: true }).createFile({ sync: true })) return file;
  }
}
