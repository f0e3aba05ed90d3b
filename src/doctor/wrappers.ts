/** How a program that starts another one is called, as far as it tells where the other one begins. */
export interface Wrapper {
  /** Letters of options that take a value. */
  readonly values?: string;
  readonly longValues?: readonly string[];
  /** Words between the options and the command. */
  readonly operands?: number;
  /** The option, or the word itself, that names another user. */
  readonly user?: string | 'operand';
  /** The command gets an environment of its own. */
  readonly cleans?: true;
  /** The option whose value is a shell's text. */
  readonly text?: string;
  /** Options that make a login of it, which begins in the user's home directory. */
  readonly login?: readonly string[];
  /** The option that names another current directory. */
  readonly dir?: readonly string[];
}

const SU: Wrapper = {
  values: 'cgGsTw',
  longValues: ['--command', '--group', '--shell', '--session-command'],
  user: 'operand',
  text: 'c',
  login: ['-', '-l', '--login'],
};

export const WRAPPERS: ReadonlyMap<string, Wrapper> = new Map<string, Wrapper>([
  [
    'flock',
    {
      values: 'wEc',
      longValues: ['--timeout', '--wait', '--conflict-exit-code', '--command'],
      operands: 1,
      text: 'c',
    },
  ],
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
  ['exec', { values: 'a' }],
  ['command', {}],
  ['builtin', {}],
  ['systemd-cat', { values: 'tp', longValues: ['--identifier', '--priority', '--stderr-priority'] }],
  ['systemd-inhibit', { longValues: ['--what', '--who', '--why', '--mode'] }],
  ['env', { values: 'uCS', longValues: ['--unset', '--chdir', '--split-string'], dir: ['-C', '--chdir'] }],
  [
    'sudo',
    {
      values: 'ugpCDhrtTUR',
      longValues: ['--user', '--group', '--prompt', '--chdir', '--host', '--role', '--type', '--close-from'],
      ...{ user: 'u', cleans: true, login: ['-i', '--login'], dir: ['-D', '--chdir'] },
    },
  ],
  ['doas', { values: 'uC', user: 'u', cleans: true }],
  ['su', SU],
  ['runuser', { ...SU, values: 'ucgGsTw' }],
  ['gosu', { user: 'operand' }],
  ['su-exec', { user: 'operand' }],
  ['npx', { values: 'pcw', longValues: ['--package', '--workspace'] }],
]);
