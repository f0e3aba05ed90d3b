import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import { describe, expect, type TestContext, test } from 'vitest';
import { eventually, MINUTE, Sandbox } from './harness.ts';
import { filesUnder, lines, mountOver, needs, startRun } from './jobs.ts';

type Disk = (ctx: TestContext) => Sandbox;

/** A state directory on a disk that counts in pages of 4 kB. */
function tmpfs(ctx: TestContext, options = 'size=64k'): Sandbox {
  const box = new Sandbox();
  mountOver(ctx, box, ['-t', 'tmpfs', '-o', options, 'none']);
  return box;
}

/** One that counts in blocks of 1 kB, as a disk of cameras and routers does. */
function ext2(ctx: TestContext): Sandbox {
  needs(ctx, 'mke2fs');
  const box = new Sandbox();
  const image = box.write('image', new Uint8Array(256 * 1024));
  execFileSync('mke2fs', ['-q', '-F', '-b', '1024', '-N', '64', '-m', '0', image]);
  mountOver(ctx, box, ['-o', 'loop', image]);
  fs.rmdirSync(box.file('lost+found'));
  return box;
}

/** Fills the disk but for so many kB. */
function fill(box: Sandbox, left = 0): void {
  const fd = fs.openSync(box.file('ballast'), 'a');
  try {
    for (;;) fs.writeSync(fd, Buffer.alloc(1024));
  } catch {
    const free = () => fs.statfsSync(box.runs).bavail * fs.statfsSync(box.runs).bsize;
    for (let size = fs.fstatSync(fd).size; free() < left * 1024; size -= 1024) fs.ftruncateSync(fd, size);
  } finally {
    fs.closeSync(fd);
  }
}

function makeRoom(box: Sandbox): void {
  fs.rmSync(box.file('ballast'), { recursive: true });
}

/** Whatever stands there is whole, and no temporary file stays. */
function expectNothingHalf(box: Sandbox): void {
  for (const [file, content] of Object.entries(filesUnder(box.runs))) {
    expect(file).not.toMatch(/\.tmp$/);
    const texts = file.endsWith('.json') ? [content] : file.endsWith('.jsonl') ? lines(content) : [];
    for (const text of texts) expect(() => JSON.parse(text), `${file}: ${text}`).not.toThrow();
    if (file.endsWith('.jsonl') && content !== '') expect(content, file).toMatch(/\n$/);
  }
}

const BIG = JSON.stringify({ text: 'x'.repeat(20_000) });
const NEARLY_FULL: { disk: string; left: number; make: Disk }[] = [
  ...[0, 4, 8, 12].map((left) => ({ disk: 'tmpfs', left, make: (ctx: TestContext) => tmpfs(ctx) })),
  ...[0, 1, 2, 3, 5, 8].map((left) => ({ disk: 'ext2', left, make: ext2 })),
];

describe('on a full disk', () => {
  test.for(NEARLY_FULL)(
    'acquire takes the lock whole or not at all: $disk, $left kB left',
    async ({ left, make }, ctx) => {
      const box = make(ctx);
      await box.runlock(['run', '--item', 'ep-0', 'false']);
      const marker = box.read('current.json');
      fill(box, left);
      const { code, stdout, stderr } = await box.runlock(['acquire', 'ep-1', '--no-pid', '--token', 'a']);
      expectNothingHalf(box);
      if (code === 0) {
        expect(stdout).toBe('2\n');
        expect(JSON.parse(box.read('lock.json'))).toMatchObject({ run: 2, item: 'ep-1' });
        expect(box.read('current.json')).toContain('"ep-1"');
      } else {
        expect([code, stdout]).toEqual([1, '']);
        expect(stderr).toMatch(/ENOSPC|no space/);
        expect(lines(stderr)).toHaveLength(1);
        expect(fs.existsSync(box.file('lock.json'))).toBe(false);
        expect(box.read('current.json')).toBe(marker);
        const run = await box.runlock(['run', 'echo', 'began']);
        expect([run.code, run.stdout]).toEqual([125, '']);
        makeRoom(box);
        expect((await box.runlock(['acquire', 'ep-1', '--no-pid', '--token', 'b'])).code).toBe(0);
      }
    },
  );

  test.for(NEARLY_FULL)(
    'finish keeps the lock or ends the run whole: $disk, $left kB left',
    async ({ left, make }, ctx) => {
      const box = make(ctx);
      await box.runlock(['acquire', 'ep-1', '--no-pid', '--token', 'a']);
      const marker = box.read('current.json');
      fill(box, left);
      const big = await box.runlock(['finish', '-', '--token', 'a'], { input: BIG });
      expect(big.code).toBe(1);
      expect(big.stderr).toMatch(/ENOSPC|no space/);
      expect(lines(big.stderr)).toHaveLength(1);
      expect(box.read('current.json')).toBe(marker);
      expect(fs.readdirSync(box.file('records'))).toEqual([]);
      expectNothingHalf(box);

      const small = await box.runlock(['finish', '-', '--token', 'a'], { input: '{"id":1}' });
      expectNothingHalf(box);
      if (small.code === 0) {
        expect(box.read('records', '1.json')).toContain('{"id":1}');
        expect(box.read('current.json')).not.toContain('ep-1');
        expect(fs.existsSync(box.file('lock.json'))).toBe(false);
      } else {
        expect(small.code).toBe(1);
        expect((await box.runlock(['status'])).code).toBe(3);
        makeRoom(box);
        expect((await box.runlock(['finish', '-', '--token', 'a'], { input: BIG })).code).toBe(0);
        expect(box.read('records', '1.json')).toContain(BIG);
      }
      expect((await box.runlock(['status'])).code).toBe(0);
    },
  );

  test.for([tmpfs, ext2])(
    'hb and status of a held lock work, release and settle lose nothing',
    async (make, ctx) => {
      const box = make(ctx);
      await box.runlock(['run', '--item', 'ep-0', 'false']);
      await box.runlock(['acquire', 'ep-1', '--no-pid', '--token', 'a']);
      fill(box);
      box.age(box.file('lock.json'), 10 * MINUTE);
      expect((await box.runlock(['hb', '--token', 'a'])).code).toBe(0);
      expect(Date.now() - fs.statSync(box.file('lock.json')).mtimeMs).toBeLessThan(MINUTE);
      expect((await box.runlock(['status'])).code).toBe(3);
      expect((await box.runlock(['run', 'echo', 'began'])).code).toBe(3);
      for (const args of [
        ['settle', 'ep-0'],
        ['release', '--token', 'a'],
      ]) {
        const { code } = await box.runlock(args);
        expect([0, 1]).toContain(code);
        expectNothingHalf(box);
        if (code === 1 && args[0] === 'settle') expect(box.read('current.json')).toContain('ep-0');
        expect(box.read('current.json')).toContain('ep-1');
      }
      makeRoom(box);
      expect((await box.runlock(['release', '--token', 'a'])).code).toBe(0);
      expect((await box.runlock(['status'])).code).toBe(0);
    },
  );

  test('a stale lock is taken over whole or not at all, and the interrupted run is not forgotten', async (ctx) => {
    const box = tmpfs(ctx);
    await box.runlock(['acquire', 'ep-1', '--no-pid', '--token', 'a']);
    box.age(box.file('lock.json'), 46 * MINUTE);
    fill(box);
    expect((await box.runlock(['acquire', 'ep-2', '--no-pid', '--token', 'b'])).code).toBe(1);
    expectNothingHalf(box);
    makeRoom(box);
    expect((await box.runlock(['acquire', 'ep-2', '--no-pid', '--token', 'c'])).code).toBe(0);
    expect(JSON.parse(box.read('current.json')).items).toMatchObject([
      { item: 'ep-1', state: 'unknown' },
      { item: 'ep-2', state: 'running' },
    ]);
    expect(box.history().filter((event) => event.outcome === 'interrupted')).toHaveLength(1);
  });

  test.for([
    [0, 125],
    [7, 7],
  ] as const)(
    'run goes on beating; when its record can not be written, %i becomes %i and the result is kept',
    async ([code, expected], ctx) => {
      const box = tmpfs(ctx);
      const run = startRun(box, [
        '--item',
        'ep-1',
        '--hold',
        '1s',
        '--',
        'sh',
        '-c',
        `echo '{"id":1}' | runlock finish - && echo handed-in; read line; exit ${code}`,
      ]);
      await run.says('handed-in');
      fill(box);
      box.age(box.file('lock.json'), 10 * MINUTE);
      await eventually('a heartbeat', () => Date.now() - fs.statSync(box.file('lock.json')).mtimeMs < MINUTE);
      run.tell('go on');
      const result = await run.result;
      expect(result.code).toBe(expected);
      expect(result.stderr).toMatch(/record .*(ENOSPC|no space)/);
      expectNothingHalf(box);
      expect(box.read('current.json')).toContain('"ep-1"');
      expect(box.read('live', '1.result')).toContain('{"id":1}');

      makeRoom(box);
      expect((await box.runlock(['run', 'true'])).code).toBe(0);
      expect(box.read('records', '1.json')).toContain('{"id":1}');
    },
  );

  test('a result that a command can not hand in is told to it, and a later one is taken', async (ctx) => {
    const box = tmpfs(ctx);
    const step = `echo '${BIG}' | runlock finish -; echo "code=$?"; read line`;
    const run = startRun(box, ['--', 'sh', '-c', `echo begun; read line; ${step}; ${step}`]);
    await run.says('begun');
    fill(box);
    run.tell('first');
    await run.says('code=1');
    makeRoom(box);
    run.tell('second');
    await run.says('code=0');
    run.tell('end');
    expect((await run.result).code).toBe(0);
    expect(box.read('records', '1.json')).toContain(BIG);
  });

  test.for(NEARLY_FULL)(
    'ledger add writes the ledger whole or leaves the old one: $disk, $left kB left',
    async ({ left, make }, ctx) => {
      const box = make(ctx);
      box.makeRuns();
      const entries = Object.fromEntries(
        [...Array(100).keys()].map((n) => [`ep-${n}`, { title: 'x'.repeat(100) }]),
      );
      const old = JSON.stringify({ publishes: entries }, null, 2);
      fs.writeFileSync(box.file('ledger.json'), old);
      fill(box, left);
      const add = ['ledger', 'add', 'runs/ledger.json#publishes', 'ep-new', '-'];
      const { code, stdout, stderr } = await box.runlock(add, { input: '{"title":"new"}' });
      expectNothingHalf(box);
      expect([code, stdout]).toEqual([1, '']);
      expect(stderr).toMatch(/ENOSPC|no space/);
      expect(lines(stderr)).toHaveLength(1);
      expect(box.read('ledger.json')).toBe(old);
      makeRoom(box);
      expect((await box.runlock(add, { input: '{"title":"new"}' })).code).toBe(0);
      expect(
        Object.keys((JSON.parse(box.read('ledger.json')) as { publishes: object }).publishes),
      ).toHaveLength(101);
      expect(fs.readdirSync(box.runs)).toEqual(['ledger.json']);
    },
  );

  test('a disk without room for another name counts as full', async (ctx) => {
    const box = tmpfs(ctx, 'size=1m,nr_inodes=24');
    await box.runlock(['run', '--item', 'ep-0', 'false']);
    const names = () => {
      fs.mkdirSync(box.file('ballast'), { recursive: true });
      expect(() => {
        for (let n = 0; n < 99; n += 1) fs.writeFileSync(box.file('ballast', String(n)), '');
      }).toThrow('ENOSPC');
    };
    names();
    expect((await box.runlock(['acquire', 'ep-1', '--no-pid', '--token', 'a'])).code).toBe(1);
    expectNothingHalf(box);
    makeRoom(box);
    expect((await box.runlock(['acquire', 'ep-1', '--no-pid', '--token', 'b'])).code).toBe(0);
    names();
    expect((await box.runlock(['hb', '--token', 'b'])).code).toBe(0);
    expect((await box.runlock(['finish', '--token', 'b'])).code).toBe(1);
    expect((await box.runlock(['status'])).code).toBe(3);
    makeRoom(box);
    expect((await box.runlock(['finish', '--token', 'b'])).code).toBe(0);
  });
});

test('an acquire whose answer can not be written does not hold the lock', async (ctx) => {
  if (!fs.existsSync('/dev/full')) ctx.skip('needs /dev/full');
  const box = new Sandbox();
  for (const [args, code] of [
    ['acquire ep --no-pid --token a', 1],
    ['status', 1],
  ] as const) {
    const full = await box.exec('bash', ['-c', `runlock ${args} > /dev/full`]);
    expect([args, full.code]).toEqual([args, code]);
    expect(full.stderr).not.toMatch(/^\s+at /m);
  }
  expect((await box.runlock(['run', 'true'])).code).toBe(0);
});
