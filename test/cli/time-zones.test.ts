import fs from 'node:fs';
import { expect, type TestContext, test } from 'vitest';
import { MINUTE, Sandbox } from './harness.ts';
import { clockAt } from './processes.ts';

// Zones differ between caller and looker, and change their offset at night. Needs faketime.

const HOUR = 60 * MINUTE;

/** The nights on which an hour is left out, or comes twice. */
const NIGHTS = [
  { zone: 'Europe/Berlin', from: '2026-03-29T00:30:00Z', since: '01:30:00', until: '04:30:00' },
  { zone: 'Europe/Berlin', from: '2026-10-25T00:30:00Z', since: '02:30:00', until: '03:30:00' },
  { zone: 'America/New_York', from: '2026-03-08T06:30:00Z', since: '01:30:00', until: '04:30:00' },
  { zone: 'America/New_York', from: '2026-11-01T05:30:00Z', since: '01:30:00', until: '02:30:00' },
];

/** A script's lock and a run's, both taken at `from`. */
async function takeBoth(ctx: TestContext, from: number, zone: string) {
  const box = new Sandbox();
  const taker = { env: clockAt(ctx, from, zone) };
  const taken = await box.runlock(
    ['acquire', 'ep', '--no-pid', '--token', 'a', '--hold', '2h', '--json'],
    taker,
  );
  expect(taken.code).toBe(0);
  // A new file has the kernel's time.
  fs.utimesSync(box.file('lock.json'), from / 1000, from / 1000);
  const command = ['bash', '-c', 'echo up; read -r line'];
  const run = box.start('runlock', ['run', '--name', 'limited', '--timeout', '2h', '--', ...command], {
    detached: true,
    ...taker,
  });
  await run.says('up');
  return { box, run };
}

test.for(NIGHTS)(
  'over the change of the clocks in $zone at $from an hour is an hour',
  async ({ zone, from, since, until }, ctx) => {
    const begin = Date.parse(from);
    const { box, run } = await takeBoth(ctx, begin, zone);
    const later = { env: clockAt(ctx, begin + HOUR, zone) };
    const held = await box.runlock(['status'], later);
    expect(held.code).toBe(3);
    expect(held.stdout).toContain(`since ${since} (1 h), heartbeat 1 h ago, goes stale in 1 h`);
    const limited = await box.runlock(['status', '--name', 'limited'], later);
    expect(limited.stdout).toContain(`since ${since} (1 h)`);
    expect(limited.stdout).toContain(`ends by its time limit at ${until}`);
    run.tell('end');
    await run.result;

    const justIn = { env: clockAt(ctx, begin + 2 * HOUR, zone) };
    expect((await box.runlock(['acquire', '--no-pid', '--token', 'b'], justIn)).code).toBe(3);
    expect((await box.runlock(['finish', '--token', 'a'], later)).code).toBe(0);
    const { stdout } = await box.runlock(['history', '--outcome', 'finished'], later);
    expect(stdout).toMatch(new RegExp(`^ +1 +${since} +1 h +finished`));
    const json = await box.runlock(['history', '--outcome', 'finished', '--json'], later);
    expect((JSON.parse(json.stdout) as { runs: object[] }).runs).toMatchObject([{ durationMs: HOUR }]);
  },
);

const ZONES = ['UTC', 'Asia/Kolkata', 'America/St_Johns', 'Pacific/Apia', 'Etc/GMT+12', 'No/Such_Zone', ''];

test('whatever zone the lock was taken in and is looked at from, the answer is the same', async (ctx) => {
  const begin = Date.parse('2026-12-31T23:30:00Z');
  const { box, run } = await takeBoth(ctx, begin, 'Asia/Kolkata');
  const answers: Record<string, Set<string>> = {};
  for (const zone of ZONES) {
    const options = { env: clockAt(ctx, begin + 50 * MINUTE, zone) };
    for (const args of [
      ['status', '--json'],
      ['history', '--json'],
      ['status', '--all', '--json'],
      ['status'],
    ]) {
      const { code, stdout } = await box.runlock(args, options);
      // Times of day are the looker's; how long ago is everybody's.
      const same = args.includes('--json')
        ? stdout
        : (/\(\d+ min\), heartbeat.*/.exec(stdout)?.[0] ?? 'none');
      const key = args.join(' ');
      answers[key] = (answers[key] ?? new Set()).add(`${code} ${same}`);
    }
  }
  for (const [key, different] of Object.entries(answers))
    expect([key, [...different]]).toEqual([key, [expect.anything()]]);
  expect([...(answers.status ?? [])]).toEqual([
    '3 (50 min), heartbeat 50 min ago, goes stale in 1 h 10 min without a heartbeat',
  ]);

  const far = { env: clockAt(ctx, begin + 50 * MINUTE, 'Pacific/Apia') };
  expect((await box.runlock(['acquire', '--no-pid', '--token', 'b'], far)).code).toBe(3);
  expect((await box.runlock(['finish', '--token', 'a'], far)).code).toBe(0);
  expect(fs.readdirSync(box.file('history')).sort()).toEqual(['2026-12.jsonl', '2027-01.jsonl']);
  run.tell('end');
  expect((await run.result).code).toBe(0);
});
