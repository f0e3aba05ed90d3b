import fs from 'node:fs';
import path from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import { Sandbox } from './harness.ts';

let box: Sandbox;
let config: string;
beforeEach(() => {
  box = new Sandbox();
  config = path.join(box.dir, 'runlock.json');
});

const init = (...args: string[]) => box.runlock(['init', ...args]);
const content = () => JSON.parse(fs.readFileSync(config, 'utf8')) as Record<string, unknown>;

test('init writes the bounds spelt out, makes the directory, and a run can begin', async () => {
  const got = await init();
  expect(got).toMatchObject({
    code: 0,
    stderr: '',
    stdout: `made ${config} (every run ends after "timeout": 45m)\nmade ${box.runs}\n`,
  });
  expect(content()).toEqual({
    ...{ dir: 'runs', hold: '45m', fresh: '2h', unknownFor: '2h', timeout: '45m', killAfter: '10s' },
  });
  expect(await box.runlock(['run', '--', 'true'])).toMatchObject({ code: 0, stderr: '' });
});

test('a directory that can not be made is not named in a configuration either', async () => {
  const { code, stderr } = await init('--dir', 'not-there/runs');
  expect(code).toBe(1);
  expect(stderr).toContain(path.join(box.dir, 'not-there'));
  expect(fs.readdirSync(box.dir)).toEqual([]);
});

test('init again changes nothing that is there', async () => {
  fs.writeFileSync(config, '{ "hold": "1h" }');
  expect((await init()).stdout).toBe(`made ${box.runs}\n`);
  const again = await init('--json');
  expect(JSON.parse(again.stdout)).toEqual({ config, dir: box.runs, made: [] });
  expect(fs.readFileSync(config, 'utf8')).toBe('{ "hold": "1h" }');
});

test('init makes the configured ledgers that are missing, and leaves the others as they are', async () => {
  const ledgers = { old: { file: 'old.json' }, new: { file: 'new.json', at: 'publishes' } };
  fs.writeFileSync(config, JSON.stringify({ ledgers, gates: ['ledger:new'] }));
  box.write('old.json', '{"a":1}');
  expect((await box.runlock(['run', '--item', 'a', '--', 'true'])).code).toBe(125);
  expect((await init()).code).toBe(0);
  expect(fs.readFileSync(path.join(box.dir, 'old.json'), 'utf8')).toBe('{"a":1}');
  expect((await box.runlock(['run', '--item', 'a', '--', 'true'])).code).toBe(0);
});

test('init --dir names the directory in the configuration, and refuses one that it contradicts', async () => {
  expect((await init('--dir', path.join(box.dir, 'state'))).code).toBe(0);
  expect(content()).toMatchObject({ dir: 'state' });
  expect(fs.statSync(path.join(box.dir, 'state')).isDirectory()).toBe(true);
  const other = await init('--dir', 'elsewhere');
  expect(other).toMatchObject({ code: 2, stderr: expect.stringContaining(config) });
  expect(fs.existsSync(path.join(box.dir, 'elsewhere'))).toBe(false);
  expect((await init('--dir', 'state')).code).toBe(0);
});

test('init says what is wrong in a configuration that is there, and makes nothing', async () => {
  fs.writeFileSync(config, '{ "hodl": "1h" }');
  expect(await init()).toMatchObject({ code: 2, stderr: expect.stringContaining('did you mean "hold"') });
  expect(fs.existsSync(box.runs)).toBe(false);
});

test('init does not follow a link of that name', async () => {
  fs.symlinkSync('/nowhere/at/all.json', config);
  expect((await init()).code).toBe(2);
});

test.skipIf(process.platform === 'win32')(
  'a configuration is as any file of the user, however open its folder is: by the umask, as ledgers are',
  async () => {
    fs.writeFileSync(config, JSON.stringify({ ledgers: { l: { file: 'l.json' } } }));
    fs.chmodSync(box.dir, 0o1777);
    for (const umask of ['022', '027', '000']) {
      const got = await box.script(
        'sh',
        `umask ${umask}; runlock init --config other.json && runlock init --config runlock.json`,
      );
      expect(got).toMatchObject({ code: 0, stderr: '' });
      const modes = ['other.json', 'l.json'].map(
        (name) => fs.statSync(path.join(box.dir, name)).mode & 0o777,
      );
      expect(modes).toEqual([0o666 & ~Number.parseInt(umask, 8), 0o666 & ~Number.parseInt(umask, 8)]);
      for (const name of ['other.json', 'l.json']) fs.rmSync(path.join(box.dir, name));
    }
  },
);

test('init below a configuration makes another, and says which one it hides', async () => {
  await init();
  fs.mkdirSync(path.join(box.dir, 'sub'));
  const inSub = { cwd: path.join(box.dir, 'sub') };
  const unnoticed = await box.runlock(['init', '--config', 'other.json'], inSub);
  expect(unnoticed).toMatchObject({ code: 0, stderr: '' });
  const got = await box.runlock(['init'], inSub);
  expect(got.code).toBe(0);
  expect(got.stderr).toBe(
    `runlock: what is started in or below ${inSub.cwd} no longer means ${config}, but the new configuration\n`,
  );
  expect(await box.runlock(['init'], inSub)).toMatchObject({ code: 0, stderr: '' });
});

test('init with --name is misuse', async () => {
  expect((await init('--name', 'video')).code).toBe(2);
  expect(fs.existsSync(config)).toBe(false);
});
