import fs from 'node:fs';
import { ioError, RunlockError } from '../errors.ts';
import { type Look, unreadableMarker } from '../lock.ts';
import { counts } from '../marker.ts';
import { parseItem } from '../names.ts';
import { decodeText, splitLines } from '../text.ts';
import { holderIn } from './output.ts';
import { readStdin } from './streams.ts';
import type { Target } from './target.ts';

/**
 * Candidates, one a line, each once, in order; empty lines are none.
 *
 * @param file a path, or `-` for stdin
 * @throws RunlockError `input` with the line that can't be an item
 */
export function readCandidates(file: string): string[] {
  const where = file === '-' ? 'the candidates on stdin' : file;
  const lines = splitLines(decodeText(file === '-' ? readStdin() : readFile(file), where));
  const items = lines.flatMap((line, index) =>
    line.trim() === '' ? [] : [itemAt(line, `${where}, line ${index + 1}`)],
  );
  return [...new Set(items)];
}

function itemAt(line: string, where: string): string {
  try {
    return parseItem(line);
  } catch (cause) {
    throw new RunlockError('input', `${where}: ${cause instanceof Error ? cause.message : cause}`, { cause });
  }
}

function readFile(file: string): Buffer {
  try {
    return fs.readFileSync(file);
  } catch (cause) {
    throw new RunlockError('input', ioError('read the candidates', file, cause).message, {
      path: file,
      cause,
    });
  }
}

/**
 * Those that may be started: without a mark that counts.
 *
 * @throws RunlockError `corrupt` while nobody knows what is marked
 */
export function startable(candidates: readonly string[], target: Target, look: Look): string[] {
  const { marker, now } = look.seen;
  if ('problem' in marker) throw unreadableMarker(marker.problem, target.dir);
  const holder = holderIn(look);
  const marked = new Set(
    marker.items.filter((entry) => counts(entry, target.settings, holder, now)).map((entry) => entry.item),
  );
  return candidates.filter((item) => !marked.has(item));
}
