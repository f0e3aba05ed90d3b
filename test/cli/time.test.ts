import { expect, test } from 'vitest';
import { eventually, MINUTE, Sandbox } from './harness.ts';
import {
  deadPid,
  endStrays,
  fifo,
  lockAsItIs,
  look,
  needs,
  startShell,
  thisMachine,
  tryAcquire,
} from './processes.ts';

// How long a lock lasts.

const AGED = 46 * MINUTE;

test.each([
  ['a command', [], 'echo up; read -r line'],
  ['a command with children', [], '(sleep 1000; true) & sh -c "sleep 1000; true" & echo up; wait'],
  ['a command that no hold bounds', ['--hold', 'never'], 'echo up; read -r line'],
  ['a command with a time limit', ['--timeout', '1h'], 'echo up; read -r line'],
])('%s that is killed with its whole group blocks nobody', async (_, options, text) => {
  const box = new Sandbox();
  const run = box.start('runlock', ['run', '--item', 'ep', ...options, '--', 'bash', '-c', text], {
    detached: true,
  });
  await run.says('up');
  expect((await box.runlock(['status'])).code).toBe(3);
  run.killGroup();
  await run.ended;
  expect(await tryAcquire(box)).toBe(0);
  expect((await look(box)).marker).toMatchObject([
    { item: 'ep', state: 'unknown', fresh: true },
    { item: 'next' },
  ]);
  expect(box.history()).toContainEqual(expect.objectContaining({ run: 1, outcome: 'interrupted' }));
});

test('a script that is killed with its whole group blocks nobody', async () => {
  const box = new Sandbox();
  const script = startShell(
    box,
    ['bash'],
    '(sleep 1000; true) & run=$(runlock acquire ep --hold never; true); echo taken; wait',
  );
  await script.says('taken');
  script.killGroup();
  await script.ended;
  expect(await tryAcquire(box)).toBe(0);
});

test('a command that is killed alone ends its run; the lock is free at once', async () => {
  const box = new Sandbox();
  const run = box.start('runlock', ['run', '--item', 'ep', '--', 'bash', '-c', 'echo up $$.; read -r line'], {
    detached: true,
  });
  const command = Number(/up (\d+)/.exec(await run.says('.\n'))?.[1]);
  process.kill(command, 'SIGKILL');
  expect((await run.result).code).toBe(137);
  expect((await look(box)).state).toBe('free');
});

test('a run that takes longer than its hold keeps the lock throughout', async () => {
  const box = new Sandbox();
  const command = ['bash', '-c', 'echo up; read -r line'];
  const run = box.start('runlock', ['run', '--hold', '1s', '--', ...command], { detached: true });
  await run.says('up');
  const first = lockAsItIs(box).mtimeMs;
  const answers = new Set<number | null>();
  while (lockAsItIs(box).mtimeMs < first + 2_500) {
    answers.add((await box.runlock(['status'])).code).add(await tryAcquire(box));
  }
  expect(answers).toEqual(new Set([3]));
  run.tell('end');
  expect((await run.result).code).toBe(0);
});

test('a run whose supervisor is stopped for longer than its hold keeps the lock, and its command', async () => {
  const box = new Sandbox();
  const run = box.start('runlock', ['run', '--hold', '1s', '--', 'bash', '-c', 'echo up; read -r line'], {
    detached: true,
  });
  await run.says('up');
  run.kill('SIGSTOP');
  box.age(box.file('lock.json'), AGED);
  expect(await tryAcquire(box)).toBe(3);
  expect((await box.runlock(['run', '--', 'true'])).code).toBe(3);
  run.kill('SIGCONT');
  run.tell('end');
  expect((await run.result).code).toBe(0);
});

test('a script that beats in time keeps the lock for longer than its hold; one that does not, loses it alive', async () => {
  const box = new Sandbox();
  const script = startShell(
    box,
    ['bash'],
    'runlock acquire x --hold 10m; echo taken; for beat in 1 2 3; do read -r line; runlock hb; echo "beat $beat $?"; done; read -r line',
  );
  await script.says('taken');
  for (const beat of [1, 2, 3]) {
    box.age(box.file('lock.json'), 9 * MINUTE);
    expect(await tryAcquire(box)).toBe(3);
    script.tell('beat');
    await script.says(`beat ${beat} 0`);
    expect(Date.now() - lockAsItIs(box).mtimeMs).toBeLessThan(MINUTE);
  }
  box.age(box.file('lock.json'), 11 * MINUTE);
  expect((await look(box)).reason).toBe('no heartbeat for 11 min');
  expect(await tryAcquire(box)).toBe(0);
  expect(script.child.exitCode).toBeNull();
});

const BEATS = {
  'a child that it left': 'runlock hb',
  'a child that it left, with the number of the run': 'runlock hb --run $run',
  'a child that it left, with the token': 'runlock hb --token "$token"',
  'a child that it left, with the token in the environment': 'RUNLOCK_TOKEN=$token runlock hb',
};

test.each(Object.entries(BEATS))('nobody keeps the lock of a dead holder alive: %s', async (_, beat) => {
  const box = new Sandbox();
  endStrays(box);
  const work = fifo(box, 'work');
  const script = startShell(
    box,
    ['bash'],
    `json=$(runlock acquire x --json); token=\${json#*'"token":"'}; export token=\${token%%'"'*} run=1
     setsid bash -c 'while read -r line; do ${beat}; echo "hb $?"; done' <work 2>/dev/null &
     echo taken; read -r line`,
  );
  await script.says('taken');
  work.tell('while the holder lives');
  await script.says('hb 0');
  script.kill();
  await eventually('the holder is gone', () => script.child.signalCode !== null);
  box.age(box.file('lock.json'), 5 * MINUTE);
  const before = lockAsItIs(box);
  for (const tries of [1, 2]) {
    work.tell('now');
    await eventually('it has tried', () => script.stdout.match(/hb 4/g)?.length === tries);
  }
  expect(lockAsItIs(box)).toEqual(before);
  expect(await tryAcquire(box)).toBe(0);
  work.tell('once more');
  await eventually('it has tried', () => script.stdout.match(/hb 4/g)?.length === 3);
});

test('nobody keeps the lock of a dead holder alive: a stranger', async () => {
  const box = new Sandbox();
  box.putLock({ pid: deadPid(), run: 3, ...thisMachine(), pidStarted: '1' }, 5 * MINUTE);
  const before = lockAsItIs(box);
  for (const args of [['hb'], ['hb', '--run', '3'], ['hb', '--token', 'guess']]) {
    expect((await box.runlock(args)).code).toBe(4);
  }
  expect(lockAsItIs(box)).toEqual(before);
});

test('what a killed run has left behind does not keep its lock alive by beating', async (ctx) => {
  needs(ctx, 'setsid');
  const box = new Sandbox();
  endStrays(box);
  const work = fifo(box, 'work');
  const run = box.start(
    'runlock',
    [
      'run',
      '--',
      'bash',
      '-c',
      `setsid bash -c 'echo up; while read -r line; do runlock hb; echo "hb $?"; done' <work & wait`,
    ],
    { detached: true },
  );
  await run.says('up');
  // Until its number is written down, nobody can tell the command from what it has left behind.
  await eventually('the command is known', () => box.read('lock.json').includes('"commandPidStarted":"'));
  run.killGroup();
  await eventually('the run is gone', () => run.child.signalCode !== null);
  box.age(box.file('lock.json'), AGED);
  const before = lockAsItIs(box);
  work.tell('now');
  await eventually('it has tried', () => run.stdout.includes('hb '));
  expect(run.stdout).toBe('up\nhb 4\n');
  expect(lockAsItIs(box)).toEqual(before);
  expect(await tryAcquire(box)).toBe(0);
});
