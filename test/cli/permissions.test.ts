import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { MINUTE, type Options, type Result, Sandbox } from './harness.ts';
import { asNobody, filesUnder, lines, mountOver, needsRoot, startRun } from './jobs.ts';

/** Where the state directory can't be written: an error with the system's reason, and no job begins. */
async function expectNoStart(box: Sandbox, reason: RegExp, options: Options = {}): Promise<void> {
  const acquire = await box.runlock(['acquire', 'ep', '--no-pid', '--token', 'a'], options);
  expect([acquire.code, acquire.stdout]).toEqual([1, '']);
  expect(lines(acquire.stderr)).toHaveLength(1);
  expect(acquire.stderr).toMatch(reason);
  expect(acquire.stderr).toContain(box.runs);
  const run = await box.runlock(['run', 'echo', 'began'], options);
  expect([run.code, run.stdout]).toEqual([125, '']);
  expect(run.stderr).toMatch(reason);
}

describe('a state directory that can not be written is an error, never "held" and never "free"', () => {
  test('a read-only mount; looking works there', async (ctx) => {
    const box = new Sandbox();
    mountOver(ctx, box, ['-t', 'tmpfs', 'none']);
    await box.runlock(['run', '--item', 'ep-1', 'false']);
    execFileSync('mount', ['-o', 'remount,ro', box.runs]);
    await expectNoStart(box, /EROFS|read-only/i);
    expect((await box.runlock(['status'])).code).toBe(0);
    expect((await box.runlock(['settle', 'ep-1'])).code).toBe(1);
  });

  test('a read-only mount with a held lock: the answer is "held", the end is an error and loses nothing', async (ctx) => {
    const box = new Sandbox();
    mountOver(ctx, box, ['-t', 'tmpfs', 'none']);
    await box.runlock(['acquire', 'ep', '--no-pid', '--token', 'a']);
    execFileSync('mount', ['-o', 'remount,ro', box.runs]);
    expect((await box.runlock(['status'])).code).toBe(3);
    expect((await box.runlock(['run', 'echo', 'began'])).code).toBe(3);
    for (const args of [['hb'], ['finish'], ['release']]) {
      expect([args[0], (await box.runlock([...args, '--token', 'a'])).code]).toEqual([args[0], 1]);
    }
    execFileSync('mount', ['-o', 'remount,rw', box.runs]);
    expect((await box.runlock(['finish', '--token', 'a'])).code).toBe(0);
  });

  test('a directory of mode 0555, for a user who does not own it', async (ctx) => {
    needsRoot(ctx);
    const box = new Sandbox();
    const nobody = asNobody(box);
    box.makeRuns();
    fs.chmodSync(box.runs, 0o555);
    await expectNoStart(box, /EACCES|permission/i, nobody);
    expect((await box.runlock(['status'], nobody)).code).toBe(0);
    expect(fs.readdirSync(box.runs)).toEqual([]);
  });

  test('a directory that may not be entered; not even status says "free"', async (ctx) => {
    needsRoot(ctx);
    const box = new Sandbox();
    const nobody = asNobody(box);
    box.makeRuns();
    fs.chmodSync(box.runs, 0o700);
    await expectNoStart(box, /EACCES|permission/i, nobody);
    expect((await box.runlock(['status'], nobody)).code).toBe(1);
  });

  test('a lock.json that may not be read names the file and whose it is', async (ctx) => {
    needsRoot(ctx);
    const box = new Sandbox();
    const nobody = asNobody(box);
    fs.chmodSync(box.putLock({ pid: process.pid, job: 'x' }), 0o600);
    fs.chmodSync(box.runs, 0o777);
    await expectNoStart(box, /lock\.json.*(user 0|root)/, nobody);
    expect((await box.runlock(['status'], nobody)).code).toBe(1);
  });

  test('a missing parent: no path is made up', async () => {
    const box = new Sandbox();
    const dir = path.join(box.dir, 'misspelt', 'runs');
    for (const args of [['acquire', '--no-pid', '--token', 'a'], ['status']]) {
      const { code, stderr } = await box.runlock([...args, '--dir', dir]);
      expect(code).toBe(1);
      expect(lines(stderr)).toHaveLength(1);
      expect(stderr).toContain(dir);
      expect(stderr).toMatch(/ENOENT|no such/i);
    }
    const run = await box.runlock(['run', '--dir', dir, 'echo', 'began']);
    expect([run.code, run.stdout]).toEqual([125, '']);
    expect(fs.readdirSync(box.dir)).toEqual([]);
  });

  test('a plain file where the directory should be', async () => {
    const box = new Sandbox();
    box.write('runs', 'precious');
    await expectNoStart(box, /not a directory/i);
    expect((await box.runlock(['status'])).code).toBe(1);
    expect(fs.readFileSync(box.runs, 'utf8')).toBe('precious');
  });
});

describe("root's cron does not shut the user out", () => {
  const UMASK_077 = 'umask 077; "$@"';
  /** As cron might do it, with the narrowest umask. */
  function asRoot(box: Sandbox, args: readonly string[]): Promise<Result> {
    return box.exec('bash', ['-c', UMASK_077, 'bash', 'runlock', ...args]);
  }
  /** A whole run of every kind: lock, marker, record, history, live file. */
  async function cycle(as: (args: string[]) => Promise<Result>, token: string): Promise<number[]> {
    const codes = [];
    for (const args of [
      ['acquire', 'ep', '--no-pid', '--token', token],
      ['finish', '--token', token],
      ['run', '--item', 'ep-2', 'false'],
      ['acquire', '--name', 'video', '--no-pid', '--token', token],
      ['release', '--name', 'video', '--token', token],
    ]) {
      codes.push((await as(args)).code ?? -1);
    }
    return codes;
  }
  const WELL = [0, 0, 1, 0, 0];

  test.for([
    ["the user's own directory", 0o755, 65534],
    ['a directory that everyone may write', 0o777, 0],
  ] as const)('in %s both go on where the other stopped', async ([, mode, owner], ctx) => {
    needsRoot(ctx);
    const box = new Sandbox();
    const nobody = asNobody(box);
    box.makeRuns();
    fs.chmodSync(box.runs, mode);
    fs.chownSync(box.runs, owner, owner);
    const user = (args: string[]) => box.runlock(args, nobody);
    expect(await cycle((args) => asRoot(box, args), 'a')).toEqual(WELL);
    expect(await cycle(user, 'b')).toEqual(WELL);
    expect(await cycle((args) => asRoot(box, args), 'c')).toEqual(WELL);
    for (const file of Object.keys(filesUnder(box.runs))) {
      const bits = [file, fs.statSync(file).mode & 0o777];
      expect(bits).toEqual([file, mode & 0o666]);
    }
  });

  test('in a directory that the user may not write he is told whose it is', async (ctx) => {
    needsRoot(ctx);
    const box = new Sandbox();
    const nobody = asNobody(box);
    box.makeRuns();
    fs.chmodSync(box.runs, 0o755);
    await asRoot(box, ['run', 'true']);
    await expectNoStart(box, /user 0|root/, nobody);
    expect((await box.runlock(['status'], nobody)).code).toBe(0);
  });

  test.for([
    ['may not', 0o755],
    ['may', 0o777],
  ] as const)('what root holds is held for a user who %s write there', async ([, mode], ctx) => {
    needsRoot(ctx);
    const box = new Sandbox();
    const nobody = asNobody(box);
    box.makeRuns();
    fs.chmodSync(box.runs, mode);
    const run = startRun(box, ['--', 'sh', '-c', 'echo begun; read line']);
    await run.says('begun');
    const { code, stderr } = await box.runlock(['run', 'echo', 'began'], nobody);
    expect(code).toBe(3);
    expect(stderr).toContain(`pid ${(await box.status()).commandPid}`);
    expect((await box.runlock(['release'], nobody)).code).toBe(0);
    expect((await box.runlock(['finish'], nobody)).code).toBe(4);
    run.tell('go on');
    expect((await run.result).code).toBe(0);
  });

  test("a user takes over from root's dead run, and root from the user's", async (ctx) => {
    needsRoot(ctx);
    const box = new Sandbox();
    const nobody = asNobody(box);
    box.makeRuns();
    fs.chmodSync(box.runs, 0o777);
    for (const [dead, next] of [
      [{}, nobody],
      [nobody, {}],
    ] as const) {
      const run = startRun(box, ['--item', 'ep', '--', 'sh', '-c', 'echo begun; read line'], dead);
      await run.says('begun');
      run.killGroup();
      await run.ended;
      const { code, stderr } = await box.runlock(['run', 'true'], next);
      expect([code, stderr]).toEqual([
        0,
        expect.stringMatching(/^runlock: took over from run \d+: [^\n]*\n$/),
      ]);
    }
  });

  test("in a sticky directory, where root's lock file can't be removed, the user gets an error and not the lock", async (ctx) => {
    needsRoot(ctx);
    const box = new Sandbox();
    const nobody = asNobody(box);
    box.makeRuns();
    fs.chmodSync(box.runs, 0o1777);
    await asRoot(box, ['acquire', '--no-pid', '--token', 'root']);
    box.age(box.file('lock.json'), 46 * MINUTE);
    await expectNoStart(box, /user 0|root/, nobody);
    expect((await asRoot(box, ['run', 'true'])).code).toBe(0);
    expect((await box.runlock(['run', 'true'], nobody)).code).toBe(0);
  });
});
