import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { BINARY, type Options, Sandbox } from './harness.ts';
import { asNobody, lines, needs, needsRoot } from './jobs.ts';

const LEDGER = `{
  "version": 1,
  "publishes": {
    "ep-40": { "id": 7440123456789012345, "title": "第四十期", "rate": 1.10 },
    "ep-41": { "id": 7440123456789012399, "title": "\\u00e9t\\u00e9", "cost": 1e400 }
  },
  "updatedAt": "2026-10-14T16:00:00+08:00"
}
`;
const ENTRY = '{ "id": 7440123456789012777, "title": "第四十二期" }\n';
const PUBLISHES = 'ledger.json#publishes';

/** A sandbox with a ledger in it; `file` is its path. */
function boxWith(content: string | Uint8Array = LEDGER): Sandbox & { ledger: string } {
  const box = new Sandbox();
  return Object.assign(box, { ledger: box.write('ledger.json', content) });
}

function read(file: string): string {
  return fs.readFileSync(file, 'utf8');
}

/** Starts `ledger add` with a script loaded first that can do something at its calls. */
function addWithHook(box: Sandbox, hook: string, args: readonly string[], options: Options = {}) {
  const file = box.write('hook.cjs', hook);
  return box.exec(process.execPath, ['--require', file, BINARY, 'ledger', 'add', ...args], options);
}

/** One line that names the file, and the ledger as it was. */
async function expectRefused(box: Sandbox, args: readonly string[], reason: RegExp, options: Options = {}) {
  const { code, stdout, stderr } = await box.runlock(['ledger', ...args], options);
  expect([args[0], code, stdout]).toEqual([args[0], 1, '']);
  expect(lines(stderr)).toHaveLength(1);
  expect(stderr).toMatch(reason);
  expect(stderr).toContain(path.join(box.dir, 'ledger.json'));
  expect(stderr).not.toContain('unexpected failure');
}

describe('ledger add', () => {
  test('adds one key, refreshes the time, and every other byte stays', async () => {
    const box = boxWith();
    box.write('entry.json', ENTRY);
    const since = Date.now();
    const { code, stdout, stderr } = await box.runlock([
      ...['ledger', 'add', PUBLISHES, 'ep-42', 'entry.json', '--stamp', 'updatedAt'],
    ]);
    expect([code, stdout, stderr]).toEqual([0, '', '']);
    const after = read(box.ledger);
    const time = /"updatedAt": "(.*\+08:00)"/.exec(after)?.[1] ?? '';
    expect(Date.parse(time)).toBeGreaterThan(since - 1001);
    expect(Date.parse(time)).toBeLessThanOrEqual(Date.now());
    expect(after).toBe(
      LEDGER.replace('1e400 }', `1e400 },\n    "ep-42": ${ENTRY.trim()}`).replace(
        '2026-10-14T16:00:00+08:00',
        time,
      ),
    );
    expect(fs.readdirSync(box.dir).sort()).toEqual(['entry.json', 'ledger.json']);
  });

  test('refuses a key that exists, and tells whether the entry is the same', async () => {
    const box = boxWith();
    const same = '{ "title": "第四十期", "rate": 1.10, "id": 7440123456789012345 }';
    for (const [entry, expected] of [
      [same, true],
      [same.replace('1.10', '1.1'), false],
      [same.replace('345', '346'), false],
    ] as const) {
      const add = ['ledger', 'add', PUBLISHES, 'ep-40', '-'];
      const { code, stdout, stderr } = await box.runlock([...add, '--json'], { input: entry });
      expect([code, JSON.parse(stdout)]).toMatchObject([
        7,
        { outcome: 'exists', same: expected, key: 'ep-40' },
      ]);
      expect(lines(stderr)).toHaveLength(1);
      const quiet = await box.runlock([...add, '--quiet'], { input: entry });
      expect(quiet).toMatchObject({ code: 7, stdout: '', stderr: '' });
    }
    expect(read(box.ledger)).toBe(LEDGER);
  });

  test('without an entry it is {}, and --json tells what was done', async () => {
    const box = boxWith('{"a":{"x":1},"t":1697270400}');
    const { code, stdout } = await box.runlock([
      'ledger',
      'add',
      'ledger.json#a',
      'k',
      '--stamp',
      't',
      '--json',
    ]);
    expect(code).toBe(0);
    const answer = JSON.parse(stdout) as { stamp: { value: number } };
    expect(answer).toMatchObject({ outcome: 'added', count: 2, file: box.ledger, place: ['a'], key: 'k' });
    expect(read(box.ledger)).toBe(`{"a":{"x":1,"k":{}},"t":${answer.stamp.value}}`);
    expect(Math.abs(answer.stamp.value - Date.now() / 1000)).toBeLessThan(60);
  });

  test('a name of the configuration brings place and time; a time that is not there is said', async () => {
    const box = boxWith();
    box.write(
      'runlock.json',
      '{"ledgers":{"published":{"file":"ledger.json","at":"publishes","stamp":"updatedAt"}}}',
    );
    box.write('deeper/x', '');
    const cwd = path.join(box.dir, 'deeper');
    expect(await box.runlock(['ledger', 'add', 'published', 'ep-42'], { cwd })).toMatchObject({
      code: 0,
      stderr: '',
    });
    expect(read(box.ledger)).not.toContain('2026-10-14T16:00:00+08:00');
    const other = await box.runlock(['ledger', 'add', 'published', 'ep-43', '--stamp', 'at'], { cwd });
    expect(other.code).toBe(0);
    expect(other.stderr).toMatch(
      /^runlock: added, but there is no time under "at" at the top of .*ledger\.json/,
    );
    expect((await box.runlock(['ledger', 'has', 'published', 'ep-43'], { cwd })).code).toBe(0);
  });

  test.each([
    ['UTF-8 with a mark', Buffer.from(`\ufeff${ENTRY}`)],
    ['UTF-16 LE', Buffer.from(`\ufeff${ENTRY}`, 'utf16le')],
    ['UTF-16 BE', Buffer.from(`\ufeff${ENTRY}`, 'utf16le').swap16()],
  ])('reads an entry in %s, from a file and from a pipe', async (_name, bytes) => {
    const box = boxWith();
    box.write('entry.json', bytes);
    expect((await box.runlock(['ledger', 'add', PUBLISHES, 'a', 'entry.json'])).code).toBe(0);
    expect((await box.runlock(['ledger', 'add', PUBLISHES, 'b', '-'], { input: bytes })).code).toBe(0);
    const entry = ENTRY.trim();
    expect(read(box.ledger)).toBe(
      LEDGER.replace('1e400 }', `1e400 },\n    "a": ${entry},\n    "b": ${entry}`),
    );
  });

  test('refuses an entry that can not be read as JSON with its place, and changes nothing', async () => {
    const box = boxWith();
    const gbk = Buffer.concat([Buffer.from('{\n  "t": "'), Buffer.from([0xbe, 0xf2]), Buffer.from('"}')]);
    for (const [input, reason] of [
      [gbk, '0xbe at byte offset 10 (line 2, column 9)'],
      ['{"a":1,}', 'line 1, column 8'],
      ['', 'got the end'],
      ['{} // x', 'got "/"'],
    ] as const) {
      for (const source of [box.write('entry.json', input), '-']) {
        const { code, stderr } = await box.runlock(['ledger', 'add', PUBLISHES, 'k', source], { input });
        expect([code, lines(stderr).length]).toEqual([2, 1]);
        expect(stderr).toContain(reason);
      }
    }
    expect((await box.runlock(['ledger', 'add', PUBLISHES, 'k', 'absent.json'])).code).toBe(2);
    expect(read(box.ledger)).toBe(LEDGER);
  });

  test('a link stays a link, mode and owner stay', async (ctx) => {
    needsRoot(ctx);
    const box = boxWith();
    const real = box.write('data/real.json', LEDGER);
    fs.chmodSync(real, 0o2640);
    fs.chownSync(real, 65534, 12345);
    fs.chmodSync(real, 0o2640);
    fs.rmSync(box.ledger);
    fs.symlinkSync('data/real.json', box.ledger);
    expect((await box.runlock(['ledger', 'add', PUBLISHES, 'k'])).code).toBe(0);
    expect(fs.readlinkSync(box.ledger)).toBe('data/real.json');
    expect(read(real)).toContain('"k": {}');
    const { mode, uid, gid } = fs.statSync(real);
    expect([mode & 0o7777, uid, gid]).toEqual([0o2640, 65534, 12345]);
    expect(fs.readdirSync(path.join(box.dir, 'data'))).toEqual(['real.json']);
  });

  test('of a user who could not leave it its owner is refused', async (ctx) => {
    needsRoot(ctx);
    const box = boxWith();
    const nobody = asNobody(box);
    fs.chmodSync(box.dir, 0o777);
    fs.chmodSync(box.ledger, 0o666);
    const before = fs.statSync(box.ledger);
    await expectRefused(box, ['add', PUBLISHES, 'k'], /belongs to user 0.*user 65534 can't/, nobody);
    expect(fs.statSync(box.ledger).ino).toBe(before.ino);
    expect(fs.readdirSync(box.dir)).toEqual(['ledger.json']);
  });

  test('where it may not write is an error with the reason', async (ctx) => {
    needsRoot(ctx);
    const box = boxWith();
    const nobody = asNobody(box);
    await expectRefused(box, ['add', PUBLISHES, 'k'], /EACCES|permission/, nobody);
    fs.chownSync(box.ledger, 65534, 65534);
    await expectRefused(box, ['add', PUBLISHES, 'k'], /EACCES|permission/, nobody);
    expect(read(box.ledger)).toBe(LEDGER);
    expect(fs.readdirSync(box.dir)).toEqual(['ledger.json']);
  });

  test('is added to in a directory that may be written and not listed, and made there', async (ctx) => {
    needsRoot(ctx);
    const box = new Sandbox();
    const ledger = box.write('drop/ledger.json', LEDGER);
    for (const file of [ledger, path.dirname(ledger)]) fs.chownSync(file, 65534, 65534);
    fs.chmodSync(path.dirname(ledger), 0o311);
    const nobody = asNobody(box);
    const add = (...args: string[]) => box.runlock(['ledger', 'add', ...args], nobody);
    const done = { code: 0, stdout: '', stderr: '' };
    expect(await add('drop/ledger.json#publishes', 'k')).toMatchObject(done);
    expect(read(ledger)).toContain('"k": {}');
    expect(await add('drop/new.json', 'k', '--create')).toMatchObject(done);
    expect(fs.readdirSync(path.dirname(ledger)).sort()).toEqual(['ledger.json', 'new.json']);
  });

  test('sees what a program that does not use runlock has written in between', async () => {
    const box = boxWith();
    const foreign = LEDGER.replace('"version": 1', '"version": 2');
    const { code } = await addWithHook(
      box,
      `const fs = require('node:fs'); const sync = fs.fsyncSync; let done = false;
       fs.fsyncSync = (fd) => { sync(fd); if (!done) fs.writeFileSync('ledger.json', process.env.FOREIGN); done = true; };`,
      [PUBLISHES, 'k'],
      { env: { FOREIGN: foreign } },
    );
    expect(code).toBe(0);
    expect(read(box.ledger)).toBe(foreign.replace('1e400 }', '1e400 },\n    "k": {}'));
  });

  test('of 8 processes that add 8 keys each loses none', async () => {
    const box = boxWith();
    const adder = `for i in 1 2 3 4 5 6 7 8; do
      runlock ledger add ${PUBLISHES} "$1-$i" --stamp updatedAt || exit; done`;
    const file = box.write('adder.sh', adder);
    const ended = await Promise.all([1, 2, 3, 4, 5, 6, 7, 8].map((n) => box.exec('sh', [file, `p${n}`])));
    expect(ended.map(({ code, stderr }) => [code, stderr])).toEqual(ended.map(() => [0, '']));
    const { publishes } = JSON.parse(read(box.ledger)) as { publishes: object };
    expect(Object.keys(publishes)).toHaveLength(66);
    expect(read(box.ledger).startsWith(LEDGER.slice(0, LEDGER.indexOf('\n  }')))).toBe(true);
    expect(fs.readdirSync(box.dir).sort()).toEqual(['adder.sh', 'ledger.json']);
  }, 300_000);
});

describe('ledger add --create', () => {
  test('makes a first ledger with its place and time, once', async () => {
    const box = new Sandbox();
    const args = ['ledger', 'add', 'ledger.json#/a/b', 'k', '-', '--create', '--stamp', 't'];
    expect(await box.runlock(args, { input: '{"id": 1.0}' })).toMatchObject({
      code: 0,
      stdout: '',
      stderr: '',
    });
    const file = path.join(box.dir, 'ledger.json');
    expect(read(file).replace(/"20.*Z"/, 'TIME')).toBe(
      '{\n  "a": {\n    "b": {\n      "k": {"id": 1.0}\n    }\n  },\n  "t": TIME\n}\n',
    );
    expect((await box.runlock(args, { input: '{}' })).code).toBe(7);
    expect(await box.runlock(['ledger', 'add', 'ledger.json#c', 'k', '--create'])).toMatchObject({ code: 0 });
    expect(JSON.parse(read(file))).toMatchObject({ a: { b: { k: { id: 1 } } }, c: { k: {} } });
  });

  test('by several at once loses none', async () => {
    const box = new Sandbox();
    const keys = ['a', 'b', 'c', 'd', 'e', 'f'];
    const ended = await Promise.all(
      keys.map((key) => box.runlock(['ledger', 'add', 'ledger.json#p', key, '--create'])),
    );
    expect(ended.map(({ code }) => code)).toEqual(keys.map(() => 0));
    expect((await box.runlock(['ledger', 'list', 'ledger.json#p'])).stdout.split('\n').sort()).toEqual([
      '',
      ...keys,
    ]);
  });

  test("gives root's ledger to the directory's owner, with the mode that the umask leaves", async (ctx) => {
    needsRoot(ctx);
    const box = new Sandbox();
    const nobody = asNobody(box);
    fs.chownSync(box.dir, 65534, 65534);
    expect((await box.exec('sh', ['-c', 'umask 027; runlock ledger add ledger.json k --create'])).code).toBe(
      0,
    );
    const { uid, gid, mode } = fs.statSync(path.join(box.dir, 'ledger.json'));
    expect([uid, gid, mode & 0o7777]).toEqual([65534, 65534, 0o640]);
    expect((await box.runlock(['ledger', 'add', 'ledger.json', 'l'], nobody)).code).toBe(0);
  });

  test('makes no folder, and nothing behind a dangling link', async () => {
    const box = new Sandbox();
    const missing = await box.runlock(['ledger', 'add', 'absent/ledger.json', 'k', '--create']);
    expect([missing.code, lines(missing.stderr).length]).toEqual([1, 1]);
    expect(missing.stderr).toMatch(/absent\/ledger\.json.*ENOENT/);
    fs.symlinkSync('nowhere', path.join(box.dir, 'ledger.json'));
    await expectRefused(box, ['add', 'ledger.json', 'k', '--create'], /link to what is not there/);
    expect(fs.readdirSync(box.dir)).toEqual(['ledger.json']);
  });
});

describe('ledger has', () => {
  test('0 there, 6 not there, in any Unicode form', async () => {
    const box = boxWith('{"e\u0301": 1}');
    expect(await box.runlock(['ledger', 'has', 'ledger.json', '\u00e9'])).toMatchObject({
      code: 0,
      stdout: '',
      stderr: '',
    });
    expect(await box.runlock(['ledger', 'has', 'ledger.json', 'e'])).toMatchObject({
      code: 6,
      stdout: '',
      stderr: '',
    });
    const json = await box.runlock(['ledger', 'has', 'ledger.json', 'e', '--json']);
    expect([json.code, JSON.parse(json.stdout)]).toEqual([
      6,
      { has: false, file: box.ledger, place: [], key: 'e' },
    ]);
  });

  test.each([
    ['cut JSON', LEDGER.slice(0, 120), /expected/],
    ['an empty file', '', /got the end/],
    ['NULs, as after a power cut', Buffer.alloc(300), /\\u\{0\}/],
    ['another encoding', Buffer.from([0x7b, 0x22, 0xbe, 0xf2, 0x22]), /0xbe/],
    ['no such place', '{"published":{}}', /expected an object at \/publishes, got nothing/],
    ['a list', '{"publishes":["ep-42"]}', /got an array/],
    ['a comment', LEDGER.replace('\n', '\n// x\n'), /got "\/"/],
    ['a key twice', LEDGER.replace('ep-41', 'ep-40'), /a second "ep-40"/],
  ])('never says "not there" of %s; add and list refuse it too', async (_what, content, reason) => {
    const box = boxWith(content);
    for (const args of [
      ['has', PUBLISHES, 'ep-42'],
      ['list', PUBLISHES],
      ['add', PUBLISHES, 'ep-42'],
    ]) {
      await expectRefused(box, args, reason);
    }
    expect(fs.readFileSync(box.ledger)).toEqual(Buffer.from(content));
  });

  test.for(['nothing', 'directory', 'dangling link', 'FIFO', 'a file in place of its folder'])(
    'never says "not there" of what is no file: %s',
    async (kind, ctx) => {
      if (kind === 'FIFO') needs(ctx, 'mkfifo');
      const box = boxWith();
      fs.rmSync(box.ledger);
      if (kind === 'directory') fs.mkdirSync(box.ledger);
      if (kind === 'dangling link') fs.symlinkSync('nowhere', box.ledger);
      if (kind === 'FIFO') execFileSync('mkfifo', [box.ledger]);
      if (kind.startsWith('a file')) fs.writeFileSync(box.ledger, '');
      const named = kind.startsWith('a file') ? 'ledger.json/l#publishes' : PUBLISHES;
      for (const args of [
        ['has', named, 'k'],
        ['list', named],
        ['add', named, 'k'],
      ]) {
        await expectRefused(box, args, /no ledger|directory|link to|FIFO|no regular file|ENOTDIR/);
      }
    },
  );

  test('never says "not there" of a file that may not be read', async (ctx) => {
    needsRoot(ctx);
    const box = boxWith();
    fs.chmodSync(box.ledger, 0o600);
    await expectRefused(box, ['has', PUBLISHES, 'k'], /EACCES.*user 0/, asNobody(box));
  });

  test('in a shell, an unreadable ledger is told from a key that is not there', async () => {
    const box = boxWith(LEDGER.slice(0, 120));
    const script = `runlock ledger has ${PUBLISHES} ep-42; case $? in 0) echo there;; 6) echo publish;; *) echo stop;; esac`;
    expect((await box.script('sh', script)).stdout).toBe('stop\n');
  });
});

describe('ledger list', () => {
  test('one key a line, harmless for a terminal, and lossless in JSON', async () => {
    const keys = ['ep-1', '视频', '\u001b[2J\n', '\u202e', '\ud800', '', 'x'.repeat(300)];
    const box = boxWith(JSON.stringify({ a: Object.fromEntries(keys.map((key) => [key, 0])) }));
    const { code, stdout } = await box.runlock(['ledger', 'list', 'ledger.json#a']);
    const shown = ['ep-1', '视频', '\\u{1b}[2J\\u{a}', '\\u{202e}', '\\u{d800}', '', 'x'.repeat(300)];
    expect([code, stdout]).toEqual([0, `${shown.join('\n')}\n`]);
    const json = await box.runlock(['ledger', 'list', 'ledger.json#a', '--json']);
    expect(json.stdout).toMatch(/^[\x20-\x7e]+\n$/);
    expect(JSON.parse(json.stdout)).toMatchObject({ keys });
  });

  test('an empty ledger is an answer', async () => {
    const box = boxWith('{}');
    expect(await box.runlock(['ledger', 'list', 'ledger.json'])).toMatchObject({
      code: 0,
      stdout: '',
      stderr: '',
    });
  });
});

describe('what is misspelt is 2 and changes nothing', () => {
  test.each([
    [[], /expected add, has or list, got ""/],
    [['ad', PUBLISHES, 'k'], /expected add, has or list, got "ad"/],
    [['add'], /expected LEDGER KEY \[ENTRY\.json \| -\], got no LEDGER/],
    [['add', PUBLISHES], /expected a KEY, got none/],
    [['add', PUBLISHES, ''], /key: expected 1 to 1000 characters/],
    [['add', PUBLISHES, 'k\r'], /without control characters/],
    [['has', PUBLISHES, ''], /key: expected 1 to 1000 characters/],
    [['has', PUBLISHES, 'k', 'x'], /expected LEDGER KEY, got also "x"/],
    [['list', PUBLISHES, 'k'], /expected LEDGER, got also "k"/],
    [['has', PUBLISHES, 'k', '--create'], /has no option --create/],
    [['add', '', 'k'], /LEDGER: expected/],
    [['add', PUBLISHES, 'k', '--stmap', 'x'], /did you mean --stamp/],
  ])('%j', async (args, reason) => {
    const box = boxWith();
    const { code, stderr } = await box.runlock(['ledger', ...args]);
    expect([code, lines(stderr).length]).toEqual([2, 1]);
    expect(stderr).toMatch(reason);
    expect(read(box.ledger)).toBe(LEDGER);
  });

  test('a key that looks like an option stands behind --', async () => {
    const box = boxWith();
    expect((await box.runlock(['ledger', 'add', PUBLISHES, '--', '--create'])).code).toBe(0);
    expect((await box.runlock(['ledger', 'has', PUBLISHES, '--', '--create'])).code).toBe(0);
  });
});
