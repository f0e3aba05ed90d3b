import fs from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { BINARY, Sandbox } from './harness.ts';

const HOOK = path.resolve(import.meta.dirname, 'fixtures/addon.cjs');

/** What a system may lack, and what the message names. */
const SYSTEMS = [
  {
    name: 'a file system that grants one lock to two',
    addon: 'grantsTwice',
    says: /grants one lock to two.*local disk/,
  },
  {
    name: 'a file system without locks',
    addon: 'ENOLCK',
    says: /gives no kernel locks \(ENOLCK\).*local disk/,
  },
  { name: 'a processor without an addon', addon: 'missing', says: /no kernel lock addon for linux on mips/ },
  { name: 'Bun', addon: 'bun', says: /Bun can not load the kernel lock addon: use Node/ },
];

describe.each(SYSTEMS)('on $name', ({ addon, says }) => {
  const asked = (box: Sandbox, args: readonly string[]) =>
    box.exec(process.execPath, ['--require', HOOK, BINARY, ...args], { env: { ADDON: addon } });

  test('nothing is taken, and nothing is run', async () => {
    const box = new Sandbox();
    const acquired = await asked(box, ['acquire', '--no-pid', '--token', 'one']);
    expect([acquired.code, acquired.stdout]).toEqual([1, '']);
    expect(acquired.stderr).toMatch(says);
    const ran = await asked(box, ['run', '--', 'touch', box.file('ran')]);
    expect(ran.code).toBe(125);
    expect(ran.stderr).toMatch(says);
    expect(fs.existsSync(box.file('ran'))).toBe(false);
    expect(fs.existsSync(box.file('lock.json'))).toBe(false);
  });

  test('what is held is never answered as free', async () => {
    const box = new Sandbox();
    await box.runlock(['acquire', '--no-pid', '--token', 'one']);
    const finished = await asked(box, ['finish', '--token', 'one']);
    expect(finished.code).toBe(1);
    expect([1, 3]).toContain((await asked(box, ['acquire', '--no-pid', '--token', 'two'])).code);
    expect((await box.runlock(['status'])).code).toBe(3);
  });
});
