/**
 * A careful reading of the text behind `sh -c`: the words of its one simple command, or null if there is
 * more in it (a list, a pipeline, a loop) or it can't be read for certain. Leading assignments and
 * redirections are left out. A substitution stays in its word, unread: it is an argument of the one call.
 */
export function simpleCommand(text: string): string[] | null {
  const words = readWords(text);
  if (words === null) return null;
  const command: string[] = [];
  for (const word of words) {
    if (word.quoted || command.length > 0 || !/^\w+\+?=/.test(word.text)) command.push(word.text);
  }
  return command.length > 0 && !KEYWORDS.has(command[0] ?? '') ? command : null;
}

/** They begin something that goes on after its first command. */
const KEYWORDS = new Set('if for while until case select function { [[ do then else elif coproc'.split(' '));

interface Word {
  text: string;
  /** Its beginning was quoted, so that it is neither an assignment nor a keyword. */
  quoted: boolean;
}

function readWords(text: string): Word[] | null {
  const words: Word[] = [];
  // One separator at the very end separates nothing.
  const source = text.replace(/\s+$/, '').replace(/(?<![;&\\]);$/, '');
  let word: Word | null = null;
  let redirecting = false;
  let at = 0;

  while (at < source.length) {
    const char = source.charAt(at);
    if (char === '\n' || ';&|()'.includes(char)) {
      // `2>&1` and `&>file` are redirections, each other & ends a command; lines before the first word separate nothing.
      if (char === '\n' && words.length === 0 && word === null) at++;
      else if (char === '&' && source[at + 1] === '>') endWord();
      else return null;
      if (char === '&') at++;
    } else if (/\s/.test(char)) {
      endWord();
      at++;
    } else if (char === '\\' && source[at + 1] === '\n') {
      at += 2;
    } else if (char === '#' && word === null) {
      const end = source.indexOf('\n', at);
      at = end < 0 ? source.length : end;
    } else if (char === '<' || char === '>') {
      // A here-document brings lines of its own, a process substitution commands.
      const operator = /^(<<<|<>|<&|>&|>>|>\||<(?![<(])|>(?!\())/.exec(source.slice(at))?.[0];
      if (operator === undefined) return null;
      if (word !== null && /^\d+$/.test(word.text)) word = null;
      endWord();
      redirecting = true;
      at += operator.length;
    } else {
      const piece = readPiece(source, at);
      if (piece === null) return null;
      word ??= { text: '', quoted: piece.quoted };
      word.text += piece.text;
      at = piece.end;
    }
  }
  endWord();
  return words;

  function endWord(): void {
    if (word === null) return;
    if (!redirecting) words.push(word);
    redirecting = false;
    word = null;
  }
}

interface Piece {
  text: string;
  quoted: boolean;
  end: number;
}

/** Nobody nests substitutions so deep; what somebody has made to be read must not exhaust the stack. */
const MAX_LEVEL = 100;

/** One piece of a word: a quoted part, a substitution, or a single character. Null if it never ends. */
function readPiece(source: string, at: number, level = 0): Piece | null {
  if (level > MAX_LEVEL) return null;
  const char = source.charAt(at);
  if (char === '\\') {
    return { text: source.charAt(at + 1), quoted: true, end: at + 2 };
  }
  if (char === "'") {
    const end = source.indexOf("'", at + 1);
    return end < 0 ? null : { text: source.slice(at + 1, end), quoted: true, end: end + 1 };
  }
  if (char === '"') return readDoubleQuotes(source, at, level);
  const end = char === '`' || char === '$' ? substitutionEnd(source, at, level) : at + 1;
  return end === null ? null : { text: source.slice(at, end), quoted: false, end };
}

function readDoubleQuotes(source: string, start: number, level: number): Piece | null {
  let text = '';
  let at = start + 1;
  while (at < source.length) {
    const char = source.charAt(at);
    if (char === '"') return { text, quoted: true, end: at + 1 };
    if (char === '\\') {
      const next = source.charAt(at + 1);
      if (next !== '\n') text += '$`"\\'.includes(next) ? next : char + next;
      at += 2;
    } else {
      const end = char === '`' || char === '$' ? substitutionEnd(source, at, level) : at + 1;
      if (end === null) return null;
      text += source.slice(at, end);
      at = end;
    }
  }
  return null;
}

/** Where a substitution that begins here (`$(…)`, `${…}`, backquotes) ends; a lone `$` ends after itself. */
function substitutionEnd(source: string, start: number, level: number): number | null {
  if (source[start] === '`') {
    for (let at = start + 1; at < source.length; at++) {
      if (source[at] === '\\') at++;
      else if (source[at] === '`') return at + 1;
    }
    return null;
  }
  const open = source.charAt(start + 1);
  const close = { '(': ')', '{': '}' }[open];
  if (close === undefined) return start + 1;
  let depth = 0;
  for (let at = start + 1; at < source.length; ) {
    const char = source.charAt(at);
    if (char === open) depth++;
    if (char === close && --depth === 0) return at + 1;
    const piece = char === open || char === close ? { end: at + 1 } : readPiece(source, at, level + 1);
    if (piece === null) return null;
    at = piece.end;
  }
  return null;
}
