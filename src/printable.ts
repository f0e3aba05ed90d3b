/**
 * What must not reach a terminal or break a line: controls (C0, C1, DEL), line and paragraph separators,
 * bidi and other format characters, everything else that shows nothing, lone surrogates.
 * Kept are the joiner and the variation selectors, which emoji are made of.
 */
const HOSTILE = /(?![\u200d\ufe00-\ufe0f\u{e0100}-\u{e01ef}])[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{DI}]/u;

/**
 * Any text as one line that is safe to show: what a terminal could act on, or a reader could not see, is
 * written as `\u{1b}`.
 * @param max code points of the answer; a longer one is cut and ends in `…`, never inside an escape.
 */
export function printable(text: string, max = 200): string {
  // By pieces and no further than needed: the text may be a whole file.
  const pieces: string[] = [];
  let length = 0;
  let fits = 0;
  for (const char of text) {
    const piece = HOSTILE.test(char) ? `\\u{${(char.codePointAt(0) ?? 0).toString(16)}}` : char;
    const size = piece === char ? 1 : piece.length;
    if (length + size > max) return max < 1 ? '' : `${pieces.slice(0, fits).join('')}…`;
    pieces.push(piece);
    length += size;
    if (length < max) fits = pieces.length;
  }
  return pieces.join('');
}

/**
 * JSON on one line in ASCII alone, so that no console's code page can spoil it on the way to another program.
 * @throws TypeError as JSON.stringify does, on a cycle or a bigint
 */
export function asciiJson(value: unknown): string {
  // JSON.stringify answers undefined for what has no JSON.
  const json: string | undefined = JSON.stringify(value);
  return (json ?? 'null').replace(/[^\x20-\x7e]/g, (unit) => {
    return `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
  });
}
