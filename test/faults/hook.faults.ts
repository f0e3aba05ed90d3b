import fs from 'node:fs';
import { describe, expect, test } from 'vitest';
import { which } from '../cli/harness.ts';
import { type Call, runWithFault } from './command.ts';
import { LEDGER, SCENARIOS } from './scenarios.ts';

/** System calls that can change something, and what Node calls them. */
const CALLS: Readonly<Record<string, string>> = {
  open: 'open',
  openat: 'open',
  write: 'write',
  writev: 'write',
  pwrite64: 'write',
  pwritev: 'write',
  fsync: 'fsync',
  fdatasync: 'fsync',
  ftruncate: 'ftruncate',
  utimensat: 'futimes',
  fchmod: 'fchmod',
  chmod: 'chmod',
  fchown: 'fchown',
  chown: 'chown',
  link: 'link',
  rename: 'rename',
  unlink: 'unlink',
  mkdir: 'mkdir',
};

describe.skipIf(which('strace') === null)(
  'faults are put at every system call that changes something (needs strace)',
  () => {
    for (const scenario of [...SCENARIOS, LEDGER].filter(({ inside }) => inside === undefined)) {
      test(scenario.name, async () => {
        const box = await scenario.prepare();
        const log = box.write('strace.log', '');
        const traced = ['-f', '-qq', '-y', '-s', '0', '-o', log, '-e', `trace=${Object.keys(CALLS).join()}`];
        const { calls } = await runWithFault(
          box,
          scenario,
          { kind: 'kill', calls: 'changes', at: 0 },
          { under: ['strace', ...traced] },
        );
        // The log of the hook lies beside it.
        const inSandbox = new RegExp(`${box.dir}[/>"]`);
        const seen = fs
          .readFileSync(log, 'utf8')
          .split('\n')
          .filter((line) => inSandbox.test(line.replace(/AT_FDCWD<[^>]*>/, '')));
        expect(count(calls)).toEqual(count(seen.flatMap(parse)));
        expect(calls.length).toBeGreaterThan(0);
      });
    }
  },
);

/** One line of strace's, where it is a call that changes something. */
function parse(line: string): { call: string }[] {
  const [, name = ''] = /^\d+\s+(\w+)\(/.exec(line) ?? [];
  const call = CALLS[name];
  if (call === undefined) return [];
  return call === 'open' && !line.includes('O_CREAT') ? [] : [{ call }];
}

function count(calls: readonly Pick<Call, 'call'>[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { call } of calls) counts[call] = (counts[call] ?? 0) + 1;
  return counts;
}
