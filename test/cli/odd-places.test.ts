import fs from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { BINARY, Sandbox } from './harness.ts';
import { lines, needsRoot } from './jobs.ts';
import { allOf, states } from './processes.ts';

// Where a command is started, how long a path is, and how a name is spelt.

test.each([undefined, '', '/nonexistent', '.'])('HOME is %j: a lock needs none', async (HOME) => {
  const box = new Sandbox();
  const env = { HOME };
  expect((await box.runlock(['run', 'echo', 'began'], { env })).stdout).toBe('began\n');
  expect((await box.runlock(['status'], { env })).code).toBe(0);
  // Nor does its absence make a root directory a place for state.
  const { code, stdout } = await box.runlock(['run', 'echo', 'began'], { env, cwd: '/' });
  expect([code, stdout]).toEqual([125, '']);
});

test('a user whom the system does not know needs no home either', async (ctx) => {
  needsRoot(ctx);
  const box = new Sandbox();
  fs.chmodSync(box.dir, 0o777);
  const options = { env: { HOME: undefined }, user: { uid: 54_321, gid: 54_321 } };
  const { code, stdout, stderr } = await box.runlock(['run', 'echo', 'began'], options);
  expect([code, stdout, stderr]).toEqual([0, 'began\n', expect.not.stringContaining('unexpected')]);
});

test('from a deleted working directory a lock at an absolute path can be used, any other is an error', async () => {
  const box = new Sandbox();
  const runlock = `'${process.execPath}' '${BINARY}'`;
  const there = `--dir '${box.runs}'`;
  const script = `
    mkdir gone && cd gone && rmdir ../gone
    ask() { echo "$1 $(${runlock} "$@" 2>>'${box.dir}/errors' </dev/null; echo "=$?")"; }
    ask run ${there} echo began; ask acquire ep ${there} --no-pid --token a; ask status ${there}
    ask hb ${there} --token a; ask finish ${there} --token a; ask history ${there}
    echo --- >>'${box.dir}/errors'
    for dir in runs ./runs; do
      ask run --dir $dir echo began; ask acquire --dir $dir --no-pid --token b; ask status --dir $dir; ask release --dir $dir
    done
    ask run echo began; ask status; ask pick; ask settle x; ask history; ask hb; ask finish`;
  const { stdout } = await box.exec('sh', ['-c', script]);
  const codes = [...stdout.matchAll(/=(\d+)/g)].map(([, code]) => Number(code));
  expect(codes).toEqual([0, 0, 3, 0, 0, 0, 125, 1, 1, 1, 125, 1, 1, 1, 125, 1, 1, 1, 1, 1, 1]);
  expect(stdout.match(/began/g)).toHaveLength(1);
  const [, errors = ''] = fs.readFileSync(path.join(box.dir, 'errors'), 'utf8').split('---\n');
  expect(lines(errors)).toHaveLength(15);
  for (const line of lines(errors))
    expect(line).toMatch(/^runlock: could not find the current directory for /);
});

test('a path or a part of it that is too long is an error with its reason; 255 bytes are not too long', async () => {
  const box = new Sandbox();
  const longest = 'x'.repeat(255);
  expect((await box.runlock(['run', '--dir', longest, 'echo', 'began'])).stdout).toBe('began\n');
  for (const dir of [`${longest}x`, Array(20).fill(longest).join('/'), 'x/'.repeat(40_000)]) {
    for (const args of [['run'], ['acquire', '--no-pid', '--token', 'a'], ['status'], ['history']]) {
      const operands = args[0] === 'run' ? ['echo', 'began'] : [];
      const { code, stdout, stderr } = await box.runlock([...args, '--dir', dir, ...operands]);
      expect([args[0], code, stdout]).toEqual([args[0], args[0] === 'run' ? 125 : 1, '']);
      expect(lines(stderr)).toHaveLength(1);
      expect(stderr).toMatch(/ENAMETOOLONG/);
    }
  }
});

/** Spellings of one name, which no system may tell apart. */
const ONE = [
  ['café', 'cafe\u0301', 'CAFÉ', 'CAFE\u0301'],
  ['ÅNGSTRÖM', '\u212bngström', 'a\u030angstro\u0308m'],
  ['한글', '한글'.normalize('NFD')],
  ['ΣΊΣΥΦΟΣ', 'σίσυφος', 'σίσυφοσ'],
  ['Kelvin', '\u212aelvin'],
];

/** Names that look or sound alike, fold alike elsewhere, or mean something to a file system. */
const OTHERS = [
  ['ß', 'ss', 'ſſs'],
  ['ı', 'i', 'i\u0307'],
  ['\ufb01', 'fi'],
  ['²', '2'],
  ['a', '\u0430', 'a\u200b', 'a ', ' a', '\ufeffa'],
  ['a/b', 'a\\b', 'a%2fb', 'a%2Fb-', 'a-b', 'a_b', 'a b', 'a~b', 'a:b'],
  ['.', '..', '...', '../x', '/', 'con', 'nul', 'con.', 'lock.json', 'locks', '~'],
  ['x'.repeat(100), `${'x'.repeat(99)}y`, '視'.repeat(100), `${'視'.repeat(99)}聽`],
];

test('spellings of one name by case and Unicode form are one lock', async () => {
  const box = new Sandbox();
  for (const [index, [first = '', ...others]] of ONE.entries()) {
    const token = `t${index}`;
    expect((await box.runlock(['acquire', '--name', first, '--no-pid', '--token', token])).code).toBe(0);
    for (const name of others)
      expect([name, (await box.runlock(['status', '--name', name])).code]).toEqual([name, 3]);
  }
  expect(fs.readdirSync(box.file('locks'))).toHaveLength(ONE.length);
});

test('any other two names never share a lock, nor leave their directory', async () => {
  const box = new Sandbox();
  const names = OTHERS.flat();
  for (const [index, name] of names.entries()) {
    const { code, stdout } = await box.runlock([
      'acquire',
      '--name',
      name,
      '--no-pid',
      '--token',
      `t${index}`,
    ]);
    expect([name, code, stdout]).toEqual([name, 0, '1\n']);
  }
  const all = await states(box);
  expect(all).toEqual(allOf(Object.keys(all), 'held'));
  expect(Object.keys(all)).toHaveLength(names.length);
  for (const folder of fs.readdirSync(box.file('locks'))) expect(folder).toMatch(/^[a-z0-9_%~-]{1,100}$/);
  expect(fs.readdirSync(box.dir)).toEqual(['runs']);
  expect(fs.readdirSync(box.runs)).toEqual(['locks']);
});
