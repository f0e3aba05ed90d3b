import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { Ajv } from 'ajv';
import { beforeAll, expect, test } from 'vitest';
import { type Command, type Result, Sandbox } from '../cli/harness.ts';
import { allOf, states } from '../cli/processes.ts';
import { ENV, folder, ODD_NAME, TARBALL } from './installs.ts';
import { smoke } from './smoke.ts';

// In the folder of a project, whose path no shim may take apart.

const BIN = './node_modules/.bin/runlock';
const ARGUMENTS = ['a  b', '$HOME', "it's", '"', '日本', ''];

let project: string;
let said: string;
beforeAll(() => {
  project = folder(ODD_NAME, 'project');
  // Nothing has to be compiled, so that nothing has to be allowed to run.
  const words = ['install', '--ignore-scripts', TARBALL];
  const { status, stderr } = spawnSync('npm', words, { cwd: project, env: ENV, encoding: 'utf8' });
  expect(status, stderr).toBe(0);
  said = stderr;
});

/** The project again, for one test. */
function copyOfProject(...words: string[]): Sandbox {
  const [program = BIN, ...more] = words;
  const command: Command = { words: [program, ...more], env: ENV };
  const box = new Sandbox(command, path.dirname(project));
  for (const name of ['package.json', 'node_modules'])
    fs.cpSync(path.join(project, name), path.join(box.dir, name), {
      recursive: true,
      verbatimSymlinks: true,
    });
  return box;
}

test('npm install warns of nothing', () => {
  expect(said).toBe('');
});

test('the command in node_modules/.bin does all that it promises', async () => {
  const box = copyOfProject();
  await smoke(path.join(box.dir, 'node_modules/runlock'), box);
});

/** What stands between a script and the command. */
const SHIMS: Readonly<Record<string, readonly string[]>> = {
  npx: ['npx', 'runlock'],
  'npm-exec': ['npm', 'exec', '--', 'runlock'],
  'npm-script': ['npm', 'run', '--silent', 'lock', '--'],
  bin: [BIN],
};

test('the script holds the lock, whatever stands between', async () => {
  const box = copyOfProject();
  addScripts(box, { lock: 'runlock' });
  const calls = Object.entries(SHIMS).map(
    ([name, words]) => `${words.join(' ')} acquire --name ${name} ep-42 </dev/null || exit`,
  );
  const script = box.startScript('bash', `${calls.join('\n')}\necho taken; read -r line`);
  await script.says('taken');
  const { locks } = (await box.status('--all')) as { locks: { name: string; pid: number; state: string }[] };
  for (const name of Object.keys(SHIMS))
    expect(locks).toContainEqual(expect.objectContaining({ name, pid: script.pid, state: 'held' }));
  script.tell('end');
  await script.ended;
  expect(await states(box)).toEqual(allOf(Object.keys(SHIMS), 'stale'));
});

test.for(Object.entries(SHIMS))('%s passes exit codes and arguments on as they are', async ([, words]) => {
  const box = copyOfProject(...words);
  addScripts(box, { lock: 'runlock' });
  const job = ['sh', '-c', `printf '<%s>' "$@"; exit 7`, 'job', ...ARGUMENTS];
  const { code, stdout } = await box.runlock(['run', '--item', "a 'b'", '--', ...job]);
  expect([code, stdout]).toEqual([7, ARGUMENTS.map((word) => `<${word}>`).join('')]);
  expect(box.history().at(-1)).toMatchObject({ event: 'ended', item: "a 'b'" });
});

test('npm exec keeps options for itself that are not behind a --', async () => {
  const box = copyOfProject();
  const { stdout } = await box.exec('npm', ['exec', 'runlock', '--version']);
  expect(stdout).toBe((await box.exec('npm', ['--version'])).stdout);
});

test('an npm script that is run twice is skipped with 3, and ends with the code of its job', async () => {
  const box = copyOfProject();
  addScripts(box, { job: 'runlock run -- node job.mjs' });
  box.write(
    'job.mjs',
    `console.log(...process.argv.slice(2)); process.stdin.once('data', () => process.exit(7));`,
  );
  const run = ['run', '--silent', 'job', '--'];
  const first = box.start('npm', [...run, '--item', 'x'], { detached: true });
  await first.says('--item x\n');
  const second: Result = await box.exec('npm', run);
  expect(second).toMatchObject({ code: 3, stdout: '', stderr: expect.stringContaining('node job.mjs') });
  first.tell('end');
  expect((await first.result).code).toBe(7);
});

test('the schema lies where README says, and takes what init writes', async () => {
  const readme = fs.readFileSync(path.resolve(import.meta.dirname, '../../README.md'), 'utf8');
  const [, $schema = ''] = /"\$schema": "([^"]+)"/.exec(readme) ?? [];
  const box = copyOfProject();
  expect((await box.runlock(['init'])).code).toBe(0);
  const file = path.join(box.dir, 'runlock.json');
  const config = { $schema, ...(JSON.parse(fs.readFileSync(file, 'utf8')) as object) };
  const schema = JSON.parse(fs.readFileSync(path.resolve(box.dir, $schema), 'utf8')) as object;
  const valid = new Ajv({ strict: false }).compile(schema);
  expect([valid(config), valid.errors]).toEqual([true, null]);
  fs.writeFileSync(file, JSON.stringify(config));
  expect((await box.runlock(['run', '--', 'true'])).code).toBe(0);
});

test.for([
  ['node_modules/fs-native-extensions', ['run', '--', 'touch', 'started'], 125],
  ['node_modules/yargs', ['help', 'run'], 1],
  [
    'node_modules/runlock/dist/gates.cjs',
    ['run', '--gate', 'item', '--item', 'x', '--', 'touch', 'started'],
    125,
  ],
  ['node_modules/runlock/dist/doctor.cjs', ['doctor'], 1],
] as const)('without %s it says so in one line, and runs nothing', async ([missing, args, code]) => {
  const box = copyOfProject();
  fs.rmSync(path.join(box.dir, missing), { recursive: true });
  box.makeRuns();
  const got = await box.runlock(args);
  expect(got).toMatchObject({ code, stdout: '', stderr: expect.stringContaining(path.basename(missing)) });
  expect(got.stderr).toMatch(/^runlock: .*: install runlock anew.*\n$/);
  expect(got.stderr).not.toMatch(/\\u|Require stack/);
  expect(fs.existsSync(path.join(box.dir, 'started'))).toBe(false);
  expect((await box.runlock(['status'])).code).toBe(0);
});

function addScripts(box: Sandbox, scripts: Record<string, string>): void {
  const file = path.join(box.dir, 'package.json');
  const manifest = JSON.parse(fs.readFileSync(file, 'utf8')) as object;
  fs.writeFileSync(file, JSON.stringify({ ...manifest, scripts }));
}
