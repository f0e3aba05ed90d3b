import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { isRoot, type Running, Sandbox, which } from './harness.ts';
import { NAMESPACE, needsNamespaces } from './processes.ts';

let box: Sandbox;
let out: string;
beforeEach(() => {
  box = new Sandbox();
  out = path.join(box.dir, 'out.json');
});

const gate = (...args: string[]) => box.runlock(['gate', ...args]);
const run = (...args: string[]) => box.runlock(['run', '--gate', 'output:out.json', ...args]);
const text = () => fs.readFileSync(out, 'utf8');

/** A process that has the file open in some way, until it is told to go on. */
async function opener(how: string): Promise<Running> {
  const script = box.startScript('sh', `${how}\necho ready\nread -r _`);
  await script.says('ready');
  return script;
}

describe.skipIf(process.platform !== 'linux')('an output that another process has open', () => {
  beforeEach(() => {
    box.write('out.json', 'half');
  });

  test('for writing closes with 9, and the process is named', async () => {
    const other = await opener('exec 3>>out.json');
    const asked = await gate('output:out.json');
    expect(asked).toMatchObject({ code: 9, stderr: '' });
    expect(asked.stdout).toMatch(new RegExp(`^closed  output:out.json  .*sh .*\\(pid ${other.pid}\\)`));
    const skipped = await run('--', 'sh', '-c', 'echo new >out.json');
    expect(skipped.code).toBe(9);
    expect(skipped.stderr).toContain(`pid ${other.pid}`);
    expect(text()).toBe('half');
    other.tell('');
    await other.ended;
    expect((await run('--', 'sh', '-c', 'test ! -e out.json && echo new >out.json')).code).toBe(0);
    expect(text()).toBe('new\n');
  });

  test('is found by the file and not by its name: renamed, linked, or read only', async () => {
    fs.linkSync(out, path.join(box.dir, 'other-name'));
    await opener('exec 3<other-name');
    expect((await gate('output:out.json')).code).toBe(9);
    fs.symlinkSync('out.json', path.join(box.dir, 'link'));
    expect((await gate('output:link')).code).toBe(9);
  });

  test('a process that had it open and has closed it is not in the way', async () => {
    await opener('exec 3>>out.json; exec 3>&-');
    expect((await gate('output:out.json')).code).toBe(0);
  });

  test('by a process in another mount namespace is found', async ({ skip }) => {
    if (!isRoot() || which('unshare') === null) skip();
    const script = `exec unshare --mount sh -c 'mount -t tmpfs none /mnt 2>/dev/null; exec 3>>${out}; echo ready; read -r _'`;
    const child = box.startScript('sh', script);
    await child.says('ready').catch(() => skip('namespaces are not allowed here'));
    expect((await gate('output:out.json')).code).toBe(9);
  });

  test('by the second process of a container, or one that it started, is found from inside', async (ctx) => {
    needsNamespaces(ctx);
    const second = box.write(
      'second.sh',
      'sh -c "exec 4>>other.json; echo up >up; read -r _" <stdin & exec 3>>out.json\nread -r _\n',
    );
    box.write('other.json', 'half');
    spawnSync('mkfifo', [`${box.dir}/up`, `${box.dir}/stdin`]);
    const script = [
      `exec 9<>stdin; sh ${second} <stdin & echo "pid $!"; read -r _ <up`,
      'for out in out.json other.json; do runlock gate output:$out; echo $?; runlock run --gate output:$out -- true; echo $?; done',
    ].join('\n');
    const { stdout } = await box.exec('unshare', [...NAMESPACE, 'sh', '-c', script]);
    expect(stdout).toContain('pid 2\n');
    expect(stdout.match(/^\d+$/gm)).toEqual(['9', '9', '9', '9']);
    expect(text()).toBe('half');
  });

  test('mapped into memory and closed since is found', async ({ skip }) => {
    if (which('python3') === null) skip();
    const program =
      'import mmap,sys\nf=open("out.json","r+b")\nm=mmap.mmap(f.fileno(),0)\nf.close()\n' +
      // mmap keeps a copy of the descriptor: close all of them.
      'import os\nos.closerange(3,100)\nprint("ready",flush=True)\nsys.stdin.readline()\n';
    const child = box.start('python3', ['-c', program]);
    await child.says('ready');
    expect((await gate('output:out.json')).code).toBe(9);
    child.tell('');
    await child.ended;
    expect((await gate('output:out.json')).code).toBe(0);
  });

  test('by the very shell that asks is another process, and closed', async () => {
    const asked = await box.script('sh', 'exec 3>>out.json\nrunlock run --gate output:out.json -- true');
    expect(asked.code).toBe(9);
    expect(text()).toBe('half');
  });

  test("of other users can't be seen: open, and that is said", async ({ skip }) => {
    if (!isRoot()) skip();
    fs.chmodSync(box.dir, 0o777);
    await opener('exec 3>>out.json');
    const asNobody = { user: { uid: 65534, gid: 65534 } };
    const asked = await box.runlock(['gate', 'output:out.json', '--json'], asNobody);
    expect(asked.code).toBe(0);
    const { gates } = JSON.parse(asked.stdout) as { gates: { open: boolean; reason: string }[] };
    expect(gates).toMatchObject([{ open: true, reason: expect.stringContaining('other users') }]);
    const ran = await box.runlock(['run', '--gate', 'output:out.json', '--', 'true'], asNobody);
    expect(ran).toMatchObject({ code: 0, stderr: expect.stringContaining('other users') });
  });
});

describe('an output that nobody has open', () => {
  test('is removed before the command starts, by acquire too, but not by gate and pick', async () => {
    box.write('out.json', 'old');
    expect((await gate('output:out.json')).code).toBe(0);
    expect(await box.runlock(['pick', '--gate', 'output:out.json'], { input: 'a\n' })).toMatchObject({
      code: 0,
      stdout: 'a\n',
    });
    expect(text()).toBe('old');
    const acquired = await box.runlock(['acquire', '--pid', String(process.pid), '--gate', `output:${out}`]);
    expect(acquired).toMatchObject({ code: 0, stderr: expect.stringContaining('made the state directory') });
    expect(fs.existsSync(out)).toBe(false);
  });

  test('and that is not there is open, in a folder that is not there too', async () => {
    expect((await run('--', 'true')).code).toBe(0);
    expect((await gate('output:nowhere/out.json')).code).toBe(0);
  });

  test('is kept when another gate is closed, whatever their order', async () => {
    box.write('out.json', 'good');
    await box.runlock(['run', '--item', 'ep', '--', 'false']);
    for (const gates of [
      ['--gate', 'output:out.json', '--gate', 'item'],
      ['--gate', 'item', '--gate', 'output:out.json'],
    ]) {
      const got = await box.runlock(['run', '--item', 'ep', ...gates, '--', 'true']);
      expect(got.code).toBe(6);
      expect(text()).toBe('good');
    }
  });

  test('has date fields of today', async () => {
    const today = new Date();
    const pad = (value: number) => String(value).padStart(2, '0');
    const name = `${today.getFullYear()}-${pad(today.getMonth() + 1)}-${pad(today.getDate())}.json`;
    const file = box.write(name, 'old');
    const ran = await box.runlock(['run', '--gate', 'output:{yyyy-MM-dd}.json', '--', 'true']);
    expect(ran.code).toBe(0);
    expect(fs.existsSync(file)).toBe(false);
    const minutes = await gate('output:{yyyy-mm-dd}.json');
    expect(minutes).toMatchObject({ code: 2, stderr: expect.stringContaining('minutes') });
  });
});

test.skipIf(process.platform !== 'linux')(
  'an output that is opened while other gates are asked is not removed',
  async () => {
    box.write('out.json', 'old');
    box.write('ledger.json', '{}');
    const hook = box.write(
      'hook.cjs',
      `const fs = require('node:fs');
       const { openSync } = fs;
       fs.openSync = (file, ...rest) => {
         if (String(file).endsWith('ledger.json')) openSync('out.json', 'a');
         return openSync(file, ...rest);
       };`,
    );
    const gates = ['--gate', 'output:out.json', '--gate', 'ledger:ledger.json'];
    const got = await box.runlock(['run', '--item', 'ep', ...gates, '--', 'true'], {
      env: { NODE_OPTIONS: `--require ${hook}` },
    });
    expect(got.code).toBe(9);
    expect(text()).toBe('old');
    expect(await box.status()).toMatchObject({ state: 'free', marker: [] });
  },
);

describe('what stands in the place of an output', () => {
  test('a directory is never removed: 1, and the lock is free again', async () => {
    fs.mkdirSync(out);
    const got = await run('--', 'true');
    expect(got).toMatchObject({ code: 125, stderr: expect.stringContaining('directory') });
    expect(fs.existsSync(out)).toBe(true);
    expect((await box.status()).state).toBe('free');
    expect((await gate('output:out.json')).code).toBe(1);
  });

  test('a FIFO is never removed, and nobody waits at it', async ({ skip }) => {
    if (which('mkfifo') === null) skip();
    await box.exec('mkfifo', ['out.json']);
    expect((await gate('output:out.json')).code).toBe(1);
    expect((await run('--', 'true')).code).toBe(125);
    expect(fs.existsSync(out)).toBe(true);
  });

  test('of a link the link is removed, not what it points to', async () => {
    const victim = box.write('victim', 'precious');
    fs.symlinkSync(victim, out);
    expect((await run('--', 'true')).code).toBe(0);
    expect(fs.existsSync(out)).toBe(false);
    expect(fs.readFileSync(victim, 'utf8')).toBe('precious');
    fs.symlinkSync('/nowhere/at/all', out);
    expect((await run('--', 'true')).code).toBe(0);
    expect(fs.lstatSync(out, { throwIfNoEntry: false })).toBeUndefined();
  });

  test('one that may not be removed is 1: the command does not start and the lock is free', async ({
    skip,
  }) => {
    if (!isRoot()) skip();
    fs.mkdirSync(path.join(box.dir, 'closed'));
    fs.writeFileSync(path.join(box.dir, 'closed', 'out'), 'x');
    fs.chmodSync(path.join(box.dir, 'closed'), 0o755);
    box.makeRuns();
    fs.chmodSync(box.dir, 0o755);
    fs.chmodSync(box.runs, 0o777);
    const args = ['run', '--item', 'ep', '--gate', 'output:closed/out', '--', 'touch', 'runs/started'];
    const got = await box.runlock(args, { user: { uid: 65534, gid: 65534 } });
    expect(got).toMatchObject({ code: 125, stderr: expect.stringContaining('could not remove the output') });
    expect(fs.existsSync(box.file('started'))).toBe(false);
    expect(await box.status()).toMatchObject({ state: 'free', marker: [] });
  });
});

describe("a file that is runlock's own", () => {
  test.each([
    ['stdout', '>o'],
    ['stdout, appending', '>>o'],
    ['stderr', '2>o'],
    ['stdin', '<o'],
    ['stdout through a link', '>link'],
  ])('%s: the run is misused, and the file is untouched', async (_, redirection) => {
    box.write('o', 'old');
    fs.symlinkSync('o', path.join(box.dir, 'link'));
    const got = await box.script('sh', `runlock run --gate output:o --json -- touch started ${redirection}`);
    expect(got.code).toBe(125);
    expect(fs.existsSync(path.join(box.dir, 'o'))).toBe(true);
    expect(fs.existsSync(path.join(box.dir, 'started'))).toBe(false);
    // Found before a lock is taken.
    expect(fs.existsSync(box.runs)).toBe(false);
    const asked = await box.script('sh', `runlock gate output:o ${redirection}`);
    expect(asked.code).toBe(2);
  });
});

test("runlock's own files, a folder and a link to one are nobody's output, and stay", async () => {
  const box = new Sandbox();
  await box.runlock(['run', '--item', 'ep-1', '--', 'false']);
  fs.mkdirSync(`${box.dir}/release-1`);
  fs.symlinkSync('release-1', `${box.dir}/current`);
  box.write('file', '');
  const outputs = [
    'runs/lock.guard',
    'runs/current.json',
    'runs/records/1.json',
    'current',
    'release-1',
    'file/',
  ];
  for (const output of outputs) {
    const { code } = await box.runlock(['run', '--gate', `output:${output}`, '--', 'touch', 'ran']);
    expect([output, code]).toEqual([output, 125]);
  }
  expect(fs.existsSync(`${box.dir}/ran`)).toBe(false);
  expect(fs.readdirSync(box.runs)).toEqual(expect.arrayContaining(['lock.guard', 'current.json']));
  expect(fs.readdirSync(box.dir)).toEqual(expect.arrayContaining(['current', 'file', 'release-1']));
});

test("runlock's own files stay where the state directory is a link, by whatever name they are called", async () => {
  const box = new Sandbox();
  fs.mkdirSync(`${box.dir}/real`);
  fs.symlinkSync('real', box.runs);
  fs.symlinkSync('.', `${box.dir}/here`);
  await box.runlock(['run', '--item', 'ep-1', '--', 'false']);
  const mark = box.read('current.json');
  expect(mark).toContain('ep-1');
  const outputs = [
    'runs',
    'runs/current.json',
    'runs/lock.json',
    'real/current.json',
    'real/lock.guard',
    'here/real/lock.guard',
    'here/runs/records/../lock.json',
    'runs/not/there/yet',
  ];
  for (const output of outputs) {
    const { code } = await box.runlock(['run', '--gate', `output:${output}`, '--', 'touch', 'ran']);
    expect([output, code]).toEqual([output, 125]);
  }
  expect(fs.existsSync(`${box.dir}/ran`)).toBe(false);
  expect(box.read('current.json')).toBe(mark);
  expect(fs.lstatSync(box.runs).isSymbolicLink()).toBe(true);
});

describe('what gates answer from', () => {
  const TODAY = new Date(Date.now() - new Date().getTimezoneOffset() * 60_000).toISOString().slice(0, 10);
  const EVIDENCE: Record<string, string> = {
    'ledger.json': '{}',
    'other.json': '{}',
    'third.json': '{}',
    'job.log': '',
    'job.log.1': '',
    'job-20251130.log.gz': '',
    [`push/${TODAY}.json`]: '[]',
    'push/2025-01-31.json': '[]',
    'real.log': '',
  };

  beforeEach(() => {
    for (const [name, content] of Object.entries(EVIDENCE)) box.write(name, content);
    fs.symlinkSync('push', path.join(box.dir, 'also-push'));
    fs.symlinkSync('real.log', path.join(box.dir, 'linked.log'));
    const sources = [
      { json: 'push/{yyyy-MM-dd}.json', where: { ok: true } },
      { log: 'job.log', contains: 'done', time: '^(\\S+)' },
      { log: 'linked.log', contains: 'done', time: '^(\\S+)' },
    ];
    const quotas = { posts: { limit: 1, period: 'day', timeZone: 'UTC', sources } };
    const config = { gates: ['ledger:other.json'], quotas, ledgers: { named: { file: 'ledger.json' } } };
    box.write('runlock.json', JSON.stringify(config));
  });

  test.each([
    'ledger.json',
    'other.json',
    'third.json',
    'job.log',
    'job.log.1',
    'job-20251130.log.gz',
    'push/{yyyy-MM-dd}.json',
    'push/2025-01-31.json',
    'also-push/2025-01-31.json',
    'linked.log',
    'real.log',
    'runlock.json',
  ])('%s is nobody’s output, and stays', async (output) => {
    const args = ['--item', 'ep', '--gate', 'ledger:third.json', '--gate', `output:${output}`];
    const got = await box.runlock(['run', ...args, '--', 'touch', 'ran']);
    expect(got).toMatchObject({ code: 125, stdout: '' });
    expect(got.stderr).toMatch(
      /is (the ledger named|a ledger that a gate asks|what the quota posts counts|runlock's own), and not the output of a job\n$/,
    );
    expect(fs.existsSync(path.join(box.dir, output.replace('{yyyy-MM-dd}', TODAY)))).toBe(true);
    expect(fs.existsSync(box.runs)).toBe(false);
  });

  test('a file beside it is an output like any other', async () => {
    const outputs = [
      'push/latest.json',
      'push/2025-01-31.json.tmp',
      'job2.log',
      'job.log.html',
      'ledger.json.d/x',
    ];
    for (const output of outputs) {
      box.write(output, '');
      const got = await box.runlock(['run', '--item', 'ep', '--gate', `output:${output}`, '--', 'true']);
      expect([output, got.code, fs.existsSync(path.join(box.dir, output))]).toEqual([output, 0, false]);
    }
  });
});
