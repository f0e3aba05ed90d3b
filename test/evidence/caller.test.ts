import { execFileSync } from 'node:child_process';
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, type TestContext, test } from 'vitest';
import type { Caller } from '../../src/evidence/caller.ts';
import type { ProcessRef } from '../../src/record.ts';
import { type Bundle, bundle } from './fixtures/bundle.ts';
import { endAll, has, LINUX, start } from './fixtures/processes.ts';

let built: Bundle;
beforeAll(async () => {
  built = await bundle();
});
afterAll(() => rmSync(built.dir, { recursive: true, force: true }));

afterEach(endAll);

interface Found {
  /** `$$` of the script, which is the shell itself in forked copies too. */
  script: number;
  caller: Caller;
  ancestors: ProcessRef[];
}

/** Runs a script whose body makes the call as `runlock acquire $OUT`, and waits for all of it. */
function inScript(shell: string, body: string, ending = 'sh'): Found {
  const { command, args, env, cwd } = prepare(shell, body, ending);
  execFileSync(command, args, { env, cwd, stdio: ['ignore', 'ignore', 'inherit'], timeout: 50_000 });
  return read(env);
}

/** The same for a script that ends before the call does: its output ends with the last of them. */
async function inOrphan(body: string): Promise<Found> {
  const { command, args, env, cwd } = prepare('bash', body, 'sh');
  await start(command, args, { env, cwd });
  return read(env);
}

function prepare(shell: string, body: string, ending: string) {
  const cwd = mkdtempSync(join(built.dir, 'case-'));
  chmodSync(cwd, 0o777);
  const script = join(cwd, `publish.${ending}`);
  writeFileSync(script, body);
  const [command = '', ...options] = shell.split(' ');
  const env = { ...process.env, PATH: built.path, OUT: join(cwd, 'out'), SELF: join(cwd, 'self') };
  return { command, args: [...options, script], cwd, env: { ...env, RUNLOCK: built.runlock } };
}

function read({ SELF, OUT }: { SELF: string; OUT: string }): Found {
  return { script: Number(readFileSync(SELF, 'utf8')), ...JSON.parse(readFileSync(OUT, 'utf8')) };
}

const IN_SHELL = 'echo $$ > "$SELF"\n';

/** Goes on once the subshell has another parent than the script. */
const ORPHANED = 'while grep -q "^PPid:.*\\b$$$" /proc/$BASHPID/status; do :; done';

const CALLS: [string, string][] = [
  ['directly', 'runlock acquire "$OUT"\n:'],
  ['as its last command', 'runlock acquire "$OUT"'],
  ['in $(…)', 'x=$(runlock acquire "$OUT")\n:'],
  ['in $(…) with two commands', 'x=$(runlock acquire "$OUT"; echo y)\n:'],
  ['in $(…) in $(…)', 'x=$(echo $(runlock acquire "$OUT"; echo y); echo z)\n:'],
  ['in a pipeline', 'runlock acquire "$OUT" | cat\n:'],
  ['in a group in a pipeline', '{ runlock acquire "$OUT"; echo y; } | cat\n:'],
  ['in if', 'if runlock acquire "$OUT"; then :; fi\n:'],
  ['in a function', 'f() { runlock acquire "$OUT"; }\nf\n:'],
  ['in (…)', '(runlock acquire "$OUT"; :)\n:'],
  ['in (…) &', '(runlock acquire "$OUT"; :) &\nwait'],
  ['by sh -c', `sh -c 'runlock acquire "$OUT"'\n:`],
  ['by sh -c in sh -c', `sh -c "sh -c 'runlock acquire $OUT'"\n:`],
  ['by sh -c with what it does not change', `sh -c '# once\nA=1 exec "$RUNLOCK" acquire "$OUT" 2>&1;'\n:`],
  ['by timeout', 'timeout 20 runlock acquire "$OUT"\n:'],
  ['by env', 'env A=1 runlock acquire "$OUT"\n:'],
  ['by xargs', 'echo "$OUT" | xargs -n1 runlock acquire\n:'],
  ['by setsid --wait', 'setsid --wait runlock acquire "$OUT"\n:'],
  ['by flock', 'flock "$SELF" runlock acquire "$OUT"\n:'],
  ['by flock -c', `flock "$SELF" -c 'runlock acquire "$OUT"'\n:`],
  ['by launchers in launchers', `timeout 20 env nice sh -c 'setsid --wait runlock acquire "$OUT"'\n:`],
  ['by an unlisted wrapper', 'printf \'"$@"\\n:\\n\' > wrap\nsh ./wrap runlock acquire "$OUT"\n:'],
];

for (const shell of ['bash', 'dash', 'busybox sh', 'zsh']) {
  test.for(CALLS)(`the holder is the script that lives on, in ${shell}, called %s`, ([, call], ctx) => {
    need(ctx, ...shell.split(' '), '-c', 'true');
    const { script, caller } = inScript(shell, IN_SHELL + call);
    expect(caller).toMatchObject({ kind: 'script', process: { pid: script } });
    expect(caller.process?.started).toMatch(/^\d+$/);
    expect(caller.name).toMatch(/^(ba|da|z)?sh \S+/);
  });
}

test.for<[string, string, number]>([
  ['none for a plain call', 'runlock acquire "$OUT"; :', 0],
  ['one for $(…)', 'x=$(runlock acquire "$OUT"; :); :', 1],
  ['two for $(…) in (…)', '(x=$(runlock acquire "$OUT"; :); :); :', 2],
])('the forked copies of the shell are named: %s', ([, call, count], ctx) => {
  need(ctx, 'bash', '--version');
  const { caller, ancestors } = inScript('bash', IN_SHELL + call);
  expect(caller.forks).toHaveLength(count);
  // Nearest first, as they stand above the call.
  expect(ancestors.slice(0, count)).toEqual(caller.forks);
  expect(ancestors[count]).toEqual(caller.process);
  expect(ancestors.at(-1)?.pid).toBe(1);
});

test('a subshell whose script has ended is the holder itself', async (ctx) => {
  need(ctx, 'bash', '--version');
  const { script, caller, ancestors } = await inOrphan(
    `${IN_SHELL}( ${ORPHANED}; runlock acquire "$OUT"; echo done ) &`,
  );
  expect(caller).toMatchObject({
    kind: 'script',
    forks: [],
    process: ancestors[0],
    name: expect.stringMatching(/^bash /),
  });
  expect(caller.process?.pid).not.toBe(script);
});

test.for([
  ['a list', 'runlock acquire "$OUT"; sleep 0'],
  ['and', 'runlock acquire "$OUT" && :'],
  ['if', 'if runlock acquire "$OUT"; then :; fi'],
])('a shell that has more to do than this call is the holder: %s', ([, text], ctx) => {
  need(ctx, 'bash', '--version');
  const { script, caller } = inScript('bash', `sh -c 'echo $$ > "$SELF"; ${text}'\n:`);
  expect(caller).toMatchObject({ kind: 'script', process: { pid: script }, name: 'sh -c …' });
});

test('a script that calls itself is not its own forked copy', (ctx) => {
  need(ctx, 'bash', '--version');
  const { script, caller } = inScript(
    'bash',
    'if [ "$DEEP" ]; then echo $$ > "$SELF"; runlock acquire "$OUT"; else DEEP=1 bash "$0"; fi; :',
  );
  expect(caller).toMatchObject({ kind: 'script', process: { pid: script }, forks: [] });
});

test('a call that outlives all its script has nobody', async (ctx) => {
  need(ctx, 'bash', '--version');
  const { caller } = await inOrphan(`${IN_SHELL}( ${ORPHANED}; exec runlock acquire "$OUT" ) &`);
  expect(caller.kind).toBe('nobody');
});

interface Other {
  program: string;
  args: string[];
  ending: string;
  body: string;
}

const OTHERS: Other[] = [
  {
    program: 'node',
    args: ['-v'],
    ending: 'cjs',
    body: `const { execSync } = require('node:child_process');
      require('node:fs').writeFileSync(process.env.SELF, String(process.pid));
      execSync('runlock acquire "$OUT"');`,
  },
  {
    program: 'python3',
    args: ['-V'],
    ending: 'py',
    body: `import os, subprocess
open(os.environ['SELF'], 'w').write(str(os.getpid()))
subprocess.run('runlock acquire "$OUT"', shell=True)`,
  },
  {
    program: 'perl',
    args: ['-v'],
    ending: 'pl',
    body: `open(F, '>', $ENV{SELF}); print F $$; close F; my $x = \`runlock acquire "$ENV{OUT}" 2>&1\`; print $x;`,
  },
  {
    program: 'php',
    args: ['-v'],
    ending: 'php',
    body: `<?php file_put_contents(getenv('SELF'), getmypid()); exec('runlock acquire "$OUT"');`,
  },
  {
    program: 'ruby',
    args: ['-v'],
    ending: 'rb',
    body: `File.write(ENV['SELF'], $$.to_s); system('runlock acquire "$OUT"')`,
  },
];

test.for(OTHERS)(
  'a script in $program that lives on is the holder',
  ({ program, args, ending, body }, ctx) => {
    need(ctx, program, ...args);
    const { script, caller } = inScript(program, body, ending);
    expect(caller).toMatchObject({ kind: 'script', process: { pid: script }, forks: [] });
  },
);

test('make ends with the call, but is no script: its end says nothing', (ctx) => {
  need(ctx, 'make', '--version');
  const { caller } = inScript(
    'make -f',
    'all:\n\t@echo $$PPID > "$$SELF"\n\t@runlock acquire "$$OUT"\n',
    'mk',
  );
  expect(caller).toMatchObject({ kind: 'indirect', name: 'make' });
});

test('sudo is climbed past, from one user to another too', (ctx) => {
  need(ctx, 'sudo', '-n', 'true');
  const body = (user: string) => `${IN_SHELL}sudo -n -u ${user} "$RUNLOCK" acquire "$OUT"\n:`;
  for (const user of ['root', 'nobody']) {
    const { script, caller } = inScript('bash', body(user));
    expect(caller).toMatchObject({ kind: 'script', process: { pid: script }, forks: [] });
  }
});

test("another user's forked copy is still taken for one, since its end must not free the lock", (ctx) => {
  need(ctx, 'sudo', '-n', 'true');
  const { script, caller } = inScript(
    'bash',
    `${IN_SHELL}x=$(sudo -n -u nobody "$RUNLOCK" acquire "$OUT"; echo y)\n:`,
  );
  expect(caller).toMatchObject({ process: { pid: script }, forks: [{}] });
});

test.for([
  ['su -c', `su -c 'runlock acquire "$OUT"'`],
  ['runuser', 'runuser -u nobody -- "$RUNLOCK" acquire "$OUT"'],
  ['strace', 'strace -f -o /dev/null runlock acquire "$OUT"'],
])('%s is climbed past', ([program = '', call], ctx) => {
  need(ctx, program.split(' ')[0] ?? '', '--version');
  const { script, caller } = inScript('bash', `${IN_SHELL}${call}\n:`);
  expect(caller).toMatchObject({ kind: 'script', process: { pid: script } });
});

test('npm and npx are climbed past', (ctx) => {
  need(ctx, 'npx', '--version');
  const calls = [
    'mkdir -p node_modules/.bin; ln -s "$RUNLOCK" node_modules/.bin; npx --no-install runlock acquire "$OUT"',
    `npx -c 'runlock acquire "$OUT"'`,
    `echo '{"scripts":{"lock":"runlock acquire"}}' > package.json; npm run lock -- "$OUT"`,
  ];
  for (const call of calls) {
    const { script, caller } = inScript('bash', `${IN_SHELL}${call}\n:`);
    expect(caller).toMatchObject({ kind: 'script', process: { pid: script } });
  }
});

test('pid 1 and what has no parent here are nobody', (ctx) => {
  need(ctx, 'unshare', '--pid', '--fork', 'true');
  for (const call of [
    '"$RUNLOCK" acquire "$OUT"',
    `dash -c 'runlock acquire "$OUT"; :'`,
    `dash -c 'x=$(runlock acquire "$OUT"; :)'`,
  ]) {
    const { caller } = inScript('bash', `${IN_SHELL}unshare --pid --fork --mount-proc ${call}`);
    expect(caller).toMatchObject({ kind: 'nobody', process: null });
  }
});

test('where /proc shows another namespace, its numbers are not believed', (ctx) => {
  need(ctx, 'unshare', '--pid', '--fork', 'true');
  const { script, caller, ancestors } = inScript(
    'bash',
    `unshare --pid --fork bash -c 'bash -c "echo \\$\\$ > $SELF; runlock acquire $OUT; :"; :'`,
  );
  expect(caller).toEqual({ kind: 'indirect', process: { pid: script, started: null }, forks: [], name: '' });
  expect(ancestors).toEqual([{ pid: script, started: null }]);
});

function need(ctx: TestContext, program = '', ...args: string[]): void {
  if (!LINUX) ctx.skip('needs /proc');
  if (!has(program, ...args)) ctx.skip(`${program} is missing, or may not do this here`);
}
