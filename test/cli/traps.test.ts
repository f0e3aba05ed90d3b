import fs from 'node:fs';
import { describe, expect, type TestContext, test } from 'vitest';
import { eventually, MINUTE, Sandbox } from './harness.ts';
import { filesUnder, Job, lines, needs, snapshot, startRun } from './jobs.ts';

/** Every shell a crontab may name, as the words that run a script. */
const SHELLS = [['bash'], ['dash'], ['busybox', 'sh'], ['zsh']] as const;

function started(ctx: TestContext, box: Sandbox, shell: readonly string[], text: string) {
  const [program = '', ...words] = shell;
  needs(ctx, program);
  return box.start(program, [...words, box.write('job.sh', text)], { detached: true });
}

describe("a script's trap on its way out", () => {
  test.for(SHELLS)('a refused script keeps its 3 and frees nothing: %s', async (shell, ctx) => {
    const box = new Sandbox();
    const holder = new Job(box);
    expect(await holder.do('runlock acquire x')).toBe(0);
    const before = snapshot(box.file('lock.json'));
    const script = started(
      ctx,
      box,
      shell,
      `set -e; trap 'runlock release' EXIT; runlock acquire x; echo went on`,
    );
    const { code, stdout, stderr } = await script.result;
    expect([code, stdout]).toEqual([3, '']);
    expect(stderr).toContain(`pid ${holder.running.pid}`);
    expect(snapshot(box.file('lock.json'))).toEqual(before);
  });

  test.for(SHELLS)(
    'after a good finish it keeps its 0 and does not free the next one: %s',
    async (shell, ctx) => {
      const box = new Sandbox();
      const text = `set -e; trap 'runlock release' EXIT; runlock acquire x; echo '{}' | runlock finish -; echo finished; read line`;
      const script = started(ctx, box, shell, text);
      await script.says('finished');
      const next = new Job(box);
      expect(await next.do('runlock acquire y')).toBe(0);
      const before = snapshot(box.file('lock.json'));
      script.tell('end');
      expect((await script.result).code).toBe(0);
      expect(snapshot(box.file('lock.json'))).toEqual(before);
      expect(await next.do('runlock finish')).toBe(0);
    },
  );

  test.for(SHELLS)(
    'a failing script keeps its code, frees its lock and leaves the item unknown: %s',
    async (shell, ctx) => {
      const box = new Sandbox();
      const script = started(
        ctx,
        box,
        shell,
        `set -e; trap 'runlock release' EXIT; runlock acquire x; (exit 7); echo went on`,
      );
      expect((await script.result).code).toBe(7);
      expect(await box.status()).toMatchObject({ state: 'free', marker: [{ item: 'x', state: 'unknown' }] });
    },
  );

  test.for(SHELLS)('with --run of an acquire that failed it does nothing: %s', async (shell, ctx) => {
    const box = new Sandbox();
    const holder = new Job(box);
    expect(await holder.do('runlock acquire x')).toBe(0);
    const text = `set -e; RUN=; trap 'runlock release --run "$RUN"' EXIT; RUN=$(runlock acquire x); echo went on`;
    const { code, stdout, stderr } = await started(ctx, box, shell, text).result;
    expect([code, stdout, lines(stderr).length]).toEqual([3, '', 1]);
    expect((await box.runlock(['status'])).code).toBe(3);
  });

  test('a script that is told to end frees its lock by its trap', async () => {
    const box = new Sandbox();
    const text = `trap 'exit 143' TERM; trap 'runlock release --settled' EXIT; runlock acquire x; echo taken; while :; do sleep 0.02; done`;
    const script = box.startScript('bash', text);
    await script.says('taken');
    script.kill('SIGTERM');
    expect((await script.result).code).toBe(143);
    expect(await box.status()).toMatchObject({ state: 'free', marker: [] });
  });
});

describe('a finish that is not due writes nothing', () => {
  async function held(): Promise<Sandbox> {
    const box = new Sandbox();
    expect((await box.runlock(['acquire', 'ep', '--no-pid', '--token', 'T'])).code).toBe(0);
    return box;
  }

  test('with the token of another run', async () => {
    const box = await held();
    const before = filesUnder(box.runs);
    for (const token of ['t', 'T ', 'TT']) {
      const { code } = await box.runlock(['finish', '-', '--token', token], { input: '{"wrong":1}' });
      expect(code).toBe(4);
    }
    expect((await box.runlock(['finish', '-'], { input: '{"wrong":1}' })).code).toBe(4);
    expect((await box.runlock(['hb'], { env: { RUNLOCK_TOKEN: 'wrong' } })).code).toBe(4);
    expect(filesUnder(box.runs)).toEqual(before);
    expect((await box.runlock(['finish'], { env: { RUNLOCK_TOKEN: 'T' } })).code).toBe(0);
  });

  test('a second time', async () => {
    const box = await held();
    expect((await box.runlock(['finish', '-', '--token', 'T'], { input: '{"n":1}' })).code).toBe(0);
    const before = filesUnder(box.runs);
    expect((await box.runlock(['finish', '-', '--token', 'T'], { input: '{"n":2}' })).code).toBe(4);
    // By its number the run is known to have ended well.
    expect(
      (await box.runlock(['finish', '-', '--run', '1', '--token', 'T'], { input: '{"n":3}' })).code,
    ).toBe(0);
    expect((await box.runlock(['release', '--token', 'T'])).code).toBe(0);
    expect(filesUnder(box.runs)).toEqual(before);
  });

  test('without an acquire, also where there is no directory yet', async () => {
    const box = new Sandbox();
    for (const [verb, code] of [
      ['finish', 4],
      ['hb', 4],
      ['release', 0],
    ] as const) {
      expect([verb, (await box.runlock([verb])).code]).toEqual([verb, code]);
    }
    expect(fs.readdirSync(box.dir)).toEqual([]);
    expect((await box.runlock(['finish', '--run', '7'])).code).toBe(2);
  });

  test('with a result that is no JSON: the lock stays, and what was piped is kept', async () => {
    const box = await held();
    const { code, stderr } = await box.runlock(['finish', '-', '--token', 'T'], { input: '{"cut' });
    expect(code).toBe(2);
    expect(stderr).toContain(box.file('records', '1.rejected'));
    expect(box.read('records', '1.rejected')).toBe('{"cut');
    expect((await box.runlock(['status'])).code).toBe(3);
    expect((await box.runlock(['finish', '--token', 'T'])).code).toBe(0);
  });
});

describe('an ID that names no new run is refused', () => {
  test('that of the run that holds, and that of the last one, however it ended', async () => {
    const box = new Sandbox();
    const acquire = (token: string) => box.runlock(['acquire', 'ep', '--no-pid', '--token', token]);
    expect((await acquire('SAME')).code).toBe(0);
    expect((await acquire('SAME')).code).toBe(2);
    expect((await box.runlock(['finish', '--token', 'SAME'])).code).toBe(0);
    const before = filesUnder(box.runs);
    expect((await acquire('SAME')).code).toBe(2);
    expect(filesUnder(box.runs)).toEqual(before);

    expect((await acquire('NEXT')).code).toBe(0);
    box.age(box.file('lock.json'), 46 * MINUTE);
    expect((await acquire('NEXT')).code).toBe(2);
    expect((await acquire('OTHER')).code).toBe(0);
    expect((await box.runlock(['release', '--token', 'OTHER'])).code).toBe(0);
    fs.rmSync(box.file('lock.guard'));
    expect((await acquire('OTHER')).code).toBe(2);
  });

  test('none at all, an empty one, and one that would be held for ever', async () => {
    const box = new Sandbox();
    for (const args of [
      ['--no-pid'],
      ['--no-pid', '--token', ''],
      ['--no-pid', '--token', 'x', '--hold', 'never'],
    ]) {
      const { code, stderr } = await box.runlock(['acquire', ...args]);
      expect([args, code, lines(stderr).length]).toEqual([args, 2, 1]);
    }
    expect(fs.existsSync(box.file('lock.json'))).toBe(false);
  });
});

describe('a script under run', () => {
  const SCRIPT = `trap 'runlock release' EXIT
    runlock acquire x; echo "acquire $?"; runlock hb; echo "hb $?"
    echo '{"inner":true}' | runlock finish -; echo "finish $?"`;

  test('on the same lock: it is told where it is, and nothing is freed before the end', async () => {
    const box = new Sandbox();
    const script = box.write('job.sh', `${SCRIPT}; runlock release; read line`);
    const run = startRun(box, ['--item', 'ep', '--', 'bash', script]);
    await run.says('finish 0');
    expect(run.stdout).toBe('acquire 3\nhb 0\nfinish 0\n');
    expect(run.stderr).toContain('inside');
    expect((await box.runlock(['run', 'echo', 'began'])).code).toBe(3);
    run.tell('end');
    expect((await run.result).code).toBe(0);
    // What it handed in is the result of the run that it is inside of.
    expect(box.read('records', '1.json')).toContain('{"inner":true}');
    expect(Object.keys(filesUnder(box.file('records')))).toHaveLength(1);
  });

  test.each([
    ['found by the current directory', 'cd other', ''],
    ['named by the environment', 'cd other; export RUNLOCK_DIR="$PWD/runs"', ''],
    ['named on the command line', '', ' --dir other/runs'],
    ['of another name', '', ' --name other'],
  ])(
    'with a lock of its own, %s: it takes and frees its own, and its result stays with it',
    async (_, before, options) => {
      const box = new Sandbox();
      fs.mkdirSync(`${box.dir}/other`);
      const text = `${before}\n${SCRIPT}`.replaceAll(/runlock (\w+)/g, `runlock $1${options}`);
      const run = startRun(box, [
        '--item',
        'ep',
        '--',
        'sh',
        '-c',
        `bash "${box.write('job.sh', text)}"; echo ended; read line`,
      ]);
      await run.says('ended');
      expect(lines(run.stdout)).toEqual(
        expect.arrayContaining(['1', 'acquire 0', 'hb 0', 'finish 0', 'ended']),
      );
      const other = options.includes('--name') ? box.file('locks', 'other') : `${box.dir}/other/runs`;
      expect(fs.readFileSync(`${other}/records/1.json`, 'utf8')).toContain('{"inner":true}');
      expect(fs.existsSync(`${other}/lock.json`)).toBe(false);
      expect((await box.runlock(['status'])).code).toBe(3);
      run.tell('end');
      expect((await run.result).code).toBe(0);
      expect(box.read('records', '1.json')).not.toContain('inner');
    },
  );

  test('what the user set for it passes through, and what is meant for an outer run does not pass for its own', async () => {
    const box = new Sandbox();
    const show = 'echo "$RUNLOCK_DIR|$RUNLOCK_NAME|$RUNLOCK_ITEM|$RUNLOCK_RUN"';
    const { stdout } = await box.runlock(['run', '--', 'sh', '-c', show], {
      env: { RUNLOCK_DIR: box.runs, RUNLOCK_NAME: 'video', RUNLOCK_ITEM: 'outer', RUNLOCK_RUN: '99' },
    });
    expect(stdout).toBe(`${box.runs}|video||1\n`);
    await eventually('the lock is free', async () => (await box.runlock(['status', '--all'])).code === 0);
  });
});
