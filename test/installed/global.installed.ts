import fs from 'node:fs';
import path from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { type Command, Sandbox } from '../cli/harness.ts';
import { filesUnder, needsRoot } from '../cli/jobs.ts';
import { ENV, folder, output, TARBALL } from './installs.ts';
import { doctorLooks, gatesAnswer, oneOfTwoRuns, scriptHolds, smoke } from './smoke.ts';

// For all users of a machine.

let prefix: string;
let bin: string;
let installed: string;
beforeAll(() => {
  prefix = folder('all users');
  output(prefix, 'npm', 'install', '-g', '--prefix', prefix, TARBALL);
  bin = path.join(prefix, 'bin/runlock');
  installed = path.join(prefix, 'lib/node_modules/runlock');
});

test('installed with npm install -g, the command does all that it promises', async () => {
  await smoke(installed, new Sandbox({ words: [bin], env: ENV }));
});

test('a link to the command, of another name and from elsewhere, does the same', async () => {
  const link = path.join(folder('x', 'bin'), 'lock-it');
  fs.symlinkSync(bin, link);
  const box = new Sandbox({ words: [link], env: ENV });
  await scriptHolds(box);
  await oneOfTwoRuns(box);
  await gatesAnswer(box);
  await doctorLooks(box);
});

test('another user, with the PATH of cron, uses what root has installed and nobody may change', async (ctx) => {
  needsRoot(ctx);
  output(prefix, 'chmod', '-R', 'a-w', prefix);
  const before = filesUnder(prefix);
  const node = path.dirname(process.execPath);
  const PATH = [...new Set([node, '/usr/bin', '/bin'])].join(':');
  const command: Command = {
    words: [bin],
    env: { PATH, HOME: '/nonexistent', LOGNAME: 'nobody', SHELL: '/bin/sh' },
    user: { uid: 65534, gid: 65534 },
  };
  await smoke(installed, new Sandbox(command));
  expect(filesUnder(prefix)).toEqual(before);
});
