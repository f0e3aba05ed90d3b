import { RunlockError } from '../errors.ts';
import { parseItem, textKey } from '../names.ts';
import { decodeText, splitLines } from '../text.ts';
import { readInput } from './input.ts';

/**
 * Candidates, one a line, each once, in order and as it was first written; empty lines are none.
 *
 * @param file a path, or `-` for stdin
 * @throws RunlockError `input` with the line that can't be an item
 */
export function readCandidates(file: string): string[] {
  const where = file === '-' ? 'the candidates on stdin' : file;
  const lines = splitLines(decodeText(readInput(file, 'the candidates'), where));
  const items = lines.flatMap((line, index) =>
    line.trim() === '' ? [] : [itemAt(line, `${where}, line ${index + 1}`)],
  );
  const byKey = new Map<string, string>();
  for (const item of items) if (!byKey.has(textKey(item))) byKey.set(textKey(item), item);
  return [...byKey.values()];
}

function itemAt(line: string, where: string): string {
  try {
    return parseItem(line);
  } catch (cause) {
    throw new RunlockError('input', `${where}: ${cause instanceof Error ? cause.message : cause}`, { cause });
  }
}
