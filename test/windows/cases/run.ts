import assert from 'node:assert/strict';
import fs from 'node:fs';
import { type Case, lives } from '../box.ts';

/** What a shell, a batch file or a C runtime might take for something else. */
const HOSTILE = [
  'plain',
  'two words',
  '',
  'a&b',
  'a | b > c',
  '^caret^',
  'back\\slash\\',
  '(x)',
  "it's",
  '!bang!',
  '视频',
];

export const runCases: Readonly<Record<string, Case>> = {
  async 'the exit code of a command is that of run'(box) {
    const [seven, missing, ok] = [
      await box.runlock('run', '--', 'cmd', '/c', 'exit', '7'),
      await box.runlock('run', '--', 'no-such-program'),
      await box.runlock('run', '--', 'cmd', '/c', 'echo', 'hello'),
    ];
    assert.equal(seven.code, 7, seven.stderr);
    assert.equal(missing.code, 127, missing.stderr);
    assert.equal(ok.code, 0, ok.stderr);
    assert.equal(ok.stdout.trim(), 'hello');
    assert.equal((await box.status()).state, 'free');
  },

  async 'a program gets its arguments as they were'(box) {
    const dump = box.write('dump.cjs', 'process.stdout.write(JSON.stringify(process.argv.slice(2)))');
    const args = [...HOSTILE, 'say "hi" & bye', 'a"b'];
    args.push('%PATH%', 'two\nlines');
    const { code, stdout, stderr } = await box.runlock('run', '--', process.execPath, dump, ...args);
    assert.equal(code, 0, stderr);
    assert.deepEqual(JSON.parse(stdout), args);
  },

  async 'a batch file gets its arguments as they were'(box) {
    const dump = box.write('dump.cjs', 'process.stdout.write(JSON.stringify(process.argv.slice(2)))');
    const batch = box.write('dump.cmd', `@"${process.execPath}" "${dump}" %*\r\n`);
    const { code, stdout, stderr } = await box.runlock('run', '--', batch, ...HOSTILE);
    assert.equal(code, 0, stderr);
    assert.deepEqual(JSON.parse(stdout), HOSTILE);
  },

  async 'a batch file is not started with arguments that it would run'(box) {
    const batch = box.write('list.cmd', '@echo started>started.txt\r\n');
    for (const args of [['a" & echo x'], ['a"b', 'x&y'], ['two\nlines']]) {
      const { code, stderr } = await box.runlock('run', '--', batch, ...args);
      assert.equal(code, 126, stderr);
      assert.match(stderr, /batch file/);
    }
    assert.ok(!fs.existsSync(`${box.dir}\\started.txt`));
    assert.equal((await box.status()).state, 'free');
  },

  async 'a killed supervisor takes its command with it, and the next run takes over'(box) {
    const run = box.start(['run', '--item', 'a', '--', process.execPath, box.worker]);
    const worker = await run.worker();
    await run.kill();
    // The pipes are closed by the last of the tree.
    await run.ended;
    assert.ok(!lives(worker));
    const next = await box.runlock('run', '--json', '--', 'cmd', '/c', 'exit', '0');
    assert.equal(next.code, 0, next.stderr);
    const { marker } = await box.status();
    assert.deepEqual(
      (marker as { item: string; state: string }[]).map(({ item, state }) => ({ item, state })),
      [{ item: 'a', state: 'unknown' }],
    );
  },

  async 'the number of a killed supervisor may be in use anew: its files are not locked'(box) {
    const run = box.start(['run', '--', process.execPath, box.worker]);
    await run.worker();
    await run.kill();
    await run.ended;
    const record = JSON.parse(fs.readFileSync(box.file('lock.json'), 'utf8'));
    box.writeLock({ ...record, pid: process.pid });
    assert.equal((await box.status()).state, 'stale');
    // Without the file there is nothing to tell by.
    fs.unlinkSync(box.file('live', '1.tree'));
    assert.equal((await box.status()).state, 'held');
  },

  async 'what the command started keeps the lock after the supervisor was killed'(box) {
    const batch = box.write('work.cmd', `@"${process.execPath}" "${box.worker}" orphan\r\n`);
    const run = box.start(['run', '--', batch]);
    const worker = await run.worker();
    await run.kill();
    assert.ok(lives(worker), 'the system ends the command, not what it started');
    const held = await box.runlock('acquire', '--no-pid', '--token', 'T', '--json');
    assert.equal(held.code, 3, held.stdout);
    assert.match(String((await box.status()).reason), /something they started is not/);
    process.kill(worker);
    await run.ended;
    const taken = await box.runlock('acquire', '--no-pid', '--token', 'T');
    assert.equal(taken.code, 0, taken.stderr);
    assert.deepEqual(fs.readdirSync(box.file('live')), []);
  },

  async 'what was not handed the lock is known by its parent, although that is gone'(box) {
    // Node hands nothing on, and ends its own children with itself unless they are detached.
    const script = box.write(
      'start.cjs',
      `require('node:child_process').spawn(process.execPath, [process.argv[2], 'orphan'],
         { detached: true, stdio: ['ignore', 'inherit', 'ignore'] });`,
    );
    const run = box.start(['run', '--', process.execPath, script, box.worker]);
    const worker = await run.worker();
    await run.kill();
    assert.ok(lives(worker));
    assert.match(String((await box.status()).reason), /is gone, node.*is not/);
    process.kill(worker);
    await run.ended;
    assert.equal((await box.status()).state, 'stale');
  },

  async 'a time limit ends the command and what it started'(box) {
    const batch = box.write('work.cmd', `@"${process.execPath}" "${box.worker}" orphan\r\n`);
    const run = box.start(['run', '--timeout', '20s', '--', batch]);
    const worker = await run.worker();
    const { code, stderr } = await run.ended;
    assert.equal(code, 124, stderr);
    assert.ok(!lives(worker));
    assert.equal((await box.status()).state, 'free');
  },

  async 'the command may beat, and hand in a result in any of the encodings'(box) {
    const result = box.write('result.json', Buffer.from('\ufeff{"title":"视频"}', 'utf16le'));
    const script = box.write(
      'publish.cjs',
      `const { spawnSync } = require('node:child_process');
       const runlock = (...args) => spawnSync(process.execPath, [process.env.RUNLOCK_BINARY, ...args], { stdio: 'inherit' }).status;
       process.exit(runlock('hb') || runlock('finish', process.argv[2]));`,
    );
    const run = await box.runlock('run', '--item', 'a', '--', process.execPath, script, result);
    assert.equal(run.code, 0, run.stderr);
    const record = JSON.parse(fs.readFileSync(box.file('records', '1.json'), 'utf8'));
    assert.deepEqual(record.result, { title: '视频' });
  },
};
