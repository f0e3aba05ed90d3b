import { escapePattern } from '../../dated-path.ts';
import { textKey } from '../../names.ts';

/*
 * What rotation makes of a log's name: NAME.1, NAME.2.gz, NAME-20261130, NAME.old, and before the extension app.1.log,
 * app-2026-11-30.log. A neighbour that is taken for the log by mistake counts too much, and is seen; one that is
 * passed over counts 0 without a word.
 */

/** A month or a day, perhaps with a time. */
const STAMP = String.raw`(?:19|20)\d\d[-_.]?(?:0[1-9]|1[0-2])(?:[-T_.:]?\d)*Z?`;
const WORD = 'old|bak|prev';
/** `app-1.log` is more likely of another process than an older one. */
const INSIDE = String.raw`(?:[-._]{1,2}${STAMP}|\.\d+|[-._](?:${WORD}))`;
const BEHIND = String.raw`(?:[-._](?:\d+|${STAMP}|${WORD}))`;
const PACKED = String.raw`(?:\.tar)?\.(?:gz|tgz|xz|txz|lzma|bz2|tbz2?|zst|lz4|lzo|br|Z|zip|7z|rar)`;

/** Matches a log's name and its rotated ones. Both parts are sources of regular expressions. */
export function rotationPattern(stem: string, extension: string): string {
  // Not any number of marks: who can name a file must not be able to keep the search busy.
  return `${stem}${INSIDE}?${extension}${BEHIND}{0,3}(?:${PACKED})?`;
}

/** Whether a file is a log of this name, or what rotation has made of it. */
export function isRotationOf(name: string, file: string): boolean {
  const [stem, extension] = splitExtension(textKey(name)).map(escapePattern);
  return new RegExp(`^${rotationPattern(stem ?? '', extension ?? '')}$`, 'su').test(textKey(file));
}

/** What a packed file begins with that can't be read here: xz, bzip2, zstd, lz4, compress, zip, 7z. */
const MAGIC = /^(?:fd377a585a|425a683\d3141|28b52ffd|04224d18|1f9d|504b0304|377abcaf)/;

/** Whether it is packed in another way than gzip, by its name or its first bytes. */
export function isForeignPacked(name: string, beginning: Buffer): boolean {
  const [extension] = new RegExp(`${PACKED}$`).exec(name) ?? [];
  if (extension !== undefined && extension !== '.gz') return true;
  return MAGIC.test(beginning.toString('hex'));
}

/** `app.log` is `app` and `.log`. */
export function splitExtension(name: string): [stem: string, extension: string] {
  const [, stem = name, extension = ''] = /^(.+)(\.[^.]+)$/s.exec(name) ?? [];
  return [stem, extension];
}
