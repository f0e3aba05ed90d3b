import { familyOf } from './programs.ts';

/** Which options a family of interpreters has, as far as they decide which word is the script. */
export interface Grammar {
  /** Letters followed by code. */
  code?: string;
  /** Letters whose value is the rest of the word, or else the next word. */
  value?: string;
  /** Letters whose value is the rest of the word alone. */
  attached?: string;
  module?: string;
  file?: string;
  longCode?: readonly string[];
  longValue?: readonly string[];
  /** Words before the script that are not options (`deno run`). */
  verbs?: readonly string[];
}

const NODE: Grammar = {
  code: 'ep',
  value: 'rC',
  longCode: ['--eval', '--print', '--run'],
  longValue: (
    '--require --import --loader --experimental-loader --conditions --title --env-file --input-type ' +
    '--disable-warning --redirect-warnings --diagnostic-dir --icu-data-dir --openssl-config ' +
    '--max-http-header-size --dns-result-order --inspect-port --watch-path'
  ).split(' '),
};

const GRAMMARS: Readonly<Record<string, Grammar>> = {
  node: NODE,
  nodejs: NODE,
  bun: {
    code: 'ep',
    value: 'rc',
    longCode: ['--eval', '--print'],
    longValue: ['--preload', '--cwd'],
    verbs: ['run'],
  },
  deno: { value: 'cL', longValue: ['--config', '--import-map', '--lock', '--log-level'], verbs: ['run'] },
  python: { code: 'c', module: 'm', value: 'WX', longValue: ['--check-hash-based-pycs'] },
  pypy: { code: 'c', module: 'm', value: 'WX' },
  perl: { code: 'eE', value: 'I', attached: 'MmxidDCF' },
  ruby: { code: 'e', value: 'rICE', attached: 'xiFKTW0' },
  php: { code: 'rBRES', value: 'cdzt', file: 'fF', longCode: ['--run', '--server'], longValue: ['--define'] },
  lua: { code: 'e', value: 'l' },
  luajit: { code: 'e', value: 'l' },
  tclsh: {},
  expect: { code: 'c' },
  rscript: { code: 'e' },
};

const BY_FAMILY: ReadonlyMap<string, Grammar> = new Map(Object.entries(GRAMMARS));

/** Undefined for what is no interpreter. */
export function grammarOf(program: string): Grammar | undefined {
  return BY_FAMILY.get(familyOf(program));
}
