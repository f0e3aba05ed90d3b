import fs from 'node:fs';
import { expect, test } from 'vitest';
import { dayAgo, EARLY, LATE, nameOfDay, Pipeline, type Victim } from './pipeline.ts';
import { needs } from './processes.ts';

// The example of a whole pipeline, on a few days; a month of it is among the faults.

const DAYS = [3, 2, 1].map(dayAgo);

test('of schedulers that start at once one publishes, once a day, as long as there are candidates', async (ctx) => {
  needs(ctx, 'jq');
  const pipeline = new Pipeline(ctx, 1);
  const [day = 0, next = 0] = DAYS;
  for (const at of [day + EARLY, day + LATE, next + EARLY]) {
    const { ended } = await pipeline.start(at, 2);
    expect(ended.map(({ code, stderr }) => [code, stderr])).toEqual(ended.map(() => [0, '']));
  }
  expect(pipeline.published()).toMatchObject([{ day: nameOfDay(day), item: 'ep-1' }]);
  expect(pipeline.broken()).toEqual([]);
  expect(pipeline.skips()).toHaveLength(5);
  expect(pipeline.skips().at(-1)?.reason).toMatch(/^no candidate is left: |^held by run /);
});

test.for<Victim>(['group', 'runlock', 'script'])(
  'SIGKILL (%s) between the publication and its ledger entry: nothing else is published that day, nothing is lost',
  async (victim, ctx) => {
    needs(ctx, 'jq');
    const pipeline = new Pipeline(ctx, 2);
    const [day = 0] = DAYS;
    const { killed } = await pipeline.start(day + EARLY, 1, {
      script: 'publish.sh',
      victim,
      before: 'sync published',
    });
    expect(killed).toBe(true);
    expect(pipeline.published()).toMatchObject([{ item: 'ep-1' }]);
    // Without its supervisor the script goes on, and the lock is held as long as it does.
    const lost = victim === 'runlock' ? [] : [expect.stringContaining('ep-1.md is not in the ledger')];
    expect(pipeline.broken()).toEqual(lost);
    await pipeline.start(day + LATE, 1);
    expect(pipeline.published()).toMatchObject([{ item: 'ep-1' }]);
    expect(pipeline.broken()).toEqual([]);
  },
);

test('killed before it has published, the item comes again another day', async (ctx) => {
  needs(ctx, 'jq');
  const pipeline = new Pipeline(ctx, 1);
  const [day = 0, next = 0] = DAYS;
  await pipeline.start(day + EARLY, 1, { script: 'publish.sh', victim: 'group', before: 'mv *' });
  await pipeline.start(day + LATE, 1);
  expect(pipeline.published()).toEqual([]);
  await pipeline.start(next + EARLY, 1);
  expect(pipeline.published()).toMatchObject([{ day: nameOfDay(next), item: 'ep-1' }]);
  expect(pipeline.broken()).toEqual([]);
});

test('a folder of publications that is gone settles nothing, and nothing is started', async (ctx) => {
  needs(ctx, 'jq');
  const pipeline = new Pipeline(ctx, 2);
  const [day = 0, next = 0] = DAYS;
  await pipeline.start(day + EARLY, 1, { script: 'publish.sh', victim: 'group', before: 'sync published' });
  fs.renameSync(`${pipeline.box.dir}/published`, `${pipeline.box.dir}/away`);
  const { ended } = await pipeline.start(next + EARLY, 1);
  expect(ended).toMatchObject([{ code: 2, stderr: expect.stringContaining("'published'") }]);
  expect((await pipeline.box.status()).marker).toMatchObject([{ item: 'ep-1', state: 'unknown' }]);
});

test('an item that is out is not published again, whatever was said of it', async (ctx) => {
  needs(ctx, 'jq');
  const pipeline = new Pipeline(ctx, 1);
  const [day = 0, next = 0, last = 0] = DAYS;
  await pipeline.start(day + EARLY, 1, { script: 'publish.sh', victim: 'group', before: 'sync published' });
  expect((await pipeline.box.runlock(['settle', 'ep-1', '--not-done'])).code).toBe(0);
  expect((await pipeline.start(next + EARLY, 1)).ended).toMatchObject([{ code: 65 }]);
  await pipeline.start(last + EARLY, 1);
  expect(pipeline.published()).toMatchObject([{ day: nameOfDay(day), item: 'ep-1' }]);
  expect(pipeline.broken()).toEqual([]);
});

test('control: without the quota two are published on one day, and that is seen', async (ctx) => {
  needs(ctx, 'jq');
  const pipeline = new Pipeline(ctx, 3);
  pipeline.change('runlock.json', '"quota:posts", ', '');
  const [day = 0] = DAYS;
  await pipeline.start(day + EARLY, 1);
  await pipeline.start(day + LATE, 1);
  expect(pipeline.broken()).toEqual([`more than one was published on ${nameOfDay(day)}`]);
});

test('control: a script that logs after it has published is not safe from kills, and that is seen', async (ctx) => {
  needs(ctx, 'jq');
  const pipeline = new Pipeline(ctx, 3);
  const log = 'echo "$now publishing $item" >>publish.log\nsync publish.log build/post.md\n';
  pipeline.change('publish.sh', log, '');
  pipeline.change('publish.sh', 'sync published\n', `sync published\n${log.replace(' build/post.md', '')}`);
  const [day = 0] = DAYS;
  await pipeline.start(day + EARLY, 1, { script: 'publish.sh', victim: 'group', before: 'echo *' });
  await pipeline.start(day + LATE, 1);
  expect(pipeline.broken()).toEqual([`more than one was published on ${nameOfDay(day)}`]);
});
