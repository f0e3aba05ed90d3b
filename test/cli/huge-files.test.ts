import fs from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { held, MONTH } from './askers.ts';
import { MINUTE, type Result, Sandbox } from './harness.ts';
import { lines, needs } from './jobs.ts';

describe('a file of 1 GB is read in pieces or not at all', () => {
  const MEGABYTES = 150;

  /** What a command answers, if it took no more than a command may take. */
  async function measured(box: Sandbox, args: readonly string[]): Promise<Result> {
    const report = path.join(box.dir, 'measured');
    const result = await box.exec('time', ['-f', '%M', '-o', report, 'runlock', ...args], {
      input: '{"a":1}',
    });
    const kilobytes = Number(lines(fs.readFileSync(report, 'utf8')).at(-1));
    expect([args[0], kilobytes]).toEqual([
      args[0],
      expect.toSatisfy((value: number) => value < MEGABYTES * 1024),
    ]);
    expect(result.stderr).not.toMatch(/unexpected failure|^\s+at |string longer/m);
    return result;
  }

  test('as history: a lock can be taken, held and ended', async (ctx) => {
    needs(ctx, 'time');
    const box = await held();
    fs.truncateSync(box.file(MONTH), 1 << 30);
    for (const [verb, code] of [
      ['status', 3],
      ['hb', 0],
      ['finish', 0],
      ['history', 0],
    ] as const) {
      const args = verb === 'hb' || verb === 'finish' ? [verb, '--token', 'a'] : [verb];
      expect([verb, (await measured(box, args)).code]).toEqual([verb, code]);
    }
    expect((await measured(box, ['settle', 'ep-0'])).code).toBe(0);
    expect((await measured(box, ['run', 'echo', 'began'])).stdout).toBe('began\n');
    const { stdout } = await measured(box, ['history']);
    expect(lines(stdout)).toHaveLength(3);
  });

  test('as lock: held until it is old', async (ctx) => {
    needs(ctx, 'time');
    const box = await held();
    fs.truncateSync(box.file('lock.json'), 1 << 30);
    const { code, stdout } = await measured(box, ['status']);
    expect([code, stdout]).toEqual([3, expect.stringContaining(box.file('lock.json'))]);
    expect((await measured(box, ['run', 'echo', 'began'])).code).toBe(3);
    expect((await measured(box, ['finish', '--token', 'a'])).code).toBe(4);
    box.age(box.file('lock.json'), 46 * MINUTE);
    expect((await measured(box, ['run', 'echo', 'began'])).stdout).toBe('began\n');
  });

  test('as marker, guard, record or live file: said where it matters, and set aside', async (ctx) => {
    needs(ctx, 'time');
    const box = new Sandbox();
    await box.runlock(['run', '--item', 'ep-0', 'false']);
    for (const name of ['lock.guard', 'records/1.json', 'live/4', 'current.json']) {
      fs.closeSync(fs.openSync(box.file(name), 'a'));
      fs.truncateSync(box.file(name), 1 << 30);
      expect((await measured(box, ['status'])).code).toBe(0);
      if (name === 'current.json') {
        const pick = await measured(box, ['pick']);
        expect([pick.code, pick.stderr]).toEqual([1, expect.stringContaining(box.file(name))]);
      }
      expect([name, (await measured(box, ['run', 'echo', 'began'])).stdout]).toEqual([name, 'began\n']);
    }
    const marker = await box.runlock(['pick'], { input: 'ep-0\n' });
    expect(marker.code).toBe(6);
  });
});
