import type { Mutation } from './bundle.ts';

/** A guard, taken out; and the row of the matrix that has to see it. */
export interface Guard extends Mutation {
  /** What the row then finds wrong: a build that only fails is no proof. */
  readonly says: RegExp;
  readonly seenBy:
    | { readonly row: 'orders'; readonly promise: string }
    | { readonly row: 'crash' | 'errors' | 'power cut'; readonly scenario: string };
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
    says: /^acquire of \d fails: .*could not replace/,
    seenBy: { row: 'orders', promise: STALE },
  },
  {
    what: 'lock.json is still the file that was locked',
    file: 'stores/file/replaced-file.ts',
    from: ' || !isSameFile(open.fd, file)',
    to: '',
    says: /^item by-\d of run 2 is forgotten/,
    seenBy: { row: 'orders', promise: GUARD_REMOVED },
  },
  {
    what: 'only the lock that was judged stale is replaced',
    file: 'stores/file/commit.ts',
    from: 'if (current.identity !== seen.identity) return false;',
    to: '',
    says: /^run 2 is given out after run 2/,
    seenBy: { row: 'orders', promise: GUARD_REMOVED },
  },
  {
    what: 'what was marked meanwhile stays marked',
    file: 'stores/file/marker-file.ts',
    from: 'if (JSON.stringify(standing) !== JSON.stringify(seen)) return false;',
    to: '',
    says: /^item by-\d of run 2 is forgotten/,
    seenBy: { row: 'orders', promise: GUARD_REMOVED },
  },
  {
    what: 'under the guard the record is still the one that was judged',
    file: 'lock.ts',
    from: 'if (seen.identity !== look.seen.identity) return { value: null, change: null };\n      const verdict = judge(seen.lock, look.evidence, seen.now);\n      if (verdict.state ===',
    to: 'const verdict = judge(seen.lock, look.evidence, seen.now);\n      if (verdict.state ===',
    says: /^\d gets the lock as run 3 while \d has it as run 2/,
    seenBy: { row: 'orders', promise: STALE },
  },
  {
    what: 'the token is the one of the lock',
    file: 'rules.ts',
    from: 'return record.tokenHash !== null && claim.tokenHash === record.tokenHash;',
    to: 'return record.tokenHash !== null;',
    says: /^finish of 0 answers lost, though nobody may take the lock from it/,
    seenBy: { row: 'orders', promise: 'a stranger frees nothing' },
  },
  {
    what: 'a late heartbeat and a takeover come one after the other',
    file: 'lock.ts',
    from: "look.verdict.state === 'stale' ||",
    to: 'false ||',
    says: /^1 gets the lock as run 2 while 0 has it as run 1/,
    seenBy: { row: 'orders', promise: LATE },
  },
  {
    what: 'who looks probes with a shared lock',
    file: 'stores/file/live.ts',
    from: "return tryLock(fd, 'shared', file) ? tree : 'locked';",
    to: "return tryLock(fd, 'exclusive', file) ? tree : 'locked';",
    says: /^run of \d fails: .*EBADF/,
    seenBy: { row: 'orders', promise: 'who only looks never makes a stale `run` seem held' },
  },
  {
    what: 'the end is written before the lock is cleared away',
    file: 'stores/file/commit.ts',
    from: '  writeEnd(lock, adopted(lock, ending));\n  clear(lock, run, last);',
    to: '  clear(lock, run, last);\n  writeEnd(lock, adopted(lock, ending));',
    says: /run 1 has 0 ends/,
    seenBy: { row: 'crash', scenario: 'finish, with a result' },
  },
  {
    what: 'the number is written before the lock',
    file: 'stores/file/commit.ts',
    from: '  guard.write({ run, ended: false, tokenHash: record.tokenHash });\n  const live',
    to: '  const live',
    says: /run 2 was given out, and the guard says/,
    seenBy: { row: 'power cut', scenario: 'acquire, over a stale lock' },
  },
  {
    what: 'the record is on the disk before it has its name',
    file: 'disk/files.ts',
    from: 'if (options.sync) fs.fsyncSync(fd);',
    to: '',
    says: /lost: data: the record is not there/,
    seenBy: { row: 'power cut', scenario: 'finish, with a result' },
  },
  {
    what: 'its name is on the disk before the answer',
    file: 'disk/files.ts',
    from: 'fs.fsyncSync(fd);\n  } finally {',
    to: '} finally {',
    says: /lost: names: the record is not there/,
    seenBy: { row: 'power cut', scenario: 'finish, with a result' },
  },
  {
    what: 'the history line of a release is on the disk before the answer',
    file: 'stores/file/history-file.ts',
    from: '      if (options.sync) fs.fsyncSync(fd);',
    to: '',
    says: /lost: data: the history has no/,
    seenBy: { row: 'power cut', scenario: 'release' },
  },
  {
    what: 'a record that could not be written is a failure',
    file: 'stores/file/commit.ts',
    from: '  return Staged.write(file, text, ownership, { sync: true, in: paths.dir }).createFile({ sync: true });',
    to: '  try { return Staged.write(file, text, ownership, { sync: true, in: paths.dir }).createFile({ sync: true }); } catch { return true; }',
    says: /^EIO at call .*: the record is not there/,
    seenBy: { row: 'errors', scenario: 'finish, with a result' },
  },
];
