import fs from 'node:fs';
import { expect, type TestContext, test } from 'vitest';
import { MINUTE, Sandbox } from './harness.ts';
import { look, type Status, startShell, tryAcquire, wrongClock } from './processes.ts';

// Locks and marks at their exact ages.

const SECOND = 1_000;
const HOUR = 60 * MINUTE;

/** Makes everything that a run has left in the directory older, files and times in them. */
function rewind(box: Sandbox, ms: number): void {
  for (const name of ['lock.json', 'current.json']) {
    const file = box.file(name);
    if (!fs.existsSync(file)) continue;
    const { mtimeMs } = fs.statSync(file);
    const times = /\d{4}-\d\d-\d\dT[\d:.]+Z/g;
    const earlier = (time: string) => new Date(Date.parse(time) - ms).toISOString();
    fs.writeFileSync(file, fs.readFileSync(file, 'utf8').replace(times, earlier));
    const then = (mtimeMs - ms) / 1000;
    fs.utimesSync(file, then, then);
  }
}

/** A clock that stands still, so that ages are exact however slow the machine is. */
function standingClock(ctx: TestContext) {
  const now = Math.floor(Date.now() / SECOND) * SECOND;
  const env = wrongClock(ctx, new Date(now).toISOString().slice(0, 19).replace('T', ' '));
  const age = (file: string, ms: number) => fs.utimesSync(file, (now - ms) / 1000, (now - ms) / 1000);
  const ago = (ms: number) => new Date(now - ms).toISOString();
  return { env, age, ago };
}

test('one status says of a killed run what its lock and its mark are, and why, however long ago it was', async () => {
  const box = new Sandbox();
  const run = box.start('runlock', ['run', '--item', 'ep', '--', 'bash', '-c', 'echo up; read -r line'], {
    detached: true,
  });
  await run.says('up');
  run.killGroup();
  await run.ended;
  for (const [by, fresh] of [
    [0, true],
    [46, true],
    [73, true],
    [2, false],
  ] as const) {
    rewind(box, by * MINUTE);
    const { state, reason, marker } = await look(box);
    expect([state, reason]).toEqual(['stale', 'its supervisor and its command are gone']);
    expect(marker).toMatchObject([{ item: 'ep', run: 1, fresh }]);
    const { code, stdout } = await box.runlock(['status']);
    expect([code, stdout]).toEqual([
      0,
      expect.stringContaining('the next acquire takes over: its supervisor'),
    ]);
    expect(stdout).toMatch(fresh ? /marked ep .*; counts until/ : /marked ep .*; no longer counts since/);
  }
});

test('one status says of a killed script what its lock and its mark are, and why, however long ago it was', async () => {
  const box = new Sandbox();
  const script = startShell(box, ['bash'], 'runlock acquire ep; echo taken; read -r line');
  await script.says('taken');
  script.kill();
  await script.ended;
  const reasons = [
    / is gone$/,
    /^no heartbeat for 46 min$/,
    /^no heartbeat for 1 h 59 min$/,
    /^no heartbeat for 2 h 1 min$/,
  ];
  for (const [index, by] of [0, 46, 73, 2].entries()) {
    rewind(box, by * MINUTE);
    const { state, reason, marker } = await look(box);
    expect([state, reason]).toEqual(['stale', expect.stringMatching(reasons[index] ?? '')]);
    expect(marker).toMatchObject([{ item: 'ep', run: 1, fresh: index < 3 }]);
  }
});

test('the mark of a run that was taken over counts from when the run was last known to work', async () => {
  const box = new Sandbox();
  const run = box.start('runlock', ['run', '--item', 'ep', '--', 'bash', '-c', 'echo up; read -r line'], {
    detached: true,
  });
  await run.says('up');
  run.killGroup();
  await run.ended;
  rewind(box, 119 * MINUTE);
  expect((await box.runlock(['run', '--item', 'other', '--', 'true'])).code).toBe(0);
  expect((await look(box)).marker).toMatchObject([{ item: 'ep', state: 'unknown', fresh: true }]);
  rewind(box, 2 * MINUTE);
  const { state, marker } = await look(box);
  expect([state, marker]).toMatchObject(['free', [{ item: 'ep', state: 'unknown', fresh: false }]]);
});

test('the mark of a run that still works counts, however long ago it was set', async () => {
  const box = new Sandbox();
  const run = box.start('runlock', ['run', '--item', 'ep', '--', 'bash', '-c', 'echo up; read -r line'], {
    detached: true,
  });
  await run.says('up');
  rewind(box, 48 * HOUR);
  const { state, marker } = await look(box);
  expect([state, marker]).toMatchObject(['held', [{ item: 'ep', state: 'running', fresh: true }]]);
  run.tell('end');
  await run.ended;
});

const AGES: readonly (readonly [hold: string | null, below: number, above: number])[] = [
  [null, 45 * MINUTE - SECOND, 45 * MINUTE + SECOND],
  ['10m', 10 * MINUTE - SECOND, 10 * MINUTE + SECOND],
  ['36h', 36 * HOUR - SECOND, 36 * HOUR + SECOND],
];

test.for(AGES)(
  'a hold of %s ends at that age, to the second, whoever looks',
  async ([hold, below, above], ctx) => {
    const box = new Sandbox();
    const { env, age } = standingClock(ctx);
    const options = hold === null ? [] : ['--hold', hold];
    expect((await box.runlock(['acquire', 'x', '--no-pid', '--token', 'id-1', ...options])).code).toBe(0);
    const file = box.file('lock.json');
    age(file, below);
    expect((await box.runlock(['status'], { env })).code).toBe(3);
    // What the looker would choose for itself binds nobody else.
    const chosen = ['acquire', 'y', '--no-pid', '--token', 'id-2', '--hold', '1s'];
    expect((await box.runlock(chosen, { env })).code).toBe(3);
    age(file, above);
    expect((await box.runlock(['status'], { env })).code).toBe(0);
    expect(await tryAcquire(box, { env })).toBe(0);
  },
);

test.for(['{"pid":', '', '[]'])(
  'a lock that reads %j ends at 45 min, to the second',
  async (content, ctx) => {
    const box = new Sandbox();
    const { env, age } = standingClock(ctx);
    const file = box.putLock(content);
    age(file, 45 * MINUTE - SECOND);
    expect(await tryAcquire(box, { env })).toBe(3);
    age(file, 45 * MINUTE + SECOND);
    expect(await tryAcquire(box, { env })).toBe(0);
  },
);

test('a living holder that holds for ever is not bounded by any age', async () => {
  const box = new Sandbox();
  const script = startShell(box, ['bash'], 'runlock acquire x --hold never; echo taken; read -r line');
  await script.says('taken');
  box.age(box.file('lock.json'), 400 * 24 * HOUR);
  expect(await tryAcquire(box)).toBe(3);
  expect((await look(box)).staleInMs).toBeNull();
  script.kill();
  await script.ended;
  expect(await tryAcquire(box)).toBe(0);
});

test.for(['running', 'unknown'])(
  'a mark of something %s counts for two hours, to the second',
  async (state, ctx) => {
    const box = new Sandbox();
    box.makeRuns();
    const { env, ago } = standingClock(ctx);
    const ask = async (ms: number) => {
      const items = [{ item: 'ep', run: 1, job: null, pid: null, state, since: ago(ms), lastKnown: ago(ms) }];
      fs.writeFileSync(box.file('current.json'), JSON.stringify({ version: 1, items }));
      const status = await box.runlock(['status', '--json'], { env });
      const { code, stdout } = await box.runlock(['pick'], { env, input: 'ep\n' });
      return { fresh: (JSON.parse(status.stdout) as Status).marker[0]?.fresh, code, stdout };
    };
    expect(await ask(2 * HOUR - SECOND)).toEqual({ fresh: true, code: 6, stdout: '' });
    expect(await ask(2 * HOUR + SECOND)).toEqual({ fresh: false, code: 0, stdout: 'ep\n' });
  },
);

test('a mark counts from when its run was last known to work, not from when it was set', async () => {
  const box = new Sandbox();
  box.makeRuns();
  const ago = (ms: number) => new Date(Date.now() - ms).toISOString();
  const items = [{ item: 'ep', run: 1, state: 'unknown', since: ago(5 * HOUR), lastKnown: ago(HOUR) }];
  fs.writeFileSync(box.file('current.json'), JSON.stringify({ version: 1, items }));
  expect((await box.runlock(['pick'], { input: 'ep\n' })).code).toBe(6);
});
