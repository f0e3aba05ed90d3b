import { dirname, resolve } from 'node:path';
import { type LedgerPlace, parsePlace } from '../ledger/place.ts';
import {
  asConfigError,
  inside,
  type KeyPath,
  type Readers,
  readObject,
  readText,
  requireObject,
  where,
  wrong,
} from './readers.ts';

/** A ledger of the configuration. */
export interface LedgerSettings {
  /** Absolute path of the file. */
  readonly file: string;
  readonly place: LedgerPlace;
  /** The key at the top of the document with the time that each new entry refreshes; null for none. */
  readonly stamp: string | null;
}

const LEDGER_KEYS = {
  file: readText,
  at: readPlace,
  stamp: readText,
} satisfies Readers;

/** `ledgers`: by their names. */
export function readLedgers(value: unknown, at: KeyPath): ReadonlyMap<string, LedgerSettings> {
  return new Map(
    requireObject(value, at).map(([name, entry]) => {
      const place = inside(at, name);
      if (name === '') throw wrong(at, 'a name for each ledger', 'an empty one');
      const ledger = readObject(LEDGER_KEYS, entry, place);
      if (ledger.file === undefined) throw wrong(place, 'the key "file"', 'none');
      const file = resolve(dirname(at.file), ledger.file);
      return [name, { file, place: ledger.at ?? [], stamp: ledger.stamp ?? null }];
    }),
  );
}

function readPlace(value: unknown, at: KeyPath): LedgerPlace {
  const text = readText(value, at);
  return asConfigError(at, () => parsePlace(text, where(at)));
}
