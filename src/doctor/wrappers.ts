import type { NumberMark } from './users.ts';

/** How a program that starts another one is called, as far as it tells where the other one begins. */
export interface Wrapper {
  /** Letters of options that take a value. */
  readonly values?: string;
  readonly longValues?: readonly string[];
  /** Words between the options and the command. */
  readonly operands?: number;
  /** The options that name another user. */
  readonly user?: readonly string[];
  /** The first word does, unless an option has. */
  readonly userOperand?: true;
  /** How that user may be named by a number. */
  readonly number?: NumberMark;
  /** Unless another user is named it is root. */
  readonly root?: true;
  /** The command gets an environment of its own, with this PATH. */
  readonly cleans?: string;
  /** HOME is the caller's still, though the user is another one. */
  readonly keepsHome?: true;
  /** Words `NAME=value` before the command are its environment. */
  readonly assigns?: true;
  /** Options whose value is `NAME=value`. */
  readonly sets?: readonly string[];
  /** It, or what one of these options names, sets variables that are only known when it runs. */
  readonly setsUnknown?: true | readonly string[];
  /** The options whose value is a shell's text. */
  readonly text?: readonly string[];
  /** The words are joined to a shell's text. */
  readonly joins?: true;
  /** Options that make a login of it, which begins in the user's home directory. */
  readonly login?: readonly string[];
  /** The options that name another current directory. */
  readonly dir?: readonly string[];
  /** Where it starts if none is named; unset: where the caller is. */
  readonly cwd?: string;
  /** It looks for the program itself, on the caller's PATH. */
  readonly finds?: true;
  /** The command goes on with words from elsewhere; the options that name what stands for them instead. */
  readonly appends?: readonly string[];
  /** Options with which it starts something in a way that is not followed: by another machine, in another root. */
  readonly astray?: readonly string[];
}

/** The PATH that sudo and systemd give where nothing else is configured. */
export const SYSTEM_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

const SU: Wrapper = {
  values: 'cgGsTw',
  longValues: [
    '--command',
    '--group',
    '--supp-group',
    '--shell',
    '--session-command',
    '--whitelist-environment',
  ],
  userOperand: true,
  root: true,
  text: ['-c', '--command', '--session-command'],
  login: ['-', '-l', '--login'],
};
/** Of the daemontools family, which take a user's name as a word. */
const SETUIDGID: Wrapper = { userOperand: true, keepsHome: true };
const SOFTLIMIT: Wrapper = { values: 'acdflmoprst' };
const ENVDIR: Wrapper = { operands: 1, setsUnknown: true };

export const WRAPPERS: ReadonlyMap<string, Wrapper> = new Map<string, Wrapper>([
  [
    'flock',
    {
      values: 'wEc',
      longValues: ['--timeout', '--wait', '--conflict-exit-code', '--command'],
      operands: 1,
      text: ['-c', '--command'],
    },
  ],
  ['lckdo', { values: 'W', operands: 1 }],
  ['setlock', { operands: 1 }],
  ['nice', { values: 'n', longValues: ['--adjustment'] }],
  ['ionice', { values: 'cnpPu', longValues: ['--class', '--classdata'] }],
  ['chrt', { values: 'TPD', operands: 1 }],
  ['taskset', { operands: 1 }],
  ['timeout', { values: 'ks', longValues: ['--kill-after', '--signal'], operands: 1 }],
  ['time', { values: 'fo', longValues: ['--format', '--output'] }],
  ['stdbuf', { values: 'ioe', longValues: ['--input', '--output', '--error'] }],
  ['nohup', {}],
  ['setsid', {}],
  ['chronic', {}],
  ['cronic', {}],
  ['eatmydata', {}],
  ['tini', { values: 'pe' }],
  ['dumb-init', { values: 'r', longValues: ['--rewrite'] }],
  ['exec', { values: 'a' }],
  ['command', {}],
  ['builtin', {}],
  ['systemd-cat', { values: 'tp', longValues: ['--identifier', '--priority', '--stderr-priority'] }],
  ['systemd-inhibit', { longValues: ['--what', '--who', '--why', '--mode'] }],
  [
    'systemd-run',
    {
      values: 'EupMHC',
      longValues: [
        ...['--uid', '--gid', '--working-directory', '--setenv', '--unit', '--property', '--description'],
        ...[
          '--slice',
          '--nice',
          '--machine',
          '--host',
          '--service-type',
          '--on-active',
          '--on-boot',
          '--background',
        ],
        ...['--on-startup', '--on-unit-active', '--on-unit-inactive', '--on-calendar', '--timer-property'],
        ...['--path-property', '--socket-property', '--capsule', '--job-mode', '--json'],
      ],
      user: ['--uid'],
      number: '',
      root: true,
      cleans: SYSTEM_PATH,
      sets: ['-E', '--setenv'],
      dir: ['--working-directory'],
      cwd: '/',
      finds: true,
      // A property may be any setting of a unit, and a user's manager has an environment that nobody sees.
      astray: [
        '-p',
        '--property',
        '-M',
        '--machine',
        '-H',
        '--host',
        '-C',
        '--capsule',
        '--user',
        '--scope',
        '-d',
        '--same-dir',
        '-S',
        '--shell',
      ],
    },
  ],
  [
    'env',
    {
      values: 'uCSa',
      longValues: ['--unset', '--chdir', '--split-string', '--argv0'],
      dir: ['-C', '--chdir'],
      assigns: true,
      astray: ['-S', '--split-string'],
    },
  ],
  ['cross-env', { assigns: true }],
  [
    'sudo',
    {
      values: 'ugpCDhrtTUR',
      longValues: [
        ...['--user', '--group', '--prompt', '--chdir', '--host', '--role', '--type', '--close-from'],
        ...['--chroot', '--command-timeout', '--other-user'],
      ],
      ...{ user: ['-u', '--user'], number: '#', root: true, cleans: SYSTEM_PATH, assigns: true },
      ...{ login: ['-i', '--login'], dir: ['-D', '--chdir'], astray: ['-R', '--chroot', '-h', '--host'] },
    },
  ],
  ['doas', { values: 'uC', user: ['-u'], number: '', root: true, cleans: SYSTEM_PATH }],
  ['su', SU],
  [
    'runuser',
    { ...SU, values: 'ucgGsTw', longValues: [...(SU.longValues ?? []), '--user'], user: ['-u', '--user'] },
  ],
  ['gosu', { userOperand: true, number: '' }],
  ['su-exec', { userOperand: true, number: '' }],
  [
    'setpriv',
    {
      longValues: [
        ...[
          '--reuid',
          '--ruid',
          '--euid',
          '--regid',
          '--rgid',
          '--egid',
          '--groups',
          '--inh-caps',
          '--ambient-caps',
        ],
        ...['--bounding-set', '--securebits', '--pdeathsig', '--selinux-label', '--apparmor-profile'],
        ...['--landlock-access', '--landlock-rule', '--seccomp-filter'],
      ],
      user: ['--reuid', '--euid'],
      number: '',
      keepsHome: true,
      astray: ['--reset-env'],
    },
  ],
  [
    'chpst',
    {
      values: 'uUeb/nlLmdopfcrtC',
      ...{ user: ['-u'], number: ':', keepsHome: true, dir: ['-C'], setsUnknown: ['-e'], astray: ['-/'] },
    },
  ],
  ['setuidgid', SETUIDGID],
  ['s6-setuidgid', SETUIDGID],
  ['softlimit', SOFTLIMIT],
  ['s6-softlimit', SOFTLIMIT],
  ['envdir', ENVDIR],
  ['s6-envdir', ENVDIR],
  [
    'xargs',
    {
      values: 'adEILnPs',
      longValues: [
        '--arg-file',
        '--delimiter',
        '--max-lines',
        '--max-args',
        '--max-procs',
        '--max-chars',
        '--process-slot-var',
      ],
      appends: ['-I', '--replace', '-i'],
    },
  ],
  ['watch', { values: 'nqs', longValues: ['--interval', '--equexit', '--shotsdir'], joins: true }],
  [
    'script',
    {
      values: 'cBEIOTmo',
      longValues: [
        '--command',
        '--echo',
        '--log-in',
        '--log-out',
        '--log-io',
        '--log-timing',
        '--logging-format',
        '--output-limit',
      ],
      operands: 1,
      text: ['-c', '--command'],
    },
  ],
  ['npx', { values: 'pcw', longValues: ['--package', '--workspace', '--call'], text: ['-c', '--call'] }],
]);

/** They start nothing, whatever their words name. */
export const START_NOTHING: ReadonlySet<string> = new Set(
  (
    'test [ [[ : true false type which whereis hash man ls stat file readlink realpath mkdir rm rmdir touch chmod chown ' +
    'ln cp mv cat head tail less grep egrep fgrep wc pgrep pkill pidof killall ps mail logger'
  ).split(' '),
);

/** What they print is mostly a message, but may be a command for a shell, or for `at`, that reads it. */
export const PRINTERS: ReadonlySet<string> = new Set(['echo', 'printf']);
