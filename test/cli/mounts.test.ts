import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import { describe, expect, type TestContext, test } from 'vitest';
import { eventually, MINUTE, type Result, type Running, Sandbox } from './harness.ts';
import { installation } from './installation.ts';
import { gone, kill, lines, mountAt, mountOver, needs, pidFrom, startRun } from './jobs.ts';

/** A new file system in a sparse file. */
function image(ctx: TestContext, box: Sandbox, megabytes: number, mkfs: string, ...args: string[]): string {
  needs(ctx, mkfs);
  const file = box.write('image', '');
  fs.truncateSync(file, megabytes * 1024 * 1024);
  execFileSync(mkfs, [...args, file], { stdio: 'pipe' });
  return file;
}

/** A state directory on a disk of its own. */
function disk(...[megabytes, mkfs, ...args]: [number, string, ...string[]]): (ctx: TestContext) => Sandbox {
  return (ctx) => {
    const box = new Sandbox();
    mountOver(ctx, box, ['-o', 'loop', image(ctx, box, megabytes, mkfs, ...args)]);
    return box;
  };
}

function tmpfs(ctx: TestContext): Sandbox {
  const box = new Sandbox();
  mountOver(ctx, box, ['-t', 'tmpfs', 'none']);
  return box;
}

/**
 * A state directory that was made in an image, as a container sees it: its files are on another disk until they
 * are changed. Since they have a second name there, they get another inode number then.
 */
async function overlay(ctx: TestContext, prepare?: (box: Sandbox) => Promise<void>): Promise<Sandbox> {
  const box = new Sandbox();
  await box.runlock(['run', '--item', 'in-the-image', '--', 'true']);
  await prepare?.(box);
  const lower = `${box.dir}/lower`;
  fs.renameSync(box.runs, lower);
  for (const name of fs.readdirSync(lower).filter((name) => name.includes('.')))
    fs.linkSync(`${lower}/${name}`, `${box.dir}/${name}.twin`);
  const layers = `${box.dir}/layers`;
  mountAt(ctx, layers, 'mount', ['-t', 'tmpfs', 'none']);
  for (const name of ['upper', 'work']) fs.mkdirSync(`${layers}/${name}`);
  const options = `lowerdir=${lower},upperdir=${layers}/upper,workdir=${layers}/work,xino=off`;
  mountOver(ctx, box, ['-t', 'overlay', '-o', options, 'none']);
  return box;
}

/** A state directory seen through FUSE; what it is in truth is in `source`. */
function fuse(
  ctx: TestContext,
  { singleMachine }: { singleMachine: boolean },
  ...options: string[]
): Sandbox {
  const box = new Sandbox();
  if (singleMachine) box.write('runlock.json', '{ "singleMachine": true }');
  fs.mkdirSync(`${box.dir}/source`);
  mountAt(ctx, box.runs, 'bindfs', [...options, `${box.dir}/source`]);
  return box;
}

/** One that has no hard links. */
function exfat(ctx: TestContext): Sandbox {
  needs(ctx, 'mount.exfat-fuse');
  const box = new Sandbox();
  box.write('runlock.json', '{ "singleMachine": true }');
  mountOver(ctx, box, ['-t', 'exfat-fuse', '-o', 'loop', image(ctx, box, 8, 'mkfs.exfat')]);
  return box;
}

const MOUNTS: { mount: string; make: (ctx: TestContext) => Sandbox | Promise<Sandbox> }[] = [
  { mount: 'ext4', make: disk(16, 'mkfs.ext4', '-q', '-F') },
  { mount: 'xfs', make: disk(300, 'mkfs.xfs', '-q') },
  { mount: 'btrfs', make: disk(128, 'mkfs.btrfs', '-q') },
  { mount: 'tmpfs', make: tmpfs },
  { mount: 'overlay', make: overlay },
  { mount: 'FUSE with singleMachine', make: (ctx) => fuse(ctx, { singleMachine: true }) },
];

/** Runs the two at once until one of them is over. */
async function meet(box: Sandbox): Promise<{ winner: Running; loser: Result }> {
  const meeting = () => startRun(box, ['--', 'sh', '-c', 'echo began; read line']);
  const [one, two] = [meeting(), meeting()];
  const first = await Promise.race([one.ended.then(() => one), two.ended.then(() => two)]);
  return { winner: first === one ? two : one, loser: await first.result };
}

const ACQUIRE = ['acquire', '--no-pid', '--token', 'other'];

describe.each(MOUNTS)('on $mount', ({ make }) => {
  test('of two that meet one runs, the other is refused; killed, it is followed at once', async (ctx) => {
    const box = await make(ctx);
    const { winner, loser } = await meet(box);
    expect([loser.code, loser.stdout]).toEqual([3, '']);
    await winner.says('began');
    expect((await box.runlock(ACQUIRE)).code).toBe(3);
    winner.killGroup();
    await winner.ended;
    const next = await box.runlock(['run', 'true']);
    expect([next.code, next.stderr]).toEqual([
      0,
      expect.stringMatching(/took over from run \d+: .* are gone/),
    ]);
  });

  test('when run is killed, its command keeps the lock, what that left too, and then it is free', async (ctx) => {
    const box = await make(ctx);
    // What is left is known by the live file alone: it has neither an environment nor a parent that tells.
    const script = 'env -i /bin/sleep 50 & echo left=$!; echo command=$$; exec sleep 50';
    const run = startRun(box, ['--', 'sh', '-c', script]);
    const left = await pidFrom(run, 'left');
    const command = await pidFrom(run, 'command');
    run.kill('SIGKILL');
    await eventually('the end of run', () => run.child.signalCode !== null);
    expect((await box.runlock(ACQUIRE)).code).toBe(3);
    kill(command);
    await gone(command);
    expect((await box.runlock(ACQUIRE)).code).toBe(3);
    kill(left);
    await gone(left);
    expect((await box.runlock(ACQUIRE)).code).toBe(0);
  });
});

describe('a state directory that came with the image', () => {
  const acquire = async (box: Sandbox) => {
    await box.runlock(['acquire', 'ep-1', '--no-pid', '--token', 'image']);
  };

  test('its lock is held, and stays so when it is copied up', async (ctx) => {
    const box = await overlay(ctx, acquire);
    const before = fs.statSync(box.file('lock.json')).ino;
    expect((await box.runlock(ACQUIRE)).code).toBe(3);
    expect((await box.runlock(['hb', '--token', 'image'])).code).toBe(0);
    expect(fs.statSync(box.file('lock.json')).ino).not.toBe(before);
    expect((await box.runlock(['run', 'echo', 'began'])).stdout).toBe('');
    expect((await box.runlock(['finish', '--token', 'image'])).code).toBe(0);
    expect((await box.status()).state).toBe('free');
    expect((await box.runlock(ACQUIRE)).stdout).toBe('3\n');
  });

  test('its stale lock goes to one of two', async (ctx) => {
    const box = await overlay(ctx, async (lower) => {
      await acquire(lower);
      lower.age(lower.file('lock.json'), 46 * MINUTE);
    });
    const { winner, loser } = await meet(box);
    expect([loser.code, loser.stdout]).toEqual([3, '']);
    await winner.says('began');
    winner.tell('end');
    expect((await winner.result).code).toBe(0);
    expect(box.history().filter((event) => event.outcome === 'interrupted')).toMatchObject([{ run: 2 }]);
  });

  test('a guard that one opened before it was copied up keeps out who opens it after', async (ctx) => {
    const box = await overlay(ctx);
    const inode = fs.statSync(box.file('lock.guard')).ino;
    needs(ctx, 'python3');
    // As runlock takes it: OFD_SETLK for the byte at 2^30.
    const keep = `import fcntl, os, struct, sys
fd = os.open(sys.argv[1], os.O_RDWR)
fcntl.fcntl(fd, 37, struct.pack('hhlli', fcntl.F_WRLCK, 0, 1 << 30, 1, 0))
print('kept', flush=True)
sys.stdin.read()`;
    const keeper = box.start('python3', ['-c', keep, box.file('lock.guard')]);
    await keeper.says('kept');
    expect(fs.statSync(box.file('lock.guard')).ino).not.toBe(inode);
    const { code, stderr } = await box.runlock(ACQUIRE);
    expect([code, stderr]).toEqual([1, expect.stringMatching(/is kept by another process/)]);
    keeper.child.stdin?.end();
    await keeper.ended;
    expect((await box.runlock(ACQUIRE)).code).toBe(0);
  });
});

describe('on a FUSE mount', () => {
  const REFUSED =
    /^runlock: [^\n]* is on a FUSE mount[^\n]*use a local disk[^\n]*"singleMachine": true[^\n]*\n$/;

  test('nothing is taken, and nothing is run', async (ctx) => {
    const box = fuse(ctx, { singleMachine: false });
    for (const dir of [box.runs, box.file('deeper')]) {
      const acquired = await box.runlock([...ACQUIRE, '--dir', dir]);
      expect([acquired.code, acquired.stdout, acquired.stderr]).toEqual([
        1,
        '',
        expect.stringMatching(REFUSED),
      ]);
    }
    const ran = await box.runlock(['run', 'echo', 'began']);
    expect([ran.code, ran.stdout, ran.stderr]).toEqual([125, '', expect.stringMatching(REFUSED)]);
    expect(fs.readdirSync(`${box.dir}/source`)).toEqual([]);
  });

  test('nothing that another machine may hold is ever answered as free', async (ctx) => {
    const box = fuse(ctx, { singleMachine: false });
    const refuses = async (...commands: string[][]) => {
      for (const args of commands) {
        const { code, stdout, stderr } = await box.runlock(args);
        expect([args, code, stdout, stderr]).toEqual([args, 1, '', expect.stringMatching(REFUSED)]);
      }
    };
    await refuses(['status'], ['status', '--dir', box.file('deeper')]);
    const source = ['--dir', `${box.dir}/source`];
    await box.runlock(['acquire', '--no-pid', '--token', 'one', ...source]);
    await refuses(['status'], ['status', '--all'], ['history'], ['hb', '--token', 'one']);
    box.age(`${box.dir}/source/lock.json`, 46 * MINUTE);
    await refuses(['status'], ['finish', '--token', 'one']);
    expect(await box.status(...source)).toMatchObject({ state: 'stale', run: 1 });
  });

  test('whose locks do not hold nothing is taken, whatever the configuration says', async (ctx) => {
    const box = fuse(ctx, { singleMachine: true }, '--enable-lock-forwarding', '--multithreaded');
    const acquired = await box.runlock(ACQUIRE);
    expect([acquired.code, acquired.stdout]).toEqual([1, '']);
    expect(acquired.stderr).toMatch(/grants one lock to two/);
    const ran = await box.runlock(['run', 'echo', 'began']);
    expect([ran.code, ran.stdout]).toEqual([125, '']);
    expect(fs.existsSync(box.file('lock.json'))).toBe(false);
  });
});

describe('on a file system without hard links', () => {
  const REFUSED =
    /^runlock: the file system of [^\n]* makes no hard links \(EPERM\): use a disk that does[^\n]*\n$/;

  test('nothing is taken, and nothing is run', async (ctx) => {
    const box = exfat(ctx);
    const acquired = await box.runlock(ACQUIRE);
    expect([acquired.code, acquired.stdout, acquired.stderr]).toEqual([
      1,
      '',
      expect.stringMatching(REFUSED),
    ]);
    const ran = await box.runlock(['run', 'echo', 'began']);
    expect([ran.code, ran.stdout, ran.stderr]).toEqual([125, '', expect.stringMatching(REFUSED)]);
    expect(await box.status()).toMatchObject({ state: 'free', run: null });
    expect((await box.runlock(['doctor'])).stdout).toContain(
      `problem  ${box.runs}: makes no hard links (EPERM)`,
    );
    expect(fs.readdirSync(box.runs).sort()).toEqual(['history', 'live', 'records']);
  });

  test('a state directory that was copied there is refused too, and what it holds is held', async (ctx) => {
    const box = exfat(ctx);
    const origin = new Sandbox();
    await origin.runlock(['run', 'true']);
    const copy = () => fs.cpSync(origin.runs, box.runs, { recursive: true, preserveTimestamps: true });
    copy();
    for (const [args, code] of [
      [['run', 'echo', 'began'], 125],
      [ACQUIRE, 1],
    ] as const) {
      const refused = await box.runlock(args);
      expect([refused.code, refused.stdout, refused.stderr]).toEqual([
        code,
        '',
        expect.stringMatching(REFUSED),
      ]);
    }
    expect((await box.status()).state).toBe('free');
    await origin.runlock(ACQUIRE);
    copy();
    expect((await box.runlock(['run', 'echo', 'began'])).code).toBe(3);
  });
});

test('after a restart a tmpfs begins anew: numbers from 1, and the lock is free', async (ctx) => {
  const box = tmpfs(ctx);
  await box.runlock(['run', 'true']);
  expect((await box.runlock(ACQUIRE)).stdout).toBe('2\n');
  execFileSync('umount', [box.runs]);
  execFileSync('mount', ['-t', 'tmpfs', 'none', box.runs]);
  expect(await box.status()).toMatchObject({ state: 'free', run: null });
  expect((await box.runlock(ACQUIRE)).stdout).toBe('1\n');
});

describe('on a read-only bind mount', () => {
  test('a held lock is held, and nothing is taken, ended or run: one line says why', async (ctx) => {
    const box = new Sandbox();
    await box.runlock(['acquire', 'ep-1', '--no-pid', '--token', 'one']);
    mountOver(ctx, box, ['--bind', box.runs]);
    execFileSync('mount', ['-o', 'remount,ro,bind', box.runs]);
    expect((await box.runlock(['status'])).code).toBe(3);
    expect((await box.runlock(['history'])).stdout).toMatch(/ep-1/);
    expect((await box.runlock(['run', 'echo', 'began'])).code).toBe(3);
    box.write('result.json', '{}');
    for (const args of [['hb'], ['finish', 'result.json'], ['release']]) {
      const { code, stderr } = await box.runlock([...args, '--token', 'one']);
      expect([args, code]).toEqual([args, 1]);
      expect(stderr).toMatch(/^runlock: could not [^\n]*EROFS[^\n]*\n$/);
    }
    execFileSync('mount', ['-o', 'remount,rw,bind', box.runs]);
    expect((await box.runlock(['finish', '--token', 'one'])).code).toBe(0);
    execFileSync('mount', ['-o', 'remount,ro,bind', box.runs]);
    for (const [args, code] of [
      [ACQUIRE, 1],
      [['run', 'echo', 'began'], 125],
    ] as const) {
      const refused = await box.runlock(args);
      expect([refused.code, refused.stdout]).toEqual([code, '']);
      expect(refused.stderr).toMatch(/^runlock: could not [^\n]*EROFS[^\n]*\n$/);
    }
  });
});

describe('on a noexec mount', () => {
  test('a project works: state, script by its interpreter; its own programs are 126', async (ctx) => {
    const box = new Sandbox();
    mountOver(ctx, box, ['-t', 'tmpfs', '-o', 'noexec', 'none']);
    const script = box.file('job.sh');
    fs.writeFileSync(script, '#!/bin/sh\necho began\n', { mode: 0o755 });
    const run = await box.runlock(['run', '--', 'sh', script]);
    expect([run.code, run.stdout, run.stderr]).toEqual([0, 'began\n', '']);
    const refused = await box.runlock(['run', '--item', 'ep-1', '--', script]);
    expect([refused.code, lines(refused.stderr).length]).toEqual([126, 1]);
    expect((await box.status()).marker).toEqual([]);
  });

  test('runlock installed there takes nothing and runs nothing, and says where to install it', async (ctx) => {
    const box = new Sandbox();
    const program = `${box.dir}/program`;
    mountAt(ctx, program, 'mount', ['-t', 'tmpfs', '-o', 'noexec', 'none']);
    const { binary, addon } = installation(program);
    for (const [args, code] of [
      [[...ACQUIRE], 1],
      [['run', 'echo', 'began'], 125],
    ] as const) {
      const refused = await box.exec(process.execPath, [binary, ...args]);
      expect([refused.code, refused.stdout]).toEqual([code, '']);
      expect(lines(refused.stderr).filter((line) => !line.includes('made the state directory'))).toEqual([
        expect.stringMatching(
          /addon .* can not be loaded \(failed to map segment .*\): is it on a noexec mount\?/,
        ),
      ]);
      expect(refused.stderr).toContain(addon);
    }
    expect(fs.existsSync(box.file('lock.json'))).toBe(false);
  });
});
