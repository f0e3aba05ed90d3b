import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import { describe, expect, type TestContext, test } from 'vitest';
import { ask, MONTH } from './askers.ts';
import { Sandbox } from './harness.ts';
import { mountOver, needs, needsRoot } from './jobs.ts';

describe('a file that the file system lets nobody change', () => {
  /** The state directory on a disk of its own that knows `chattr`, held by token `a`. */
  async function onExt2(ctx: TestContext): Promise<Sandbox> {
    needsRoot(ctx);
    needs(ctx, 'mke2fs', 'chattr');
    const box = new Sandbox();
    const image = box.write('image', new Uint8Array(1 << 20));
    execFileSync('mke2fs', ['-q', '-F', '-m', '0', image]);
    mountOver(ctx, box, ['-o', 'loop', image]);
    expect((await box.runlock(['run', '--item', 'ep-0', 'false'])).code).toBe(1);
    return box;
  }

  test.for(['lock.json', 'current.json', MONTH, '.'])(
    'immutable %s: the end is an error, the lock stays held, and is ended once it can be',
    async (name, ctx) => {
      const box = await onExt2(ctx);
      expect((await box.runlock(['acquire', 'ep-1', '--no-pid', '--token', 'a'])).code).toBe(0);
      execFileSync('chattr', ['+i', box.file(name)]);
      try {
        for (const args of [['status'], ['run', 'echo', 'began']]) {
          const { code, stdout } = await ask(box, args);
          expect([args[0], code]).toEqual([args[0], 3]);
          expect(stdout).not.toContain('began');
        }
        const finish = await ask(box, ['finish', '-', '--token', 'a']);
        // What needs no more than tidying up is done; else nothing is.
        if (finish.code !== 0)
          expect([finish.code, finish.stderr]).toEqual([1, expect.stringContaining(box.runs)]);
        expect((await ask(box, ['status'])).code).toBe(finish.code === 0 ? 0 : 3);
      } finally {
        execFileSync('chattr', ['-i', box.file(name)]);
      }
      const again = await box.runlock(['finish', '-', '--token', 'a'], { input: '{"a":1}' });
      expect([0, 4]).toContain(again.code);
      expect(fs.existsSync(box.file('records/2.json'))).toBe(true);
      expect((await box.runlock(['run', 'echo', 'began'])).stdout).toBe('began\n');
    },
  );

  test.for(['lock.guard', 'current.json', '.', 'live'])(
    'immutable %s of a free lock: nothing begins without it',
    async (name, ctx) => {
      const box = await onExt2(ctx);
      execFileSync('chattr', ['+i', box.file(name)]);
      try {
        const { code, stdout, stderr } = await ask(box, ['run', '--item', 'ep-1', 'echo', 'began']);
        expect([code, stdout]).toEqual([125, '']);
        expect(stderr).toContain(box.file(name === '.' ? '' : name));
        expect((await ask(box, ['status'])).code).toBe(0);
      } finally {
        execFileSync('chattr', ['-i', box.file(name)]);
      }
      expect((await box.runlock(['run', 'echo', 'began'])).stdout).toBe('began\n');
    },
  );

  test('an append-only history is all that a history needs', async (ctx) => {
    const box = await onExt2(ctx);
    execFileSync('chattr', ['+a', box.file(MONTH)]);
    try {
      expect((await ask(box, ['run', 'echo', 'began'])).stdout).toBe('began\n');
      expect((await ask(box, ['history'])).stdout).toMatch(/ 2 .* finished/);
    } finally {
      execFileSync('chattr', ['-a', box.file(MONTH)]);
    }
  });
});
