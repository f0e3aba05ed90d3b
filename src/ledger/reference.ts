import path from 'node:path';
import type { Config } from '../config/config.ts';
import { ioError, RunlockError } from '../errors.ts';
import { textKey } from '../names.ts';
import { type LedgerPlace, parsePlace } from './place.ts';

/** Which object in which file is meant. */
export interface LedgerReference {
  /** Absolute, as it was named: it may be a link. */
  readonly file: string;
  readonly place: LedgerPlace;
  /** The key at the top of the document with the time to refresh; null for none. */
  readonly stamp: string | null;
  /** Ledgers that the configuration has, for who meant one of them and named a file instead. */
  readonly configured: readonly string[];
}

/**
 * A ledger as it is named on a command line or in a gate: a name of the configuration, else a path with the place
 * behind the last `#`. Without `#`, or with nothing behind it, the whole document is the object.
 *
 * @param cwd what a path is relative to
 * @throws RunlockError `usage`
 */
export function resolveLedger(text: string, config: Config, cwd: string): LedgerReference {
  const settings = config.ledgers.get(textKey(text));
  const configured = [...config.ledgers.keys()];
  if (settings !== undefined) return { ...settings, configured };
  const hash = text.lastIndexOf('#');
  const file = hash < 0 ? text : text.slice(0, hash);
  if (file === '') {
    throw new RunlockError('usage', 'LEDGER: expected a name of runlock.json or a path, got an empty one');
  }
  if (file.includes('\0')) throw new RunlockError('usage', 'LEDGER: expected a path, got one with a NUL');
  const place = parsePlace(hash < 0 ? '' : text.slice(hash + 1), 'LEDGER');
  return { file: absolute(cwd, file), place, stamp: null, configured };
}

function absolute(cwd: string, file: string): string {
  try {
    return path.resolve(cwd, file);
  } catch (cause) {
    // The current directory was deleted.
    throw ioError('find the current directory for', file, cause);
  }
}
