import { expect, test } from 'vitest';
import { Sandbox } from './harness.ts';

test('a shell that turns into its last command is the holder still', async () => {
  const box = new Sandbox();
  box.write('r.json', '{"ok":1}');
  const line = 'run=$(runlock acquire ep-1) || exit; exec runlock finish --run "$run" r.json';
  expect((await box.exec('bash', ['-c', line])).code).toBe(0);
  expect(box.read('records', '1.json')).toContain('"result": {"ok":1}');
});

test('waiting for the lock that one holds oneself ends at once', async () => {
  const box = new Sandbox();
  const { stdout, stderr } = await box.script(
    'bash',
    'runlock acquire a; runlock acquire --wait 36500d b; echo "code $?"',
  );
  expect(stdout).toContain('code 3');
  expect(stderr).toContain('you are inside the very run');
});

test('--wait gets the lock when it becomes free, and gives 3 when it does not', async () => {
  const box = new Sandbox();
  const holder = box.startScript('bash', 'runlock acquire a; echo taken; read -r line; runlock finish');
  await holder.says('taken');
  expect((await box.runlock(['acquire', 'b', '--no-pid', '--token', 'b', '--wait', '100ms'])).code).toBe(3);
  const waiting = box.runlock(['acquire', 'c', '--no-pid', '--token', 'c', '--wait', '30s']);
  holder.tell('go on');
  expect(await waiting).toMatchObject({ code: 0, stdout: '2\n' });
});

test('--from takes the first item without a mark, and frees the lock if none is left', async () => {
  const box = new Sandbox();
  const list = box.write('items', 'ep-1\r\n\n  \nep-2\nep-1\n');
  expect((await box.runlock(['run', '--item', 'ep-1', '--', 'false'])).code).toBe(1);
  const first = await box.runlock(['acquire', '--from', list, '--no-pid', '--token', 'a']);
  expect(first).toMatchObject({ code: 0, stdout: '2\tep-2\n' });
  expect((await box.runlock(['release', '--token', 'a'])).code).toBe(0);
  expect((await box.runlock(['acquire', '--from', list, '--no-pid', '--token', 'b'])).code).toBe(6);
  expect((await box.runlock(['run', '--from', list, '--', 'true'])).code).toBe(6);
  expect((await box.runlock(['run', '--from', list, '--skip-code', '0', '--', 'true'])).code).toBe(0);
  expect(await box.status()).toMatchObject({ state: 'free' });
});

test('--from rebuilds a marker that can not be read, and then picks', async () => {
  const box = new Sandbox();
  const list = box.write('items', 'ep-1\nep-2\n');
  await box.runlock(['run', '--item', 'ep-1', '--', 'false']);
  box.write('runs/current.json', '{"cut');
  const got = await box.runlock(['acquire', '--from', list, '--no-pid', '--token', 'a']);
  expect(got).toMatchObject({ code: 0, stdout: '2\tep-2\n' });
});

test('an item that is begun again without being settled is said', async () => {
  const box = new Sandbox();
  await box.runlock(['run', '--item', 'ep-1', '--', 'false']);
  expect((await box.runlock(['run', '--item', 'ep-1', '--', 'true'])).stderr).toContain(
    'ep-1 is begun again',
  );
  expect((await box.runlock(['run', '--item', 'ep-1', '--', 'true'])).stderr).toBe('');
});

test('an item settled while its killed run still has the lock stays settled', async () => {
  const box = new Sandbox();
  const run = box.start('runlock', ['run', '--item', 'ep-1', '--', 'sh', '-c', 'echo up; sleep 60'], {
    detached: true,
  });
  await run.says('up');
  run.killGroup();
  await run.ended;
  expect((await box.runlock(['settle', 'ep-1', '--done'])).code).toBe(0);
  expect((await box.runlock(['run', '--', 'true'])).code).toBe(0);
  expect((await box.status()).marker).toEqual([]);
});

test('what is asked for in JSON on a full stdout is an error in one line', async () => {
  const box = new Sandbox();
  const { stderr, stdout } = await box.script('bash', 'runlock status --json >/dev/full; echo "code $?"');
  expect(stdout).toBe('code 1\n');
  expect(stderr.trim().split('\n')).toHaveLength(1);
});

test('passwords on a command line reach neither the history nor who asks', async () => {
  const box = new Sandbox();
  const run = box.start('runlock', ['run', '--', 'sh', '-c', 'echo up; sleep 60', '-psecretA'], {
    detached: true,
  });
  await run.says('up');
  const skipped = await box.runlock(['run', '--', 'true']);
  expect(skipped.code).toBe(3);
  expect(skipped.stderr).not.toContain('secretA');
  expect(JSON.stringify(box.history())).not.toContain('secretA');
});

test('a misspelt option, command or verb gets one line with a guess', async () => {
  const box = new Sandbox();
  for (const args of [
    ['status', '--jsno'],
    ['statsu'],
    ['--acquier', 'x'],
    ['run', '--timeot', '1s', 'true'],
  ]) {
    const { stderr, code } = await box.runlock(args);
    expect([2, 125]).toContain(code);
    expect(stderr).toMatch(/^runlock: .*did you mean .*\?\n$/);
  }
});
