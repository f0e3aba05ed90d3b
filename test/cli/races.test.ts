import fs from 'node:fs';
import { describe, expect, test } from 'vitest';
import { BINARY, eventually, MINUTE, type Result, type Running, Sandbox } from './harness.ts';
import { filesUnder, Job, snapshot } from './jobs.ts';

/** A pid that no process has: larger than Linux gives out. */
const NO_PROCESS = 2 ** 22 + 1;

/** The command, waiting before its first own line until it is let go. */
function poised(box: Sandbox, args: readonly string[]): Running {
  const barrier = box.write('barrier.cjs', "require('node:fs').readSync(0, Buffer.alloc(1));");
  return box.start(process.execPath, ['--require', barrier, BINARY, ...args]);
}

/** Lets all go at the same moment, and waits for their answers. */
async function letGo(contenders: readonly Running[]): Promise<Result[]> {
  await Promise.all(contenders.map((one) => eventually('it waits', () => readsStdin(one.pid))));
  for (const one of contenders) one.child.stdin?.end('x');
  return Promise.all(contenders.map((one) => one.result));
}

/** Whether a process waits in a read; a system that doesn't tell is not asked. */
function readsStdin(pid: number): boolean {
  try {
    return /^0 0x0 /.test(fs.readFileSync(`/proc/${pid}/syscall`, 'utf8'));
  } catch {
    return true;
  }
}

function acquirers(box: Sandbox, count: number, round: number): Running[] {
  return Array.from({ length: count }, (_, n) =>
    poised(box, ['acquire', `ep-${n}`, '--no-pid', '--token', `${round}-${n}`]),
  );
}

/** One has it, the number it was told is the lock's, and the others were told so. */
function expectOneWinner(box: Sandbox, results: readonly Result[]): void {
  expect(results.map((one) => one.code).sort()).toEqual([0, ...Array(results.length - 1).fill(3)]);
  const winner = results.findIndex((one) => one.code === 0);
  const lock: unknown = JSON.parse(box.read('lock.json'));
  expect(lock).toMatchObject({ run: Number(results[winner]?.stdout), item: `ep-${winner}` });
}

function silentHolder(box: Sandbox): void {
  box.age(box.file('lock.json'), 46 * MINUTE);
}

/** What contenders may find: each is free to be taken. */
const TAKEABLE: Record<string, (box: Sandbox) => void> = {
  'a stale lock of a silent holder': silentHolder,
  'a lock of a dead process': (box) => box.putLock({ pid: NO_PROCESS, job: 'x' }),
  'an old lock that is empty': (box) => box.putLock('', 46 * MINUTE),
  // The last run has no end and left nothing in live/.
  'a lock that was deleted': (box) => fs.rmSync(box.file('lock.json')),
  'a stale lock without its guard': (box) => {
    box.age(box.file('lock.json'), 46 * MINUTE);
    fs.rmSync(box.file('lock.guard'));
  },
};

describe('of several that try for the same lock at the same moment exactly one gets it', () => {
  // 24 rounds in all, of 8 on the plain stale lock; the stress script runs many more.
  test.each(Object.entries(TAKEABLE))(
    '%s',
    async (_, prepare) => {
      const box = new Sandbox();
      await box.runlock(['acquire', 'ep-0', '--no-pid', '--token', 'first']);
      let last = 1;
      const plain = prepare === silentHolder;
      for (let round = 0; round < (plain ? 8 : 4); round += 1) {
        prepare(box);
        const results = await letGo(acquirers(box, plain ? 8 : 5, round));
        expectOneWinner(box, results);
        const run = Number(results.find((one) => one.code === 0)?.stdout);
        expect(run).toBeGreaterThan(last);
        last = run;
      }
    },
    300_000,
  );
});

test('of 50 that start at once on a free lock one wins, and a half-written lock is never taken for garbage', async () => {
  const box = new Sandbox();
  for (let round = 1; round <= 2; round += 1) {
    const results = await letGo(acquirers(box, 50, round));
    expectOneWinner(box, results);
    for (const { stderr } of results) expect(stderr).not.toMatch(/no lock|not JSON|empty|^\s+at /m);
    const winner = results.findIndex((one) => one.code === 0);
    expect((await box.runlock(['finish', '--token', `${round}-${winner}`])).code).toBe(0);
  }
  expect(Object.keys(filesUnder(box.file('records')))).toHaveLength(2);
}, 300_000);

describe('an instance whose lock was taken over does not touch its successor', () => {
  test.each([
    ['the caller', '', ''],
    ['its token', '--no-pid --token A', '--token A'],
  ])('known by %s', async (_, acquire, identity) => {
    const box = new Sandbox();
    const [a, b] = [new Job(box), new Job(box)];
    expect(await a.do(`runlock acquire ep-1 ${acquire}`)).toBe(0);
    box.age(box.file('lock.json'), 46 * MINUTE);
    expect(await b.do('runlock acquire ep-2')).toBe(0);
    const [lock, marker] = [snapshot(box.file('lock.json')), box.read('current.json')];

    expect(await a.do(`runlock hb ${identity}`)).toBe(4);
    expect(await a.do(`runlock hb --run 1 ${identity}`)).toBe(4);
    expect(await a.do(`runlock release ${identity}`)).toBe(0);
    expect(await a.do(`runlock release --settled ${identity}`)).toBe(0);
    expect(await a.do(`runlock release --run 1 ${identity}`)).toBe(4);
    expect(await a.do(`echo '{"late":1}' | runlock finish - ${identity}`)).toBe(4);
    const kept = box.read('records', '1.json');
    expect(JSON.parse(kept)).toMatchObject({ run: 1, lost: true, result: { late: 1 } });
    expect(await a.do(`echo '{"late":2}' | runlock finish - --run 1 ${identity}`)).toBe(4);
    expect(box.read('records', '1.json')).toBe(kept);
    // The number of the successor does not make it one's own.
    expect(await a.do(`runlock finish --run 2 ${identity}`)).toBe(4);
    expect(await a.do(`runlock release --run 2 ${identity}`)).toBe(0);

    expect(snapshot(box.file('lock.json'))).toEqual(lock);
    expect(box.read('current.json')).toBe(marker);
    expect((await box.runlock(['acquire', '--no-pid', '--token', 'C'])).code).toBe(3);
    expect(await b.do('runlock finish')).toBe(0);
    // The second late result is kept too, beside the first.
    expect(fs.readdirSync(box.file('records')).sort()).toEqual(['1.json', '1.rejected', '2.json']);
  });
});

test('of a late heartbeat and a takeover at the same moment only one succeeds', async () => {
  const box = new Sandbox();
  for (let round = 1; round <= 6; round += 1) {
    const [old, next] = [`old-${round}`, `next-${round}`];
    expect((await box.runlock(['acquire', 'ep-0', '--no-pid', '--token', old])).code).toBe(0);
    box.age(box.file('lock.json'), 46 * MINUTE);
    const answers = await letGo([
      poised(box, ['hb', '--token', old]),
      poised(box, ['acquire', 'ep-0', '--no-pid', '--token', next]),
    ]);
    const codes = answers.map((answer) => answer.code);
    expect([
      [0, 3],
      [4, 0],
    ]).toContainEqual(codes);
    const holder = codes[1] === 0 ? next : old;
    expect((await box.runlock(['finish', '--token', holder])).code).toBe(0);
  }
});

test('who only looks is never taken for a holder', async () => {
  const box = new Sandbox();
  await box.runlock(['run', 'true']);
  const watcher = box.startScript('bash', 'while :; do runlock status; done');
  await watcher.says('last run 1');
  const { code, stdout, stderr } = await box.script(
    'bash',
    `for n in $(seq 2 2 16); do
      runlock acquire --no-pid --token "$n" >/dev/null || { echo "acquire $n: $?"; exit 1; }
      runlock release --token "$n" || { echo "release $n: $?"; exit 1; }
      runlock run true || { echo "run $n: $?"; exit 1; }
    done`,
  );
  expect([code, stdout, stderr]).toEqual([0, '', '']);
  expect(watcher.stderr).toBe('');
}, 300_000);
