import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { BINARY, Sandbox } from './harness.ts';
import { ADDON, installation } from './installation.ts';
import { lines, needs } from './jobs.ts';

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
  ...['arm', 'riscv64'].map((processor) => ({
    name: `a processor without an addon (${processor})`,
    addon: processor,
    says: new RegExp(
      `no kernel lock addon for linux on ${processor} .*: it is there for arm64 and x64, so runlock needs a Node for one`,
    ),
  })),
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

describe('with an addon that is there and can not be loaded', () => {
  const whole = fs.readFileSync(ADDON);
  const elsewhere = path.resolve(ADDON, '../..');
  const DAMAGED: [what: string, content: () => Buffer][] = [
    ['empty', () => Buffer.alloc(0)],
    ['cut in its head', () => whole.subarray(0, 300)],
    ["of another processor's", () => fs.readFileSync(`${elsewhere}/linux-arm64/${path.basename(ADDON)}`)],
    ["of another system's", () => fs.readFileSync(`${elsewhere}/darwin-x64/${path.basename(ADDON)}`)],
  ];

  test.for(DAMAGED)(
    '(%s) nothing is taken, nothing is run, and one line names file, reason and what to do',
    async ([, content]) => {
      const box = new Sandbox();
      box.makeRuns();
      const { binary, addon } = installation(`${box.dir}/program`);
      fs.writeFileSync(addon, content());
      for (const [args, code] of [
        [['acquire', '--no-pid', '--token', 'one'], 1],
        [['run', 'echo', 'began'], 125],
      ] as const) {
        const { stdout, stderr, ...ended } = await box.exec(process.execPath, [binary, ...args]);
        expect([ended.code, stdout]).toEqual([code, '']);
        expect(lines(stderr)).toEqual([
          expect.stringMatching(/ can not be loaded \(.+\): install runlock anew/),
        ]);
        expect(stderr).toContain(`the kernel lock addon ${addon} can not`);
      }
      expect(fs.existsSync(box.file('lock.json'))).toBe(false);
    },
  );

  test('(cut in the middle, at which the loader ends the process) nothing is taken, and nothing is run', async () => {
    const box = new Sandbox();
    const { binary, addon } = installation(`${box.dir}/program`);
    fs.writeFileSync(addon, whole.subarray(0, 5000));
    for (const args of [
      ['acquire', '--no-pid', '--token', 'one'],
      ['run', 'echo', 'began'],
    ]) {
      const { code, stdout } = await box.exec(process.execPath, [binary, ...args]);
      expect(code).not.toBe(0);
      expect(stdout).toBe('');
    }
    expect(fs.existsSync(box.file('lock.json'))).toBe(false);
  });
});

test("musl's loader, which Alpine has, loads the addon that was built on Debian, and its locks keep others out", async (ctx) => {
  needs(ctx, 'musl-gcc', 'nm');
  const box = new Sandbox();
  const wanted = execFileSync('nm', ['--dynamic', '--undefined-only', ADDON], { encoding: 'utf8' });
  const fromNode = [...wanted.matchAll(/ U ((?:napi|uv)_\w+)/g)].map(([, name]) => name);
  expect(fromNode.length).toBeGreaterThan(10);
  const stubs = box.write('node.h', fromNode.map((name) => `STUB(${name})\n`).join(''));
  const source = path.resolve(import.meta.dirname, 'fixtures/musl.c');
  const program = `${box.dir}/musl`;
  execFileSync('musl-gcc', ['-Wall', '-Werror', '-rdynamic', `-DSTUBS="${stubs}"`, '-o', program, source]);
  const { code, stdout } = await box.exec(program, [ADDON, box.write('file', '')]);
  expect([code, stdout]).toEqual([0, 'loaded\nlocked\nrefused\nfreed\nlocked\n']);
});
