import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { type Case, deadPid } from '../box.ts';

export const fileCases: Readonly<Record<string, Case>> = {
  async 'somebody who reads lock.json for a moment only delays a take-over'(box) {
    box.writeLock({ pid: await deadPid(), job: 'x.json' });
    const reader = fs.openSync(box.file('lock.json'), 'r');
    const taking = box.start(['acquire', 'b', '--no-pid', '--token', 'T']);
    // Once written, the new one is put in place at once: what is not patient gives up long before the reader does.
    await appears(box.runs, /^lock\.json\..*\.tmp$/);
    await new Promise((resolve) => setTimeout(resolve, 300));
    fs.closeSync(reader);
    const taken = await taking.end();
    assert.equal(taken.code, 0, taken.stderr);
    assert.equal((await box.status()).item, 'b');
  },

  async 'while somebody keeps lock.json open, it is an error and not a lock'(box) {
    box.writeLock({ pid: await deadPid(), job: 'x.json' });
    const reader = fs.openSync(box.file('lock.json'), 'r');
    try {
      const taking = await box.runlock('acquire', 'b', '--no-pid', '--token', 'T');
      assert.equal(taking.code, 1, taking.stderr);
      assert.match(taking.stderr, /lock\.json/);
      assert.doesNotMatch(taking.stderr, /\n\s+at /);
    } finally {
      fs.closeSync(reader);
    }
    assert.equal((await box.runlock('acquire', 'b', '--no-pid', '--token', 'T2')).code, 0);
  },

  async 'an unreadable marker is set aside'(box) {
    fs.writeFileSync(box.file('current.json'), '{"version":1,"items":[');
    assert.equal((await box.runlock('acquire', 'b', '--no-pid', '--token', 'T')).code, 0);
    assert.ok(fs.existsSync(box.file('current.json.unreadable-1')));
    assert.equal(fs.readFileSync(box.file('current.json.unreadable-1'), 'utf8'), '{"version":1,"items":[');
  },

  async 'the system refuses an output that is open, and that closes the gate'(box) {
    const output = box.write('out.mp4', 'x');
    const writer = fs.openSync(output, 'a');
    const closed = await box.runlock('run', '--gate', `output:${output}`, '--', 'cmd', '/c', 'exit', '0');
    fs.closeSync(writer);
    assert.equal(closed.code, 9, closed.stderr);
    assert.ok(fs.existsSync(output));
    const open = await box.runlock('run', '--gate', `output:${output}`, '--', 'cmd', '/c', 'exit', '0');
    assert.equal(open.code, 0, open.stderr);
    assert.ok(!fs.existsSync(output));
  },

  async 'candidates may have line ends of Windows and a byte order mark'(box) {
    const pick = box.start(['pick', '-n', '5']);
    pick.child.stdin?.write('\ufeffone\r\n视频\r\n', 'utf16le');
    const { code, stdout, stderr } = await pick.end();
    assert.equal(code, 0, stderr);
    assert.equal(stdout.replaceAll('\r', ''), 'one\n视频\n');
  },

  async 'a ledger keeps its line ends and all else'(box) {
    const before = '{\r\n  "publishes": {\r\n    "a": { "id": 12345678901234567890 }\r\n  }\r\n}\r\n';
    const ledger = box.write('ledger.json', before);
    const added = await box.runlock('ledger', 'add', `${ledger}#publishes`, '视频');
    assert.equal(added.code, 0, added.stderr);
    const after = fs.readFileSync(ledger, 'utf8');
    assert.match(after, /"a": \{ "id": 12345678901234567890 \}/);
    assert.equal(after.replaceAll('\r\n', '').includes('\n'), false);
    assert.deepEqual(Object.keys(JSON.parse(after).publishes), ['a', '视频']);
    assert.equal((await box.runlock('ledger', 'add', `${ledger}#publishes`, '视频')).code, 7);
  },

  async 'what programs are told is ASCII'(box) {
    const run = await box.runlock('acquire', '视频', '--no-pid', '--token', 'T', '--json');
    assert.equal(run.code, 0, run.stderr);
    assert.match(run.stdout, /^[\x20-\x7e]+\r?\n$/);
    assert.equal(JSON.parse(run.stdout).item, '视频');
  },

  async 'names that the system reserves are locks of their own'(box) {
    const names = ['CON', 'aux.txt', 'trailing. ', 'trailing', 'mail:send'];
    for (const name of names) {
      const taken = await box.runlock('acquire', '--name', name, '--no-pid', '--token', 'T');
      assert.equal(taken.code, 0, `${name}: ${taken.stderr}`);
    }
    const { locks } = JSON.parse((await box.runlock('status', '--all', '--json')).stdout);
    const held = locks.filter((lock: { state: string }) => lock.state === 'held');
    assert.equal(held.length, names.length);
    assert.equal(fs.readdirSync(box.file('locks')).length, names.length);
    assert.equal((await box.runlock('acquire', '--name', 'con', '--no-pid', '--token', 'T2')).code, 3);
  },

  async 'a directory may be named with a namespace, with slashes and at any length'(box) {
    const long = path.join(box.dir, ...Array(6).fill('l'.repeat(50)));
    fs.mkdirSync(long, { recursive: true });
    for (const dir of [`\\\\?\\${box.runs}`, box.runs.replaceAll('\\', '/'), path.join(long, 'runs')]) {
      const run = await box.runlock('run', '--dir', dir, '--', 'cmd', '/c', 'exit', '0');
      assert.equal(run.code, 0, `${dir}: ${run.stderr}`);
    }
    // The first two are the same.
    assert.deepEqual(fs.readdirSync(box.file('records')).sort(), ['1.json', '2.json']);
  },

  async 'a directory on a share is refused'(box) {
    const share = box.runs.replace(/^([A-Za-z]):/, '\\\\localhost\\$1$$');
    assert.ok(fs.existsSync(share), share);
    const { code, stderr } = await box.runlock('acquire', '--dir', share, '--no-pid', '--token', 'T');
    assert.equal(code, 1, stderr);
    assert.match(stderr, /singleMachine/);
  },

  async 'nothing is made in a directory of the system'(box) {
    const system = path.join(process.env.SystemRoot ?? '', 'system32');
    const { code, stderr } = await box
      .start(['acquire', '--no-pid', '--token', 'T'], { cwd: system, env: { RUNLOCK_DIR: '' } })
      .end();
    assert.equal(code, 2, stderr);
    assert.ok(!fs.existsSync(path.join(system, 'runs')));
  },
};

/** Waits for a name in a directory. */
async function appears(dir: string, name: RegExp): Promise<void> {
  const isThere = () => fs.readdirSync(dir).some((one) => name.test(one));
  await new Promise<void>((resolve) => {
    const watcher = fs.watch(dir, look);
    // It may have come before the watch began.
    look();
    function look(): void {
      if (!isThere()) return;
      watcher.close();
      resolve();
    }
  });
}
