import fs from 'node:fs';
import path from 'node:path';
import { expect, type TestContext, test } from 'vitest';
import { type Options, type Result, Sandbox } from './cli/harness.ts';
import { needs } from './cli/jobs.ts';
import { PWSH, PWSH_ENV, pwsh } from './scripts/powershell.ts';
import { complaintsAbout } from './scripts/units.ts';

// Whatever README shows to be copied is run here, with stand-ins for the reader's own programs.

const README = fs.readFileSync(path.resolve(import.meta.dirname, '../README.md'), 'utf8');

interface Block {
  readonly language: string;
  readonly text: string;
}

const BLOCKS: readonly Block[] = [...README.matchAll(/^```(\w*)\n(.*?)^```$/gms)].map(
  ([, language = '', text = '']) => ({ language, text }),
);

/** What a block is: by its language and a piece of its text. */
function block(language: string, piece: string): Block {
  const found = BLOCKS.filter((one) => one.language === language && one.text.includes(piece));
  expect(found, `${language} with ${piece}`).toHaveLength(1);
  return found[0] ?? { language, text: '' };
}

type Run = (box: Sandbox, block: Block, ctx: TestContext) => Promise<void>;

/** Why a block is not run; else how. */
const KNOWN: readonly (readonly [language: string, piece: string, how: string | Run])[] = [
  ['sh', 'npm run demo', 'installs packages: a gate of its own does that'],
  ['crontab', 'backup.sh', runCrontab],
  ['ini', 'ExecStart=', runUnit],
  ['sh', 'trap ', runScript],
  ['powershell', 'finally', runPowerShell],
  ['sh', '--no-pid --token', runHooks],
  ['console', '# cron', 'the output of the demo, which fails by itself if anything turns out otherwise'],
  ['json', '"killAfter"', acceptConfiguration],
  ['sh', '--gate quota:', runGates],
  ['console', '--days 3', runDays],
  ['json', '"quotas"', acceptConfiguration],
  ['console', 'ledger add', runLedger],
  ['', 'no lock.json ─', 'a chart'],
  ['console', 'history --dir /srv/app/runs\n', 'the log of twenty minutes under cron'],
  ['console', '--name script', 'the log of twenty minutes under cron'],
  ['console', 'sudo runlock doctor', "doctor's own tests find it in its answer"],
  ['', 'argv ──▶', 'a chart'],
];

test.for(BLOCKS.map((one) => [`${one.language} ${one.text.split('\n')[0]}`, one] as const))(
  'README: %s',
  { timeout: 240_000 },
  async ([, one], ctx) => {
    const known = KNOWN.filter(([language, piece]) => one.language === language && one.text.includes(piece));
    // A new block needs a line above: run it, or say why not.
    expect(known.map(([language, piece]) => [language, piece])).toHaveLength(1);
    const how = known[0]?.[2];
    if (typeof how === 'function') await how(new Sandbox(), one, ctx);
  },
);

test('every block that is told of above is still in README', () => {
  for (const [language, piece] of KNOWN) block(language, piece);
});

/** A program of the reader's: says its name and arguments, and whether the lock was held meanwhile. */
function standIn(box: Sandbox, name: string, more = ''): void {
  const says = `echo "$(basename "$0")$(printf ' %s' "$@"), $(runlock status --dir '${box.runs}' | head -c 4)" >>'${box.dir}/log'`;
  fs.chmodSync(box.write(name, `#!/bin/sh\n${says}\n${more}\n`), 0o755);
}

function log(box: Sandbox): string {
  return fs.readFileSync(path.join(box.dir, 'log'), 'utf8');
}

/** A text about /srv/app, about the sandbox instead. */
function here(box: Sandbox, text: string): string {
  return text.replaceAll('/srv/app', box.dir);
}

async function wherever(box: Sandbox, program: string): Promise<string> {
  return (await box.exec('sh', ['-c', `command -v ${program}`])).stdout.trim();
}

/** Under a shell, with the sandbox first on the PATH. */
async function inShell(
  box: Sandbox,
  shell: readonly string[],
  text: string,
  options: Options = {},
): Promise<Result> {
  const [program = 'sh', ...words] = shell;
  const PATH = `${box.dir}:${path.dirname(await wherever(box, 'runlock'))}:${process.env.PATH}`;
  return box.exec(program, [...words, box.write('lines.sh', text)], {
    ...options,
    env: { PATH, ...options.env },
  });
}

async function runCrontab(box: Sandbox, { text }: Block): Promise<void> {
  const lines = text.trim().split('\n');
  const entry = lines.pop() ?? '';
  for (const line of lines) expect(line).toMatch(/^[A-Z]+=\S+$/);
  const [, command = ''] = /^(?:\S+ ){5}(.*)$/.exec(here(box, entry)) ?? [];
  standIn(box, 'backup.sh', 'exit 5');
  const { code, stdout, stderr } = await box.exec('/bin/sh', ['-c', command], { cwd: '/', detached: true });
  expect([code, stdout, log(box)]).toEqual([5, '', 'backup.sh , held\n']);
  expect(stderr).toMatch(/^runlock: made the state directory .*\n$/);
}

async function runUnit(box: Sandbox, { text }: Block, ctx: TestContext): Promise<void> {
  standIn(box, 'backup.sh');
  const unit = here(box, text).replaceAll('/usr/local/bin/runlock', await wherever(box, 'runlock'));
  expect(await complaintsAbout(ctx, box, 'backup.service', unit)).toEqual([]);
  const [, command = ''] = /^ExecStart=(.*)$/m.exec(unit) ?? [];
  const [program = '', ...words] = command.split(' ');
  expect((await box.exec(program, words, { cwd: '/', detached: true })).code).toBe(0);
  expect(log(box)).toBe('backup.sh , held\n');
}

const SHELLS = [['bash'], ['dash'], ['zsh'], ['busybox', 'sh']] as const;

async function runScript(_: Sandbox, { text }: Block, ctx: TestContext): Promise<void> {
  for (const shell of SHELLS) {
    needs(ctx, shell[0]);
    const box = new Sandbox();
    standIn(box, 'prepare');
    standIn(box, 'publish', `echo '{}' >result.json`);
    expect((await inShell(box, shell, text)).code).toBe(0);
    expect(log(box)).toBe('prepare , held\npublish , held\n');
    expect(await box.status()).toMatchObject({ state: 'free', marker: [] });

    standIn(box, 'publish', 'exit 7');
    expect((await inShell(box, shell, text)).code).toBe(7);
    expect(await box.status()).toMatchObject({
      state: 'free',
      marker: [{ item: 'ep-42', state: 'unknown' }],
    });

    // What `status` says is to be killed: the script, while a step works.
    standIn(
      box,
      'publish',
      `kill $PPID; sleep 0.2; runlock status --dir '${box.runs}' | head -c 4 >>'${box.dir}/log'`,
    );
    expect((await inShell(box, shell, text)).code).toBe(143);
    expect(log(box)).toMatch(/publish , held\nheld$/);
    expect((await box.status()).state).toBe('free');
  }
}

async function runPowerShell(box: Sandbox, { text }: Block, ctx: TestContext): Promise<void> {
  if (PWSH === undefined) ctx.skip('needs pwsh');
  const file = box.write('lines.ps1', text);
  box.write('Publish.ps1', `'{}' > result.json`);
  expect((await box.exec(...pwsh(file), { env: PWSH_ENV })).code).toBe(0);
  expect(await box.status()).toMatchObject({ state: 'free', run: null, lastRun: 1, marker: [] });
  box.write('Publish.ps1', `'{"cut' > result.json`);
  expect((await box.exec(...pwsh(file), { env: PWSH_ENV })).code).toBe(2);
  await box.runlock(['settle', 'ep-42', '--not-done']);
  box.write('Publish.ps1', 'exit 7');
  expect((await box.exec(...pwsh(file), { env: PWSH_ENV })).code).toBe(7);
  expect(await box.status()).toMatchObject({ state: 'free', marker: [{ item: 'ep-42', state: 'unknown' }] });
}

async function runHooks(box: Sandbox, { text }: Block): Promise<void> {
  const [pre = '', post = ''] = text.trim().split('\n');
  const env = { INVOCATION_ID: '5f2c' };
  expect((await inShell(box, ['sh'], here(box, pre), { env })).code).toBe(0);
  expect((await box.status()).state).toBe('held');
  expect((await inShell(box, ['sh'], here(box, post), { env })).code).toBe(0);
  expect((await box.status()).state).toBe('free');
}

async function acceptConfiguration(box: Sandbox, { text }: Block): Promise<void> {
  box.write('runlock.json', text);
  expect(await box.runlock(['status'])).toMatchObject({ code: 0, stderr: '' });
}

/** The quotas of README, none of them used up, and a ledger. */
function facts(box: Sandbox): void {
  box.write('runlock.json', block('json', '"quotas"').text);
  box.write('ledger.json', '{ "publishes": {} }\n');
  for (const folder of ['pushData', 'logs', 'out', 'queue', 'runs']) fs.mkdirSync(path.join(box.dir, folder));
  box.write('queue/ep-1', '');
}

async function runGates(box: Sandbox, { text }: Block): Promise<void> {
  facts(box);
  box.write('publish.js', `console.log('published')`);
  standIn(box, 'generate');
  const { code, stdout, stderr } = await inShell(box, ['bash', '-e'], text);
  // The first line is today's one success, so that the last one finds the quota used up.
  expect([code, stderr]).toEqual([5, '']);
  expect(stdout).toMatch(/^published\nep-1\nclosed {2}quota:juejin {2}2 of 1: .*\n$/);
  expect(log(box)).toBe('generate , held\n');
}

async function runDays(box: Sandbox, { text }: Block): Promise<void> {
  facts(box);
  const [command = '', head = ''] = text.split('\n');
  const { code, stdout } = await inShell(box, ['sh'], command.replace(/^\$ /, ''));
  expect([code, stdout.split('\n')[0]?.split(/ {2,}/)]).toEqual([0, head.split(/ {2,}/)]);
  expect(stdout.match(/ open$/gm)).toHaveLength(3);
}

/** A whole session at the terminal, word for word but for the time. */
async function runLedger(box: Sandbox, { text }: Block): Promise<void> {
  const [, first = ''] = /^\$ cat ledger\.json\n(.*?)^\$/ms.exec(text) ?? [];
  box.write('ledger.json', first);
  const commands = [...text.matchAll(/^\$ (.*)$/gm)].map(([, command]) => command);
  const { stdout, stderr } = await inShell(box, ['sh'], `${commands.join('\n')}\n`);
  expect(stderr).toBe('');
  const timeless = (shown: string) => shown.replaceAll(/\d{4}-\d\d-\d\dT[\d:]+\+08:00/g, 'TIME');
  expect(timeless(stdout)).toBe(timeless(text.replaceAll(/^\$ .*\n/gm, '')));
}
