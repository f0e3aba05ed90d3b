import fs from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { BINARY, type Running, Sandbox } from './harness.ts';
import {
  allOf,
  expectHeldUntilGone,
  look,
  NAMESPACE,
  needs,
  needsNamespaces,
  needsRoot,
  startShell,
  states,
  tryAcquire,
} from './processes.ts';

// Programs that end with what they start: who stands behind them holds the lock.

const CALL = `'${process.execPath}' '${BINARY}' acquire`;

/** `L` stands for `--name` and the name of the form. */
async function holdThrough(box: Sandbox, forms: Readonly<Record<string, string>>): Promise<void> {
  const names = Object.keys(forms);
  const calls = Object.entries(forms).map(([name, text]) => text.replace(' L ', ` --name ${name} `));
  const script = startShell(box, ['bash'], [...calls, 'echo taken', 'read -r line', ''].join('\n'));
  await script.says('taken');
  expect(await states(box)).toEqual(allOf(names, 'held'));
  script.tell('end');
  await script.ended;
  expect(await states(box)).toEqual(allOf(names, 'stale'));
}

test('a script that calls through programs that end with the call holds the lock until it is gone', async (ctx) => {
  needs(ctx, 'timeout', 'xargs', 'nice', 'setsid', 'nohup', 'stdbuf', 'ionice', 'flock', 'time');
  await holdThrough(new Sandbox(), {
    timeout: 'timeout -k 5 60 runlock acquire L x',
    'timeout-foreground': 'timeout --foreground 60 runlock acquire L x',
    xargs: 'echo x | xargs runlock acquire L ',
    'xargs-shell': `echo x | xargs -I{} sh -c 'runlock acquire L {}'`,
    nice: 'nice -n 5 runlock acquire L x',
    env: 'env -i PATH="$PATH" LANG=C runlock acquire L x',
    setsid: 'setsid -w runlock acquire L x',
    nohup: 'nohup runlock acquire L x >nohup.log 2>&1',
    stdbuf: 'stdbuf -oL runlock acquire L x',
    ionice: 'ionice -c3 runlock acquire L x',
    flock: 'flock flock.lock runlock acquire L x',
    time: '/usr/bin/env time -p runlock acquire L x 2>/dev/null',
    chain: `timeout 60 nice env A=1 setsid -w sh -c 'exec runlock acquire L x'`,
    'shell-in-shell': `sh -c "bash -c 'runlock acquire L x'"`,
    'shell-with-arguments': `sh -c 'runlock acquire L "$1"' sh x`,
    'shell-with-redirections': `dash -c 'runlock acquire L x 2>&1 >/dev/null </dev/null'`,
    'substituted-launcher': 'run=$(timeout 60 runlock acquire L x; true)',
  });
});

test('a script that calls as another user holds the lock until it is gone', async (ctx) => {
  needsRoot(ctx);
  needs(ctx, 'sudo', 'su', 'runuser', 'setpriv');
  await holdThrough(new Sandbox(), {
    sudo: `sudo -n ${CALL} L x`,
    'sudo-as': `sudo -n -u root -E ${CALL} L x`,
    'sudo-shell': `sudo -n sh -c "${CALL} L x"`,
    su: `su -c "${CALL} L x" root </dev/null`,
    runuser: `runuser -u root -- ${CALL} L x`,
    setpriv: `setpriv --no-new-privs ${CALL} L x`,
    'sudo-chain': `sudo -n timeout 60 nice ${CALL} L x`,
  });
});

const PROGRAMS: Readonly<Record<string, readonly [program: string, code: string]>> = {
  'node, by execFile': ['node', `require('child_process').execFileSync('runlock', ['acquire', 'x'])`],
  'node, by a shell': ['node', `require('child_process').execSync('runlock acquire x')`],
  'python, by a list': [
    'python3',
    `import subprocess; subprocess.run(['runlock', 'acquire', 'x'], check=True)`,
  ],
  'python, by a shell': ['python3', `import os; os.system('runlock acquire x')`],
  'perl, by backquotes': ['perl', 'my $run = `runlock acquire x`;'],
  'perl, by system': ['perl', `system('runlock', 'acquire', 'x');`],
  'php, by exec': ['php', `<?php exec('runlock acquire x');`],
};

const WAITS: Readonly<Record<string, string>> = {
  node: `;console.log('taken'); process.stdin.once('data', () => process.exit());`,
  python3: `; import sys; print('taken', flush=True); sys.stdin.readline()`,
  perl: `$| = 1; print "taken\\n"; <STDIN>;`,
  php: ` echo "taken\\n"; fgets(STDIN);`,
};

test.for(Object.entries(PROGRAMS))(
  'a script in %s, holds the lock until it is gone',
  async ([, [program, code]], ctx) => {
    needs(ctx, program);
    const box = new Sandbox();
    const script = box.write('job', `${code}${WAITS[program] ?? ''}\n`);
    await expectHeldUntilGone(box, box.start(program, [script], { detached: true }));
  },
);

test('where make, find or code on the command line called, the heartbeat alone decides, and that is said once', async (ctx) => {
  needs(ctx, 'make', 'find');
  const calls = {
    make: 'make -s -f rules lock',
    find: "find . -maxdepth 0 -exec runlock acquire x ';'",
    node: `node -e "require('child_process').execFileSync('runlock', ['acquire', 'x'], { stdio: 'inherit' })"`,
  };
  for (const call of Object.values(calls)) {
    const box = new Sandbox();
    box.write('rules', 'lock:\n\trunlock acquire x\n');
    const script = startShell(box, ['bash'], `${call}; echo taken; read -r line`);
    await script.says('taken');
    expect(script.stderr.match(/heartbeat alone decides/g)).toHaveLength(1);
    const { state, pid, staleInMs } = await look(box);
    expect([state, pid, staleInMs]).toEqual(['held', null, expect.any(Number)]);
    script.tell('end');
    await script.ended;
    expect(await tryAcquire(box)).toBe(3);
    box.age(box.file('lock.json'), 46 * 60_000);
    expect(await tryAcquire(box)).toBe(0);
  }
});

/** A process of that name, which starts the rest of its words and waits for it. */
function startAs(box: Sandbox, name: string, args: readonly string[]): Running {
  const program = path.join(box.dir, name);
  fs.copyFileSync('/usr/bin/timeout', program);
  return box.start(program, ['1000', ...args], { detached: true });
}

const DAEMONS = [
  'cron',
  'crond',
  'systemd',
  'sshd',
  'supervisord',
  'containerd-shim-runc-v2',
  'launchd',
  'atd',
];

test.for(DAEMONS)('%s holds no lock, and the hint says what does', async (name, ctx) => {
  needs(ctx, 'timeout');
  const box = new Sandbox();
  const { code, stdout, stderr } = await startAs(box, name, ['runlock', 'acquire', 'x']).result;
  expect([code, stdout]).toEqual([2, '']);
  expect(stderr).toContain('--no-pid --token');
  expect(stderr).toContain('--pid');
  expect((await look(box)).state).toBe('free');
});

test('a hook of a service manager takes the lock with an ID, and the next hook frees it with the same', async (ctx) => {
  needs(ctx, 'timeout');
  const box = new Sandbox();
  const hook = (...args: string[]) => startAs(box, 'systemd', ['runlock', ...args, '--token', 'id-1']).result;
  expect((await hook('acquire', 'x', '--no-pid')).code).toBe(0);
  expect((await look(box)).state).toBe('held');
  expect((await box.runlock(['finish', '--token', 'id-2'])).code).toBe(4);
  expect((await hook('hb')).code).toBe(0);
  expect((await hook('finish')).code).toBe(0);
  expect((await look(box)).state).toBe('free');
});

test('a hook of a service manager may name the process that holds', async (ctx) => {
  needs(ctx, 'timeout', 'sleep');
  const box = new Sandbox();
  const service = box.start('sleep', ['1000'], { detached: true });
  const hook = startAs(box, 'systemd', ['runlock', 'acquire', 'x', '--pid', String(service.pid)]);
  expect((await hook.result).code).toBe(0);
  expect((await look(box)).pid).toBe(service.pid);
  service.killGroup();
  await service.ended;
  expect((await look(box)).state).toBe('stale');
});

test('a cron line of one call has no holder; one of several commands, or of a script, holds while it lives', async (ctx) => {
  needs(ctx, 'timeout');
  const box = new Sandbox();
  expect((await startAs(box, 'cron', ['sh', '-c', 'runlock acquire x >>log 2>&1']).result).code).toBe(2);
  const line = ['sh', '-c', 'runlock acquire x && echo taken && read -r line; true'];
  await expectHeldUntilGone(box, startAs(box, 'cron', line));
  const script = box.write('job.sh', 'runlock acquire x; echo taken; read -r line\n');
  await expectHeldUntilGone(box, startAs(box, 'crond', ['sh', '-c', `bash ${script}`]));
});

test('neither pid 1 of a container nor what is left to it holds a lock', async (ctx) => {
  needsNamespaces(ctx);
  const box = new Sandbox();
  // The last one is left to pid 1 before it calls; the pipe `over` is closed when it has ended.
  const inside = `runlock acquire x; echo "direct $?"
    run=$(runlock acquire x; exit $?); echo "copy $?"
    mkfifo go over
    sh -c '( read -r line <go; exec runlock acquire x ) 1<>over & exit 0' & wait $!; echo >go; cat over
    runlock acquire x --no-pid --token id-1; echo "token $?"`;
  const { stdout, stderr } = await box.exec('unshare', [...NAMESPACE, 'sh', '-c', inside]);
  expect(stdout).toBe('direct 2\ncopy 2\n1\ntoken 0\n');
  expect(stderr.match(/can't hold the lock/g)).toHaveLength(3);
});
