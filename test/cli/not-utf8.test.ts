import fs from 'node:fs';
import { describe, expect, test } from 'vitest';
import { Sandbox } from './harness.ts';

/*
 * On Linux names are bytes, and Node puts U+FFFD in place of those that are no UTF-8: two names would be one, and what
 * is looked for would not be there. All of it runs in bash, since Node can't hand over such arguments.
 */

/** Runs lines of bash, each of which has to be refused with a code and a word on what is no UTF-8. */
async function refused(box: Sandbox, line: string, code: number): Promise<void> {
  const result = await box.script('bash', `${line}\n`);
  expect([line, result.code, result.stdout]).toEqual([line, code, '']);
  expect(result.stderr).toMatch(/^runlock: .*: expected UTF-8, got .*\n$/);
}

describe('what is no UTF-8 is refused, and never taken for another', () => {
  test.each([
    [String.raw`runlock acquire $'caf\xe9' --no-pid --token T`, 2],
    [String.raw`runlock run --item $'caf\xe9' -- echo began`, 125],
    [String.raw`runlock run --name $'n\xe9' -- echo began`, 125],
    [String.raw`RUNLOCK_NAME=$'n\xe9' runlock run -- echo began`, 125],
    [String.raw`runlock status --dir $'d\xe9'`, 2],
    [String.raw`RUNLOCK_DIR=$'d\xe9' runlock acquire`, 2],
    [String.raw`runlock settle $'caf\xe9' --done`, 2],
    [String.raw`runlock gate output:$'out\xe9.txt'`, 2],
    [String.raw`runlock run --gate output:$'out\xe9.txt' -- echo began`, 125],
    [String.raw`runlock ledger has ledger.json $'caf\xe9'`, 2],
    [String.raw`runlock history --item $'caf\xe9'`, 2],
  ])('%s', async (line, code) => {
    const box = new Sandbox();
    box.write('ledger.json', '{}');
    await refused(box, line, code);
    expect(fs.existsSync(box.runs)).toBe(false);
  });

  test('a current directory of such a name: what is relative to it can not be found', async () => {
    const box = new Sandbox();
    const inside = String.raw`mkdir -p $'d\xe9'; cd $'d\xe9'; echo kept >out.txt; `;
    await refused(box, `${inside}runlock run -- echo began`, 125);
    await refused(box, `${inside}runlock status`, 2);
    await refused(box, `${inside}runlock run --dir '${box.runs}' --gate output:out.txt -- cat out.txt`, 125);
    // What needs nothing from there works.
    const { code, stdout } = await box.script(
      'bash',
      `${inside}runlock run --dir '${box.runs}' -- cat out.txt`,
    );
    expect([code, stdout]).toEqual([0, 'kept\n']);
  });
});

test("a command's own arguments are its own, whatever bytes they have", async () => {
  const box = new Sandbox();
  const { code, stdout } = await box.script(
    'bash',
    String.raw`runlock run -- printf '%s' $'caf\xe9' | od -An -tx1`,
  );
  expect([code, stdout]).toEqual([0, ' 63 61 66 e9\n']);
});
