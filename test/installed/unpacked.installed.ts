import fs from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { Sandbox } from '../cli/harness.ts';
import { ENV, folder, MANIFEST, output, quoted, TARBALL } from './installs.ts';
import { smoke } from './smoke.ts';

// What is in the package, and what comes with it; and its use without an installation.

const ROOT = path.resolve(import.meta.dirname, '../..');

test('the package has what a user needs, and nothing else', () => {
  const parts = fs.readdirSync(path.join(ROOT, 'src/cli/parts')).map((name) => name.replace('.ts', '.cjs'));
  // Those that git knows: an editor's copy is no example.
  const examples = output(ROOT, 'git', 'ls-files', 'scripts/examples').trim().split('\n');
  const wanted = [
    ...['CHANGELOG.md', 'LICENSE', 'README.md', 'package.json', 'runlock.schema.json'],
    ...['runlock.cjs', ...parts].map((name) => `dist/${name}`),
    ...['scripts/wrapper.sh', 'scripts/wrapper.ps1', ...examples],
  ];
  const packed = output(ROOT, 'tar', '-tzf', TARBALL).trim().split('\n');
  expect(packed.map((name) => name.replace('package/', '')).sort()).toEqual(wanted.sort());
  expect(parts.length).toBeGreaterThan(1);
});

test('the packages it needs come with it and no others, none of which runs anything when it is installed', () => {
  const dir = folder();
  output(dir, 'npm', 'install', '--ignore-scripts', TARBALL);
  // Ends with 1 if one is missing or of the wrong version.
  const tree = JSON.parse(output(dir, 'npm', 'ls', '--all', '--json')) as {
    dependencies: { runlock: { dependencies: object } };
  };
  const direct = Object.keys(tree.dependencies.runlock.dependencies).sort();
  expect(direct).toEqual(['fs-native-extensions', 'ps-list', 'yargs']);
  expect(direct).toEqual(Object.keys(MANIFEST.dependencies).sort());

  const { packages } = JSON.parse(
    fs.readFileSync(path.join(dir, 'node_modules/.package-lock.json'), 'utf8'),
  ) as { packages: Record<string, { hasInstallScript?: boolean }> };
  const names = Object.keys(packages).map((name) => name.replace(/^.*node_modules\//, ''));
  console.log(`installed: ${names.join(' ')}`);
  expect(Object.values(packages).filter(({ hasInstallScript }) => hasInstallScript)).toEqual([]);
  const development = Object.keys(
    (JSON.parse(fs.readFileSync(path.join(ROOT, 'package.json'), 'utf8')) as { devDependencies: object })
      .devDependencies,
  ).filter((name) => name !== 'yargs-parser'); // yargs needs it too
  expect(names.filter((name) => development.includes(name))).toEqual([]);
});

/** Ways to run the package from its file, in a folder that has nothing else. */
const FROM_TARBALL: readonly (readonly string[])[] = [
  ['npx', '--yes', './runlock.tgz'],
  ['npx', '--yes', '--package=./runlock.tgz', 'runlock'],
  ['npm', 'exec', '--yes', '--package=./runlock.tgz', '--', 'runlock'],
];

test('npx and npm exec run it from the file of the package, with nothing installed', async () => {
  const dir = folder();
  fs.copyFileSync(TARBALL, path.join(dir, 'runlock.tgz'));
  // The command lies where npm keeps such packages; from there the rest is faster.
  const bin = output(dir, 'npm', 'exec', '--package=./runlock.tgz', '-c', 'command -v runlock').trim();
  const box = new Sandbox({ words: [bin], env: ENV });
  await smoke(path.dirname(path.dirname(fs.realpathSync(bin))), box);

  const calls = FROM_TARBALL.map(
    (words, i) => `${quoted(words)} acquire --dir '${box.runs}' --name lock-${i} x </dev/null || exit`,
  );
  const [run = []] = FROM_TARBALL;
  const last = `${quoted(run)} run --dir '${box.runs}' -- sh -c 'exit 7' </dev/null; echo "code $?"; read -r line`;
  const script = box.startScript('bash', [...calls, last].join('\n'), { cwd: dir });
  await script.says('code 7\n');
  const { locks } = await box.status('--all');
  for (const i of FROM_TARBALL.keys())
    expect(locks).toContainEqual(
      expect.objectContaining({ name: `lock-${i}`, state: 'held', pid: script.pid }),
    );
  expect(fs.readdirSync(dir)).toEqual(['runlock.tgz']);
});
