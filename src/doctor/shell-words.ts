/** A part of a word, as far as it can be told without running anything. */
export type Part =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'variable'; readonly name: string; readonly raw: string }
  /** `$(…)` or backquotes: commands of their own. */
  | { readonly type: 'substitution'; readonly text: string; readonly raw: string }
  /** Only the shell knows: `${x%y}`, a pattern. */
  | { readonly type: 'opaque'; readonly raw: string };

export interface ShellWord {
  readonly parts: readonly Part[];
  /** It begins unquoted, so that it may be an assignment, a keyword or a `~`. */
  readonly bare: boolean;
}

/** What a shell's text is made of: words, and what stands between commands. Redirections are left out. */
export type Token =
  | { readonly type: 'word'; readonly word: ShellWord }
  | { readonly type: 'end' | 'open' | 'close' };

/** Reads any text; what never ends, ends with the text. */
export function readShell(source: string): Token[] {
  const tokens: Token[] = [];
  let word: { parts: Part[]; bare: boolean } | null = null;
  let redirecting = false;
  let at = 0;

  const endWord = () => {
    if (word !== null && !redirecting) tokens.push({ type: 'word', word });
    if (word !== null) redirecting = false;
    word = null;
  };
  const add = (part: Part, bare: boolean) => {
    word ??= { parts: [], bare };
    const last = word.parts.at(-1);
    if (part.type === 'text' && last?.type === 'text') {
      word.parts[word.parts.length - 1] = { type: 'text', text: last.text + part.text };
    } else word.parts.push(part);
  };

  while (at < source.length) {
    const char = source.charAt(at);
    if (/[ \t\r]/.test(char)) {
      endWord();
      at++;
    } else if (char === '&' && source[at + 1] === '>') {
      endWord();
      at++;
    } else if (';&|\n()'.includes(char)) {
      endWord();
      redirecting = false;
      tokens.push({ type: char === '(' ? 'open' : char === ')' ? 'close' : 'end' });
      at++;
    } else if (char === '#' && word === null) {
      const end = source.indexOf('\n', at);
      at = end < 0 ? source.length : end;
    } else if (char === '<' || char === '>') {
      if (isNumber(word)) word = null;
      endWord();
      redirecting = true;
      at += /^(?:<<<|<<-?|<>|<&|>&|>>|>\||.)/.exec(source.slice(at, at + 3))?.[0].length ?? 1;
    } else if (char === "'") {
      const end = endOf(source.indexOf("'", at + 1), source);
      add({ type: 'text', text: source.slice(at + 1, end) }, false);
      at = end + 1;
    } else if (char === '"') {
      at = readQuoted(source, at + 1, (part) => add(part, false));
    } else if (char === '\\') {
      if (source[at + 1] !== '\n') add({ type: 'text', text: source.slice(at + 1, at + 2) }, false);
      at += 2;
    } else if (char === '$' || char === '`') {
      const { part, end } = readDollar(source, at);
      add(part, true);
      at = end;
    } else {
      const part: Part =
        char === '*' || char === '?' || char === '['
          ? { type: 'opaque', raw: char }
          : { type: 'text', text: char };
      add(part, true);
      at++;
    }
  }
  endWord();
  return tokens;
}

function isNumber(word: { parts: Part[] } | null): boolean {
  const [part] = word?.parts ?? [];
  return word?.parts.length === 1 && part?.type === 'text' && /^\d+$/.test(part.text);
}

/** Double quotes; returns where they end. */
function readQuoted(source: string, start: number, add: (part: Part) => void): number {
  add({ type: 'text', text: '' });
  let at = start;
  while (at < source.length) {
    const char = source.charAt(at);
    if (char === '"') return at + 1;
    if (char === '\\') {
      const next = source.charAt(at + 1);
      if (next !== '\n') add({ type: 'text', text: '$`"\\'.includes(next) ? next : char + next });
      at += 2;
    } else if (char === '$' || char === '`') {
      const { part, end } = readDollar(source, at);
      add(part);
      at = end;
    } else {
      add({ type: 'text', text: char });
      at++;
    }
  }
  return at;
}

function readDollar(source: string, at: number): { part: Part; end: number } {
  if (source[at] === '`') {
    let end = at + 1;
    while (end < source.length && source[end] !== '`') end += source[end] === '\\' ? 2 : 1;
    const raw = source.slice(at, end + 1);
    return { part: { type: 'substitution', text: source.slice(at + 1, end), raw }, end: end + 1 };
  }
  const name = /^\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)\})/.exec(source.slice(at, at + 300));
  if (name !== null) {
    const part: Part = { type: 'variable', name: name[1] ?? name[2] ?? '', raw: name[0] };
    return { part, end: at + name[0].length };
  }
  const open = source.charAt(at + 1);
  if (open === '(' || open === '{') {
    const end = closing(source, at + 1, open, open === '(' ? ')' : '}');
    const raw = source.slice(at, end + 1);
    const commands = open === '(' && source[at + 2] !== '(';
    const part: Part = commands
      ? { type: 'substitution', text: source.slice(at + 2, end), raw }
      : { type: 'opaque', raw };
    return { part, end: end + 1 };
  }
  if (/[\w@*#?$!-]/.test(open)) return { part: { type: 'opaque', raw: `$${open}` }, end: at + 2 };
  return { part: { type: 'text', text: '$' }, end: at + 1 };
}

/** Where a bracket is closed; quotes and brackets inside are passed over. */
function closing(source: string, start: number, open: string, close: string): number {
  let depth = 0;
  for (let at = start; at < source.length; at++) {
    const char = source[at];
    if (char === '\\') at++;
    else if (char === "'" || char === '"') {
      at = endOf(nextUnescaped(source, at + 1, char), source);
    } else if (char === open) depth++;
    else if (char === close && --depth === 0) return at;
  }
  return source.length;
}

function nextUnescaped(source: string, start: number, quote: string): number {
  for (let at = start; at < source.length; at++) {
    if (quote === '"' && source[at] === '\\') at++;
    else if (source[at] === quote) return at;
  }
  return -1;
}

function endOf(found: number, source: string): number {
  return found < 0 ? source.length : found;
}
