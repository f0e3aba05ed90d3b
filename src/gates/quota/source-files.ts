import path from 'node:path';
import type { JsonSource, LogSource } from '../../config/quotas.ts';
import { escapePattern, formatPattern } from '../../dated-path.ts';
import { textKey } from '../../names.ts';
import { rotationPattern, splitExtension } from './rotation.ts';

/** Whether a source reads a file of this name, today or on another day. `folder` is what the pattern's is known as. */
export function isFileOf(source: JsonSource | LogSource, file: string, folder = source.path.folder): boolean {
  const { pieces, base } = source.path;
  // Resolved like a path, with something in place of the dates that no path has.
  const formats: string[] = [];
  const text = pieces.map((piece) =>
    typeof piece === 'string' ? piece : `\0${formats.push(piece.format)}\0`,
  );
  const whole = path.join(folder, path.relative(source.path.folder, path.resolve(base, text.join(''))));
  const pattern = (part: string) =>
    part
      .split('\0')
      .map((piece, index) =>
        index % 2 === 0 ? escapePattern(textKey(piece)) : formatPattern(formats[Number(piece) - 1] ?? ''),
      )
      .join('');
  const name = path.basename(whole);
  const [stem, extension] = splitExtension(name);
  const names = source.type === 'log' ? rotationPattern(pattern(stem), pattern(extension)) : pattern(name);
  const folderPattern = pattern(whole.slice(0, whole.length - name.length));
  return new RegExp(`^${folderPattern}${names}$`, process.platform === 'linux' ? 'u' : 'iu').test(
    textKey(file),
  );
}
