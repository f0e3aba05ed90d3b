import fs from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { EXIT, EXIT_MEANINGS } from '../src/cli/exit-codes.ts';
import { COMMANDS } from '../src/cli/spec.ts';

const README = fs.readFileSync(path.resolve(import.meta.dirname, '../README.md'), 'utf8');

/** The rows of the table under a heading, as cells. */
function tableUnder(heading: string): string[][] {
  const section = README.split(`${heading}\n`)[1]?.split(/\n#/)[0] ?? '';
  const rows = section.split('\n').filter((line) => line.startsWith('| ') && !line.startsWith('|---'));
  return rows.slice(1).map((row) =>
    row
      .split(/(?<!\\)\|/)
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
}

test("README's exit-code table is the one the code has", () => {
  expect(tableUnder('### Exit codes')).toEqual(EXIT_MEANINGS.map((row) => [...row]));
});

test('every code a command may answer with is explained', () => {
  const explained = EXIT_MEANINGS.map(([code]) => code);
  for (const code of Object.values(EXIT)) expect(explained).toContain(String(code));
  for (const spec of Object.values(COMMANDS))
    for (const code of spec.codes) expect(explained).toContain(code);
});

test('README shows every command, with every option it takes', () => {
  const rows = tableUnder('## Commands');
  for (const [name, spec] of Object.entries(COMMANDS)) {
    const cell = rows.map((row) => row[0] ?? '').find((text) => text.startsWith(`\`${name}`));
    expect(cell, name).toBeDefined();
    for (const option of Object.keys(spec.options)) {
      if (option === 'run' || option === 'token') continue;
      expect(cell, name).toContain(option.length === 1 ? `-${option}` : `--${option}`);
    }
  }
});
