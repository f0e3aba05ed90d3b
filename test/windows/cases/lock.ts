import assert from 'node:assert/strict';
import fs from 'node:fs';
import { type Box, type Case, deadPid } from '../box.ts';

const CONTENDERS = 8;

export const lockCases: Readonly<Record<string, Case>> = {
  async 'of eight that want a free lock one gets it'(box) {
    const codes = await contend(box);
    assert.deepEqual(codes, [0, ...Array(CONTENDERS - 1).fill(3)]);
  },

  async 'of eight that want a stale lock one gets it'(box) {
    box.writeLock({ pid: await deadPid(), job: 'x.json' });
    const codes = await contend(box);
    assert.deepEqual(codes, [0, ...Array(CONTENDERS - 1).fill(3)]);
    const taken = (await box.status()).run;
    const events = fs.readdirSync(box.file('history')).flatMap((name) =>
      fs
        .readFileSync(box.file('history', name), 'utf8')
        .split('\n')
        .filter((line) => line.includes('"taken"')),
    );
    assert.equal(events.length, 1, `run ${taken} was taken by ${events.length}`);
  },

  async 'the lock of a process that has ended is taken over at once'(box) {
    box.writeLock({ pid: await deadPid(), job: 'x.json' });
    const taken = await box.runlock('acquire', 'b', '--no-pid', '--token', 'T', '--json');
    assert.equal(taken.code, 0, taken.stderr);
    assert.equal(JSON.parse(taken.stdout).outcome, 'acquired');
    assert.match(taken.stderr, /is gone/);
  },

  async 'where nobody can tell whether a number is in use anew, the hold decides'(box) {
    const record = { pid: process.pid, pidStarted: '1', platform: 'win32', job: 'x.json' };
    box.writeLock(record, 44 * 60_000);
    const held = await box.runlock('acquire', 'b', '--no-pid', '--token', 'T');
    assert.equal(held.code, 3, held.stderr);
    box.writeLock(record, 46 * 60_000);
    const taken = await box.runlock('acquire', 'b', '--no-pid', '--token', 'T');
    assert.equal(taken.code, 0, taken.stderr);
  },

  async 'a holder is known by its token, nobody else ends its run, and status changes nothing'(box) {
    assert.equal((await box.runlock('acquire', 'a', '--no-pid', '--token', 'T')).code, 0);
    const [beat, finish, release] = await Promise.all([
      box.runlock('hb', '--token', 'other', '--run', '7'),
      box.runlock('finish', '--token', 'other'),
      box.runlock('release', '--token', 'other'),
    ]);
    assert.equal(beat.code, 2, 'a number never given out');
    assert.equal(finish.code, 4, finish.stderr);
    assert.equal(release.code, 0, release.stderr);
    // Nothing beats by itself here.
    const files = listing(box);
    assert.equal((await box.status()).state, 'held');
    assert.deepEqual(listing(box), files);
    const before = fs.statSync(box.file('lock.json')).mtimeMs;
    box.age('lock.json', 60_000);
    assert.equal((await box.runlock('hb', '--token', 'T')).code, 0);
    assert.ok(fs.statSync(box.file('lock.json')).mtimeMs >= before - 1000, 'the heartbeat is fresh');
    assert.equal((await box.runlock('finish', '--token', 'T')).code, 0);
    assert.equal((await box.status()).state, 'free');
  },

  async 'status tells who works, and history what ran'(box) {
    const run = box.start(['run', '--item', 'a', '--', process.execPath, box.worker]);
    await run.worker();
    const status = await box.runlock('status', '--json');
    assert.equal(status.code, 3, status.stderr);
    const { state, item, run: number } = JSON.parse(status.stdout);
    assert.deepEqual({ state, item, number }, { state: 'held', item: 'a', number: 1 });
    assert.match((await box.runlock('status')).stdout, new RegExp(`taskkill /f /t /pid ${run.child.pid} `));
    assert.equal((await box.runlock('run', '--', process.execPath, box.worker)).code, 3);
    assert.equal((await run.end()).code, 0);
    const history = JSON.parse((await box.runlock('history', '--json')).stdout);
    assert.deepEqual(history.runs.map((one: { outcome: string }) => one.outcome).sort(), [
      'finished',
      'skipped',
    ]);
    assert.deepEqual(fs.readdirSync(box.file('live')), []);
  },
};

/** Codes of eight at once, sorted. */
async function contend(box: Box): Promise<(number | null)[]> {
  const tokens = Array.from({ length: CONTENDERS }, (_, index) => `T${index}`);
  const all = await Promise.all(
    tokens.map((token) => box.runlock('acquire', token, '--no-pid', '--token', token)),
  );
  return all.map(({ code }) => code).sort();
}

function listing(box: Box): string[] {
  return fs
    .readdirSync(box.runs, { recursive: true })
    .map(String)
    .sort()
    .map((name) => `${name} ${fs.statSync(box.file(name)).mtimeMs} ${fs.statSync(box.file(name)).size}`);
}
