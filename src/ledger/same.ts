import { isDeepStrictEqual } from 'node:util';
import { createScanner } from 'jsonc-parser';

/**
 * Whether two JSON texts are the same value: order of keys and blanks don't matter, numbers are compared as they are
 * written, since two 64-bit ids may be the same to JavaScript.
 */
export function isSameJson(one: string, other: string): boolean {
  try {
    return isDeepStrictEqual(exactValue(one), exactValue(other));
  } catch (error) {
    // Nested too deep to be compared.
    if (error instanceof RangeError) return false;
    throw error;
  }
}

/** The parsed value, with `#1.10` for a number and `"x` for a text. */
function exactValue(json: string): unknown {
  const scanner = createScanner(json, true);
  const pieces: string[] = [];
  for (scanner.scan(); scanner.getTokenLength() > 0; scanner.scan()) {
    const start = scanner.getTokenOffset();
    const token = json.slice(start, start + scanner.getTokenLength());
    if (token.startsWith('"')) pieces.push(JSON.stringify(`"${scanner.getTokenValue()}`));
    else if (/^[-\d]/.test(token)) pieces.push(`"#${token}"`);
    else pieces.push(token);
  }
  return JSON.parse(pieces.join(''));
}
