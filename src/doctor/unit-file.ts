import type { Where } from './finding.ts';

/** One line `Key=value` of a unit file. */
export interface Setting {
  readonly section: string;
  readonly key: string;
  readonly value: string;
  readonly where: Where;
}

/** Reads a unit file, or a drop-in; a backslash at its end goes on with a line, comments between are passed over. */
export function parseUnit(text: string, file: string): Setting[] {
  const settings: Setting[] = [];
  let section = '';
  let pieces: string[] = [];
  let begun = 0;
  for (const [index, raw] of text.split('\n').entries()) {
    const line = raw.endsWith('\r') ? raw.slice(0, -1) : raw;
    if (/^\s*[#;]/.test(line)) continue;
    if (pieces.length === 0) begun = index + 1;
    if (line.endsWith('\\')) {
      pieces.push(line.slice(0, -1));
      continue;
    }
    const said = [...pieces, line].join(' ').trim();
    pieces = [];
    if (said.startsWith('[') && said.endsWith(']')) section = said.slice(1, -1);
    const [, key, value = ''] = /^([A-Za-z0-9-]+)\s*=\s*(.*)$/s.exec(said) ?? [];
    if (key !== undefined) settings.push({ section, key, value, where: { file, line: begun } });
  }
  return settings;
}

/** A setting that may be repeated; an empty one takes back those before it. */
export function listOf(settings: readonly Setting[], key: string): Setting[] {
  let list: Setting[] = [];
  for (const setting of settings) {
    if (setting.section !== 'Service' || setting.key !== key) continue;
    if (setting.value === '') list = [];
    else list.push(setting);
  }
  return list;
}

/** A setting that counts once: the last one. */
export function lastOf(settings: readonly Setting[], key: string): Setting | undefined {
  return listOf(settings, key).at(-1);
}

const ESCAPES: Readonly<Record<string, string>> = { n: '\n', t: '\t', s: ' ', r: '\r', a: '\x07', b: '\b' };

/** The words of a value, with systemd's quotes and escapes. */
export function splitWords(value: string): string[] {
  const words: string[] = [];
  let word: string | null = null;
  let quote = '';
  for (let at = 0; at < value.length; at++) {
    const char = value.charAt(at);
    if (char === '\\') {
      at++;
      const next = value.charAt(at);
      const hex = next === 'x' ? /^[0-9a-fA-F]{2}/.exec(value.slice(at + 1, at + 3))?.[0] : undefined;
      if (hex !== undefined) at += 2;
      word =
        (word ?? '') +
        (hex === undefined ? (ESCAPES[next] ?? next) : String.fromCharCode(Number.parseInt(hex, 16)));
    } else if (quote !== '') {
      if (char === quote) quote = '';
      else word = (word ?? '') + char;
    } else if (char === '"' || char === "'") {
      quote = char;
      word ??= '';
    } else if (/\s/.test(char)) {
      if (word !== null) words.push(word);
      word = null;
    } else word = (word ?? '') + char;
  }
  if (word !== null) words.push(word);
  return words;
}

/** An environment file: `NAME=value` a line, quotes around a value dropped, comments with `#` or `;`. */
export function parseEnvironmentFile(text: string): Map<string, string> {
  const variables = new Map<string, string>();
  for (const line of text.split('\n')) {
    const [, name, value = ''] = /^(?:export\s+)?([A-Za-z_]\w*)\s*=\s*(.*)$/s.exec(line.trim()) ?? [];
    if (name !== undefined) variables.set(name, value.replace(/^(["'])(.*)\1$/s, '$2'));
  }
  return variables;
}
