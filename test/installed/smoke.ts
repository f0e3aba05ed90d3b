import fs from 'node:fs';
import path from 'node:path';
import { expect } from 'vitest';
import type { Sandbox } from '../cli/harness.ts';
import { MANIFEST, quoted } from './installs.ts';

/**
 * What whoever installed it does first, and what shows that each part and each dependency is found.
 *
 * @param folder that of the package, with the scripts that it ships
 * @param box with the installed command
 */
export async function smoke(folder: string, box: Sandbox): Promise<void> {
  await tellsAboutItself(box);
  await makesConfiguration(box);
  await scriptHolds(box);
  await oneOfTwoRuns(box);
  await gatesAnswer(box);
  await doctorLooks(box);
  await wrapperRuns(box, folder);
}

/** Its version, and help that another package lays out. */
export async function tellsAboutItself(box: Sandbox): Promise<void> {
  const silent = { code: 0, stderr: '' };
  expect(await box.runlock(['--version'])).toMatchObject({ ...silent, stdout: `${MANIFEST.version}\n` });
  const help = await box.runlock(['--help']);
  expect(help).toMatchObject({ ...silent, stdout: expect.stringContaining('Usage: runlock COMMAND') });
  const ofRun = await box.runlock(['help', 'run']);
  expect(ofRun).toMatchObject({ ...silent, stdout: expect.stringMatching(/--kill-after .*\n/) });
}

async function makesConfiguration(box: Sandbox): Promise<void> {
  const config = path.join(box.dir, 'runlock.json');
  const { code, stdout } = await box.runlock(['init']);
  expect([code, stdout]).toEqual([
    0,
    `made ${config} (every run ends after "timeout": 45m)\nmade ${box.runs}\n`,
  ]);
  expect(JSON.parse(fs.readFileSync(config, 'utf8'))).toMatchObject({ dir: 'runs', hold: '45m' });
}

/** A script has the lock from `acquire` to `finish`, whatever stands between it and node in its calls. */
export async function scriptHolds(box: Sandbox, words = box.command.words): Promise<void> {
  const call = quoted(words);
  const script = box.startScript(
    'bash',
    `run=$(${call} acquire ep-42 --job job.json) || exit
     echo taken; read -r line
     ${call} hb --run "$run" || exit
     echo '{"id":7440123456789012345}' | ${call} finish --run "$run" -; echo "finish $?"`,
  );
  await script.says('taken');
  const held = await box.runlock(['status', '--json']);
  expect(held.code).toBe(3);
  expect(JSON.parse(held.stdout)).toMatchObject({ state: 'held', pid: script.pid, item: 'ep-42' });
  script.tell('go on');
  await script.says('finish 0');
  const free = await box.status();
  expect(free).toMatchObject({ state: 'free', marker: [] });
  expect(box.read('records', `${free.lastRun}.json`)).toContain('7440123456789012345');
}

/** Of two runs that meet one is skipped; the other's exit code, arguments and output come through. */
export async function oneOfTwoRuns(box: Sandbox): Promise<void> {
  const words = ['a  b', '$HOME', "it's", '"', '日本', ''];
  const job = `printf '<%s>' "$@"; read -r line; exit 7`;
  const first = box.startRunlock(['run', '--', 'sh', '-c', job, 'job', ...words], { detached: true });
  await first.says(words.map((word) => `<${word}>`).join(''));
  const second = await box.runlock(['run', '--', 'touch', 'started']);
  expect(second).toMatchObject({ code: 3, stderr: expect.stringContaining('skipped, held by run') });
  expect(fs.existsSync(path.join(box.dir, 'started'))).toBe(false);
  first.tell('end');
  expect((await first.result).code).toBe(7);
}

/** By the part gates.cjs. */
export async function gatesAnswer(box: Sandbox): Promise<void> {
  const code = async (...args: string[]) => (await box.runlock(args)).code;
  expect(await code('ledger', 'add', 'l.json', 'ep-41', '--create')).toBe(0);
  expect(await code('ledger', 'has', 'l.json', 'ep-41')).toBe(0);
  expect(await code('ledger', 'has', 'l.json', 'ep-42')).toBe(6);
  expect(await code('gate', 'ledger:l.json', '--item', 'ep-42')).toBe(0);
  expect(await code('run', '--gate', 'ledger:l.json', '--item', 'ep-41', '--', 'touch', 'started')).toBe(7);
  expect(fs.existsSync(path.join(box.dir, 'started'))).toBe(false);
}

/** By the part doctor.cjs; at a system without entries. */
export async function doctorLooks(box: Sandbox): Promise<void> {
  fs.mkdirSync(path.join(box.dir, 'root'));
  const { code, stdout } = await box.runlock(['doctor', '--root', 'root']);
  expect([code, stdout]).toEqual([0, expect.stringMatching(/^note .*nothing that was looked at/)]);
}

/** The shipped script, copied beside the steps of a job. */
async function wrapperRuns(box: Sandbox, folder: string): Promise<void> {
  fs.copyFileSync(path.join(folder, 'scripts/wrapper.sh'), path.join(box.dir, 'wrapper.sh'));
  for (const [step, text] of [
    ['prepare.sh', 'runlock status || [ $? -eq 3 ]'],
    ['publish.sh', `echo '{"published":true}'`],
  ] as const)
    fs.chmodSync(box.write(step, `#!/bin/sh\n${text}\n`), 0o755);
  const bin = path.dirname(path.resolve(box.dir, box.command.words[0]));
  const PATH = `${bin}:${box.command.env?.PATH}`;
  const { code, stdout } = await box.exec('./wrapper.sh', ['ep-43'], { env: { PATH }, detached: true });
  expect([code, stdout]).toEqual([0, expect.stringMatching(/^held .* ep-43 /)]);
  const { lastRun } = await box.status();
  expect(box.read('records', `${lastRun}.json`)).toContain('"published":true');
}
