import fs from 'node:fs';
import { expect, type TestContext, test } from 'vitest';
import { eventually, MINUTE, Sandbox } from './harness.ts';
import { isAlive, kill, lines, pidFrom } from './jobs.ts';
import { clockAt, lockAsItIs, look, tryAcquire, wrongClock } from './processes.ts';

// The wall clock steps, in mid-run or over the end of a month. The monotonic one never does. Needs faketime.

const STEPS = ['+50m', '-50m', '+12h', '-12h'];
const HOUR = 60 * MINUTE;

function stepMs(by: string): number {
  return Number.parseInt(by, 10) * (by.endsWith('h') ? HOUR : MINUTE);
}

/** A run whose clock steps by what the test says; its lookers may have the same clock. */
async function startSteppable(ctx: TestContext, work = 'read -r line') {
  const box = new Sandbox();
  const clock = box.write('clock', '+0\n');
  const env = wrongClock(ctx, `@${clock}`);
  const limits = ['--hold', '1s', '--timeout', '20m', '--watchdog', '20m'];
  const command = ['bash', '-c', `echo command=$$; ${work}`];
  const run = box.start('runlock', ['run', '--json', '--item', 'ep', ...limits, '--', ...command], {
    detached: true,
    env,
  });
  const pid = await pidFrom(run, 'command');
  const step = async (by: string) => {
    fs.writeFileSync(clock, `${by}\n`);
    const ahead = () => lockAsItIs(box).mtimeMs - Date.now();
    await eventually('it beats by the new clock', () => Math.abs(ahead() - stepMs(by)) < MINUTE);
    await eventually('its time limit is told by the new clock', () => {
      const { deadline } = JSON.parse(box.read('lock.json')) as { deadline: string };
      const left = Date.parse(deadline) - stepMs(by) - Date.now();
      return left > 19 * MINUTE && left <= 20 * MINUTE;
    });
  };
  return { box, run, pid, step, env };
}

test.for(STEPS)(
  'a run whose clock steps by %s is held for every looker, not ended, and as long as it really was',
  async (by, ctx) => {
    const { box, run, step, env } = await startSteppable(ctx);
    await step(by);
    for (const looker of [{}, { env }]) {
      expect((await box.runlock(['status'], looker)).code).toBe(3);
      expect(await tryAcquire(box, looker)).toBe(3);
      expect((await box.runlock(['run', 'echo', 'began'], looker)).stdout).toBe('');
    }
    run.tell('end');
    const { code, stderr } = await run.result;
    expect(code).toBe(0);
    const { durationMs } = JSON.parse(lines(stderr).at(-1) ?? '') as { durationMs: number };
    expect(durationMs).toBeGreaterThan(0);
    expect(durationMs).toBeLessThan(MINUTE);
    expect(JSON.parse(box.read('records/1.json'))).toMatchObject({ outcome: 'finished', durationMs });
    for (const looker of [{}, { env }]) {
      const { stdout } = await box.runlock(['history', '--json', '--outcome', 'finished'], looker);
      expect(JSON.parse(stdout)).toMatchObject({ runs: [{ run: 1, outcome: 'finished', durationMs }] });
    }
    expect((await box.runlock(['run', 'true'], { env })).code).toBe(0);
    expect((await box.runlock(['run', 'true'])).code).toBe(0);
  },
);

test('a command whose supervisor is killed after a step is not ended before its time limit', async (ctx) => {
  const { box, run, pid, step, env } = await startSteppable(ctx, 'exec sleep 1000');
  await step('+50m');
  kill(run.pid);
  await eventually('the supervisor is gone', () => run.child.signalCode !== null);
  for (const looker of [{}, { env }]) {
    expect((await box.runlock(['run', 'echo', 'began'], looker)).code).toBe(3);
    expect(isAlive(pid)).toBe(true);
  }
});

test.for(STEPS)(
  'for a lock that a heartbeat holds, a step of %s counts as time passed; there is one holder, and the hold ends',
  async (by, ctx) => {
    const box = new Sandbox();
    const env = wrongClock(ctx, by);
    const acquire = (token: string) => ['acquire', `item of ${token}`, '--no-pid', '--token', token];
    expect((await box.runlock(acquire('a'))).code).toBe(0);
    const second = await box.runlock(acquire('b'), { env });
    expect(second.code).toBe(stepMs(by) > 0 ? 0 : 3);
    // The clock is put back.
    for (const looker of [{}, { env }]) {
      const beats = [];
      for (const token of ['a', 'b']) {
        beats.push((await box.runlock(['hb', '--token', token], looker)).code);
      }
      expect(beats).toEqual(second.code === 0 ? [4, 0] : [0, 4]);
    }
    // The last heartbeat came by the stepped clock: who meets it afterwards bounds it.
    expect((await box.runlock(acquire('c'))).code).toBe(stepMs(by) < -45 * MINUTE ? 0 : 3);
    box.age(box.file('lock.json'), 46 * MINUTE);
    expect((await box.runlock(acquire('d'))).code).toBe(0);
  },
);

test('for a looker whose clock is before the taking the lock is held, since no time at all', async (ctx) => {
  const box = new Sandbox();
  expect(await tryAcquire(box)).toBe(0);
  const env = wrongClock(ctx, '-12h');
  const { code, stdout } = await box.runlock(['status'], { env });
  expect(code).toBe(3);
  expect(stdout).toMatch(/since .* \(0 s\), heartbeat 0 s ago, goes stale in 45 min/);
  const json = await box.runlock(['status', '--json'], { env });
  expect(JSON.parse(json.stdout)).toMatchObject({ heartbeatAgeMs: 0, staleInMs: 45 * MINUTE });
  expect((await box.runlock(['history'], { env })).stdout).toContain('running');
  expect((await look(box)).state).toBe('held');
});

const MONTH_ENDS = [
  { begin: '2026-11-30T23:59:50.000Z', end: '2026-12-01T00:10:20.000Z', files: ['2026-11', '2026-12'] },
  { begin: '2026-12-31T23:59:50.000Z', end: '2027-01-01T00:10:20.000Z', files: ['2026-12', '2027-01'] },
  // Set back in between: the end still stands behind the beginning.
  { begin: '2027-01-01T00:10:00.000Z', end: '2026-12-31T12:10:00.000Z', files: ['2027-01'] },
  { begin: '2028-03-01T00:00:10.000Z', end: '2028-02-29T23:10:00.000Z', files: ['2028-03'] },
];

test.for(MONTH_ENDS)(
  'a run from $begin to $end has one line, its item is settled, and the history tells it again',
  async ({ begin, end, files }, ctx) => {
    const box = new Sandbox();
    const at = (time: string, afterMs = 0) => ({ env: clockAt(ctx, Date.parse(time) + afterMs) });
    const acquire = (item: string) => ['acquire', item, '--no-pid', '--token', item];
    expect((await box.runlock(acquire('ep-1'), at(begin))).code).toBe(0);
    const heartbeat = Math.min(Date.parse(begin), Date.parse(end)) / 1000;
    fs.utimesSync(box.file('lock.json'), heartbeat, heartbeat);
    expect((await box.runlock(['release', '--token', 'ep-1'], at(end))).code).toBe(0);
    expect(
      fs
        .readdirSync(box.file('history'))
        .map((name) => name.replace('.jsonl', ''))
        .sort(),
    ).toEqual(files);

    const { stdout } = await box.runlock(['history', '--json'], at(end, 1_000));
    const durationMs = Math.max(0, Date.parse(end) - Date.parse(begin));
    expect((JSON.parse(stdout) as { runs: object[] }).runs).toMatchObject([
      { run: 1, outcome: 'released', startedAt: begin, endedAt: end, durationMs },
    ]);
    expect((await box.runlock(['settle', 'ep-1', '--done'], at(end, MINUTE))).code).toBe(0);

    // From the history alone: the number, the end, and that nothing is marked any more.
    fs.rmSync(box.file('lock.guard'));
    fs.writeFileSync(box.file('current.json'), 'no marker');
    const next = await box.runlock(acquire('ep-2'), at(end, 2 * MINUTE));
    expect([next.code, next.stdout]).toEqual([0, '2\n']);
    expect(JSON.parse(box.read('current.json'))).toMatchObject({ items: [{ item: 'ep-2', run: 2 }] });
    expect(JSON.parse(box.read('current.json')).items).toHaveLength(1);
  },
);
