import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { ask, COMMANDS, expectError, held, MONTH } from './askers.ts';
import { eventually, isRoot, MINUTE, Sandbox } from './harness.ts';
import { filesUnder, snapshot, startRun } from './jobs.ts';

// Something else in place of the files and folders of a lock.

/** What may stand in a file's place. Each is made without a process, as far as that can be. */
const KINDS: Record<string, (file: string) => void> = {
  FIFO: (file) => execFileSync('mkfifo', [file]),
  socket: (file) => {
    // A path of a socket may be 108 bytes long, the sandbox's is longer on some systems.
    const code = `const s = require('net').createServer().listen(process.argv[1], () => process.kill(process.pid, 'SIGKILL'))`;
    expect(() =>
      execFileSync(process.execPath, ['-e', code, path.basename(file)], {
        cwd: path.dirname(file),
        stdio: 'ignore',
      }),
    ).toThrow();
  },
  ...(isRoot()
    ? { 'device that never ends': (file: string) => execFileSync('mknod', [file, 'c', '1', '5']) }
    : {}),
};

/** A look, a beat, an end, a start. */
const SOME = COMMANDS.filter(([verb]) => ['status', 'hb', 'finish', 'run'].includes(verb ?? ''));

describe('a link in place of a folder of the lock is refused, and nothing behind it is touched', () => {
  test.each(['live', 'history', 'records'])('%s/', async (name) => {
    const box = await held();
    // Named as a sweep would remove them, and as an append or an end would write them.
    for (const file of ['1', '2', '7.tmp', '2.json', path.basename(MONTH)])
      box.write(`victim/${file}`, 'precious');
    box.age(path.join(box.dir, 'victim'), 60 * MINUTE);
    const before = {
      ...filesUnder(path.join(box.dir, 'victim')),
      at: fs.statSync(path.join(box.dir, 'victim')).mtimeMs,
    };
    fs.rmSync(box.file(name), { recursive: true });
    fs.symlinkSync(path.join(box.dir, 'victim'), box.file(name));
    for (const args of name === 'live' ? COMMANDS : SOME) await expectError(box, args, box.file(name));
    expect({
      ...filesUnder(path.join(box.dir, 'victim')),
      at: fs.statSync(path.join(box.dir, 'victim')).mtimeMs,
    }).toEqual(before);

    fs.rmSync(box.file(name));
    fs.symlinkSync(path.join(box.dir, 'absent'), box.file(name));
    for (const args of [['status'], ['run', 'echo', 'began']]) await expectError(box, args, box.file(name));
    expect(fs.existsSync(path.join(box.dir, 'absent'))).toBe(false);

    // Out of the way, everything is as it was.
    fs.rmSync(box.file(name));
    expect((await box.runlock(['finish', '--token', 'a'])).code).toBe(0);
  });

  test.each(['locks', 'locks/video'])('%s/', async (name) => {
    const box = await held();
    box.write('victim/precious', 'precious');
    const before = filesUnder(path.join(box.dir, 'victim'));
    fs.rmSync(box.file(name), { recursive: true });
    fs.symlinkSync(path.join(box.dir, 'victim'), box.file(name));
    for (const args of [
      ['status'],
      ['acquire', '--no-pid', '--token', 'b'],
      ['run', 'echo', 'began'],
      ['history'],
    ]) {
      await expectError(box, [...args.slice(0, 1), '--name', 'video', ...args.slice(1)], box.file(name));
    }
    await expectError(box, ['status', '--all'], box.file(name));
    expect(filesUnder(path.join(box.dir, 'victim'))).toEqual(before);
  });

  test('live/, while a run beats: it does not set times there, and goes on', async () => {
    const box = new Sandbox();
    const run = startRun(box, ['--hold', '600ms', '--', 'sh', '-c', 'echo up; read line']);
    await run.says('up');
    await eventually('the command is known', () => box.read('lock.json').includes('"commandPidStarted":"'));
    const victim = box.write('victim/1', 'precious');
    box.age(victim, 60 * MINUTE);
    const before = snapshot(victim);
    fs.renameSync(box.file('live'), box.file('away'));
    fs.symlinkSync(path.join(box.dir, 'victim'), box.file('live'));
    await eventually('a beat has failed', () => run.stderr.includes('heartbeat fails'));
    expect(run.stderr).toContain(box.file('live'));
    expect((await box.runlock(['run', 'echo', 'began'])).stdout).toBe('');
    fs.rmSync(box.file('live'));
    fs.renameSync(box.file('away'), box.file('live'));
    run.tell('end');
    expect((await run.result).code).toBe(0);
    expect(snapshot(victim)).toEqual(before);
  });
});

describe('nobody waits for what is no file, and nobody is told that the lock is free or held', () => {
  const PLACES = ['lock.json', 'lock.guard', 'current.json', MONTH, 'live', 'history', 'records'];

  test.each(Object.keys(KINDS))('a %s in place of a file or a folder of a held lock', async (kind) => {
    const box = await held();
    for (const [index, name] of PLACES.entries()) {
      fs.renameSync(box.file(name), box.file('away'));
      KINDS[kind]?.(box.file(name));
      // Every command on each, over all kinds and places.
      const turn = COMMANDS.filter((_, at) => at % 4 === (index + Object.keys(KINDS).indexOf(kind)) % 4);
      for (const args of turn) await expectError(box, args, box.file(name));
      fs.rmSync(box.file(name));
      fs.renameSync(box.file('away'), box.file(name));
    }
    expect((await box.runlock(['finish', '--token', 'a'])).code).toBe(0);
  });

  test.each(Object.keys(KINDS))('a %s where the next run would write', async (kind) => {
    const box = new Sandbox();
    await box.runlock(['run', '--item', 'ep-0', 'false']);
    for (const name of ['live/2', 'live/2.result', 'records/2.json', 'records/1.json']) {
      fs.rmSync(box.file(name), { force: true });
      KINDS[kind]?.(box.file(name));
      const { code, stdout, stderr } = await ask(box, ['run', 'echo', 'began']);
      // It takes another number, or refuses and names the file.
      if (code === 125) expect([stdout, stderr]).toEqual(['', expect.stringContaining(box.file(name))]);
      else expect([code, stdout]).toEqual([0, 'began\n']);
      fs.rmSync(box.file(name), { force: true });
    }
    expect((await ask(box, ['run', 'echo', 'began'])).stdout).toBe('began\n');
  });
});

test('a state directory that is removed or replaced in mid-run loses the lock, and nothing else is harmed', async () => {
  for (const replaced of [false, true]) {
    const box = new Sandbox();
    const run = startRun(box, ['--item', 'ep', '--hold', '600ms', '--', 'sh', '-c', 'echo up; read line']);
    await run.says('up');
    await eventually('the command is known', () => box.read('lock.json').includes('"commandPidStarted":"'));
    fs.renameSync(box.runs, path.join(box.dir, 'away'));
    if (replaced) {
      fs.writeFileSync(box.runs, 'precious');
      await eventually('a beat has failed', () => run.stderr.includes('heartbeat fails'));
      await expectError(box, ['run', 'echo', 'began'], box.runs);
      run.tell('end');
      const { code, stderr } = await run.result;
      expect([code, stderr]).toEqual([125, expect.stringContaining('could not be written')]);
      expect(fs.readFileSync(box.runs, 'utf8')).toBe('precious');
    } else {
      const { code, stderr } = await run.result;
      expect(code).toBe(4);
      expect(stderr).not.toMatch(/^\s+at |unexpected failure/m);
      expect((await ask(box, ['run', 'echo', 'began'])).stdout).toBe('began\n');
    }
  }
});
