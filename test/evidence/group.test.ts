import { afterEach, expect, test } from 'vitest';
import { groupMembers } from '../../src/evidence/group.ts';
import { startOf } from '../../src/evidence/process.ts';
import { becomeZombie, endAll, LINUX, start, ZOMBIE } from './fixtures/processes.ts';

afterEach(endAll);

test('a dead leader leaves the living of its group behind, by pid, start and name', async (ctx) => {
  if (!LINUX) ctx.skip('groups are read from /proc');
  const leader = await start('bash', ['-c', 'sleep 300 & echo $!; read x'], { detached: true });
  const sleeper = Number(leader.line);
  const survivor = { pid: sleeper, started: await startOf(sleeper), name: 'sleep' };
  expect(await groupMembers(leader.pid)).toEqual([survivor]);
  await leader.end();
  expect(await groupMembers(leader.pid)).toEqual([survivor]);
  process.kill(sleeper, 'SIGKILL');
  while ((await groupMembers(leader.pid)).length > 0) await new Promise((resolve) => setTimeout(resolve, 5));
});

test('zombies and other groups are no members', async (ctx) => {
  if (!LINUX) ctx.skip('groups are read from /proc');
  const leader = await start('bash', ['-c', `setsid sleep 300 & echo $!; ${ZOMBIE}`], { detached: true });
  await becomeZombie(Number(await leader.next()));
  // A child on its way to a session of its own is still of this one.
  while ((await groupMembers(leader.pid)).length > 0) await new Promise((resolve) => setTimeout(resolve, 5));
  process.kill(Number(leader.line), 'SIGKILL');
});

test('a group that does not exist has none', async () => {
  expect(await groupMembers(2 ** 31 - 1)).toEqual([]);
});
