import fs from 'node:fs';
import { expect, test } from 'vitest';
import { eventually, MINUTE, type Running, Sandbox } from './harness.ts';
import {
  bystander,
  deadPid,
  lockAsItIs,
  look,
  startOf,
  startShell,
  thisMachine,
  tryAcquire,
  wrongClock,
} from './processes.ts';

// Clocks that are wrong, or step.

const DAY = 24 * 60 * MINUTE;
const AGED = 46 * MINUTE;

/** How far the heartbeat is ahead of now, ms. */
const ahead = (box: Sandbox) => lockAsItIs(box).mtimeMs - Date.now();

test('a dead holder whose heartbeat is from the future does not hold', async () => {
  const box = new Sandbox();
  box.putLock({ pid: deadPid(), run: 3, ...thisMachine(), pidStarted: '1' }, -DAY);
  expect(await tryAcquire(box)).toBe(0);
});

test('looking at a heartbeat from the future changes nothing', async () => {
  const box = new Sandbox();
  box.putLock({ run: 3 }, -DAY);
  const before = lockAsItIs(box);
  const { state, heartbeatAgeMs } = await look(box);
  expect([state, heartbeatAgeMs]).toEqual(['held', 0]);
  expect(lockAsItIs(box)).toEqual(before);
});

test.each(['a living holder', 'no pid', 'a pid without a start time', 'content that is no lock'])(
  'with %s, the first acquire that meets a heartbeat from the future sets it to now, and the hold counts from there',
  async (kind) => {
    const box = new Sandbox();
    const pid = await bystander(box);
    const contents: Record<string, unknown> = {
      'a living holder': { pid, run: 3, ...thisMachine(), pidStarted: startOf(pid) },
      'no pid': { run: 3, job: 'x.json' },
      'a pid without a start time': { pid, job: 'x.json' },
      'content that is no lock': '{"pid":',
    };
    const file = box.putLock(contents[kind], -DAY);
    const { text } = lockAsItIs(box);
    expect(await tryAcquire(box)).toBe(3);
    expect(Math.abs(ahead(box))).toBeLessThan(MINUTE);
    expect(lockAsItIs(box).text).toBe(text);
    box.age(file, 44 * MINUTE);
    expect(await tryAcquire(box)).toBe(3);
    expect(ahead(box)).toBeLessThan(-43 * MINUTE);
    box.age(file, AGED);
    expect(await tryAcquire(box)).toBe(0);
  },
);

test('a run that meets a heartbeat from the future bounds it just so', async () => {
  const box = new Sandbox();
  box.putLock({ run: 3 }, -DAY);
  expect((await box.runlock(['run', '--', 'true'])).code).toBe(3);
  expect(Math.abs(ahead(box))).toBeLessThan(MINUTE);
});

test('a heartbeat from the future does not keep the lock from its own holder', async () => {
  const box = new Sandbox();
  const script = startShell(
    box,
    ['bash'],
    'runlock acquire x; echo taken; read -r line; runlock hb; echo "hb $?"; runlock finish; echo "finish $?"',
  );
  await script.says('taken');
  box.age(box.file('lock.json'), -DAY);
  script.tell('go');
  await script.says('finish 0');
  expect(script.stdout).toContain('hb 0');
});

test('a killed run whose heartbeat is from the future blocks nobody', async () => {
  const box = new Sandbox();
  const run = box.start('runlock', ['run', '--', 'bash', '-c', 'echo up; read -r line'], { detached: true });
  await run.says('up');
  box.age(box.file('lock.json'), -DAY);
  expect(await tryAcquire(box)).toBe(3);
  run.killGroup();
  await run.ended;
  expect(await tryAcquire(box)).toBe(0);
});

const RUN = ['run', '--item', 'ep', '--hold', '1s', '--timeout', '20m', '--watchdog', '20m', '--'];

test.for(['+50m', '-50m', '+400d'])(
  'for a looker whose clock is wrong by %s, a run holds, and its command goes on',
  async (by, ctx) => {
    const env = wrongClock(ctx, by);
    const box = new Sandbox();
    const run = box.start('runlock', [...RUN, 'bash', '-c', 'echo up; read -r line; runlock hb'], {
      detached: true,
    });
    await run.says('up');
    expect((await box.runlock(['status'], { env })).code).toBe(3);
    expect(await tryAcquire(box, { env })).toBe(3);
    // Past its time limit by that clock: still nobody's to end while its supervisor lives.
    expect((await box.runlock(['run', '--', 'true'], { env })).code).toBe(3);
    expect((await box.runlock(['status'])).code).toBe(3);
    run.tell('end');
    const { code, stderr } = await run.result;
    expect([code, stderr]).toEqual([0, expect.not.stringContaining('lost')]);
    expect(box.history()).toContainEqual(expect.objectContaining({ run: 1, outcome: 'finished' }));
  },
);

test.for(['+50m', '-50m'])(
  'a run whose own clock steps by %s holds throughout and is not ended',
  async (by, ctx) => {
    const box = new Sandbox();
    const clock = box.write('clock', '+0\n');
    const env = wrongClock(ctx, `@${clock}`);
    const run: Running = box.start('runlock', [...RUN, 'bash', '-c', 'echo up; read -r line'], {
      detached: true,
      env,
    });
    await run.says('up');
    fs.writeFileSync(clock, `${by}\n`);
    const expected = Number.parseInt(by, 10) * MINUTE;
    await eventually('it beats by the new clock', () => Math.abs(ahead(box) - expected) < MINUTE);
    for (const looker of [{}, { env }]) {
      expect((await box.runlock(['status'], looker)).code).toBe(3);
      expect(await tryAcquire(box, looker)).toBe(3);
      expect((await box.runlock(['run', '--', 'true'], looker)).code).toBe(3);
    }
    await eventually('it still beats by the new clock', () => Math.abs(ahead(box) - expected) < MINUTE);
    run.tell('end');
    expect((await run.result).code).toBe(0);
    expect((await look(box)).state).toBe('free');
  },
);

test('after its clock has stepped, a killed run blocks nobody', async (ctx) => {
  const box = new Sandbox();
  const clock = box.write('clock', '+0\n');
  const env = wrongClock(ctx, `@${clock}`);
  const run = box.start('runlock', [...RUN, 'bash', '-c', 'echo up; read -r line'], { detached: true, env });
  await run.says('up');
  fs.writeFileSync(clock, '+50m\n');
  await eventually('it beats by the new clock', () => ahead(box) > 49 * MINUTE);
  run.killGroup();
  await run.ended;
  expect(await tryAcquire(box)).toBe(0);
});

test('whoever holds by its heartbeat alone holds for a clock that is behind, and for no longer than its hold by one that is ahead', async (ctx) => {
  const box = new Sandbox();
  expect(await tryAcquire(box)).toBe(0);
  expect((await box.runlock(['status'], { env: wrongClock(ctx, '-50m') })).code).toBe(3);
  const { stdout } = await box.runlock(['status'], { env: wrongClock(ctx, '+50m') });
  expect(stdout).toContain('no heartbeat for 50 min');
});

test('a script whose start was seen by another clock is still the same process', async (ctx) => {
  const box = new Sandbox();
  const env = wrongClock(ctx, '-50m');
  const script = startShell(box, ['bash'], 'runlock acquire x --hold 2h; echo taken; read -r line', { env });
  await script.says('taken');
  expect(await tryAcquire(box)).toBe(3);
  script.kill();
  await script.ended;
  expect((await look(box)).state).toBe('stale');
});
