import { execFileSync } from 'node:child_process';
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, type TestContext, test } from 'vitest';
import { startOf } from '../../src/evidence/process.ts';
import type { ProcessRef } from '../../src/record.ts';
import { type Bundle, bundle } from './fixtures/bundle.ts';
import { endAll, has, LINUX, start } from './fixtures/processes.ts';

let built: Bundle;
beforeAll(async () => {
  built = await bundle();
});
afterAll(() => rmSync(built.dir, { recursive: true, force: true }));
afterEach(endAll);

/** Runs the bundle behind another one's eyes: `before` is what a shell does to get there. */
function find(before: string, verb: string, { pid, started }: ProcessRef = { pid: 0, started: null }) {
  const out = join(built.dir, 'out');
  rmSync(out, { force: true });
  execFileSync('bash', ['-c', `${before} "$0" "$@"`, built.runlock, verb, out, String(pid), started ?? '']);
  return JSON.parse(readFileSync(out, 'utf8'));
}

const HIDEPID = [
  ['processes of others are not listed', 2],
  ['processes of others are listed but closed', 1],
] as const;

test.for(HIDEPID)('the living are not taken for dead where %s', async ([, mode], ctx) => {
  const hiding = `mount -t proc -o hidepid=${mode} proc /proc && setpriv --reuid=65534 --regid=65534 --clear-groups`;
  need(ctx, 'unshare', '--mount', 'bash', '-c', `${hiding} true`);
  const { pid } = await start('sh', ['-c', 'echo ready; read x']);
  const hidden = `exec unshare --mount bash -c '${hiding} "$0" "$@"'`;
  for (const started of [await startOf(pid), '1', null])
    expect(find(hidden, 'sight', { pid, started })).toMatchObject({ liveness: 'unsure' });
  expect(find(hidden, 'sight', { pid: 2 ** 31 - 1, started: '1' })).toMatchObject({
    liveness: 'gone',
    name: '',
  });
});

test("a caller that is not shown is not taken for nobody's call", (ctx) => {
  const hiding =
    'mount -t proc -o hidepid=2 proc /proc && setpriv --reuid=65534 --regid=65534 --clear-groups';
  need(ctx, 'unshare', '--mount', 'bash', '-c', `${hiding} true`);
  const found = find(`unshare --mount bash -c '${hiding} "$0" "$@"; :'`, 'sight', { pid: 1, started: null });
  expect(found.caller).toEqual({
    kind: 'indirect',
    process: { pid: expect.any(Number), started: null },
    forks: [],
    name: '',
  });
});

test("the living are not taken for dead or reused where /proc is another namespace's", async (ctx) => {
  need(ctx, 'unshare', '--pid', '--fork', 'true');
  // Pid 1 in there is the shell; in /proc it is somebody else, with another start.
  const found = find('unshare --pid --fork bash -c \'"$0" "$@"; :\'', 'sight', { pid: 1, started: '1' });
  expect(found).toMatchObject({ liveness: 'unsure', name: '' });
  const members = find('unshare --pid --fork bash -c \'"$0" "$@"; :\'', 'members', { pid: 1, started: null });
  expect(members).toEqual([]);
});

test('two pid namespaces are told apart, under one boot', (ctx) => {
  need(ctx, 'unshare', '--pid', '--fork', 'true');
  const inside = find('unshare --pid --fork --mount-proc', 'here');
  const outside = find('', 'here');
  expect(inside.pidNamespace).toMatch(/^pid:\[\d+\]$/);
  expect(inside.pidNamespace).not.toBe(outside.pidNamespace);
  expect(inside.bootId).toBe(outside.bootId);
});

function need(ctx: TestContext, program: string, ...args: string[]): void {
  if (!LINUX) ctx.skip('needs /proc');
  if (!has(program, ...args)) ctx.skip(`${program} may not do this here`);
}
