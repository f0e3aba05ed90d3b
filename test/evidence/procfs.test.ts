import { expect, test } from 'vitest';
import { parseStat, procIsOurs, readArgv, readStat } from '../../src/evidence/procfs.ts';
import { LINUX } from './fixtures/processes.ts';

const TAIL =
  'S 6012 5965 5091 34816 -1 4194304 207 185 0 0 0 0 0 0 20 0 1 0 105821 4464640 770 18446744073709551615 ' +
  '94355157774336 94355158563741 140728645158000 0 0 0 65536 4 65538 1 0 0 17 1 0 0 0 0 0';

test.each(['bash', 'a) R 1 (b', ') Z 0 0 0', '(cron)', '', 'two words', 'line\nbreak', ') '])(
  'a program cannot lie about its state by its name: %j',
  (comm) => {
    expect(parseStat(`6014 (${comm}) ${TAIL}\n`)).toEqual({
      pid: 6014,
      comm,
      state: 'S',
      ppid: 6012,
      pgrp: 5965,
      session: 5091,
      isKernelThread: false,
      started: '105821',
      startCode: '94355157774336',
      startStack: '140728645158000',
    });
  },
);

test.each(['', '6014', '6014 (bash', '6014 (bash) S', '6014 (bash) S 1 1 1', '(bash) S', `x (bash) ${TAIL}`])(
  'what is no such line is nothing, not a half-read process: %j',
  (line) => {
    expect(parseStat(line)).toBeNull();
  },
);

test('a thread of the kernel is known by its flag, and never by its number', () => {
  const user = '0 0 0 0 -1 4194560 1 1 0 0 0 0 0 0 20 0 1 0 5 1 1 1';
  const kernel = '0 0 0 0 -1 2129984 1 1 0 0 0 0 0 0 20 0 1 0 5 1 1 1';
  expect(parseStat(`2 (sleep) S ${user}`)?.isKernelThread).toBe(false);
  expect(parseStat(`9 (sleep) S 2 ${user.slice(2)}`)?.isKernelThread).toBe(false);
  expect(parseStat(`2 (kthreadd) S ${kernel}`)?.isKernelThread).toBe(true);
  expect(parseStat(`44 (kworker/0:1) I ${kernel}`)?.isKernelThread).toBe(true);
});

test('our own process is read as it is', (ctx) => {
  if (!LINUX) ctx.skip('no /proc here');
  expect(procIsOurs()).toBe(true);
  expect(readStat('self')).toMatchObject({ pid: process.pid, ppid: process.ppid, state: 'R' });
  expect(readArgv(process.pid)?.length).toBeGreaterThan(0);
});

test('a process that is not there reads as unknown', () => {
  expect(readStat(0x7fffffff)).toBeNull();
  expect(readArgv(0x7fffffff)).toBeNull();
});
