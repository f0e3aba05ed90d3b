import fs from 'node:fs';

/*
 * On Unix arguments and variables are bytes, and Node has them as text: bytes that are no UTF-8 (a file name in
 * Latin-1, say) are lost in it, on the way in and on the way out. Linux still shows them in /proc, and a shell can
 * make them anew from text.
 */

/** A command line that starts the command with its bytes as they came, or null where text holds all of them. */
export function withRawBytes(argv: readonly string[]): string[] | null {
  if (process.platform !== 'linux') return null;
  const args = lostIn(argv, entries('cmdline').slice(-argv.length));
  const variables = lostVariables();
  if (args.size === 0 && variables.size === 0) return null;

  const lines = [...variables].map(
    ([name, bytes]) => `${name}=${word(bytes)}; ${name}=\${${name}%x}; export ${name}`,
  );
  const words = argv.map((_, index) => {
    const bytes = args.get(index);
    if (bytes === undefined) return `"\${${index + 1}}"`;
    lines.push(`w${index}=${word(bytes)}`);
    return `"\${w${index}%x}"`;
  });
  return ['/bin/sh', '-c', [...lines, `exec ${words.join(' ')}`].join('\n'), 'sh', ...argv];
}

/** Those texts, by index, that are not what their bytes say. */
function lostIn(texts: readonly string[], bytes: readonly Buffer[]): Map<number, Buffer> {
  const lost = new Map<number, Buffer>();
  if (bytes.length !== texts.length) return lost;
  for (const [index, raw] of bytes.entries()) {
    const text = texts[index];
    if (text !== undefined && text === raw.toString() && !Buffer.from(text).equals(raw)) lost.set(index, raw);
  }
  return lost;
}

/** Variables of our environment, by name, whose value is no UTF-8. */
function lostVariables(): Map<string, Buffer> {
  const lost = new Map<string, Buffer>();
  for (const entry of entries('environ')) {
    const at = entry.indexOf('=');
    const name = entry.subarray(0, at).toString('latin1');
    const value = entry.subarray(at + 1);
    if (/^[A-Za-z_]\w*$/.test(name) && !Buffer.from(value.toString()).equals(value)) lost.set(name, value);
  }
  return lost;
}

/** The NUL-separated entries of a file of our own in /proc; none where there is no such file. */
function entries(name: 'cmdline' | 'environ'): Buffer[] {
  let rest: Buffer;
  try {
    rest = fs.readFileSync(`/proc/self/${name}`);
  } catch {
    return [];
  }
  const found: Buffer[] = [];
  for (let end = rest.indexOf(0); end >= 0; end = rest.indexOf(0)) {
    found.push(rest.subarray(0, end));
    rest = rest.subarray(end + 1);
  }
  return found;
}

/** A shell word that gives these bytes and an x; without that, `$(…)` would drop line ends. */
function word(bytes: Buffer): string {
  const octal = [...bytes].map((byte) => `\\${byte.toString(8).padStart(3, '0')}`).join('');
  return `$(printf '${octal}x')`;
}
