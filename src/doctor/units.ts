import path from 'node:path';
import type { Entry, Step } from './entries.ts';
import { mentionsRunlock } from './mentions.ts';
import { isOn, neededPaths, Sandbox } from './sandbox.ts';
import { type Start, startedByWords, UNKNOWN, type Word } from './started.ts';
import { isMadeLater, unitEnvironment } from './unit-environment.ts';
import { lastOf, listOf, parseUnit, type Setting, splitWords } from './unit-file.ts';
import { findUser, type User } from './users.ts';
import { namesIn, type Visit } from './visit.ts';
import { SYSTEM_PATH } from './wrappers.ts';

/** What goes before, first; the transient and the generated ones as far as they are there at the moment. */
const SYSTEM_DIRS = [
  '/etc/systemd/system.control',
  '/run/systemd/system.control',
  '/run/systemd/transient',
  '/run/systemd/generator.early',
  '/etc/systemd/system',
  '/etc/systemd/system.attached',
  '/run/systemd/system',
  '/run/systemd/system.attached',
  '/run/systemd/generator',
  '/usr/local/lib/systemd/system',
  '/usr/lib/systemd/system',
  '/lib/systemd/system',
  '/run/systemd/generator.late',
];
const USER_DIRS = [
  '/etc/systemd/user',
  '/run/systemd/user',
  '/usr/local/lib/systemd/user',
  '/usr/lib/systemd/user',
];

const EXEC_KEYS = [
  'ExecCondition',
  'ExecStartPre',
  'ExecStart',
  'ExecStartPost',
  'ExecReload',
  'ExecStop',
  'ExecStopPost',
];

/** Every service that the system's manager, or the one of a user, can start. */
export function unitEntries(visit: Visit): Entry[] {
  const { root, users, self } = visit;
  const entries = servicesIn(visit, SYSTEM_DIRS).flatMap((unit) => entryOf(visit, unit, null));
  const own = (user: User) => servicesIn(visit, [`${user.home}/.config/systemd/user`], USER_DIRS);
  // Root looks into every home; in others' an ordinary user sees nothing.
  const owners = self === null || self.uid === 0 ? [...users.values()] : [self];
  const seen = new Set<string>();
  for (const user of owners) {
    const dir = root.real(`${user.home}/.config/systemd/user`);
    if (seen.has(dir) || root.stat(dir)?.isDirectory() !== true) continue;
    seen.add(dir);
    entries.push(...own(user).flatMap((unit) => entryOf(visit, unit, user)));
  }
  sayForAll(visit);
  return entries;
}

/** Each user's manager may start these, in surroundings of its own. */
function sayForAll(visit: Visit): void {
  for (const dir of USER_DIRS) {
    for (const name of namesIn(visit, dir)) {
      const file = `${dir}/${name}`;
      if (!name.endsWith('.service') || visit.root.real(file) === '/dev/null') continue;
      for (const { key, value, where } of parseUnit(visit.root.textOf(file) ?? '', file)) {
        if (EXEC_KEYS.includes(key) && mentionsRunlock(value))
          visit.findings.add(
            'note',
            'unsure',
            where,
            "which lock this takes can't be told from here: the manager of each user may start it",
            'name it by --dir',
          );
      }
    }
  }
}

interface Unit {
  readonly name: string;
  readonly settings: readonly Setting[];
  /** Its file and all drop-ins could be read. */
  readonly isWhole: boolean;
}

/** @param own looked through for units; `further` only for drop-ins and for what a drop-in of `own` belongs to */
function servicesIn(visit: Visit, own: readonly string[], further: readonly string[] = []): Unit[] {
  const dirs = [...own, ...further];
  const names = new Set<string>();
  const real = new Set<string>();
  for (const dir of own) {
    // /lib is a link to /usr/lib on most.
    if (real.has(visit.root.real(dir))) continue;
    real.add(visit.root.real(dir));
    for (const name of namesIn(visit, dir)) {
      const unit = /^(.+\.service)(?:\.d)?$/.exec(name)?.[1];
      if (unit !== undefined) names.add(unit);
    }
  }
  return [...names].sort().flatMap((name) => {
    const unit = readUnit(visit, name, dirs);
    return unit === null ? [] : [unit];
  });
}

/** The unit's file from the first directory that has one, then all drop-ins by their names. */
function readUnit(visit: Visit, name: string, dirs: readonly string[]): Unit | null {
  // In an image /dev is empty.
  const isMasked = (path: string) => visit.root.real(path) === '/dev/null';
  const file = dirs
    .map((dir) => `${dir}/${name}`)
    .find((path) => isMasked(path) || visit.root.stat(path) !== null);
  if (file === undefined || isMasked(file)) return null;
  const dropIns = new Map<string, string>();
  const template = name.replace(/@[^.]*\./, '@.');
  // `a-b-c.service` has the drop-ins of `a-.service` and `a-b-.service` too.
  const prefixes = name.includes('@')
    ? []
    : [...name.matchAll(/-(?!\.)/g)].map(({ index }) => `${name.slice(0, index)}-.service.d`);
  for (const dir of [...dirs].reverse()) {
    for (const folder of new Set(['service.d', ...prefixes, `${template}.d`, `${name}.d`])) {
      const listed = visit.root.list(`${dir}/${folder}`);
      for (const one of 'names' in listed ? listed.names : []) {
        if (one.endsWith('.conf')) dropIns.set(one, `${dir}/${folder}/${one}`);
      }
    }
  }
  const byName = [...dropIns].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, path]) => path);
  const files = [file, ...byName.filter((path) => !isMasked(path))];
  let isWhole = true;
  const settings = files.flatMap((path) => {
    const reading = visit.root.read(path);
    if ('refused' in reading) {
      isWhole = false;
      visit.findings.add(
        'unseen',
        'unreadable',
        { file: path, line: null },
        `could not be read: ${reading.refused}`,
      );
    }
    return 'text' in reading ? parseUnit(reading.text, path) : [];
  });
  return { name, settings, isWhole };
}

/** @param owner whose manager it is; null: the system's */
function entryOf(visit: Visit, unit: Unit, owner: User | null): Entry[] {
  const { root, users } = visit;
  const lines = EXEC_KEYS.flatMap((key) => listOf(unit.settings, key));
  if (lines.length === 0) return [];
  const named = lastOf(unit.settings, 'User')?.value;
  // Specifiers mean the manager's user, whatever User= says.
  const manager = owner ?? users.get('root') ?? null;
  const expand = (text: string) => specifiers(text, unit.name, manager);
  // A user that is made for the unit is nobody's; one that is there already goes before it.
  const isMade = isOn(lastOf(unit.settings, 'DynamicUser')?.value);
  const itself = isMade && owner === null ? null : manager;
  const user = owner ?? (named === undefined ? itself : findUser(users, expand(named).text, ''));
  const doubt = () => {
    for (const { where } of lines) visit.findings.doubt(where);
  };
  if (!unit.isWhole) doubt();
  const sayMissing = (what: string, { key, where }: Pick<Setting, 'key' | 'where'>) => {
    doubt();
    if (lines.some(({ value }) => mentionsRunlock(value)))
      visit.findings.add(
        'problem',
        'missingFile',
        where,
        `${what}: systemd does not start the unit (${key}=)`,
        'make it, or put - before it if it may be missing',
      );
  };
  const isMissing = (file: string) => !isMadeLater(file) && 'missing' in root.read(file);
  for (const { text, certain, key, where } of neededPaths(unit.settings, expand))
    if (certain && isMissing(text)) sayMissing(`there is no ${text}`, { key, where });
  const names =
    user !== null && (owner !== null || named !== undefined)
      ? [['HOME', user.home] as const, ['LOGNAME', user.name] as const]
      : [];
  const begun = new Map([['PATH', SYSTEM_PATH], ...names]);
  const env = unitEnvironment(unit.settings, begun, expand, visit, {
    missing: sayMissing,
    unread: doubt,
  });
  const cwd = directoryOf(unit.settings, expand, user, owner);
  const directory = lastOf(unit.settings, 'WorkingDirectory');
  if (directory !== undefined && !directory.value.startsWith('-') && cwd !== null && isMissing(cwd))
    sayMissing(`there is no ${cwd}`, directory);
  const sandbox = new Sandbox(unit.settings, expand, root, owner === null);
  const how = {
    around: { user, cwd, env, searched: SYSTEM_PATH },
    sandbox,
    elevated: owner ?? users.get('root') ?? null,
  };
  const steps = lines.flatMap((line) => stepsOf(line, how, visit, expand));
  return [{ kind: 'systemd', steps }];
}

function directoryOf(
  settings: readonly Setting[],
  expand: (text: string) => Word,
  user: User | null,
  owner: User | null,
): string | null {
  const setting = lastOf(settings, 'WorkingDirectory');
  if (setting === undefined) return owner?.home ?? '/';
  const { text, certain } = expand(setting.value.replace(/^-/, ''));
  if (text === '~') return user?.home ?? null;
  return certain && path.isAbsolute(text) ? path.resolve(text) : null;
}

/** The commands of one line: several may stand on it, with ` ; ` between. */
function stepsOf(
  line: Setting,
  { around, sandbox, elevated }: { around: Start; sandbox: Sandbox; elevated: User | null },
  visit: Visit,
  expand: (text: string) => Word,
) {
  const steps: Step[] = [];
  let words: string[] = [];
  const end = () => {
    const [first = '', ...rest] = words;
    const text = words.join(' ');
    words = [];
    const [, prefix = '', program = ''] = /^([@:+!|-]*)(.*)$/s.exec(first) ?? [];
    if (program === '') return;
    const variables = (word: string) =>
      prefix.includes(':') ? [expand(word)] : withVariables(expand(word), around.env);
    const argv = [expand(program), ...(prefix.includes('@') ? rest.slice(1) : rest).flatMap(variables)];
    // With `+` it has all rights and sees what everybody does; `!` is about the user alone.
    const user = /[+!]/.test(prefix) ? elevated : around.user;
    const started = startedByWords(argv, { ...around, user }, visit.users);
    steps.push({ where: line.where, text, started, sandbox: prefix.includes('+') ? null : sandbox });
  };
  for (const word of splitWords(line.value)) {
    if (word === ';') end();
    else words.push(word);
  }
  end();
  return steps;
}

/** `${X}` within a word, `$X` as a word of its own, which is split. */
function withVariables({ text, certain }: Word, env: ReadonlyMap<string, string>): Word[] {
  const whole = /^\$([A-Za-z_]\w*)$/.exec(text)?.[1];
  const value = whole === undefined ? undefined : env.get(whole);
  if (value !== undefined && value !== UNKNOWN)
    return value
      .split(/\s+/)
      .filter((word) => word !== '')
      .map((word) => ({ text: word, certain: true }));
  let known = certain && whole === undefined;
  const filled = text.replace(/\$\$|\$\{([A-Za-z_]\w*)\}/g, (raw, name: string | undefined) => {
    if (name === undefined) return '$';
    const found = env.get(name);
    if (found !== undefined && found !== UNKNOWN) return found;
    known = false;
    return raw;
  });
  return [{ text: filled, certain: known }];
}

/** Specifiers that can be told from here; another one makes the word uncertain. */
function specifiers(text: string, unit: string, user: User | null): Word {
  let certain = true;
  const [, prefix = '', instance = ''] = /^([^@]*)@?(.*)\.service$/s.exec(unit) ?? [];
  // A template's own file has no instance.
  const ofInstance = unit.includes('@.') ? undefined : instance;
  const values = new Map([
    ['%', '%'],
    ['n', unit],
    ['N', unit.replace(/\.service$/, '')],
    ['p', prefix],
    ['i', ofInstance],
    ['I', ofInstance],
    ['h', user?.home],
    ['u', user?.name],
    ['U', user === null ? undefined : String(user.uid)],
    ['t', user?.uid === 0 ? '/run' : undefined],
    ['S', user?.uid === 0 ? '/var/lib' : undefined],
  ]);
  const filled = text.replace(/%(.)/gs, (raw, letter: string) => {
    const value = values.get(letter);
    if (value === undefined) certain = false;
    return value ?? raw;
  });
  return { text: filled, certain };
}
