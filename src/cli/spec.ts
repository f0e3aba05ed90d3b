import type { Arguments } from './arguments.ts';

/** An option of a command. `value` names what it takes; without it, it is a flag. */
export interface OptionSpec {
  readonly value?: string;
  readonly repeatable?: true;
  readonly describe: string;
}

/** A command as it is typed, for the parser and the help alike. */
export interface CommandSpec {
  readonly summary: string;
  /** What follows the options: `[ITEM]`. */
  readonly operands: string;
  readonly maxOperands: number;
  /** Options end at the first operand. */
  readonly verbatim?: true;
  readonly options: Readonly<Record<string, OptionSpec>>;
  readonly examples: readonly (readonly [line: string, meaning: string])[];
  /** Keys of the exit code table. */
  readonly codes: readonly string[];
  readonly codesNote?: string;
  readonly load: () => Promise<{ readonly main: (args: Arguments) => Promise<number> }>;
}

export const COMMON: Readonly<Record<string, OptionSpec>> = {
  dir: {
    value: 'DIR',
    describe: 'the state directory (RUNLOCK_DIR; else what runlock.json says, else ./runs)',
  },
  name: { value: 'NAME', describe: 'a lock of its own name in that directory (RUNLOCK_NAME)' },
  config: {
    value: 'FILE',
    describe: 'the configuration (RUNLOCK_CONFIG; else the nearest runlock.json upwards)',
  },
  json: { describe: 'answer with one JSON object' },
  quiet: { describe: 'say nothing when the run is skipped' },
  help: { describe: 'show this help' },
};

const ITEM: OptionSpec = { value: 'ITEM', describe: 'what the run works on' };
const FROM: OptionSpec = {
  value: 'FILE',
  describe: 'pick the item under the lock: the first of the lines that may be started',
};
const JOB: OptionSpec = { value: 'JOB', describe: 'a label, or the path of a job file' };
const HOLD: OptionSpec = {
  value: 'D',
  describe: 'how old the heartbeat may become: 45m unless set, or never',
};
const WAIT: OptionSpec = { value: 'D', describe: 'wait that long for a held lock' };
const GATES: Readonly<Record<string, OptionSpec>> = {
  gate: {
    value: 'G',
    repeatable: true,
    describe: 'begin only if G is open: quota:NAME, output:PATH, item, ledger:LEDGER; may be repeated',
  },
  'no-default-gates': { describe: 'leave out the gates that runlock.json asks for' },
};
const TOKEN: OptionSpec = { value: 'ID', describe: 'shows that the run is yours (RUNLOCK_TOKEN)' };
const RUN: OptionSpec = {
  value: 'N',
  describe: 'act only if the lock is still run N, the number acquire printed',
};

export const COMMANDS: Readonly<Record<string, CommandSpec>> = {
  status: {
    summary: 'who holds the lock, since when, and what is marked; changes nothing',
    operands: '',
    maxOperands: 0,
    options: { all: { describe: 'every lock under the directory; 3 if any is held' } },
    examples: [
      ['runlock status', 'who is running?'],
      ['runlock status --all --json', 'every lock, for a program'],
    ],
    codes: ['0', '1', '2', '3'],
    load: () => import('./commands/status.ts'),
  },
  acquire: {
    summary: 'takes the lock for the script that calls; prints the run number',
    operands: '[ITEM]',
    maxOperands: 1,
    options: {
      from: FROM,
      job: JOB,
      hold: HOLD,
      wait: WAIT,
      pid: { value: 'N', describe: 'process N is the holder, not the script that calls' },
      'no-pid': { describe: 'no process is the holder, the heartbeat alone decides; needs --token' },
      token: { value: 'ID', describe: 'the token of this run; a new one for each run' },
      ...GATES,
    },
    examples: [
      ['run=$(runlock acquire ep-42) || exit', 'in a script: go on only with the lock'],
      ['runlock acquire --no-pid --token "$INVOCATION_ID"', 'in a pre hook; the post hook shows the same ID'],
      ['run=$(runlock acquire ep-42 --gate item --gate quota:mail) || exit', 'unless a gate is closed'],
    ],
    codes: ['0', '1', '2', '3', '5', '6', '7', '9'],
    load: () => import('./commands/acquire.ts'),
  },
  hb: {
    summary: 'heartbeat: call it before each step that can not be undone; 4 and 1 mean stop',
    operands: '',
    maxOperands: 0,
    options: { run: RUN, token: TOKEN },
    examples: [['runlock hb || exit', 'stop before publishing if the lock is lost']],
    codes: ['0', '1', '2', '4'],
    load: () => import('./commands/hb.ts'),
  },
  finish: {
    summary: 'writes the record, settles the item, frees the lock',
    operands: '[RESULT.json | -]',
    maxOperands: 1,
    options: { failed: { describe: 'the run is known to have failed' }, run: RUN, token: TOKEN },
    examples: [
      ['runlock finish result.json', 'done, with a result'],
      ['./publish | runlock finish --run "$run" -', 'the result comes from a pipe'],
    ],
    codes: ['0', '1', '2', '4'],
    load: () => import('./commands/finish.ts'),
  },
  release: {
    summary: 'frees the lock without a result; the item stays marked as unknown',
    operands: '',
    maxOperands: 0,
    options: {
      settled: { describe: 'nothing was begun: the item need not stay marked' },
      run: RUN,
      token: TOKEN,
    },
    examples: [[`trap 'runlock release --run "$run"' EXIT`, 'on every way out; does nothing after finish']],
    codes: ['0', '1', '2', '4'],
    load: () => import('./commands/release.ts'),
  },
  run: {
    summary: 'all of it around one command: lock, gates, heartbeat, command, record, release',
    operands: '[--] CMD [ARG…]',
    maxOperands: Number.POSITIVE_INFINITY,
    verbatim: true,
    options: {
      item: ITEM,
      from: FROM,
      job: JOB,
      hold: HOLD,
      wait: WAIT,
      timeout: { value: 'D', describe: 'end the command and all it started after D: exit 124' },
      'kill-after': { value: 'D', describe: 'how long after TERM comes KILL: 10s unless set' },
      watchdog: {
        value: 'D',
        describe: 'the command must call runlock hb at least every D, or it is ended: exit 124',
      },
      'skip-code': {
        value: 'N',
        describe: 'exit with N where the command never started because of 3, 5, 6, 7 or 9',
      },
      ...GATES,
    },
    examples: [
      ['runlock run -- ./publish.sh --all', 'in a crontab: at most one at a time'],
      ['runlock run --timeout 40m --skip-code 0 node publish.js', 'a time limit; a skip is no failure'],
      ['runlock run --gate quota:mail --gate output:out.json -- ./gen', 'unless a gate is closed'],
    ],
    codes: ['0', '3', '4', '5', '6', '7', '9', '124', '125', '126', '127', '128+n'],
    codesNote: 'Otherwise the exit code of the command.',
    load: () => import('./commands/run.ts'),
  },
  gate: {
    summary: 'asks gates alone (without any, those of runlock.json); changes nothing',
    operands: '[G…]',
    maxOperands: Number.POSITIVE_INFINITY,
    options: {
      item: ITEM,
      at: {
        value: 'TIME',
        describe: 'as of another time: 2026-11-30T09:00, local unless it says Z or +08:00',
      },
      days: {
        value: 'N',
        describe:
          'what each source of a quota counted on each of the last N days; closed or not, that is exit code 0',
      },
    },
    examples: [
      ['runlock gate quota:mail', "is today's quota used up?"],
      ['runlock gate quota:mail --days 7', 'does each source count at all?'],
    ],
    codes: ['0', '1', '2', '5', '6', '7', '9'],
    load: async () => (await import('./parts/gates.ts')).loadGate(),
  },
  settle: {
    summary: 'an operator has looked: drops ITEM from the marker',
    operands: 'ITEM',
    maxOperands: 1,
    options: {
      done: { describe: 'it was done' },
      'not-done': { describe: 'it was not done' },
    },
    examples: [['runlock settle ep-41 --done', 'ep-41 is out: I have looked']],
    codes: ['0', '1', '2', '3', '6'],
    load: () => import('./commands/settle.ts'),
  },
  pick: {
    summary: 'candidates on stdin, one a line: prints those that may be started, in order',
    operands: '',
    maxOperands: 0,
    options: { n: { value: 'N', describe: 'print at most N' }, ...GATES },
    examples: [
      ['ls queue | runlock pick -n 1', 'the first item nobody is working on'],
      ['ls queue | runlock pick --gate ledger:published', 'those that are not published yet'],
    ],
    codes: ['0', '1', '2', '5', '6', '9'],
    load: async () => (await import('./parts/gates.ts')).loadPick(),
  },
  ledger: {
    summary: 'a JSON object on disk that several jobs add to: adds a key, or tells what is there',
    operands: 'add LEDGER KEY [ENTRY.json | -] | has LEDGER KEY | list LEDGER',
    maxOperands: 4,
    options: {
      create: { describe: 'add: make the file, or the place in it, if there is none' },
      stamp: { value: 'NAME', describe: 'add: refresh the time under this key of the document' },
    },
    examples: [
      [
        'runlock ledger add ledger.json#publishes ep-42 entry.json',
        'one key more, every other byte as it was',
      ],
      [
        'runlock ledger has published ep-42',
        'published is a name from runlock.json; 0 there, 6 not there, 1 no answer',
      ],
    ],
    codes: ['0', '1', '2', '6', '7'],
    load: async () => (await import('./parts/gates.ts')).loadLedger(),
  },
  history: {
    summary: 'what ran, what was skipped and why, what was interrupted',
    operands: '',
    maxOperands: 0,
    options: {
      n: { value: 'N', describe: 'the last N: 20 unless set' },
      since: { value: 'D', describe: 'only what began in the last D' },
      item: ITEM,
      outcome: {
        value: 'OUTCOME',
        describe: 'only finished, failed, timedOut, released, interrupted, lost, skipped, error or running',
      },
    },
    examples: [
      ['runlock history --since 7d --outcome skipped', 'what was skipped this week'],
      ['runlock history -n 1 --json', 'the last run, for a program'],
    ],
    codes: ['0', '1', '2'],
    load: () => import('./commands/history.ts'),
  },
  init: {
    summary:
      'writes a runlock.json with the bounds spelt out (and a time limit of 45m for each run), and makes the directory and the ledgers',
    operands: '',
    maxOperands: 0,
    options: {},
    examples: [
      ['runlock init', 'in the project, once; again after a ledger was added'],
      ['runlock init --dir /srv/app/runs', 'the state directory is elsewhere'],
    ],
    codes: ['0', '1', '2'],
    load: async () => (await import('./parts/gates.ts')).loadInit(),
  },
  doctor: {
    summary:
      'what cron, systemd and tasks start by runlock: same lock? which runlock and node? is the disk fit?',
    operands: '',
    maxOperands: 0,
    options: {
      root: {
        value: 'ROOT',
        describe: 'look at another system, whose / is at ROOT: a container, a mounted disk',
      },
    },
    examples: [
      ['sudo runlock doctor', 'every crontab and unit'],
      ['runlock doctor --dir /srv/app/runs --json', 'that directory as well, for a program'],
    ],
    codes: ['0', '1', '2'],
    codesNote:
      '1 is a problem that was found, as well as what could not be looked at: `--json` tells them apart.',
    load: () => import('./parts/doctor.ts'),
  },
};

/** The flag-style spelling of other run locks' commands: `runlock --acquire ITEM --job F`. */
export const FLAG_STYLE = ['status', 'acquire', 'hb', 'finish', 'release'] as const;
