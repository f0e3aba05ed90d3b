import path from 'node:path';
import type { Root } from './root.ts';
import { lastOf, listOf, type Setting, splitWords } from './unit-file.ts';

/**
 * What a unit's own file system makes of a path:
 *
 * - `hidden`: it is not there for the unit
 * - `own`: something else is there, which no other entry sees, and it ends with the unit
 * - `other`: another directory is there, and it is not followed which
 * - `readOnly`: it can't be written to
 * - `passing`: it is removed when the unit ends
 * - `writable`, `same`: it is what others see; `same` may bring back what another setting has hidden
 */
type Mode = 'hidden' | 'own' | 'other' | 'readOnly' | 'passing' | 'writable' | 'same';

/** What a unit sees at a path, and the setting by which it does. */
export type Seen =
  | { readonly type: 'plain' }
  | { readonly type: Exclude<Mode, 'writable' | 'same' | 'other'> | 'unsure'; readonly by: string };

interface Rule {
  /** Null where it is only known when it runs. */
  readonly path: string | null;
  readonly mode: Mode;
  /** As it is written: `ProtectHome=yes`. */
  readonly by: string;
}

const HOMES = ['/home', '/root', '/run/user'];

/** Settings with some values that mean fixed paths; `yes` stands for all that systemd reads as true. */
const FIXED: Readonly<
  Record<string, Readonly<Record<string, readonly (readonly [Mode, readonly string[]])[]>>>
> = {
  ProtectSystem: {
    yes: [['readOnly', ['/usr', '/boot', '/efi']]],
    full: [['readOnly', ['/usr', '/boot', '/efi', '/etc']]],
    strict: [
      ['readOnly', ['/']],
      ['writable', ['/proc', '/sys', '/dev', ...HOMES]],
    ],
  },
  ProtectHome: {
    yes: [['hidden', HOMES]],
    'read-only': [['readOnly', HOMES]],
    tmpfs: [['own', HOMES]],
  },
  PrivateTmp: { yes: [['own', ['/tmp', '/var/tmp']]], disconnected: [['own', ['/tmp', '/var/tmp']]] },
};

/** Settings that list paths. */
const LISTS: Readonly<Record<string, Mode>> = {
  ReadWritePaths: 'writable',
  ReadWriteDirectories: 'writable',
  ReadOnlyPaths: 'readOnly',
  ReadOnlyDirectories: 'readOnly',
  InaccessiblePaths: 'hidden',
  InaccessibleDirectories: 'hidden',
};

/** Settings that name directories of the unit's, below one of the manager's. */
const MADE: Readonly<Record<string, readonly [Mode, string]>> = {
  StateDirectory: ['writable', '/var/lib'],
  CacheDirectory: ['writable', '/var/cache'],
  LogsDirectory: ['writable', '/var/log'],
  RuntimeDirectory: ['passing', '/run'],
};

/** `DynamicUser=` brings these, unless others are set; the last can't be turned off. */
const DYNAMIC: Readonly<Record<string, string>> = {
  ProtectSystem: 'strict',
  ProtectHome: 'read-only',
  PrivateTmp: 'yes',
};

/** With one of these anything may be anywhere. */
const UNFOLLOWED =
  'RootDirectory RootImage RootDirectoryStartOnly PermissionsStartOnly MountImages ExtensionImages ExtensionDirectories'.split(
    ' ',
  );

/** A value that may be only known when it runs. */
type Expand = (text: string) => { readonly text: string; readonly certain: boolean };

export function isOn(value: string | undefined): boolean {
  return /^(?:1|yes|y|true|t|on)$/i.test(value ?? '');
}

function isOff(value: string): boolean {
  return /^(?:0|no|n|false|f|off)?$/i.test(value);
}

/** The paths that must be there, or systemd does not start the unit. */
export function neededPaths(settings: readonly Setting[], expand: Expand) {
  const listed = [...Object.keys(LISTS), 'BindPaths', 'BindReadOnlyPaths'];
  return listed.flatMap((key) =>
    listOf(settings, key).flatMap(({ value, where }) =>
      splitWords(value)
        .filter((word) => !word.startsWith('-'))
        .map((word) => ({ key, where, ...expand(sourceOf(word)) })),
    ),
  );
}

function sourceOf(word: string): string {
  return word.replace(/^[-+]+/, '').split(':')[0] ?? '';
}

/** What a unit sees of the file system, as far as its settings tell. */
export class Sandbox {
  readonly #rules: readonly Rule[];
  readonly #root: Root;
  /** Whether the settings have to work: a user's manager may lack the right to. */
  readonly #sure: boolean;

  constructor(settings: readonly Setting[], expand: Expand, root: Root, sure: boolean) {
    this.#rules = rulesOf(settings, expand);
    this.#root = root;
    this.#sure = sure;
  }

  look(file: string): Seen {
    const seen = this.#look(file);
    if (seen.type === 'plain' || this.#sure) return seen;
    return { type: 'unsure', by: seen.by };
  }

  #look(file: string): Seen {
    const unknown = this.#rules.find((rule) => rule.path === null);
    if (unknown !== undefined) return { type: 'unsure', by: unknown.by };
    const real = this.#root.real(file);
    const byName = this.#rules.filter((rule) => covers(rule.path ?? '/', file));
    const rules = this.#rules.filter((rule) => covers(this.#root.real(rule.path ?? '/'), real));
    const hidden = [...rules, ...byName].find(({ mode }) => mode === 'hidden');
    if (hidden !== undefined) return { type: 'hidden', by: hidden.by };
    // By its name as well: a link on the way may be hidden, and lead nowhere.
    for (const all of [rules, byName]) {
      const what = closest(all, ['own', 'other', 'same']);
      if (what?.mode === 'own') return { type: 'own', by: what.by };
      if (what?.mode === 'other') return { type: 'unsure', by: what.by };
    }
    const how = closest(rules, ['readOnly', 'passing', 'writable', 'same']);
    if (how?.mode === 'readOnly' || how?.mode === 'passing') return { type: how.mode, by: how.by };
    const inside = this.#rules.find(
      (rule) => !['writable', 'same'].includes(rule.mode) && covers(real, this.#root.real(rule.path ?? '/')),
    );
    return inside === undefined ? { type: 'plain' } : { type: 'unsure', by: inside.by };
  }
}

function covers(dir: string, file: string): boolean {
  return dir === '/' || file === dir || file.startsWith(`${dir}/`);
}

/** The rule for the longest path goes before others; of two for the same path that of the mode which is named first. */
function closest(rules: readonly Rule[], modes: readonly Mode[]): Rule | undefined {
  const depth = ({ path: dir }: Rule) => (dir === null || dir === '/' ? 0 : dir.split('/').length);
  return rules
    .filter(({ mode }) => modes.includes(mode))
    .sort((a, b) => depth(b) - depth(a) || modes.indexOf(a.mode) - modes.indexOf(b.mode))[0];
}

function rulesOf(settings: readonly Setting[], expand: Expand): Rule[] {
  const dynamic = isOn(lastOf(settings, 'DynamicUser')?.value);
  return [...fixedRules(settings, dynamic), ...listedRules(settings, expand), ...unfollowedRules(settings)];
}

function fixedRules(settings: readonly Setting[], dynamic: boolean): Rule[] {
  return Object.entries(FIXED).flatMap(([key, values]) => {
    const set = lastOf(settings, key)?.value;
    const implied = dynamic && (set === undefined || key === 'PrivateTmp') ? DYNAMIC[key] : undefined;
    const value = implied ?? (isOn(set) ? 'yes' : (set ?? ''));
    const by = implied === undefined ? `${key}=${set}` : 'DynamicUser=yes';
    const fixed = Object.hasOwn(values, value) ? (values[value] ?? []) : [];
    return fixed.flatMap(([mode, paths]) => paths.map((dir) => ({ path: dir, mode, by })));
  });
}

function listedRules(settings: readonly Setting[], expand: Expand): Rule[] {
  const rule = (text: string, mode: Mode, by: string): Rule => {
    const { text: file, certain } = expand(text);
    return { path: certain ? path.posix.resolve('/', file) : null, mode, by };
  };
  const each = (key: string, read: (word: string, by: string) => Rule) =>
    listOf(settings, key).flatMap(({ value }) =>
      splitWords(value).map((word) => read(word, `${key}=${word}`)),
    );
  const preserved = !isOff(lastOf(settings, 'RuntimeDirectoryPreserve')?.value ?? '');
  return [
    ...Object.entries(LISTS).flatMap(([key, mode]) =>
      each(key, (word, by) => rule(sourceOf(word), mode, by)),
    ),
    ...Object.entries(MADE).flatMap(([key, [mode, above]]) =>
      each(key, (word, by) =>
        rule(`${above}/${sourceOf(word)}`, mode === 'passing' && preserved ? 'writable' : mode, by),
      ),
    ),
    ...each('TemporaryFileSystem', (word, by) => rule(sourceOf(word), 'own', by)),
    ...['BindPaths', 'BindReadOnlyPaths'].flatMap((key) =>
      listOf(settings, key).flatMap(({ value }) =>
        splitWords(value).flatMap((word) => {
          const [source = '', target = source] = word.replace(/^[-+]+/, '').split(':');
          const by = `${key}=${word}`;
          const what = rule(target, source === target ? 'same' : 'other', by);
          return key === 'BindPaths' ? [what] : [what, rule(target, 'readOnly', by)];
        }),
      ),
    ),
  ];
}

function unfollowedRules(settings: readonly Setting[]): Rule[] {
  return UNFOLLOWED.flatMap((key) => {
    const value = lastOf(settings, key)?.value ?? '';
    return isOff(value) || value === '/'
      ? []
      : [{ path: '/', mode: 'other' as const, by: `${key}=${value}` }];
  });
}
