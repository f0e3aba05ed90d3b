import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { eventually, Sandbox } from './harness.ts';
import { filesUnder, lines, needs, snapshot, startRun } from './jobs.ts';

const MONTH = path.join('history', `${new Date().toISOString().slice(0, 7)}.jsonl`);
const STATE_FILES = ['lock.json', 'lock.guard', 'current.json', MONTH];

/** A sandbox with a run in its past, so that every state file has a place to be. */
async function used(): Promise<Sandbox> {
  const box = new Sandbox();
  await box.runlock(['run', '--item', 'ep-0', 'false']);
  return box;
}

/** Puts a link to `target` in place of a state file. */
function link(box: Sandbox, name: string, target: string): string {
  const file = box.file(name);
  fs.rmSync(file, { force: true });
  fs.symlinkSync(target, file);
  return file;
}

/** Whoever would have to change the file refuses, names it, and begins nothing. */
async function expectRefused(box: Sandbox, file: string): Promise<void> {
  const acquire = await box.runlock(['acquire', 'ep-1', '--no-pid', '--token', 'a']);
  expect([acquire.code, acquire.stdout]).toEqual([1, '']);
  expect(lines(acquire.stderr)).toHaveLength(1);
  expect(acquire.stderr).toContain(file);
  const run = await box.runlock(['run', '--item', 'ep-1', 'echo', 'began']);
  expect([run.code, run.stdout]).toEqual([125, '']);
  expect(run.stderr).toContain(file);
}

describe('a symbolic link in place of a state file is refused, and what it points to is untouched', () => {
  test.each(STATE_FILES)('%s', async (name) => {
    const box = await used();
    const content = fs.existsSync(box.file(name))
      ? box.read(name)
      : JSON.stringify({ pid: 2 ** 22 - 1, job: 'x' });
    const victim = box.write('victim', content);
    box.age(victim, 3_600_000);
    const before = snapshot(victim);
    const file = link(box, name, victim);
    await expectRefused(box, file);
    for (const args of [['hb'], ['release'], ['settle', 'ep-0']]) await box.runlock(args);
    expect(snapshot(victim)).toEqual(before);
    expect(fs.readlinkSync(file)).toBe(victim);
  });

  test.each(STATE_FILES)('%s, pointing to what is not there: nothing is made there', async (name) => {
    const box = await used();
    await expectRefused(box, link(box, name, path.join(box.dir, 'absent')));
    expect(fs.existsSync(path.join(box.dir, 'absent'))).toBe(false);
  });

  test.each(['there', 'absent'])(
    'the record of a run that ends (victim %s): the lock stays',
    async (state) => {
      const box = await used();
      const victim = path.join(box.dir, 'victim');
      if (state === 'there') box.write('victim', '{}');
      expect((await box.runlock(['acquire', 'ep-1', '--no-pid', '--token', 'a'])).code).toBe(0);
      const file = link(box, 'records/2.json', victim);
      const { code, stderr } = await box.runlock(['finish', '-', '--token', 'a'], { input: '{"id":1}' });
      expect(code).toBe(1);
      expect(stderr).toContain(file);
      expect(fs.existsSync(victim) ? fs.readFileSync(victim, 'utf8') : null).toBe(
        state === 'there' ? '{}' : null,
      );

      fs.rmSync(file);
      expect((await box.runlock(['status'])).code).toBe(3);
      expect((await box.runlock(['finish', '-', '--token', 'a'], { input: '{"id":1}' })).code).toBe(0);
      expect(box.read('records/2.json')).toContain('{"id":1}');
    },
  );

  test.each(['live/2', 'records/2.json'])('%s of the next run', async (name) => {
    const box = await used();
    const victim = box.write('victim', 'precious');
    link(box, name, victim);
    const { code, stdout } = await box.runlock(['run', 'echo', 'began']);
    // Either it refuses, or it takes another number.
    expect([
      [125, ''],
      [0, 'began\n'],
    ]).toContainEqual([code, stdout]);
    expect(fs.readFileSync(victim, 'utf8')).toBe('precious');
    expect(fs.readlinkSync(box.file(name))).toBe(victim);
  });

  test.each(['.result', '.hb', ''])('live/<run>%s while the command works', async (suffix) => {
    const box = await used();
    const victim = box.write('victim', '{"precious":true}');
    const before = snapshot(victim);
    const run = startRun(box, [
      '--hold',
      '600ms',
      '--',
      'sh',
      '-c',
      `rm -f runs/live/2${suffix}; ln -s "$PWD/victim" runs/live/2${suffix}
        echo '{"a":1}' | runlock finish -; runlock hb; echo done; read line`,
    ]);
    await run.says('done');
    const beat = fs.statSync(box.file('lock.json')).mtimeMs;
    await eventually('a heartbeat', () => fs.statSync(box.file('lock.json')).mtimeMs > beat);
    run.tell('go on');
    await run.result;
    expect(snapshot(victim)).toEqual(before);
    expect(Object.values(filesUnder(box.file('records'))).join('')).not.toContain('precious');
    fs.rmSync(box.file(`live/2${suffix}`), { force: true });
    expect((await box.runlock(['run', 'true'])).code).toBe(0);
  });
});

describe('what is no regular file in place of a state file is an error, and nobody waits for it', () => {
  const KINDS: Record<string, (file: string) => void> = {
    FIFO: (file) => execFileSync('mkfifo', [file]),
    directory: (file) => fs.mkdirSync(file),
  };
  const cases = Object.keys(KINDS).flatMap((kind) => STATE_FILES.map((name) => ({ kind, name })));

  test.each(cases)('a $kind as $name', async ({ kind, name }) => {
    const box = await used();
    fs.rmSync(box.file(name), { force: true });
    KINDS[kind]?.(box.file(name));
    await expectRefused(box, box.file(name));
    for (const args of [['status'], ['finish']]) {
      const { stderr } = await box.runlock(args);
      expect(stderr).not.toMatch(/unexpected failure|^\s+at /m);
    }
  });

  test.each(['lock.json', 'lock.guard'])('status does not take a directory as %s for free', async (name) => {
    const box = await used();
    fs.rmSync(box.file(name), { force: true });
    fs.mkdirSync(box.file(name));
    const { code, stderr } = await box.runlock(['status']);
    expect(code).toBe(1);
    expect(stderr).toContain(box.file(name));
  });

  test.each(['history', 'records', 'live', 'locks'])('a plain file as %s/', async (name) => {
    const box = await used();
    fs.rmSync(box.file(name), { recursive: true, force: true });
    fs.writeFileSync(box.file(name), 'precious');
    const { code, stderr, stdout } = await box.runlock([
      'run',
      '--name',
      name === 'locks' ? 'x' : 'default',
      'echo',
      'began',
    ]);
    expect([code, stdout]).toEqual([125, '']);
    expect(stderr).toContain(box.file(name));
    expect(stderr).not.toMatch(/unexpected failure/);
    expect(box.read(name)).toBe('precious');
  });

  test('a FIFO that the command puts in place of its ping or result file does not hang its supervisor', async (ctx) => {
    needs(ctx, 'mkfifo');
    const box = await used();
    const run = startRun(box, [
      '--watchdog',
      '1s',
      '--kill-after',
      '200ms',
      '--',
      'sh',
      '-c',
      'rm -f runs/live/2.hb; mkfifo runs/live/2.hb runs/live/2.result; echo done; read line',
    ]);
    await run.says('done');
    const { code } = await run.result;
    expect(code).toBe(124);
  });
});

test('a state directory that is reached through a link is the same lock', async () => {
  const box = await used();
  const other = path.join(box.dir, 'link');
  fs.symlinkSync(box.runs, other);
  expect((await box.runlock(['acquire', '--dir', other, '--no-pid', '--token', 'a'])).code).toBe(0);
  expect((await box.runlock(['acquire', '--no-pid', '--token', 'b'])).code).toBe(3);
  expect((await box.runlock(['finish', '--token', 'a'])).code).toBe(0);
});
