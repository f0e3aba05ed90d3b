import fs from 'node:fs';
import { expect, test } from 'vitest';
import { BINARY, eventually, MINUTE, type Running, Sandbox } from './harness.ts';
import {
  expectHeldUntilGone,
  fifo,
  look,
  NAMESPACE,
  needs,
  needsNamespaces,
  needsRoot,
  startShell,
  tryAcquire,
} from './processes.ts';

// Containers, as far as they have processes of their own, and other users.

const AGED = 46 * MINUTE;
const RUN = ['runlock', 'run', '--item', 'ep', '--', 'sh', '-c', 'echo up; read -r line'] as const;

/** `run` as the first process of a container. */
async function startInContainer(box: Sandbox): Promise<Running> {
  const container = box.start('unshare', [...NAMESPACE, ...RUN], { detached: true });
  await container.says('up');
  return container;
}

async function endContainer(container: Running): Promise<void> {
  container.killGroup();
  await container.ended;
}

test('a container that is restarted gets in at once, though it has the numbers of the old one', async (ctx) => {
  needsNamespaces(ctx);
  const box = new Sandbox();
  const first = await startInContainer(box);
  const { pid } = await look(box);
  await endContainer(first);
  await startInContainer(box);
  const { state, run, pid: again } = await look(box);
  expect([state, run, again]).toEqual(['held', 2, pid]);
});

test('beside a container that runs, another does not get in, though both have the same numbers', async (ctx) => {
  needsNamespaces(ctx);
  const box = new Sandbox();
  const first = await startInContainer(box);
  const second = await box.exec('unshare', [...NAMESPACE, 'runlock', 'run', '--', 'touch', 'ran']);
  expect([second.code, fs.existsSync(`${box.dir}/ran`)]).toEqual([3, false]);
  first.tell('end');
  expect((await first.result).code).toBe(0);
});

test('a run in a container holds outside of it, and not a moment longer than it lives', async (ctx) => {
  needsNamespaces(ctx);
  const box = new Sandbox();
  const container = await startInContainer(box);
  box.age(box.file('lock.json'), AGED);
  expect(await tryAcquire(box)).toBe(3);
  await endContainer(container);
  expect(await tryAcquire(box)).toBe(0);
});

test('a run outside holds in a container, and not a moment longer than it lives', async (ctx) => {
  needsNamespaces(ctx);
  const box = new Sandbox();
  const [command, ...args] = RUN;
  const run = box.start(command, args, { detached: true });
  await run.says('up');
  box.age(box.file('lock.json'), AGED);
  const inside = () => box.exec('unshare', [...NAMESPACE, 'runlock', 'status']);
  expect((await inside()).code).toBe(3);
  run.killGroup();
  await run.ended;
  expect((await inside()).code).toBe(0);
});

test('a command in a container holds outside of it after its supervisor was killed', async (ctx) => {
  needsNamespaces(ctx);
  const box = new Sandbox();
  const kill = fifo(box, 'kill');
  const inside = `runlock run -- sh -c 'echo up; read -r line <work' & read -r line <kill
    kill -9 $!; wait $!; echo killed; read -r line`;
  const work = fifo(box, 'work');
  const container = box.start('unshare', [...NAMESPACE, 'bash', '-c', inside], { detached: true });
  await container.says('up');
  kill.tell('supervisor');
  await container.says('killed');
  box.age(box.file('lock.json'), AGED);
  expect(await tryAcquire(box)).toBe(3);
  work.tell('end');
  await eventually('the command has ended', async () => (await box.runlock(['status'])).code === 0);
});

test('a script that took the lock in a container holds outside of it until its hold ends', async (ctx) => {
  needsNamespaces(ctx);
  const box = new Sandbox();
  const inside = 'bash -c "runlock acquire x; echo taken; read -r line"; true';
  const container = box.start('unshare', [...NAMESPACE, 'sh', '-c', inside], { detached: true });
  await container.says('taken');
  expect(await tryAcquire(box)).toBe(3);
  await endContainer(container);
  expect(await tryAcquire(box)).toBe(3);
  box.age(box.file('lock.json'), AGED);
  expect(await tryAcquire(box)).toBe(0);
});

test('where /proc is that of another container, a script and a run still hold', async (ctx) => {
  needsNamespaces(ctx);
  const box = new Sandbox();
  const mixed = ['--pid', '--fork', '--kill-child'];
  const script = box.start(
    'unshare',
    [...mixed, 'sh', '-c', 'bash -c "runlock acquire x; echo taken; read -r line"; true'],
    { detached: true },
  );
  await script.says('taken');
  expect(await tryAcquire(box)).toBe(3);
  await endContainer(script);
  fs.rmSync(box.file('lock.json'));
  const run = box.start('unshare', [...mixed, ...RUN], { detached: true });
  await run.says('up');
  box.age(box.file('lock.json'), AGED);
  expect((await box.exec('unshare', [...mixed, 'runlock', 'status'])).code).toBe(3);
  expect(await tryAcquire(box)).toBe(3);
  await endContainer(run);
  expect(await tryAcquire(box)).toBe(0);
});

const NOBODY = ['--reuid=65534', '--regid=65534', '--clear-groups'];

/** For those who may not enter root's own directories. */
function openBox(): Sandbox {
  const box = new Sandbox();
  box.makeRuns();
  fs.chmodSync(box.dir, 0o755);
  fs.chmodSync(box.runs, 0o777);
  return box;
}

const asNobody = (...args: string[]) => ['setpriv', ...NOBODY, process.execPath, BINARY, ...args] as const;

test('what root holds is held for everyone else', async (ctx) => {
  needsRoot(ctx);
  needs(ctx, 'setpriv');
  const box = openBox();
  const ask = async (...args: string[]) => {
    const [command, ...rest] = asNobody(...args);
    return (await box.exec(command, rest)).code;
  };
  const script = startShell(box, ['bash'], 'runlock acquire x; echo taken; read -r line');
  await script.says('taken');
  expect(await ask('status')).toBe(3);
  expect(await ask('acquire', 'y', '--no-pid', '--token', 'id-1')).toBe(3);
  expect(await ask('run', '--', 'true')).toBe(3);
  script.tell('end');
  await script.ended;
  expect(await ask('status')).toBe(0);
});

test("what root's run holds is held for everyone else", async (ctx) => {
  needsRoot(ctx);
  needs(ctx, 'setpriv');
  const box = openBox();
  const [command, ...args] = RUN;
  const run = box.start(command, args, { detached: true });
  await run.says('up');
  box.age(box.file('lock.json'), AGED);
  const [look, ...status] = asNobody('status');
  expect((await box.exec(look, status)).code).toBe(3);
  run.killGroup();
  await run.ended;
  expect((await box.exec(look, status)).code).toBe(0);
});

test('what another user holds is held for root', async (ctx) => {
  needsRoot(ctx);
  needs(ctx, 'setpriv');
  const box = openBox();
  const node = `'${process.execPath}' '${BINARY}'`;
  const file = box.write('job.sh', `${node} acquire x; echo taken; read -r line\n`);
  const script = box.start('setpriv', [...NOBODY, 'bash', file], { detached: true });
  await expectHeldUntilGone(box, script);
});

test('a process that is hidden from the looker holds, and once it is gone it does not', async (ctx) => {
  needsRoot(ctx);
  needsNamespaces(ctx);
  needs(ctx, 'setpriv', 'mount');
  const box = openBox();
  const work = fifo(box, 'work');
  const status = asNobody('status').join(' ');
  const inside = `mount -t proc -o hidepid=2 proc /proc || exit 9
    bash -c 'runlock acquire x; echo taken; read -r line <work' & read -r line
    setpriv ${NOBODY.join(' ')} test -e /proc/$! && exit 8
    ${status} >/dev/null; echo "while $?"; kill -9 $!; wait $!; ${status} >/dev/null; echo "then $?"`;
  const container = box.start('unshare', [...NAMESPACE, 'bash', '-c', inside], { detached: true });
  await container.says('taken');
  container.tell('look');
  await container.says('then 0');
  expect(container.stdout).toContain('while 3');
  work.tell('end');
});
