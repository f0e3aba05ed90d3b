import fs from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { BINARY, eventually, Sandbox } from './harness.ts';
import { allOf, expectHeldUntilGone, fifo, look, needs, startShell, states } from './processes.ts';

const SHELLS = [['bash'], ['dash'], ['zsh'], ['busybox', 'sh']] as const;

/** A1. Ways to write the call that every shell knows; `L` stands for `--name` and the name of the form. */
const FORMS: Readonly<Record<string, string>> = {
  plain: 'runlock acquire L x',
  if: 'if runlock acquire L x; then :; else exit 1; fi',
  and: 'true && runlock acquire L x || exit 1',
  pipeline: 'runlock acquire L x | cat',
  'pipeline-end': 'echo x | while read -r item; do runlock acquire L "$item" </dev/null; done',
  substitution: 'run=$(runlock acquire L x)',
  'substitution-of-two': 'run=$(cd . && runlock acquire L x; true)',
  'nested-substitution': 'run=$(echo "$(runlock acquire L x; true)"; true)',
  backquotes: 'run=`cd .; runlock acquire L x`',
  eval: 'eval "runlock acquire L x; true"',
  function: 'take() { runlock acquire L "$1"; }; take x',
  'function-in-substitution': 'give() { runlock acquire L "$1"; return 0; }; run=$(give x)',
  'here-document': 'runlock acquire L x <<END\n{"not": "read"}\nEND',
  'loop-on-here-document': 'while read -r item; do runlock acquire L "$item" </dev/null; done <<END\nx\nEND',
  subshell: '( runlock acquire L x )',
  'subshell-in-subshell': '( true; ( runlock acquire L x; true ); true )',
  background: 'runlock acquire L x & wait $!',
  sourced: '. ./lib.sh',
  'shell-with-text': "sh -c 'runlock acquire L x'",
  trap: "trap 'runlock acquire L x' USR1; kill -USR1 $$; trap - USR1",
  assignment: 'TZ=UTC LANG=C runlock acquire L x 2>/dev/null >log',
  symlink: './deep/lock acquire L x',
  interpreter: `node '${BINARY}' acquire L x`,
};

for (const shell of SHELLS) {
  test(`however a ${shell.join(' ')} script writes the call, the script holds the lock until it is gone`, async (ctx) => {
    needs(ctx, shell[0]);
    const box = new Sandbox();
    fs.mkdirSync(path.join(box.dir, 'deep'));
    fs.symlinkSync(BINARY, path.join(box.dir, 'other-name'));
    fs.symlinkSync('../other-name', path.join(box.dir, 'deep', 'lock'));
    box.write('lib.sh', 'runlock acquire --name sourced x\n');
    const calls = Object.entries(FORMS).map(([name, text]) => text.replace(' L ', ` --name ${name} `));
    const script = startShell(box, shell, [...calls, 'echo taken', 'read line', ''].join('\n'));
    await script.says('taken');
    expect(await states(box)).toEqual(allOf(Object.keys(FORMS), 'held'));
    script.tell('end');
    await script.ended;
    expect(await states(box)).toEqual(allOf(Object.keys(FORMS), 'stale'));
  });
}

/** Where a shell finds its script, the call being the same. */
const WAIT = 'echo taken; read -r line; true';
const TAKE = `runlock acquire x; ${WAIT}`;
const STARTS: Readonly<Record<string, readonly string[]>> = {
  'the text behind -c': ['bash', '-c', TAKE],
  'the text behind -c of dash': ['dash', '-c', TAKE],
  'the text behind -euo pipefail -c': ['bash', '-euo', 'pipefail', '-c', TAKE],
  'a loop behind -c': [
    'bash',
    '-c',
    'for item in x; do runlock acquire $item; done; echo taken; read -r line',
  ],
  'a file with a #! line': ['./executable'],
  'a file without a #! line': ['bash', '-c', './no-first-line; true'],
  'an option and a file': ['bash', '--noprofile', '-x', './executable'],
  'a descriptor': ['bash', '-c', 'exec bash /dev/fd/9 9<./executable'],
  'a process substitution': ['bash', '-c', `read -r run < <(runlock acquire x; true); ${WAIT}`],
  'a coprocess': ['bash', '-c', `coproc { runlock acquire x; }; wait; ${WAIT}`],
  'a script that a script calls': ['bash', '-c', './executable; echo inner is over'],
};

test.each(Object.entries(STARTS))(
  'a script that comes as %s holds the lock until it is gone',
  async (_, [command = '', ...args]) => {
    const box = new Sandbox();
    fs.chmodSync(box.write('executable', `#!/usr/bin/env bash\n${TAKE}\n`), 0o755);
    fs.chmodSync(box.write('no-first-line', `${TAKE}\n`), 0o755);
    await expectHeldUntilGone(box, box.start(command, args, { detached: true }));
  },
);

test('a script that comes on stdin holds the lock until it is gone', async () => {
  const box = new Sandbox();
  const shell = box.start('bash', ['-s', 'some', 'arguments'], { detached: true });
  shell.tell('runlock acquire x; echo taken; read -r line; exit');
  await expectHeldUntilGone(box, shell);
});

test('a script that calls npx, npm exec or npm run holds the locks until it is gone', async (ctx) => {
  needs(ctx, 'npx', 'npm');
  const box = new Sandbox();
  fs.mkdirSync(path.join(box.dir, 'node_modules', '.bin'), { recursive: true });
  fs.symlinkSync(BINARY, path.join(box.dir, 'node_modules', '.bin', 'runlock'));
  box.write('package.json', JSON.stringify({ scripts: { lock: 'runlock acquire --name npm-run x' } }));
  const env = { npm_config_update_notifier: 'false', npm_config_offline: 'true' };
  const script = startShell(
    box,
    ['bash'],
    `npx --no-install runlock acquire --name npx x </dev/null
     run=$(npm exec --no -- runlock acquire --name npm-exec x </dev/null)
     npm run --silent lock </dev/null
     echo taken; read -r line`,
    { env },
  );
  await script.says('taken');
  const names = ['npx', 'npm-exec', 'npm-run'];
  expect(await states(box)).toEqual(allOf(names, 'held'));
  script.tell('end');
  await script.ended;
  expect(await states(box)).toEqual(allOf(names, 'stale'));
});

test('an npm script of several commands holds the lock while its work goes on', async (ctx) => {
  needs(ctx, 'npm');
  const box = new Sandbox();
  const work = `node -e "console.log('taken'); process.stdin.once('data', () => process.exit())"`;
  box.write('package.json', JSON.stringify({ scripts: { job: `runlock acquire x </dev/null && ${work}` } }));
  await expectHeldUntilGone(box, box.start('npm', ['run', '--silent', 'job'], { detached: true }));
});

test('the lock of a script ends with it, though the script that called it goes on', async () => {
  const box = new Sandbox();
  const inner = box.write('inner.sh', 'runlock acquire x; runlock status >/dev/null; echo "inside $?"\n');
  const script = startShell(box, ['bash'], `bash '${inner}'; echo taken; read -r line`);
  await script.says('taken');
  expect(script.stdout).toContain('inside 3');
  expect((await look(box)).state).toBe('stale');
});

test('a script that calls itself is another holder than the one that called', async () => {
  const box = new Sandbox();
  const script = startShell(
    box,
    ['bash'],
    `if [ -n "$INNER" ]; then runlock acquire x; exit; fi
     INNER=1 bash "$0"; echo taken; runlock finish </dev/null; echo "finish $?"; read -r line`,
  );
  await script.says('finish 4');
  expect((await look(box)).state).toBe('stale');
});

test('what was taken in one way is beaten, finished and released in any other', async () => {
  const box = new Sandbox();
  const script = box.script(
    'bash',
    `say() { echo "$1 $2"; }
     ( runlock acquire a >/dev/null ); say acquire $?
     beat=$(runlock hb; echo "$?"; true); say hb "$beat"
     runlock hb | cat; say hb \${PIPESTATUS[0]}
     ( true; ( runlock finish >/dev/null; exit $? ) ); say finish $?
     run=$(runlock acquire b; true); say acquire $?
     eval "timeout 20 runlock release"; say release $?
     runlock status >/dev/null; say status $?`,
  );
  const { stdout } = await script;
  expect(stdout.trim().split('\n')).toEqual([
    'acquire 0',
    'hb 0',
    'hb 0',
    'finish 0',
    'acquire 0',
    'release 0',
    'status 0',
  ]);
});

test('a script that the holder starts may beat, but neither finish nor release', async () => {
  const box = new Sandbox();
  const helper = box.write(
    'helper.sh',
    `runlock hb; echo "hb $?"; runlock finish; echo "finish $?"; runlock release; echo "release $?"\n`,
  );
  const { stdout, stderr } = await box.script(
    'bash',
    `runlock acquire x; bash '${helper}'; runlock status; echo "status $?"`,
  );
  for (const answer of ['hb 0', 'finish 4', 'release 0', 'status 3']) expect(stdout).toContain(answer);
  expect(stderr).toContain('not yours');
});

for (const shell of SHELLS) {
  test(`in ${shell.join(' ')}, a subshell that works on holds the lock after its script has ended`, async (ctx) => {
    needs(ctx, shell[0]);
    const box = new Sandbox();
    const work = fifo(box, 'work');
    const script = startShell(
      box,
      shell,
      '( run=$(runlock acquire x; true); echo taken; read -r line <work; echo over ) &\nread -r line\n',
    );
    await script.says('taken');
    script.tell('end');
    await eventually('the script has ended', () => script.child.exitCode === 0);
    const { state, reason } = await look(box);
    expect([state, reason]).toEqual(['held', null]);
    work.tell('end');
    await script.ended;
    expect((await look(box)).state).toBe('stale');
  });
}

test('while a subshell that took the lock works on, its script can not free it; then it can', async () => {
  const box = new Sandbox();
  const work = fifo(box, 'work');
  const script = startShell(
    box,
    ['bash'],
    `( runlock acquire x >/dev/null; echo taken; read -r line <work ) &
     read -r line; runlock finish; echo "while $?"; runlock release; echo "released $?"; runlock status >/dev/null; echo "status $?"
     read -r line; wait; runlock status >/dev/null; echo "status $?"; runlock finish; echo "then $?"`,
  );
  await script.says('taken');
  script.tell('try');
  await script.says('status 3');
  expect(script.stdout).toContain('while 4');
  expect(script.stdout).toContain('released 0');
  work.tell('end');
  script.tell('again');
  await script.says('then 0');
  expect(script.stdout.match(/status 3/g)).toHaveLength(2);
});

test('a subshell that took the lock frees it by itself after its script has ended', async () => {
  const box = new Sandbox();
  const work = fifo(box, 'work');
  const script = startShell(
    box,
    ['bash'],
    '( runlock acquire x >/dev/null; echo taken; read -r line <work; echo "{}" | runlock finish -; echo "finish $?" ) &\nread -r line',
  );
  await script.says('taken');
  script.tell('end');
  await eventually('the script has ended', () => script.child.exitCode === 0);
  work.tell('finish');
  await script.says('finish 0');
  expect((await look(box)).state).toBe('free');
});
