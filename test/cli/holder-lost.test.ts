import fs from 'node:fs';
import { expect, test } from 'vitest';
import { eventually, MINUTE, type Running, Sandbox } from './harness.ts';
import { endStrays, fifo, lockAsItIs, look, needs, startShell, tryAcquire } from './processes.ts';

// Holders that hung, and holders that left something behind.

const AGED = 46 * MINUTE;

/** A script that takes the lock and then does what it is told, line by line. */
async function holder(box: Sandbox, item: string, options = ''): Promise<Running> {
  const script = startShell(
    box,
    ['bash'],
    `run=$(runlock acquire ${item} ${options}) || exit; echo taken $run; while read -r line; do eval "$line"; echo "[$line] $?"; done`,
  );
  await script.says('taken');
  return script;
}

/** Lets a holder do something, and gives its exit code. */
async function ask(script: Running, command: string): Promise<number> {
  script.tell(command);
  const before = `[${command}] `;
  const said = await script.says(new RegExp(`${before.replace(/[^\w ]/g, '\\$&')}\\d+`));
  return Number(said.slice(said.lastIndexOf(before) + before.length));
}

test('a holder that was stopped for longer than its hold is out: what it does then changes nothing of its successor', async () => {
  const box = new Sandbox();
  const old = await holder(box, 'ep-1');
  old.kill('SIGSTOP');
  box.age(box.file('lock.json'), AGED);
  const { code, stderr } = await box.runlock(['acquire', 'ep-2', '--no-pid', '--token', 'id-2']);
  expect([code, stderr]).toEqual([
    0,
    expect.stringContaining('took over from run 1: no heartbeat for 46 min'),
  ]);
  box.age(box.file('lock.json'), 5 * MINUTE);
  const after = lockAsItIs(box);
  old.kill('SIGCONT');

  expect(await ask(old, 'runlock hb')).toBe(4);
  expect(await ask(old, 'runlock hb --run 1')).toBe(4);
  expect(await ask(old, `echo '{"made": 7}' | runlock finish - --run 1`)).toBe(4);
  expect(await ask(old, 'echo again | runlock finish')).toBe(4);
  expect(await ask(old, 'runlock release --run 1')).toBe(4);
  expect(await ask(old, 'runlock release --run $run --settled')).toBe(4);
  expect(await ask(old, 'runlock release')).toBe(0);
  expect(old.stderr).toContain('not yours');
  expect(lockAsItIs(box)).toEqual(after);

  const record = JSON.parse(box.read('records', '1.json')) as Record<string, unknown>;
  expect(record).toMatchObject({ run: 1, item: 'ep-1', lost: true, result: { made: 7 } });
  expect((await look(box)).marker).toMatchObject([
    { item: 'ep-1', state: 'unknown', fresh: true },
    { item: 'ep-2', state: 'running', fresh: true },
  ]);
  expect((await box.runlock(['finish', '--token', 'id-2'])).code).toBe(0);
});

test('a holder that comes back after its successor has ended, and another holds, is still out', async () => {
  const box = new Sandbox();
  const old = await holder(box, 'ep-1');
  box.age(box.file('lock.json'), AGED);
  expect(await ask(await holder(box, 'ep-2'), 'runlock finish')).toBe(0);
  expect(await ask(old, 'runlock hb --run 1')).toBe(4);
  await holder(box, 'ep-3');
  const after = lockAsItIs(box);
  expect(await ask(old, 'runlock hb')).toBe(4);
  expect(await ask(old, 'runlock finish --failed')).toBe(4);
  expect(await ask(old, 'runlock release --run $run')).toBe(4);
  expect(await ask(old, 'runlock acquire ep-4')).toBe(3);
  expect(lockAsItIs(box)).toEqual(after);
  expect(JSON.parse(box.read('records', '1.json'))).toMatchObject({ lost: true, outcome: 'failed' });
});

test('the same script may take the lock again that it lost, and then it is its own', async () => {
  const box = new Sandbox();
  const script = await holder(box, 'ep-1');
  box.age(box.file('lock.json'), AGED);
  expect(await ask(script, 'runlock acquire ep-2')).toBe(0);
  expect(await ask(script, 'runlock hb --run 1')).toBe(4);
  expect(await ask(script, 'runlock finish --run 1')).toBe(4);
  expect((await look(box)).state).toBe('held');
  expect(await ask(script, 'runlock finish --run 2')).toBe(0);
  expect(JSON.parse(box.read('records', '1.json'))).toMatchObject({ lost: true });
  expect(JSON.parse(box.read('records', '2.json'))).not.toMatchObject({ lost: true });
});

test('an ID that lost its lock is out like a process', async () => {
  const box = new Sandbox();
  const as = async (id: string, ...args: string[]) => (await box.runlock([...args, '--token', id])).code;
  expect(await as('id-1', 'acquire', 'ep-1', '--no-pid')).toBe(0);
  box.age(box.file('lock.json'), AGED);
  expect(await as('id-2', 'acquire', 'ep-2', '--no-pid')).toBe(0);
  box.age(box.file('lock.json'), 5 * MINUTE);
  const after = lockAsItIs(box);
  expect(await as('id-1', 'hb')).toBe(4);
  expect(await as('id-1', 'finish')).toBe(4);
  expect(await as('id-1', 'release', '--run', '1')).toBe(4);
  expect(await as('id-1', 'release')).toBe(0);
  expect(lockAsItIs(box)).toEqual(after);
  expect(JSON.parse(box.read('records', '1.json'))).toMatchObject({ lost: true });
  expect(await as('id-2', 'hb')).toBe(0);
});

test('a holder that beats late, before anyone has taken over, still holds', async () => {
  const box = new Sandbox();
  const script = await holder(box, 'ep-1');
  box.age(box.file('lock.json'), AGED);
  expect((await look(box)).state).toBe('stale');
  expect(await ask(script, 'runlock hb')).toBe(0);
  expect(await tryAcquire(box)).toBe(3);
  expect(await ask(script, 'runlock finish')).toBe(0);
});

test('what is left of a killed script in its group holds, and is named, until it ends', async () => {
  const box = new Sandbox();
  const script = startShell(box, ['bash'], 'runlock acquire x; sleep 1000 & echo "child $!."; wait');
  const child = Number(/child (\d+)\./.exec(await script.says('.\n'))?.[1]);
  script.kill();
  await eventually('the script is gone', () => script.child.signalCode !== null);
  const { code, stderr } = await box.runlock(['acquire', 'y', '--no-pid', '--token', 'id-1']);
  expect([code, stderr]).toEqual([
    3,
    expect.stringMatching(/bash \S+ \(pid \d+\) is gone, sleep\b.* \(pid \d+\) is not/),
  ]);
  expect((await look(box)).reason).toMatch(new RegExp(`sleep.* \\(pid ${child}\\)`));
  process.kill(child, 'SIGKILL');
  await script.ended;
  expect(await tryAcquire(box)).toBe(0);
});

test('what is left of a killed script in its group holds no longer than the hold', async () => {
  const box = new Sandbox();
  const script = startShell(box, ['dash'], 'runlock acquire x; sh -c "sleep 1000; true" & echo taken; wait');
  await script.says('taken');
  script.kill();
  await eventually('the script is gone', () => script.child.signalCode !== null);
  box.age(box.file('lock.json'), 44 * MINUTE);
  expect(await tryAcquire(box)).toBe(3);
  box.age(box.file('lock.json'), AGED);
  expect(await tryAcquire(box)).toBe(0);
});

test('what is left of a killed script may neither beat nor finish for it', async () => {
  const box = new Sandbox();
  const work = fifo(box, 'work');
  const script = startShell(
    box,
    ['bash'],
    `runlock acquire x; sh -c 'read -r line <work; runlock hb; echo "hb $?"; runlock finish; echo "finish $?"; read -r line <work' &
     echo taken; wait`,
  );
  await script.says('taken');
  script.kill();
  await eventually('the script is gone', () => script.child.signalCode !== null);
  box.age(box.file('lock.json'), 5 * MINUTE);
  const before = lockAsItIs(box);
  work.tell('go');
  await eventually('it has tried', () => script.stdout.includes('finish '));
  expect(script.stdout).toMatch(/hb 4\nfinish 4\n/);
  expect(lockAsItIs(box)).toEqual(before);
});

test('a killed script that was given a session by setsid, and is not reaped, leaves its child holding', async (ctx) => {
  needs(ctx, 'setsid');
  const box = new Sandbox();
  endStrays(box);
  const job = box.write('job.sh', 'runlock acquire x; sleep 1000 & echo "job $$."; wait\n');
  const caller = startShell(box, ['bash'], `setsid bash '${job}' & exec sleep 1000`);
  const pid = Number(/job (\d+)\./.exec(await caller.says('.\n'))?.[1]);
  process.kill(pid, 'SIGKILL');
  await eventually('it is a zombie', () => fs.readFileSync(`/proc/${pid}/stat`, 'utf8').includes(') Z '));
  expect((await look(box)).reason).toMatch(/sleep.* \(pid \d+\) is not/);
  process.kill(-pid, 'SIGKILL');
  await eventually('its child is gone too', async () => (await look(box)).state === 'stale');
});

test('neighbours in a group that the killed script did not lead, and children that left its group, hold nothing', async (ctx) => {
  needs(ctx, 'setsid');
  const box = new Sandbox();
  endStrays(box);
  const job = box.write('job.sh', 'runlock acquire x; sleep 1000 & echo "job $$."; wait\n');
  const caller = startShell(box, ['bash'], `bash '${job}' & wait; read -r line`);
  process.kill(Number(/job (\d+)\./.exec(await caller.says('.\n'))?.[1]), 'SIGKILL');
  await eventually('nothing holds', async () => (await look(box)).state === 'stale');
  const leader = startShell(
    box,
    ['bash'],
    'runlock acquire y; setsid sh -c "echo daemon.; exec sleep 1000 >/dev/null 2>&1" & read -r line',
  );
  await leader.says('daemon.');
  leader.kill();
  await leader.ended;
  expect((await look(box)).state).toBe('stale');
});
