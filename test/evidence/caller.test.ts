import { execFileSync } from 'node:child_process';
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, type TestContext, test } from 'vitest';
import type { Caller } from '../../src/evidence/caller.ts';
import type { ProcessRef } from '../../src/evidence/process.ts';
import { type Bundle, bundle } from './fixtures/bundle.ts';
import { has, LINUX } from './fixtures/processes.ts';

let built: Bundle;
beforeAll(async () => {
  built = await bundle();
});
afterAll(() => rmSync(built.dir, { recursive: true, force: true }));

interface Found {
  /** `$$` of the script, which is the shell itself in forked copies too. */
  script: number;
  caller: Caller;
  ancestors: ProcessRef[];
}

/** Runs a script whose body makes the call as `runlock acquire $OUT`, and waits for all of it. */
function inScript(shell: string, body: string, ending = 'sh'): Found {
  const dir = mkdtempSync(join(built.dir, 'case-'));
  chmodSync(dir, 0o777);
  const script = join(dir, `publish.${ending}`);
  const env = { ...process.env, PATH: built.path, OUT: join(dir, 'out'), SELF: join(dir, 'self') };
  writeFileSync(script, body);
  execFileSync(shell.split(' ')[0] ?? '', [...shell.split(' ').slice(1), script], {
    env: { ...env, RUNLOCK: built.runlock },
    cwd: dir,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  return { script: Number(readFileSync(env.SELF, 'utf8')), ...JSON.parse(readFileSync(env.OUT, 'utf8')) };
}

const IN_SHELL = 'echo $$ > "$SELF"\n';

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
  test.each(CALLS)(`the holder is the script that lives on, in ${shell}, called %s`, (_, call) => {
    if (!LINUX) return;
    const { script, caller } = inScript(shell, IN_SHELL + call);
    expect(caller).toMatchObject({ kind: 'script', process: { pid: script } });
    expect(caller.process?.started).toMatch(/^\d+$/);
    expect(caller.name).toMatch(/^(ba|da|z)?sh \S+/);
  });
}

test.each<[string, string, number]>([
  ['none for a plain call', 'runlock acquire "$OUT"; :', 0],
  ['one for $(…)', 'x=$(runlock acquire "$OUT"; :); :', 1],
  ['two for $(…) in (…)', '(x=$(runlock acquire "$OUT"; :); :); :', 2],
])('the forked copies of the shell are named: %s', (_, call, count) => {
  const { caller, ancestors } = inScript('bash', IN_SHELL + call);
  expect(caller.forks).toHaveLength(count);
  // Nearest first, as they stand above the call.
  expect(ancestors.slice(0, count)).toEqual(caller.forks);
  expect(ancestors[count]).toEqual(caller.process);
  expect(ancestors.at(-1)?.pid).toBe(1);
});

test('a subshell whose script has ended is the holder itself', () => {
  const { script, caller } = inScript(
    'bash',
    `${IN_SHELL}mkfifo go done\n(read x < go; runlock acquire "$OUT"; echo $BASHPID > done) &\n` +
      // The reader outlives the script, lets the subshell go once the script is no more, and holds up the test.
      `setsid bash -c 'while kill -0 $1 2>&-; do :; done; echo > go; cat done > inner' - $$ &\n` +
      `exec 1>&2`,
  );
  expect(caller).toMatchObject({ kind: 'script', forks: [] });
  expect(caller.process?.pid).not.toBe(script);
});

test.each([
  ['a list', 'runlock acquire "$OUT"; sleep 0'],
  ['and', 'runlock acquire "$OUT" && :'],
  ['if', 'if runlock acquire "$OUT"; then :; fi'],
])('a shell that has more to do than this call is the holder: %s', (_, text) => {
  const { script, caller } = inScript('bash', `sh -c 'echo $$ > "$SELF"; ${text}'\n:`);
  expect(caller).toMatchObject({ kind: 'script', process: { pid: script }, name: 'sh -c …' });
});

test('a script that calls itself is not its own forked copy', () => {
  const { script, caller } = inScript(
    'bash',
    'if [ "$DEEP" ]; then echo $$ > "$SELF"; runlock acquire "$OUT"; else DEEP=1 bash "$0"; fi; :',
  );
  expect(caller).toMatchObject({ kind: 'script', process: { pid: script }, forks: [] });
});

test('a call below a launcher that has left is nobody', () => {
  const { caller } = inScript(
    'bash',
    `${IN_SHELL}mkfifo done\nset -m\n` +
      // A group's leader can't begin a session, so setsid forks and ends at once; the call waits for that.
      `setsid bash -c 'while kill -0 $1 2>&-; do :; done; exec runlock acquire "$OUT"' - $$ > done &\n` +
      'exec cat done',
  );
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
    'npx --no-install runlock acquire "$OUT"',
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

function need(ctx: TestContext, program: string, ...args: string[]): void {
  if (!LINUX) ctx.skip('needs /proc');
  if (!has(program, ...args)) ctx.skip(`${program} is missing, or may not do this here`);
}
