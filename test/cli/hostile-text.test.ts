import fs from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { type Running, Sandbox } from './harness.ts';
import { needs } from './jobs.ts';

// What anyone else wrote into a name, a file or a path must not act on the terminal of who looks.

/** Clears the screen, sets the title, colours by a C1 control, turns the text round, hides some. */
const HOSTILE = '\u001b[2J\u001b]0;title\u0007\u009b31m\u202eturned\u2066\u200bhidden\r\b';
/** The same without what a lock's name and an item may not contain anyway. */
const TURNED = '\u202eturned\u2066\u200bhidden';

const ACTS_ON_A_TERMINAL = /(?!\r?\n)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u;

function quoted(word: string): string {
  return `'${word.replaceAll("'", "'\\''")}'`;
}

/** Runs commands one after another on a terminal of their own. */
function onTerminal(box: Sandbox, commands: readonly (readonly string[])[]): Running {
  const text = commands.map(
    (args) => `echo "[ ${args[0]}"; runlock ${args.map(quoted).join(' ')} </dev/null`,
  );
  const file = box.write('commands.sh', `${text.join('\n')}\n`);
  return box.start('script', ['-qec', `bash ${file}`, '/dev/null'], { detached: true });
}

/** Nothing that acts on a terminal reaches it, and what was to do so is shown as text, `times` times at least. */
async function expectHarmless(
  box: Sandbox,
  commands: readonly (readonly string[])[],
  times: number,
): Promise<string> {
  const { stdout } = await onTerminal(box, commands).result;
  expect(ACTS_ON_A_TERMINAL.exec(stdout)?.[0].codePointAt(0)?.toString(16), stdout).toBeUndefined();
  expect(stdout.split(/\\u\{1b\}|\\u\{202e\}/).length - 1, stdout).toBeGreaterThanOrEqual(times);
  expect(stdout).not.toMatch(/unexpected failure|^\s+at /m);
  return stdout;
}

function writeHostileState(box: Sandbox): void {
  const at = new Date().toISOString();
  const texts = { job: HOSTILE, item: HOSTILE, host: HOSTILE, startedBy: HOSTILE, platform: HOSTILE };
  box.putLock({ version: 1, run: 3, ...texts, command: [HOSTILE, HOSTILE], commandPid: 1, acquiredAt: at });
  const items = [{ item: HOSTILE, run: 3, job: HOSTILE, state: 'unknown', since: at, lastKnown: at }];
  fs.writeFileSync(box.file('current.json'), JSON.stringify({ version: 1, items }));
  const ended = { event: 'ended', at, startedAt: at, run: 1, item: HOSTILE, job: HOSTILE, reason: HOSTILE };
  const events = [
    { ...ended, outcome: 'failed', exitCode: 1, settled: false },
    { event: 'skipped', at, run: null, item: HOSTILE, job: HOSTILE, pid: null, code: 3, reason: HOSTILE },
  ];
  box.write(
    `runs/history/${at.slice(0, 7)}.jsonl`,
    events.map((event) => `${JSON.stringify(event)}\n`).join(''),
  );
}

test('what stands in the files of a lock is shown as text by whoever tells of it', async (ctx) => {
  needs(ctx, 'script');
  const box = new Sandbox();
  writeHostileState(box);
  fs.mkdirSync(box.file('locks', HOSTILE), { recursive: true });
  await expectHarmless(
    box,
    [
      ['status'],
      ['status', '--json'],
      ['status', '--all'],
      ['history'],
      ['history', '--json'],
      ['acquire', 'next', '--no-pid', '--token', 'b'],
      ['run', 'true'],
      ['hb'],
      ['finish'],
      ['release'],
    ],
    20,
  );
});

test('while it waits for such a lock, the line that shows it has no escape but its own', async (ctx) => {
  needs(ctx, 'script');
  const box = new Sandbox();
  writeHostileState(box);
  const { stdout } = await onTerminal(box, [['run', '--wait', '300ms', 'true']]).result;
  expect(stdout).toContain('waiting up to');
  expect(stdout.replaceAll('\r\u001b[K', '')).not.toMatch(ACTS_ON_A_TERMINAL);
});

test('a stale lock of such a holder is taken over in plain words', async (ctx) => {
  needs(ctx, 'script');
  const box = new Sandbox();
  writeHostileState(box);
  box.age(box.file('lock.json'), 100 * 60_000);
  await expectHarmless(
    box,
    [['status'], ['run', '--item', `x${TURNED}`, 'false'], ['status'], ['history']],
    8,
  );
});

test('content that is no lock or marker, and results and lists that are none, are refused in plain words', async (ctx) => {
  needs(ctx, 'script');
  const box = new Sandbox();
  box.putLock(`{"pid":"${HOSTILE}"`);
  fs.writeFileSync(box.file('current.json'), HOSTILE);
  const list = box.write('list', `${HOSTILE}\n`);
  const result = box.write('result', HOSTILE);
  const config = box.write('config.json', JSON.stringify({ [HOSTILE]: 1 }));
  const version = JSON.stringify({ version: HOSTILE });
  await expectHarmless(
    box,
    [
      ['status'],
      ['pick'],
      ['settle', `x${TURNED}`],
      ['acquire', '--no-pid', '--token', 'b', '--from', list],
      ['finish', result, '--token', 'b'],
      ['status', '--config', config],
    ],
    3,
  );
  fs.writeFileSync(box.file('lock.json'), version);
  await expectHarmless(box, [['status'], ['run', 'true']], 2);
});

test('paths, names, items, options and commands are shown as text in every answer and error', async (ctx) => {
  needs(ctx, 'script');
  const box = new Sandbox();
  const dir = path.join(box.dir, HOSTILE);
  const commands: string[][] = [
    ['status', '--dir', dir],
    ['run', '--dir', dir, 'false'],
    ['acquire', '--dir', dir, '--no-pid', '--token', 'a'],
    ['run', '--dir', dir, 'true'],
    ['hb', '--dir', dir, '--token', 'b'],
    ['finish', `${dir}/absent`, '--dir', dir, '--token', 'a'],
    ['finish', '--dir', dir, '--token', 'a'],
    ['finish', '--dir', dir, '--token', 'a'],
    ['settle', 'x', '--dir', dir],
    ['status', '--dir', `${dir}/absent/absent`],
    ['status', '--name', HOSTILE],
    ['status', '--name', TURNED],
    ['settle', HOSTILE],
    ['settle', TURNED],
    ['run', '--item', TURNED, '--job', TURNED, 'false'],
    ['acquire', 'x', '--no-pid', '--token', 'a', '--from', `${dir}/absent`],
    ['status', '--config', `${dir}/absent`],
    ['run', HOSTILE],
    ['run', '--timeout', HOSTILE, 'true'],
    ['run', '--skip-code', HOSTILE, 'true'],
    ['acquire', '--pid', HOSTILE],
    ['hb', '--run', HOSTILE],
    ['history', '-n', HOSTILE],
    ['history', '--since', HOSTILE],
    ['history', '--outcome', HOSTILE],
    ['history'],
    ['status', `--${HOSTILE}`],
    ['help', HOSTILE],
    [HOSTILE],
    [`--${HOSTILE}`],
  ];
  // The name of a command is echoed by the test itself.
  const shown = commands.filter(([verb = '']) => /^[a-z]+$/.test(verb));
  await expectHarmless(box, shown, shown.length - 4);
  for (const args of commands.slice(shown.length)) {
    const { stdout, stderr } = await box.runlock(args);
    expect(stdout + stderr).not.toMatch(ACTS_ON_A_TERMINAL);
    expect(stderr).toContain('\\u{1b}');
  }
});

test('gates and ledgers are shown as text, whatever their files are called and hold', async (ctx) => {
  needs(ctx, 'script');
  const box = new Sandbox();
  fs.mkdirSync(path.join(box.dir, HOSTILE));
  fs.symlinkSync(HOSTILE, path.join(box.dir, 'folder.json'));
  fs.symlinkSync(`${HOSTILE}/absent`, path.join(box.dir, 'absent.json'));
  box.write(`${HOSTILE}/cut.json`, `{"${HOSTILE}`);
  box.write(`${HOSTILE}/keys.json`, JSON.stringify({ [HOSTILE]: {} }));
  box.write(`${HOSTILE}/dir/x`, '');
  fs.symlinkSync(`${HOSTILE}/dir`, path.join(box.dir, 'dir.json'));
  fs.symlinkSync(`${HOSTILE}/cut.json`, path.join(box.dir, 'cut.json'));
  fs.symlinkSync(`${HOSTILE}/keys.json`, path.join(box.dir, 'keys.json'));
  const source = { log: `${HOSTILE}.log`, contains: 'x', time: '(x)' };
  box.write(source.log, 'x\n');
  const quotas = { [TURNED]: { limit: 1, period: 'day', timeZone: 'UTC', sources: [source] } };
  const config = box.write('quotas.json', JSON.stringify({ quotas }));
  const links = ['folder.json', 'absent.json', 'dir.json', 'cut.json'];
  await expectHarmless(
    box,
    [
      ...links.flatMap((link) => [
        ['gate', `ledger:${link}`, '--item', 'x'],
        ['run', '--item', 'x', '--gate', `ledger:${link}`, 'true'],
        ['ledger', 'list', link],
        ['ledger', 'add', link, 'x'],
      ]),
      ['ledger', 'list', 'keys.json'],
      ['ledger', 'add', 'keys.json', TURNED],
      ['ledger', 'has', HOSTILE, 'x'],
      ['ledger', HOSTILE, 'x'],
      ['gate', 'ledger:keys.json', '--item', TURNED],
      ['gate', `output:${TURNED}/x`],
      ['gate', `output:${TURNED}/x/`],
      ['gate', `quota:${TURNED}`],
      ['gate', `quota:${TURNED}`, '--config', config],
      ['gate', HOSTILE],
    ],
    links.length * 3,
  );
});

test('a script, a command and a survivor with such names are shown as text', async (ctx) => {
  needs(ctx, 'script', 'bash');
  const box = new Sandbox();
  const script = box.write(`${HOSTILE}.sh`, 'runlock acquire ep; echo up; exec -a "$1" sleep 1000');
  const holder = box.start('bash', [script, HOSTILE], { detached: true });
  await holder.says('up');
  const run = box.start('runlock', ['run', '--name', 'other', 'bash', script, HOSTILE], { detached: true });
  await run.says('up');
  await expectHarmless(
    box,
    [
      ['status'],
      ['run', 'true'],
      ['status', '--name', 'other'],
      ['run', '--name', 'other', 'true'],
      ['history'],
    ],
    5,
  );
});
