import fs from 'node:fs';
import { type Ownership, openPlain, readAll, Staged } from '../../disk/files.ts';
import { RunlockError, systemCode } from '../../errors.ts';
import { markerOf } from '../../history.ts';
import { type MarkerEdit, type MarkerSight, parseMarker, serializeMarker } from '../../marker.ts';
import { readEvents } from './history-file.ts';
import type { LockPaths } from './paths.ts';
import { withReplacedFile } from './replaced-file.ts';

const MAX_BYTES = 64 << 20;

export function readMarker(file: string): MarkerSight {
  const fd = openPlain(file, 'read');
  if (fd === null) return { items: [] };
  try {
    return read(fd);
  } finally {
    fs.closeSync(fd);
  }
}

function read(fd: number): MarkerSight {
  const bytes = readAll(fd, MAX_BYTES);
  return bytes === null
    ? { problem: `it is larger than ${MAX_BYTES} bytes` }
    : parseMarker(bytes.toString('utf8'));
}

/** A marker written whole, still to be put in place; null where the edit changes nothing. */
export interface StagedMarker {
  put(): void;
  discard(): void;
}

/** How often another one's change is waited for, and how long each time, ms. Each takes less than a millisecond. */
const TRIES = 200;
const PAUSE_MS = 5;

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
  let edited = editMarker(paths, edit, ownership);
  if (edited === null) return null;
  return {
    put() {
      for (let tries = 0; edited !== null; tries += 1) {
        if (putInPlace(paths.marker, edited, setAside)) return;
        // Somebody else had a guard too, because a cleaner has removed one: what was marked meanwhile stays marked.
        edited.staged.discard();
        if (tries === TRIES) throw alwaysChanging(paths.marker);
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, PAUSE_MS);
        edited = editMarker(paths, edit, ownership);
      }
    },
    discard: () => edited?.staged.discard(),
  };
}

/** An edited marker, and the one that was edited. */
interface Edited {
  readonly seen: MarkerSight;
  readonly staged: Staged;
}

function editMarker(paths: LockPaths, edit: MarkerEdit, ownership: Ownership): Edited | null {
  const seen = readMarker(paths.marker);
  const before = 'items' in seen ? seen.items : markerOf(readEvents(paths).events);
  const after = edit(before);
  if ('items' in seen && JSON.stringify(after) === JSON.stringify(before)) return null;
  return { seen, staged: Staged.write(paths.marker, serializeMarker(after), ownership, { sync: true }) };
}

function alwaysChanging(file: string): RunlockError {
  return new RunlockError(
    'guardBusy',
    `${file} is changed by others all the time: is a cleaner removing lock files?`,
    { path: file },
  );
}

/** Returns false, and changes nothing, if another marker stands there than the one that was edited. */
function putInPlace(file: string, { seen, staged }: Edited, setAside: (to: string) => void): boolean {
  // On Windows a file that is open can't be replaced, nor can the guard be removed while it is open.
  if (process.platform === 'win32') {
    if ('problem' in seen) setAside(moveAside(file));
    staged.replaceFile({ sync: true });
    return true;
  }
  const placed = withReplacedFile(file, (fd) => {
    const standing: MarkerSight = fd === null ? { items: [] } : read(fd);
    if (JSON.stringify(standing) !== JSON.stringify(seen)) return false;
    if (fd === null) return staged.createFile({ sync: true });
    if ('problem' in seen) setAside(moveAside(file));
    staged.replaceFile({ sync: true });
    return true;
  });
  return placed?.value === true;
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
