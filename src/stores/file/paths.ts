import path from 'node:path';

/** The names of one lock's files. */
export interface LockPaths {
  readonly dir: string;
  readonly lock: string;
  readonly guard: string;
  readonly marker: string;
  readonly liveDir: string;
  readonly historyDir: string;
  readonly recordsDir: string;
}

export function pathsOf(dir: string): LockPaths {
  return {
    dir,
    lock: path.join(dir, 'lock.json'),
    guard: path.join(dir, 'lock.guard'),
    marker: path.join(dir, 'current.json'),
    liveDir: path.join(dir, 'live'),
    historyDir: path.join(dir, 'history'),
    recordsDir: path.join(dir, 'records'),
  };
}

/** The directory of a lock in a state directory; `folder` null: the default lock. */
export function lockDirectory(base: string, folder: string | null): string {
  return folder === null ? base : path.join(base, 'locks', folder);
}

export function livePath(paths: LockPaths, run: number): string {
  return path.join(paths.liveDir, String(run));
}

/** What the command of a run hands in. */
export function resultPath(livePath: string): string {
  return `${livePath}.result`;
}

/** Changes with each `hb` of the command of a run. */
export function pingPath(livePath: string): string {
  return `${livePath}.hb`;
}

/** What the tree of a run has open on Windows, where it can't share a lock on the live file. */
export function treePath(livePath: string): string {
  return `${livePath}.tree`;
}

export function recordPath(paths: LockPaths, run: number): string {
  return path.join(paths.recordsDir, `${run}.json`);
}
