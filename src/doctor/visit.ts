import type { Findings } from './finding.ts';
import type { Root } from './root.ts';
import type { User } from './users.ts';

/** One visit of doctor's: the system that is looked at, and what was found there. */
export interface Visit {
  readonly root: Root;
  readonly users: ReadonlyMap<string, User>;
  readonly findings: Findings;
  /** Who runs `doctor`; null where it looks at another system. */
  readonly self: User | null;
}

/** Cleaners and restarts empty them. */
export const SWEPT = /^(?:\/private)?\/(?:var\/)?tmp(?:\/|$)/;

/** Names in a directory of that system; one that can't be read is told. */
export function namesIn({ root, findings }: Visit, dir: string): readonly string[] {
  const listed = root.list(dir);
  if ('refused' in listed)
    findings.add('unseen', 'unreadable', { file: dir, line: null }, `could not be read: ${listed.refused}`);
  return 'names' in listed ? listed.names : [];
}
