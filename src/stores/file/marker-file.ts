import fs from 'node:fs';
import { type Ownership, openPlain, readAll, Staged } from '../../disk/files.ts';
import { systemCode } from '../../errors.ts';
import { markerOf } from '../../history.ts';
import { type MarkerEdit, type MarkerSight, parseMarker, serializeMarker } from '../../marker.ts';
import { readEvents } from './history-file.ts';
import type { LockPaths } from './paths.ts';

const MAX_BYTES = 64 << 20;

export function readMarker(file: string): MarkerSight {
  const fd = openPlain(file, 'read');
  if (fd === null) return { items: [] };
  try {
    const bytes = readAll(fd, MAX_BYTES);
    return bytes === null
      ? { problem: `it is larger than ${MAX_BYTES} bytes` }
      : parseMarker(bytes.toString('utf8'));
  } finally {
    fs.closeSync(fd);
  }
}

/** A marker written whole, still to be put in place; null where the edit changes nothing. */
export interface StagedMarker {
  put(): void;
  discard(): void;
}

/**
 * Writes the edited marker beside the one that stands there. One that can't be read is set aside, and what it
 * may have said comes from the history.
 *
 * @param setAside is told where the unreadable one went
 */
export function stageMarker(
  paths: LockPaths,
  edit: MarkerEdit,
  ownership: Ownership,
  setAside: (to: string) => void,
): StagedMarker | null {
  const seen = readMarker(paths.marker);
  const before = 'items' in seen ? seen.items : markerOf(readEvents(paths).events);
  const after = edit(before);
  if ('items' in seen && JSON.stringify(after) === JSON.stringify(before)) return null;

  const staged = Staged.write(paths.marker, serializeMarker(after), ownership, { sync: true });
  return {
    put() {
      if ('problem' in seen) setAside(moveAside(paths.marker));
      staged.replaceFile({ sync: true });
    },
    discard: () => staged.discard(),
  };
}

function moveAside(file: string): string {
  for (let n = 1; ; n += 1) {
    const to = `${file}.unreadable-${n}`;
    try {
      fs.linkSync(file, to);
      return to;
    } catch (error) {
      if (systemCode(error) !== 'EEXIST') throw error;
    }
  }
}
