import fs from 'node:fs';
import path from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { Sandbox } from './harness.ts';

let box: Sandbox;
beforeEach(() => {
  box = new Sandbox();
});

/** One success in 24 hours, by runlock's own history. */
const ONCE = { once: { limit: 1, period: '24h', sources: [{ history: 'finished' }] } };
const configure = (config: object) => box.write('runlock.json', JSON.stringify({ quotas: ONCE, ...config }));
const acquire = (...args: string[]) => box.runlock(['acquire', '--pid', String(process.pid), ...args]);
const run = (...args: string[]) => box.runlock(['run', ...args]);
const json = (text: string) => JSON.parse(text) as Record<string, unknown>;

describe('quota', () => {
  test('a second run after a success is closed with 5, though the lock is free', async () => {
    configure({});
    expect((await run('--gate', 'quota:once', '--', 'true')).code).toBe(0);
    const second = await run('--gate', 'quota:once', '--json', '--', 'touch', 'started');
    expect(second.code).toBe(5);
    expect(second.stderr).toContain('quota:once: 1 of 1 used (history 1)');
    expect(json(second.stderr.trim().split('\n').at(-1) ?? '')).toMatchObject({
      outcome: 'skipped',
      run: 2,
      exitCode: 5,
      gates: [
        {
          gate: 'quota:once',
          open: false,
          code: 5,
          count: 1,
          limit: 1,
          sources: [{ source: 'history', count: 1 }],
        },
      ],
    });
    expect(fs.existsSync(path.join(box.dir, 'started'))).toBe(false);
  });

  test('a failed run uses nothing of it', async () => {
    configure({});
    expect((await run('--gate', 'quota:once', '--', 'false')).code).toBe(1);
    expect((await run('--gate', 'quota:once', '--', 'true')).code).toBe(0);
  });

  test('a closed gate leaves the lock free, the item unmarked, and the skip in the history with its figures', async () => {
    configure({});
    await run('--', 'true');
    const closed = await acquire('ep-1', '--gate', 'quota:once', '--json');
    expect(closed.code).toBe(5);
    expect(json(closed.stdout)).toMatchObject({
      outcome: 'closed',
      run: 2,
      token: null,
      gates: [{ count: 1 }],
    });
    expect(await box.status()).toMatchObject({ state: 'free', marker: [] });
    const history = await box.runlock(['history', '--outcome', 'skipped', '--json']);
    expect(json(history.stdout)).toMatchObject({
      runs: [
        { run: 2, item: 'ep-1', outcome: 'skipped', gates: [{ gate: 'quota:once', count: 1, limit: 1 }] },
      ],
    });
    expect((await box.runlock(['history', '-n', '1'])).stdout).toContain('quota:once: 1 of 1 used');
    // And the next may run.
    expect((await acquire('ep-1')).code).toBe(0);
  });

  test('one that is not configured is misuse, found before a lock is taken, with a guess', async () => {
    const config = configure({});
    const got = await run('--gate', 'quota:onse', '--', 'true');
    expect(got.code).toBe(125);
    expect(got.stderr).toContain('did you mean "quota:once"?');
    expect(got.stderr).toContain(config);
    expect(fs.existsSync(box.runs)).toBe(false);
    expect((await acquire('--gate', 'quota:onse')).code).toBe(2);
  });

  test('each day shows what each source would have counted', async () => {
    configure({});
    await run('--', 'true');
    const days = await box.runlock(['gate', 'quota:once', '--days', '2', '--json']);
    expect(days.code).toBe(0);
    expect(json(days.stdout)).toMatchObject({
      quotas: [
        {
          gate: 'quota:once',
          limit: 1,
          days: [{ count: 0 }, { count: 1, sources: [{ source: 'history', count: 1 }] }],
        },
      ],
    });
    const table = await box.runlock(['gate', 'quota:once', '--days', '2']);
    expect(table.stdout.trim().split('\n')).toHaveLength(3);
  });

  test('--at asks as of another time', async () => {
    configure({});
    await run('--', 'true');
    expect((await box.runlock(['gate', 'quota:once'])).code).toBe(5);
    expect((await box.runlock(['gate', 'quota:once', '--at', '2020-01-01T10:00Z'])).code).toBe(0);
    for (const time of ['yesterday', '2020-01-01', '2020-02-30T10:00', '2020-01-01T10:00+99:00'])
      expect((await box.runlock(['gate', 'quota:once', '--at', time])).code).toBe(2);
  });
});

describe('item', () => {
  test('is open for a clean item, and the own mark of the run does not count', async () => {
    expect((await acquire('ep', '--gate', 'item')).code).toBe(0);
    const inside = await run(
      '--name',
      'other',
      '--item',
      'ep',
      '--',
      'runlock',
      'gate',
      'item',
      '--item',
      'ep',
    );
    expect(inside).toMatchObject({ code: 0 });
  });

  test('inside its own run its mark does not count, from outside it does', async () => {
    const holder = box.startScript(
      'sh',
      'runlock run --item ep -- sh -c "runlock gate item --item ep; echo inside: \\$?; read -r _"',
    );
    expect(await holder.says('inside: ')).toContain('inside: 0');
    const outside = await box.runlock(['gate', 'item', '--item', 'ep']);
    expect(outside.code).toBe(6);
    expect(outside.stdout).toContain('in progress');
  });

  test('an item in an unknown state closes with 6, and the lock is free again', async () => {
    await run('--item', 'ep', '--', 'false');
    const closed = await acquire('ep', '--gate', 'item');
    expect(closed).toMatchObject({ code: 6, stdout: '' });
    expect(closed.stderr).toContain('unknown state');
    expect(await box.status()).toMatchObject({ state: 'free', marker: [{ item: 'ep', run: 1 }] });
    await box.runlock(['settle', 'ep', '--not-done']);
    expect((await acquire('ep', '--gate', 'item')).code).toBe(0);
  });

  test('an unreadable marker is 1 for the gate, and rebuilt by who takes the lock', async () => {
    await run('--item', 'ep', '--', 'false');
    fs.writeFileSync(box.file('current.json'), '{"items":');
    expect((await box.runlock(['gate', 'item', '--item', 'ep'])).code).toBe(1);
    expect((await acquire('ep', '--gate', 'item')).code).toBe(6);
  });

  test('without an item is misuse, found before a lock is taken', async () => {
    box.write('ledger.json', '{}');
    for (const gate of ['item', 'ledger:ledger.json']) {
      expect((await acquire('--gate', gate)).code).toBe(2);
      expect((await run('--gate', gate, '--', 'true')).code).toBe(125);
      expect((await box.runlock(['gate', gate])).code).toBe(2);
    }
    expect(fs.existsSync(box.runs)).toBe(false);
  });
});

describe('ledger', () => {
  test('closes with 7 for an item that it has, in any Unicode form', async () => {
    box.write('ledger.json', '{"publishes":{"caf\u00e9":{},"the\u0301":{}}}');
    const gate = ['--gate', 'ledger:ledger.json#publishes'];
    expect((await acquire('cafe\u0301', ...gate)).code).toBe(7);
    expect((await acquire('th\u00e9', ...gate)).code).toBe(7);
    expect((await acquire('tea', ...gate)).code).toBe(0);
  });

  test.each([
    ['a missing file', null],
    ['a missing place', '{}'],
    ['cut JSON', '{"publishes":{'],
  ])('%s is 1 and nothing is begun', async (_, content) => {
    if (content !== null) box.write('ledger.json', content);
    const gate = 'ledger:ledger.json#publishes';
    const got = await acquire('ep', '--gate', gate, '--quiet');
    expect(got.code).toBe(1);
    // A failure is no skip, and is not silenced.
    expect(got.stderr).toContain('ledger.json');
    expect((await run('--item', 'ep', '--gate', gate, '--skip-code', '0', '--', 'true')).code).toBe(125);
    expect(await box.status()).toMatchObject({ state: 'free', marker: [] });
  });
});

describe('default gates', () => {
  test('are asked without being named, and --no-default-gates leaves them out', async () => {
    configure({ gates: ['quota:once'] });
    expect((await run('--', 'true')).code).toBe(0);
    expect((await run('--', 'true')).code).toBe(5);
    expect((await acquire()).code).toBe(5);
    expect((await box.runlock(['pick'], { input: 'a\n' })).code).toBe(5);
    expect((await box.runlock(['gate'])).code).toBe(5);
    expect((await box.runlock(['pick', '--no-default-gates'], { input: 'a\n' })).code).toBe(0);
    expect((await run('--no-default-gates', '--', 'true')).code).toBe(0);
    expect((await acquire('--no-default-gates')).code).toBe(0);
  });

  test('are those of the lock, which may have none', async () => {
    configure({ gates: ['quota:once'], locks: { video: { gates: [] } } });
    await run('--no-default-gates', '--', 'true');
    expect((await run('--', 'true')).code).toBe(5);
    expect((await run('--name', 'video', '--', 'true')).code).toBe(0);
    expect((await box.runlock(['gate', '--name', 'video'])).code).toBe(2);
  });

  test('come first, and gate asks just what it is given', async () => {
    configure({ gates: ['quota:once'] });
    box.write('ledger.json', '{"ep":1}');
    await run('--no-default-gates', '--', 'true');
    const both = await acquire('ep', '--gate', 'ledger:ledger.json', '--json');
    expect(both.code).toBe(5);
    expect(json(both.stdout)).toMatchObject({ gates: [{ gate: 'quota:once' }, { code: 7 }] });
    const alone = await box.runlock(['gate', 'ledger:ledger.json', '--item', 'ep', '--json']);
    expect(alone.code).toBe(7);
    expect(json(alone.stdout)).toEqual({
      open: false,
      gates: [{ gate: 'ledger:ledger.json', open: false, code: 7, reason: expect.any(String) }],
    });
  });

  test('paths in them are relative to the configuration', async () => {
    configure({ gates: ['ledger:ledger.json'] });
    box.write('ledger.json', '{"ep":1}');
    fs.mkdirSync(path.join(box.dir, 'sub'));
    const args = ['gate', '--item', 'ep'];
    expect((await box.runlock(args, { cwd: path.join(box.dir, 'sub') })).code).toBe(7);
  });

  test.each([
    ['an unknown gate', ['itme'], 'did you mean \\"item\\"?'],
    ['an unknown quota', ['quota:onec'], 'did you mean \\"quota:once\\"?'],
    ['no list', 'item', 'an array of gates'],
    ['minutes in a path', ['output:{yyyy-mm-dd}.json'], 'minutes'],
  ])('%s is refused with its place in the file', async (_, gates, words) => {
    const config = configure({ gates });
    const got = await box.runlock(['status', '--json']);
    expect(got.code).toBe(2);
    expect(got.stdout).toContain(words);
    expect(got.stderr).toContain(`${config}: gates`);
  });
});

describe('several gates', () => {
  test('the first closed in order gives the code, and all are asked', async () => {
    configure({});
    box.write('ledger.json', '{"ep":1}');
    await run('--', 'true');
    const gates = (...names: string[]) => names.flatMap((name) => ['--gate', name]);
    expect((await acquire('ep', ...gates('ledger:ledger.json', 'quota:once'))).code).toBe(7);
    const other = await acquire('ep', ...gates('quota:once', 'ledger:ledger.json', 'item'), '--json');
    expect(other.code).toBe(5);
    expect(json(other.stdout)).toMatchObject({ gates: [{ code: 5 }, { code: 7 }, { code: 0 }] });
  });

  test('an answer that can not be had goes before any other', async () => {
    configure({});
    await run('--', 'true');
    const gates = ['--gate', 'quota:once', '--gate', 'ledger:missing.json'];
    expect((await acquire('ep', ...gates)).code).toBe(1);
  });

  test('the last good output stays when the quota is closed', async () => {
    configure({});
    await run('--', 'true');
    box.write('out', 'good');
    expect((await run('--gate', 'output:out', '--gate', 'quota:once', '--', 'true')).code).toBe(5);
    expect(fs.readFileSync(path.join(box.dir, 'out'), 'utf8')).toBe('good');
  });

  test('--skip-code replaces the code of a closed gate', async () => {
    configure({});
    await run('--', 'true');
    expect((await run('--gate', 'quota:once', '--skip-code', '0', '--', 'true')).code).toBe(0);
    const quiet = await run('--gate', 'quota:once', '--quiet', '--', 'true');
    expect(quiet).toMatchObject({ code: 5, stdout: '', stderr: '' });
  });
});

test('--days takes quotas only: another gate named beside one is misuse, a configured one is left out', async () => {
  configure({ gates: ['item', 'quota:once'] });
  for (const other of ['item', 'output:o', 'ledger:l.json']) {
    const got = await box.runlock(['gate', 'quota:once', other, '--days', '2']);
    expect(got).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining(`got "${other}"`) });
  }
  expect(await run('--no-default-gates', '--', 'true')).toMatchObject({ code: 0 });
  expect((await box.runlock(['gate', 'quota:once'])).code).toBe(5);
  const table = await box.runlock(['gate', '--days', '2']);
  expect(table).toMatchObject({ code: 0, stdout: expect.stringContaining('closed') });
});

test('successes that tell no time do not count, and never without a word', async () => {
  box.makeRuns();
  box.write('app.log', '2026-11-27 10:00:00 done\nat ten: done\n');
  const source = { log: 'app.log', contains: 'done', time: '^(\\d{4}\\S+ \\S+)' };
  configure({ quotas: { posts: { limit: 1, period: 'day', timeZone: 'UTC', sources: [source] } } });
  const words = '0, and 1 line without a time';
  expect((await box.runlock(['gate', 'quota:posts'])).stdout).toBe(
    `open    quota:posts  0 of 1: app.log ${words}\n`,
  );
  expect((await box.runlock(['gate', 'quota:posts', '--days', '1'])).stdout).toContain(
    '  0 (+1 without a time)  0 ',
  );
  const said = `runlock: gate quota:posts: 0 of 1 used (app.log ${words})\n`;
  expect(await run('--gate', 'quota:posts', '--', 'true')).toMatchObject({ code: 0, stderr: said });
  expect((await box.runlock(['pick', '--gate', 'quota:posts'], { input: 'a\n' })).stderr).toBe(said);
  expect(await run('--quiet', '--gate', 'quota:posts', '--', 'true')).toMatchObject({ stderr: '' });
});

describe('pick', () => {
  const pick = (input: string, ...args: string[]) => box.runlock(['pick', ...args], { input });

  test('leaves out what is marked and what the ledger has, in order', async () => {
    box.write('ledger.json', '{"b":1}');
    await run('--item', 'c', '--', 'false');
    expect(await pick('a\nb\nc\nd\n', '--gate', 'ledger:ledger.json')).toMatchObject({
      code: 0,
      stdout: 'a\nd\n',
    });
    const none = await pick('b\nc\n', '--gate', 'ledger:ledger.json', '--gate', 'item');
    expect(none).toMatchObject({ code: 6, stdout: '' });
    expect(none.stderr).toContain('1 in a ledger already');
    expect((await pick('a\n', '--gate', 'ledger:missing.json')).code).toBe(1);
  });

  test('and --from hand out one item once, in whatever Unicode form it comes again', async () => {
    const [composed, decomposed] = ['caf\u00e9', 'cafe\u0301'];
    const queue = `${decomposed}\nb\n${composed}\nb\n`;
    expect((await pick(queue)).stdout).toBe(`${decomposed}\nb\n`);
    box.write('queue', queue);
    expect(await run('--from', 'queue', '--', 'sh', '-c', 'echo "$RUNLOCK_ITEM"')).toMatchObject({
      stdout: `${decomposed}\n`,
    });
    const asked = await box.runlock(['history', '--item', composed, '--json']);
    expect(json(asked.stdout).runs).toMatchObject([{ run: 1, item: decomposed }]);
  });

  test('a closed gate that has nothing to do with items gives its own code', async () => {
    configure({});
    await run('--', 'true');
    expect(await pick('a\n', '--gate', 'quota:once')).toMatchObject({ code: 5, stdout: '' });
  });

  test('--from picks in the same way, under the lock', async () => {
    configure({});
    box.write('queue', 'a\nb\nc\n');
    box.write('ledger.json', '{"b":1}');
    await run('--item', 'a', '--', 'false');
    const from = ['--from', 'queue', '--gate', 'ledger:ledger.json'];
    const got = await run(...from, '--', 'sh', '-c', 'echo "$RUNLOCK_ITEM"');
    expect(got).toMatchObject({ code: 0, stdout: 'c\n' });
    expect((await acquire(...from, '--gate', 'quota:once')).code).toBe(5);
    box.write('queue', 'a\nb\n');
    const none = await acquire(...from);
    expect(none).toMatchObject({ code: 6, stdout: '' });
    expect((await box.status()).state).toBe('free');
  });
});

describe('while the gates are asked', () => {
  /** Runlock that gets a signal when it opens the ledger. */
  function signalledAtLedger(signal: NodeJS.Signals): NodeJS.ProcessEnv {
    const hook = box.write(
      'hook.cjs',
      `const fs = require('node:fs');
       const { openSync } = fs;
       fs.openSync = (file, ...rest) => {
         if (String(file).endsWith('ledger.json')) process.kill(process.pid, '${signal}');
         return openSync(file, ...rest);
       };`,
    );
    return { NODE_OPTIONS: `--require ${hook}` };
  }

  test.each(['acquire', 'run'])(
    'a killed %s leaves the lock to the next at once, and nothing marked',
    async (verb) => {
      box.write('ledger.json', '{}');
      const gate = ['--gate', 'ledger:ledger.json'];
      const args =
        verb === 'run'
          ? ['run', '--item', 'ep', ...gate, '--', 'touch', 'started']
          : ['acquire', 'ep', '--pid', String(process.pid), ...gate];
      const killed = await box.runlock(args, { env: signalledAtLedger('SIGKILL') });
      expect(killed.signal).toBe('SIGKILL');
      expect(fs.existsSync(box.file('lock.json'))).toBe(true);
      expect(fs.existsSync(path.join(box.dir, 'started'))).toBe(false);
      expect(await box.status()).toMatchObject({ state: 'stale', marker: [] });
      expect(await acquire('ep', '--gate', 'item')).toMatchObject({ code: 0, stdout: '2\n' });
    },
  );

  test.each(['acquire', 'run'])('a terminated %s begins nothing and leaves the lock free', async (verb) => {
    box.write('ledger.json', '{}');
    const gate = ['--gate', 'ledger:ledger.json'];
    const args =
      verb === 'run'
        ? ['run', '--item', 'ep', ...gate, '--', 'touch', 'started']
        : ['acquire', 'ep', '--pid', String(process.pid), ...gate];
    const ended = await box.runlock(args, { env: signalledAtLedger('SIGTERM') });
    expect(verb === 'run' ? ended.code : ended.signal).toBe(verb === 'run' ? 143 : 'SIGTERM');
    expect(fs.existsSync(path.join(box.dir, 'started'))).toBe(false);
    expect(await box.status()).toMatchObject({ marker: [] });
    expect((await acquire('ep', '--gate', 'item')).code).toBe(0);
  });

  test('the lock of who asked is the right one afterwards', async () => {
    box.write('ledger.json', '{}');
    const script = await box.script(
      'sh',
      'run=$(runlock acquire ep --gate ledger:ledger.json) || exit\nrunlock hb --run "$run" && runlock finish --run "$run" && echo done',
    );
    expect(script).toMatchObject({ code: 0, stdout: 'done\n' });
    expect(await box.status()).toMatchObject({ state: 'free', marker: [] });
  });
});

test('gate needs no lock, no directory and no write permission, and changes nothing', async () => {
  box.write('ledger.json', '{"ep":1}');
  const before = fs.readdirSync(box.dir);
  expect((await box.runlock(['gate', 'item', 'ledger:ledger.json', '--item', 'x'])).code).toBe(0);
  expect((await box.runlock(['gate', 'item', 'ledger:ledger.json', '--item', 'ep'])).code).toBe(7);
  expect(fs.readdirSync(box.dir)).toEqual(before);
});

test('names that could act on a terminal are made harmless', async () => {
  box.write('ledger.json', '{"a\\u001b[2Jb":1}');
  const got = await box.runlock(['gate', 'ledger:nowhere\u202e.json', '--item', 'x']);
  expect(got.code).toBe(1);
  expect(got.stdout).not.toContain('\u202e');
});
