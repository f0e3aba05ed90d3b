import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import fc from 'fast-check';
import { afterAll, expect, test } from 'vitest';
import { Root } from '../../src/doctor/root.ts';
import { Sandbox } from '../../src/doctor/sandbox.ts';
import { parseUnit } from '../../src/doctor/unit-file.ts';

const dir = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), 'runlock-')));
afterAll(() => fs.rmSync(dir, { recursive: true }));
const root = new Root(dir);

function sandbox(settings: readonly string[], sure = true): Sandbox {
  const expand = (text: string) => ({ text, certain: !text.includes('%') });
  return new Sandbox(parseUnit(['[Service]', ...settings].join('\n'), 'x.service'), expand, root, sure);
}

const BASE = '/srv/app/runs';

test.each([
  [['ProtectSystem=yes'], '/usr/x', 'readOnly'],
  [['ProtectSystem=1'], '/etc/x', 'plain'],
  [['ProtectSystem=full'], '/etc/x', 'readOnly'],
  [['ProtectSystem=strict'], '/home/ann', 'plain'],
  [['ProtectSystem=strict', 'PrivateTmp=yes'], '/tmp/x', 'own'],
  [['ProtectHome=true'], '/home/ann/runs', 'hidden'],
  [['ProtectHome=true'], '/homes/ann/runs', 'plain'],
  [['ProtectHome=read-only'], '/root/runs', 'readOnly'],
  [['ProtectHome=tmpfs'], '/root/runs', 'own'],
  [['ProtectHome=yes', 'ReadWritePaths=/home/ann'], '/home/ann/runs', 'hidden'],
  [['DynamicUser=yes', 'ProtectSystem=no'], BASE, 'plain'],
  [['DynamicUser=yes', 'PrivateTmp=no'], '/var/tmp/x', 'own'],
  [['DynamicUser=yes', 'StateDirectory=a b:c'], '/var/lib/b/runs', 'plain'],
  [['ReadOnlyPaths=/srv', 'ReadWritePaths=/srv/app', `ReadOnlyPaths=${BASE}`], BASE, 'readOnly'],
  [['ReadOnlyPaths=/srv/app', 'ReadWritePaths=/srv'], BASE, 'readOnly'],
  [['ReadOnlyPaths=/srv/app', 'ReadWritePaths=/srv/app'], BASE, 'readOnly'],
  [['TemporaryFileSystem=/', 'BindReadOnlyPaths=/usr', 'BindPaths=/srv/app'], BASE, 'plain'],
  [['TemporaryFileSystem=/', 'BindReadOnlyPaths=/srv'], BASE, 'readOnly'],
  [['TemporaryFileSystem=/', 'BindReadOnlyPaths=/usr'], BASE, 'own'],
  [['TemporaryFileSystem=/', 'BindPaths=/data:/srv/app'], BASE, 'unsure'],
  [[`ReadOnlyPaths=${BASE}/locks`], BASE, 'unsure'],
  [['InaccessiblePaths=/%i'], BASE, 'unsure'],
  [['ExtensionImages=/x.raw'], BASE, 'unsure'],
  [['RuntimeDirectory=a'], '/run/a', 'passing'],
  [['RuntimeDirectory=a', 'RuntimeDirectoryPreserve=restart'], '/run/a', 'plain'],
] as const)('with %j the unit sees %s as %s', (settings, file, type) => {
  expect(sandbox(settings).look(file).type).toBe(type);
});

test("what a user's manager may lack the right to do is not certain", () => {
  expect(sandbox(['ProtectSystem=strict'], false).look(BASE)).toEqual({
    type: 'unsure',
    by: 'ProtectSystem=strict',
  });
  expect(sandbox([], false).look(BASE)).toEqual({ type: 'plain' });
});

test('any settings are read without an error, and one that may mean the path never leaves it plain', () => {
  const value = fc.oneof(
    fc.string(),
    fc.constantFrom('/', '/srv', '-/srv:/x', '%', ':', '/srv/app:/srv', 'yes', ''),
  );
  const key = fc.constantFrom(
    'BindPaths',
    'ReadWritePaths',
    'TemporaryFileSystem',
    'StateDirectory',
    'RootDirectory',
  );
  fc.assert(
    fc.property(fc.array(fc.tuple(key, value)), (all) => {
      const settings = all.map(([name, text]) => `${name}=${text.replace(/\n|\\$/g, '')}`);
      sandbox(settings).look(BASE);
      expect(sandbox([...settings, `InaccessiblePaths=${BASE}`]).look(BASE).type).not.toBe('plain');
    }),
  );
});
