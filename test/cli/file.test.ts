import fs from 'node:fs';
import { describe, expect, test } from 'vitest';
import { MINUTE, Sandbox } from './harness.ts';
import { filesUnder, Job, lines, startRun } from './jobs.ts';

const WHOLE = JSON.stringify({ version: 1, pid: process.pid, job: 'x.json', run: 3 });

const NO_LOCK: Record<string, string | Uint8Array> = {
  'an empty file, as a power cut leaves it': '',
  'nothing but NULs': new Uint8Array(512),
  'cut JSON': WHOLE.slice(0, 30),
  'a JSON null': 'null',
  'an array': '[]',
  'a text': '"x"',
  'a negative pid': '{"pid":-1,"job":"x.json"}',
  'bytes that are no UTF-8': Uint8Array.of(0xff, 0xfe, 0x00, 0xd8, 0x80),
  '10 MB of text': 'x'.repeat(10 << 20),
  '200,000 open brackets': '['.repeat(200_000),
};

/** What an unreadable state file costs whoever meets it: a line, not a trace. */
function expectOneClearLine(stderr: string, file: string): void {
  expect(lines(stderr)).toHaveLength(1);
  expect(stderr).toContain(file);
  expect(stderr).not.toMatch(/^\s+at |node:internal/m);
}

describe('a lock.json that is no lock is held while it is young and taken over once it is old', () => {
  test.each(Object.entries(NO_LOCK))('%s', async (_, content) => {
    const box = new Sandbox();
    const file = box.putLock('');
    fs.writeFileSync(file, content);

    const young = await box.runlock(['acquire', '--no-pid', '--token', 'a']);
    expect(young.code).toBe(3);
    expectOneClearLine(young.stderr, box.runs);
    const look = await box.runlock(['status']);
    expect(look.code).toBe(3);
    expect(look.stdout).toContain(file);
    expect(look.stderr).toBe('');

    box.age(file, 44.5 * MINUTE);
    expect((await box.runlock(['run', 'true'])).code).toBe(3);
    box.age(file, 45.5 * MINUTE);
    const old = await box.runlock(['acquire', '--no-pid', '--token', 'b']);
    expect(old.code).toBe(0);
    expectOneClearLine(old.stderr, '');
    expect(JSON.parse(box.read('lock.json'))).toMatchObject({ version: 1, run: 1 });
  });
});

test('a lock of a version nobody knows yet is an error that names the file, however old it is', async () => {
  const box = new Sandbox();
  for (const age of [0, 10_000 * MINUTE]) {
    const file = box.putLock({ version: 2, pid: 1, job: 'x' }, age);
    for (const args of [['status'], ['acquire', '--no-pid', '--token', 'a'], ['hb'], ['finish']]) {
      const { code, stderr } = await box.runlock(args);
      expect([args[0], code]).toEqual([args[0], 1]);
      expectOneClearLine(stderr, file);
    }
    expect((await box.runlock(['run', 'echo', 'began'])).stdout).toBe('');
  }
});

describe('a marker that is no marker is set aside, said, and rebuilt from the history', () => {
  const { '10 MB of text': big = '', 'cut JSON': _, 'a negative pid': __, ...others } = NO_LOCK;
  const contents = { ...others, 'cut JSON': '{"version":1,"items":[{"item":"ep-1",', '10 MB of text': big };

  test.each(Object.entries(contents))('%s', async (_, content) => {
    const box = new Sandbox();
    expect((await box.runlock(['run', '--item', 'ep-1', 'false'])).code).toBe(1);
    fs.writeFileSync(box.file('current.json'), content);

    const pick = await box.runlock(['pick'], { input: 'ep-2\n' });
    expect([pick.code, pick.stdout]).toEqual([1, '']);
    expectOneClearLine(pick.stderr, box.file('current.json'));
    const look = await box.runlock(['status']);
    expect([look.code, look.stderr]).toEqual([0, '']);
    expect(look.stdout).toContain('current.json');

    const taken = await box.runlock(['acquire', 'ep-2', '--no-pid', '--token', 'a']);
    expect(taken.code).toBe(0);
    expectOneClearLine(taken.stderr, box.file('current.json'));
    const aside = fs
      .readdirSync(box.runs)
      .filter((name) => name.startsWith('current.json') && name !== 'current.json');
    expect(aside.map((name) => fs.readFileSync(box.file(name)).equals(Buffer.from(content)))).toEqual([true]);
    expect(JSON.parse(box.read('current.json'))).toMatchObject({
      items: [
        { item: 'ep-1', run: 1, state: 'unknown' },
        { item: 'ep-2', run: 2, state: 'running' },
      ],
    });
  });
});

describe('run numbers go on rising', () => {
  const GARBAGE = ['', 'x', '0000000000000000 given -\n', '[]', '\0'.repeat(200), 'x'.repeat(1 << 20)];

  test('when the guard holds garbage, and it is whole again afterwards', async () => {
    const box = new Sandbox();
    await box.runlock(['run', 'true']);
    const whole = box.read('lock.guard').length;
    for (const [index, garbage] of GARBAGE.entries()) {
      fs.writeFileSync(box.file('lock.guard'), garbage);
      expect((await box.runlock(['status'])).code).toBe(0);
      const { stderr } = await box.runlock(['run', '--json', 'true']);
      expect(JSON.parse(lines(stderr).at(-1) ?? '')).toMatchObject({ outcome: 'finished', run: index + 2 });
      expect(box.read('lock.guard')).toHaveLength(whole);
    }
  });

  test.each([
    ['the guard', ['lock.guard']],
    ['the guard and the records', ['lock.guard', 'records']],
    ['the guard and the history', ['lock.guard', 'history']],
    ['everything but the marker', ['lock.guard', 'history', 'records', 'live']],
  ])('when a cleaner removes %s between runs', async (_, names) => {
    const box = new Sandbox();
    for (const item of ['ep-1', 'ep-2', 'ep-3']) await box.runlock(['run', '--item', item, 'false']);
    for (const name of names) fs.rmSync(box.file(name), { recursive: true });
    const { stdout, code } = await box.runlock(['acquire', '--no-pid', '--token', 'a']);
    expect([code, stdout]).toEqual([0, '4\n']);
  });

  test('when the guard is put back from an old copy: no record is written over', async () => {
    const box = new Sandbox();
    await box.runlock(['run', 'true']);
    const copy = box.read('lock.guard');
    await box.runlock(['run', 'true']);
    const before = filesUnder(box.file('records'));
    fs.writeFileSync(box.file('lock.guard'), copy);
    expect((await box.runlock(['acquire', '--no-pid', '--token', 'a'])).stdout).toBe('3\n');
    expect((await box.runlock(['finish', '--token', 'a'])).code).toBe(0);
    expect(filesUnder(box.file('records'))).toMatchObject(before);
  });
});

test('a record, a live file or a history that holds garbage stops nobody and is not written over', async () => {
  const box = new Sandbox();
  await box.runlock(['run', 'true']);
  const garbage = {
    [box.file('records', '1.json')]: '{"cut',
    [box.file('records', '2.json')]: '',
    [box.file('live', '3')]: 'x\n\0\n',
    [box.file('live', 'no number')]: '',
  };
  for (const [file, content] of Object.entries(garbage)) fs.writeFileSync(file, content);
  const [month = ''] = fs.readdirSync(box.file('history'));
  const torn = `${'\0'.repeat(99)}\n[]\n{"event":"ended","run":9`;
  fs.writeFileSync(box.file('history', month), torn);

  expect((await box.runlock(['status'])).code).toBe(0);
  const { code, stdout } = await box.runlock(['acquire', 'ep', '--no-pid', '--token', 'a']);
  expect(code).toBe(0);
  expect(Number(stdout)).toBeGreaterThan(2);
  expect((await box.runlock(['finish', '--token', 'a'])).code).toBe(0);
  expect(box.read('records', '1.json')).toBe('{"cut');
  expect(box.read('records', '2.json')).toBe('');
  expect(box.read('history', month).startsWith(`${torn}\n{`)).toBe(true);
});

test('garbage in the live file of a run that goes on does not let a second one in', async () => {
  const box = new Sandbox();
  const run = startRun(box, ['--', 'sh', '-c', 'echo begun; read line']);
  await run.says('begun');
  fs.writeFileSync(box.file('live', '1'), 'x'.repeat(2 << 20));
  expect((await box.runlock(['run', 'true'])).code).toBe(3);
  fs.rmSync(box.file('lock.json'));
  expect((await box.runlock(['run', 'true'])).code).toBe(3);
  run.tell('go on');
  expect((await run.result).code).toBe(0);
  expect((await box.runlock(['run', 'true'])).code).toBe(0);
});

test('a lock.json with just pid and job, written by another tool, is honoured and left alone', async () => {
  const box = new Sandbox();
  const job = new Job(box);
  const file = box.putLock({ pid: job.running.pid, job: 'other.json' });
  const before = fs.readFileSync(file, 'utf8');
  const { code, stderr } = await box.runlock(['run', 'true']);
  expect(code).toBe(3);
  expect(stderr).toContain(`pid ${job.running.pid}`);
  expect(await job.do('runlock finish')).toBe(4);
  expect(await job.do('runlock release')).toBe(0);
  expect(fs.readFileSync(file, 'utf8')).toBe(before);
  await job.die();
  expect((await box.runlock(['run', 'true'])).code).toBe(0);
});
