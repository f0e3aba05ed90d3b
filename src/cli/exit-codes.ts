import type { RunlockError } from '../errors.ts';

/** What a script may rely on. `run` passes the command's own code through. */
export const EXIT = {
  ok: 0,
  failed: 1,
  usage: 2,
  held: 3,
  notYours: 4,
  quota: 5,
  item: 6,
  ledger: 7,
  output: 9,
  runFailed: 125,
} as const;

/** One line each, for help and README. */
export const EXIT_MEANINGS: readonly (readonly [code: string, meaning: string])[] = [
  ['0', 'free, done, yes'],
  ['1', 'something failed: I/O, permission, unreadable evidence; never used for "held" (`run`: 125)'],
  ['2', 'the command line, the configuration or an input file is wrong (`run`: 125)'],
  ['3', 'held by another run'],
  ['4', 'not yours, or no longer yours'],
  ['5', 'gate: quota reached'],
  [
    '6',
    'gate: item in progress or in an unknown state; nothing to pick, nothing to settle; `ledger has`: not there',
  ],
  ['7', 'gate: the ledger has it already; `ledger add` refused'],
  ['9', 'gate: the output file is in use by another process'],
  ['124', '`run`: the time limit or the watchdog ended the command'],
  ['125', '`run`: runlock itself failed or was misused'],
  ['126', '`run`: the command is not executable'],
  ['127', '`run`: the command was not found'],
  ['128+n', '`run`: signal n ended the command'],
];

/** The code of an error: what the caller can mend himself is 2, everything else 1. */
export function exitCodeOf(error: RunlockError): number {
  switch (error.code) {
    case 'usage':
    case 'config':
    case 'input':
      return EXIT.usage;
    case 'io':
    case 'corrupt':
    case 'guardBusy':
    case 'noKernelLock':
      return EXIT.failed;
  }
}
