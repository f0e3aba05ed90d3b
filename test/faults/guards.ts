import type { Mutation } from './bundle.ts';

/** A guard, taken out; and the row of the matrix that has to see it. */
export interface Guard extends Mutation {
  readonly seenBy:
    | { readonly row: 'orders'; readonly promise: string }
    | { readonly row: 'crash' | 'power cut'; readonly scenario: string };
}

const STALE = 'a stale lock goes to one of two';
const GUARD_REMOVED = 'a cleaner that removes the guard lets no two take a stale lock';
const LATE = 'a late heartbeat that was answered with success keeps the lock';

export const GUARDS: readonly Guard[] = [
  {
    what: 'the guard keeps others out',
    file: 'stores/file/guard.ts',
    from: "if (tryLock(fd, 'exclusive', file)) {",
    to: "if (tryLock(fd, 'shared', file)) {",
    seenBy: { row: 'orders', promise: STALE },
  },
  {
    what: 'lock.json is still the file that was locked',
    file: 'stores/file/replaced-file.ts',
    from: ' || !isSameFile(open.fd, file)',
    to: '',
    seenBy: { row: 'orders', promise: GUARD_REMOVED },
  },
  {
    what: 'only the lock that was judged stale is replaced',
    file: 'stores/file/commit.ts',
    from: 'if (current.identity !== seen.identity) return false;',
    to: '',
    seenBy: { row: 'orders', promise: GUARD_REMOVED },
  },
  {
    what: 'what was marked meanwhile stays marked',
    file: 'stores/file/marker-file.ts',
    from: 'if (JSON.stringify(standing) !== JSON.stringify(seen)) return false;',
    to: '',
    seenBy: { row: 'orders', promise: GUARD_REMOVED },
  },
  {
    what: 'under the guard the record is still the one that was judged',
    file: 'lock.ts',
    from: 'if (seen.identity !== look.seen.identity) return { value: null, change: null };\n      const verdict = judge(seen.lock, look.evidence, seen.now);\n      if (verdict.state ===',
    to: 'const verdict = judge(seen.lock, look.evidence, seen.now);\n      if (verdict.state ===',
    seenBy: { row: 'orders', promise: STALE },
  },
  {
    what: 'the token is the one of the lock',
    file: 'rules.ts',
    from: 'return record.tokenHash !== null && claim.tokenHash === record.tokenHash;',
    to: 'return record.tokenHash !== null;',
    seenBy: { row: 'orders', promise: 'a stranger frees nothing' },
  },
  {
    what: 'a late heartbeat and a takeover come one after the other',
    file: 'lock.ts',
    from: "look.verdict.state === 'stale' ||",
    to: 'false ||',
    seenBy: { row: 'orders', promise: LATE },
  },
  {
    what: 'who looks probes with a shared lock',
    file: 'stores/file/live.ts',
    from: "return tryLock(fd, 'shared', file) ? tree : 'locked';",
    to: "return tryLock(fd, 'exclusive', file) ? tree : 'locked';",
    seenBy: { row: 'orders', promise: 'who only looks never makes a stale `run` seem held' },
  },
  {
    what: 'the end is written before the lock is cleared away',
    file: 'stores/file/commit.ts',
    from: '  writeEnd(lock, adopted(lock, ending));\n  clear(lock, run, last);',
    to: '  clear(lock, run, last);\n  writeEnd(lock, adopted(lock, ending));',
    seenBy: { row: 'crash', scenario: 'finish, with a result' },
  },
  {
    what: 'the number is written before the lock',
    file: 'stores/file/commit.ts',
    from: '  guard.write({ run, ended: false, tokenHash: record.tokenHash });\n  const live',
    to: '  const live',
    seenBy: { row: 'power cut', scenario: 'acquire, over a stale lock' },
  },
  {
    what: 'the record is on the disk before it has its name',
    file: 'disk/files.ts',
    from: 'if (options.sync) fs.fsyncSync(fd);',
    to: '',
    seenBy: { row: 'power cut', scenario: 'finish, with a result' },
  },
  {
    what: 'its name is on the disk before the answer',
    file: 'disk/files.ts',
    from: 'fs.fsyncSync(fd);\n  } finally {',
    to: '} finally {',
    seenBy: { row: 'power cut', scenario: 'finish, with a result' },
  },
  {
    what: 'the history line of a release is on the disk before the answer',
    file: 'stores/file/history-file.ts',
    from: '      if (options.sync) fs.fsyncSync(fd);',
    to: '',
    seenBy: { row: 'power cut', scenario: 'release' },
  },
];
