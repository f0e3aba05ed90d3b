import { RunlockError } from '../errors.ts';
import { printable } from '../printable.ts';

/** Where in a document the ledger's object stands: the keys on the way to it, none for the whole document. */
export type LedgerPlace = readonly string[];

/**
 * A place as people write it: a key, or a JSON pointer (RFC 6901), which begins with `/`. Empty is the whole document.
 *
 * @param what what it is the place of, as the user knows it
 * @throws RunlockError `usage` for an escape that no pointer has
 */
export function parsePlace(text: string, what: string): LedgerPlace {
  if (text === '') return [];
  if (!text.startsWith('/')) return [text];
  if (/~(?![01])/.test(text)) {
    throw new RunlockError(
      'usage',
      `${what}: expected a JSON pointer, in which "~" stands as ~0 and "/" as ~1, got "${printable(text, 100)}"`,
    );
  }
  return text
    .slice(1)
    .split('/')
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'));
}

/** A place as a JSON pointer, harmless for a terminal. */
export function placeWords(place: LedgerPlace): string {
  if (place.length === 0) return 'the top';
  const steps = place.map((step) => `/${step.replaceAll('~', '~0').replaceAll('/', '~1')}`);
  return printable(steps.join(''), 400);
}
