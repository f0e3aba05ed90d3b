import fs from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';

const SRC = path.resolve(import.meta.dirname, '../src');

/** What a part of the source may not import; a type alone couples nothing. */
const FORBIDDEN: readonly (readonly [part: string, imports: RegExp, why: string])[] = [
  ['errors.ts', /./, 'errors are at the bottom'],
  ['clock.ts', /^(?!errors\.ts$)/, 'time knows nothing of locks'],
  ['record.ts', /^(?!errors\.ts$)/, 'the shape of a lock stands alone'],
  ['rules.ts', /^(?!record\.ts$)/, 'the rules are pure: no file, no process, no clock'],
  ['store.ts', /./, 'the interface is types only'],
  [
    'lock.ts',
    /^(stores|evidence|cli|run)\/|^node:(fs|child_process|process)/,
    'the verbs work over any store',
  ],
  ['marker.ts', /^(stores|evidence|cli|run|lock)|^node:/, 'pure'],
  ['history.ts', /^(stores|evidence|cli|run|lock)|^node:/, 'pure'],
  ['records.ts', /^(stores|evidence|cli|run|lock)|^node:/, 'pure'],
  ['words.ts', /^(stores|evidence|cli|run|lock)|^node:/, 'pure'],
  ['evidence/', /^(stores|cli|run)\/|^lock\.ts/, 'evidence is found, not used here'],
  ['gates/', /^(cli|stores|run)\/|^lock\.ts/, 'a gate answers from facts on disk, not from the lock'],
  ['stores/', /^(cli|run|evidence)\/|^lock\.ts/, 'a store knows nothing of who uses it'],
  ['ledger/', /^(stores|evidence|cli|run)\/|^lock\.ts/, 'a ledger knows nothing of locks on runs'],
  ['run/', /^(cli|stores)\//, 'the supervisor works over any store'],
];

interface Import {
  readonly from: string;
  readonly to: string;
}

test('each part imports only what its place in the architecture allows', () => {
  const wrong = allImports().flatMap(({ from, to }) =>
    FORBIDDEN.filter(([part, forbidden]) => from.startsWith(part) && forbidden.test(to)).map(
      ([part, , why]) => `${from} imports ${to} (${part}: ${why})`,
    ),
  );
  expect(wrong).toEqual([]);
});

test('nothing outside the command line imports it', () => {
  expect(allImports().filter(({ from, to }) => to.startsWith('cli/') && !from.startsWith('cli/'))).toEqual(
    [],
  );
});

test('only the command line writes to the terminal or ends the process', () => {
  const wrong = sources().filter(
    (file) => !file.startsWith('cli/') && /console\.|process\.(stdout|stderr|exit)\b/.test(read(file)),
  );
  expect(wrong).toEqual([]);
});

test('what parses ledgers is loaded by the command that needs it alone', () => {
  const loads = (command: string) => staticallyImportedBy(['cli/main.ts', `cli/commands/${command}.ts`]);
  expect(loads('ledger')).toContain('jsonc-parser');
  for (const command of ['hb', 'status', 'acquire', 'release', 'finish', 'run'])
    expect(loads(command), command).not.toContain('jsonc-parser');
});

/** All that is loaded with some sources, since none of it waits for an import(). */
function staticallyImportedBy(files: readonly string[]): Set<string> {
  const reached = new Set(files);
  for (const file of reached) {
    if (!file.endsWith('.ts')) continue;
    for (const [, to] of read(file).matchAll(/^(?:import|export) (?!type )[^;]*?from '([^']+)'/gms))
      reached.add(resolve(file, to ?? ''));
  }
  return reached;
}

function allImports(): Import[] {
  const found = sources().flatMap((from) =>
    [...read(from).matchAll(/^(?:import|export) (?!type )[^;]*?from '([^']+)'|import\('([^']+)'\)/gms)].map(
      (match) => ({
        from,
        to: resolve(from, match[1] ?? match[2] ?? ''),
      }),
    ),
  );
  if (found.length < 50) throw new Error(`found only ${found.length} imports: this test looks at nothing`);
  return found;
}

function resolve(from: string, to: string): string {
  return to.startsWith('.') ? path.posix.join(path.posix.dirname(from), to) : to;
}

function sources(): string[] {
  return fs.readdirSync(SRC, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'));
}

function read(file: string): string {
  return fs.readFileSync(path.join(SRC, file), 'utf8');
}
