import fs from 'node:fs';
import path from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { Sandbox } from '../cli/harness.ts';
import { ENV, folder, output, PLACE, TARBALL } from './installs.ts';
import { doctorLooks, scriptHolds, smoke, tellsAboutItself } from './smoke.ts';

// Other package managers lay dependencies out in other ways.

let tools: string;
beforeAll(() => {
  tools = folder();
  output(tools, 'npm', 'install', 'pnpm@10', '@yarnpkg/cli-dist@4');
});

test("with pnpm, which links each package's own dependencies beside it, the command does all that it promises", async () => {
  const pnpm = path.join(tools, 'node_modules/.bin/pnpm');
  const project = new Sandbox({ words: ['node_modules/.bin/runlock'], env: ENV });
  output(project.dir, pnpm, 'add', '--store-dir', path.join(PLACE, 'pnpm-store'), TARBALL);
  await smoke(path.join(project.dir, 'node_modules/runlock'), project);

  await scriptHolds(project, [pnpm, 'exec', 'runlock']);
  const run = ['exec', 'runlock', 'run', '--', 'sh', '-c', 'exit 7'];
  expect((await project.exec(pnpm, run)).code).toBe(7);
});

test('with Yarn, which leaves packages in their archives, each part of the command is found, and each package', async () => {
  const dir = folder();
  fs.writeFileSync(path.join(dir, 'package.json'), '{ "name": "project" }');
  fs.writeFileSync(path.join(dir, 'yarn.lock'), '');
  // It does not read what npm is told to trust.
  const trusted = output(dir, 'npm', 'config', 'get', 'cafile').trim();
  if (trusted !== 'null') fs.writeFileSync(path.join(dir, '.yarnrc.yml'), `httpsCaFilePath: ${trusted}\n`);
  const yarn = [process.execPath, path.join(tools, 'node_modules/@yarnpkg/cli-dist/bin/yarn.js')] as const;
  output(dir, ...yarn, 'add', `runlock@file:${TARBALL}`);
  expect(fs.readdirSync(dir)).not.toContain('node_modules');

  // What Yarn starts it by, which is faster without Yarn.
  const bin = output(dir, ...yarn, 'bin', 'runlock').trim();
  const NODE_OPTIONS = output(dir, ...yarn, 'exec', 'node', '-p', 'process.env.NODE_OPTIONS').trim();
  expect(bin).toContain('.zip/');
  const box = new Sandbox({ words: [process.execPath, bin], env: { ...ENV, NODE_OPTIONS } }, dir);
  await tellsAboutItself(box);
  await doctorLooks(box);
  expect((await box.runlock(['ledger', 'add', 'l.json', 'ep-41', '--create'])).code).toBe(0);

  await scriptHolds(box, [...yarn, 'runlock']);
  const run = ['runlock', 'run', '--', 'sh', '-c', 'exit 7'];
  expect((await box.exec(yarn[0], [yarn[1], ...run])).code).toBe(7);
});
