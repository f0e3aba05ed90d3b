import fs from 'node:fs';
import path from 'node:path';
import { describe, expect, type TestContext, test } from 'vitest';
import { type Running, Sandbox } from '../cli/harness.ts';
import { Job, needs, snapshot } from '../cli/jobs.ts';

const WRAPPER = fs.readFileSync(path.resolve(import.meta.dirname, '../../scripts/wrapper.sh'), 'utf8');

/** The shells it promises to be right in. `sh` is one of these everywhere. */
const SHELLS = [['bash'], ['dash'], ['busybox', 'sh'], ['zsh']] as const;
type Shell = (typeof SHELLS)[number];

/** The wrapper with another body. */
function withBody(body: string): string {
  const text = WRAPPER.replace(/^body\(\) \{\n.*?^\}/ms, () => `body() {\n${body}\n}`);
  expect(text).not.toBe(WRAPPER);
  return text;
}

function start(ctx: TestContext, box: Sandbox, shell: Shell, text: string, item = 'ep-42'): Running {
  const [program, ...words] = shell;
  needs(ctx, program);
  // From elsewhere, as a scheduler would: it finds its own directory.
  return box.start(program, [...words, box.write('wrapper.sh', text), item], { detached: true, cwd: '/' });
}

const UNKNOWN = { state: 'free', marker: [{ item: 'ep-42', state: 'unknown' }] };
const SETTLED = { state: 'free', marker: [] };

describe.for(SHELLS)('wrapper.sh in %s', (shell) => {
  test('as it is: the steps are run, and the record has the result', async (ctx) => {
    const box = new Sandbox();
    const log = (name: string, more: string) =>
      fs.chmodSync(
        box.write(name, `#!/bin/sh\necho "$0 $1 $(runlock status | head -n 1)" >>log\n${more}\n`),
        0o755,
      );
    log('prepare.sh', '');
    log('publish.sh', `echo '{"id": 7440123456789012399}'`);
    const { code, stdout } = await start(ctx, box, shell, WRAPPER).result;
    expect([code, stdout]).toEqual([0, '']);
    expect(fs.readFileSync(path.join(box.dir, 'log'), 'utf8')).toMatch(
      /^\.\/prepare\.sh ep-42 held .*\n\.\/publish\.sh ep-42 held .*\n$/,
    );
    expect(box.read('records', '1.json')).toContain('7440123456789012399');
    expect(await box.status()).toMatchObject(SETTLED);
  });

  test.for([
    ['a step that fails', '(exit 7); echo went on', 7],
    ['an early return', 'return 8; echo went on', 8],
    ['the last command of a pipeline', 'true | (exit 7); echo went on', 7],
    ['exit', 'exit 9; echo went on', 9],
    ['a result that is no JSON', `echo '{"cut' >result.json`, 2],
  ] as const)(
    '%s: the lock is freed, the item stays marked, the code is passed on',
    async ([, body, code], ctx) => {
      const box = new Sandbox();
      const ended = await start(ctx, box, shell, withBody(body)).result;
      expect([ended.code, ended.stdout]).toEqual([code, '']);
      expect(await box.status()).toMatchObject(UNKNOWN);
    },
  );

  test('a variable that is not set ends it before the next step', async (ctx) => {
    const box = new Sandbox();
    const { code, stdout } = await start(ctx, box, shell, withBody(': "$nothing"; echo went on')).result;
    expect([code !== 0, stdout]).toEqual([true, '']);
    // zsh forgets its trap there, but then the holder is gone, and the lock can be had at once all the same.
    const { state } = await box.status();
    expect(state).toBe(shell[0] === 'zsh' ? 'stale' : 'free');
  });

  test('an early return with 0 is a finished run, with an item of any name', async (ctx) => {
    const box = new Sandbox();
    const text = withBody(`echo '{}' >result.json; return; echo went on`);
    const item = `第 42 集 "é" $(x) * 'y'`;
    expect((await start(ctx, box, shell, text, item).result).code).toBe(0);
    expect(await box.status()).toMatchObject(SETTLED);
    expect(box.history().at(-1)).toMatchObject({ event: 'ended', outcome: 'finished', item });
  });

  test('whatever it is called by and wherever its body goes, the lock is that of its own directory', async (ctx) => {
    const box = new Sandbox();
    box.write('elsewhere/jobs/not-this', '');
    const file = box.write('jobs/wrapper.sh', withBody(`echo '{}' >result.json; cd /`));
    fs.symlinkSync(file, path.join(box.dir, 'link.sh'));
    const [program, ...words] = shell;
    needs(ctx, program);
    const env = { CDPATH: path.join(box.dir, 'elsewhere') };
    for (const name of ['jobs/wrapper.sh', './link.sh'])
      expect(await box.exec(program, [...words, name, 'ep'], { env })).toMatchObject({ code: 0, stdout: '' });
    expect(fs.readdirSync(path.join(box.dir, 'jobs/runs/records'))).toEqual(['1.json', '2.json']);
    expect(fs.existsSync(box.runs)).toBe(false);
  });

  test('an item that looks like an option is one all the same, and its gates are asked', async (ctx) => {
    const box = new Sandbox();
    box.write('runlock.json', '{"gates": ["ledger:ledger.json"]}');
    box.write('ledger.json', '{"--no-default-gates": {}}');
    const text = withBody(`echo "began $item"; echo '{}' >result.json`);
    const gated = await start(ctx, box, shell, text, '--no-default-gates').result;
    expect([gated.code, gated.stdout]).toEqual([7, '']);
    const other = await start(ctx, box, shell, text, '--help').result;
    expect([other.code, other.stdout]).toEqual([0, 'began --help\n']);
    expect(box.history().at(-1)).toMatchObject({ event: 'ended', item: '--help' });
  });

  test('what Node says of its own on stdout is no run number: nothing is begun', async (ctx) => {
    const box = new Sandbox();
    const noisy = box.write('noisy.cjs', `console.log('noise')`);
    const script = box.write('wrapper.sh', withBody('echo began'));
    const [program, ...words] = shell;
    needs(ctx, program);
    const env = { NODE_OPTIONS: `--require ${noisy}` };
    const { code, stdout } = await box.exec(program, [...words, script, 'ep'], { env });
    expect([code, stdout]).toEqual([125, '']);
  });

  test('a held lock: 3, nothing is begun and nothing is freed', async (ctx) => {
    const box = new Sandbox();
    const holder = new Job(box);
    expect(await holder.do('runlock acquire other')).toBe(0);
    const before = snapshot(box.file('lock.json'));
    const { code, stdout } = await start(ctx, box, shell, withBody('echo began')).result;
    expect([code, stdout]).toEqual([3, '']);
    expect(snapshot(box.file('lock.json'))).toEqual(before);
  });

  test('a lost lock: the heartbeat ends it with 4, and the next holder keeps its lock', async (ctx) => {
    const box = new Sandbox();
    const text = withBody('echo began; read -r line\nrunlock hb --run "$run"\necho went on');
    const script = start(ctx, box, shell, text);
    await script.says('began');
    box.age(box.file('lock.json'), 46 * 60_000);
    expect((await box.runlock(['acquire', 'next', '--no-pid', '--token', 'T'])).code).toBe(0);
    const before = snapshot(box.file('lock.json'));
    script.tell('go');
    const { code, stdout } = await script.result;
    expect([code, stdout]).toEqual([4, 'began\n']);
    expect(snapshot(box.file('lock.json'))).toEqual(before);
  });

  test.for([
    ['SIGINT', 130],
    ['SIGTERM', 143],
    ['SIGHUP', 129],
  ] as const)('%s to the whole group, as Ctrl-C sends it: freed at once, %i', async ([signal, code], ctx) => {
    const box = new Sandbox();
    const script = start(ctx, box, shell, withBody(`sh -c 'echo at work; exec sleep 1000'; echo went on`));
    await script.says('at work');
    script.killGroup(signal);
    const ended = await script.result;
    expect([ended.code ?? ended.signal, ended.stdout]).toEqual([code, 'at work\n']);
    expect(await box.status()).toMatchObject(UNKNOWN);
  });

  test('TERM to the script alone: the step under way ends first, and the lock is held as long', async (ctx) => {
    const box = new Sandbox();
    const script = start(
      ctx,
      box,
      shell,
      withBody(`sh -c 'echo at work; read -r line; echo done'; echo went on`),
    );
    await script.says('at work');
    script.kill('SIGTERM');
    expect((await box.runlock(['status'])).code).toBe(3);
    script.tell('end');
    const { code, stdout } = await script.result;
    expect([code, stdout]).toEqual([143, 'at work\ndone\n']);
    expect(await box.status()).toMatchObject(UNKNOWN);
  });
});

test('without an item it says how to call it, and takes nothing', async () => {
  const box = new Sandbox();
  const { code, stderr } = await box.exec('bash', [box.write('wrapper.sh', WRAPPER)]);
  expect([code, stderr]).toEqual([2, expect.stringMatching(/^usage: .*wrapper\.sh ITEM\n$/)]);
  expect(fs.existsSync(box.runs)).toBe(false);
});
