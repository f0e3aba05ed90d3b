import { expect, test } from 'vitest';
import { climb } from '../../src/evidence/caller.ts';
import { ownCall } from '../../src/evidence/own-call.ts';
import { type Made, tableOf } from './fixtures/tables.ts';

const OWN = ownCall(['/usr/bin/node', '/opt/dist/runlock.cjs', 'acquire', 'ep']);

function callerOf(...line: Made[]) {
  const { look, start } = tableOf(line);
  return climb(start, look, OWN);
}

const sh = (text: string): Made => ({ argv: ['/bin/sh', '-c', text] });
const pwsh = (options: string, code: string): Made => ({ argv: ['pwsh', ...options.split(' '), code] });
const SCRIPT = 'bash ./publish.sh';

test.each<[string, Made[]]>([
  ['npx', [sh('runlock acquire ep'), { argv: ['npm exec runlock acquire ep'] }]],
  ['npm run', [sh('runlock acquire ep'), { argv: ['npm run lock'] }]],
  ['npx before it has its title', ['node /usr/bin/npx runlock acquire ep']],
  ['npm by its file', ['node /usr/lib/node_modules/npm/bin/npm-cli.js exec runlock']],
  ['pnpm', ['node /opt/pnpm/bin/pnpm.cjs exec runlock acquire ep']],
  ['yarn', ['node /home/a/.yarn/releases/yarn-4.1.0.cjs runlock acquire ep']],
  ['corepack', ['node /usr/lib/node_modules/corepack/dist/yarn.js runlock']],
  ['bunx', ['bun x runlock acquire ep']],
  ['sudo with a monitor of its own', ['sudo -u www runlock acquire ep', 'sudo -u www runlock acquire ep']],
  ['su', [sh('runlock acquire ep'), 'su www -c runlock']],
  ['doas, timeout, nice, env, xargs', ['xargs env', 'env timeout', 'nice -n 5', 'timeout 5 x', 'doas y']],
  ['strace', ['strace -f runlock acquire ep']],
  ['chronic, a script of Perl', ['/usr/bin/perl /usr/bin/chronic runlock acquire ep']],
  ['a shell for a launcher', [sh('sudo -u www timeout 5 runlock acquire ep')]],
  ['a shell for node', [sh('node /opt/dist/runlock.cjs acquire ep')]],
  ['a shell for npx', [sh('npx --yes runlock@1.2 acquire ep')]],
  ['shells in shells', [sh('runlock acquire ep'), sh('A=1 exec bash -c "runlock acquire ep"')]],
  ['busybox', [{ argv: ['busybox', 'sh', '-c', 'runlock acquire ep'] }]],
  ['a variable for our name', [sh('"$RUNLOCK" acquire ep')]],
  ['"$@"', [{ argv: ['sh', '-c', '"$@"', 'sh', 'runlock', 'acquire', 'ep'] }]],
  ['PowerShell', [{ argv: ['pwsh', '-Command', 'runlock', 'acquire', 'ep'] }]],
  ['PowerShell that passes the code on', [pwsh('-nop -c', '& runlock acquire ep; exit $LASTEXITCODE')]],
  ['PowerShell over two lines', [pwsh('-ExecutionPolicy Bypass -Command', 'runlock acquire `\n ep')]],
  ["PowerShell that runs npm's shim", ['pwsh -NoProfile /usr/bin/runlock.ps1 acquire ep']],
  ['PowerShell of the .NET tools', ['dotnet /opt/pwsh.dll -NoProfile -Command runlock acquire ep']],
  ['runlock run around it', ['node /usr/bin/runlock run -- runlock acquire ep']],
  [
    'a wrapper nobody has listed',
    ['python3 /opt/with-env prod runlock acquire ep', '/opt/with-vault /usr/bin/runlock acquire ep'],
  ],
])('what ends with the call is climbed past: %s', (_, between) => {
  expect(callerOf(...between, SCRIPT, '/usr/sbin/cron')).toEqual({
    kind: 'script',
    process: { pid: 100 - between.length, started: String(100 - between.length) },
    forks: [],
    name: SCRIPT,
  });
});

test.each([
  'runlock acquire ep; sleep 1',
  'runlock acquire ep && ./work',
  'if runlock acquire ep; then ./work; fi',
  './work',
  'npm run publish',
  '. ./publish.sh',
  'echo runlock',
  '"$WORK" publish',
])('a shell whose text is more than this call, or another one, is the holder: %s', (text) => {
  expect(callerOf(sh(text), SCRIPT)).toMatchObject({
    kind: 'script',
    process: { pid: 100 },
    name: 'sh -c …',
  });
});

test.each<[string, Made]>([
  ['works on', pwsh('-Command', '$run = runlock acquire ep; ./work')],
  ['works on in lines', pwsh('-Command', '$run = runlock acquire ep\n./work')],
  ['hides a separator behind its escapes', pwsh('-Command', 'runlock acquire a`b; ./work `c')],
  ['stays', pwsh('-NoExit -Command', 'runlock acquire ep')],
  ['hands its script an argument that looks like code', pwsh('./job.ps1 -c', 'runlock acquire ep')],
])('PowerShell that %s is the holder', (_, made) => {
  expect(callerOf(made, SCRIPT)).toMatchObject({ kind: 'script', process: { pid: 100 } });
});

test.each([
  SCRIPT,
  'sh ./script',
  'zsh',
  'fish ./x.fish',
  'node script.js',
  'node ./npm.js',
  'python3 timeout.py',
  'python3 -m jobs.publish',
  'php artisan schedule:run',
  'perl ./env.pl',
  'bash ./cron',
  'bash ./wrapper.sh runlock acquire other',
  'bash ./job.sh /usr/bin/runlock',
])('a script or a shell that lives on is the holder: %s', (line) => {
  expect(callerOf(line, '/usr/sbin/cron')).toMatchObject({
    kind: 'script',
    process: { pid: 100 },
    name: expect.any(String),
  });
});

test.each([
  'make publish',
  '/opt/agent',
  'java -jar agent.jar',
  'node -e x',
  'python3 -',
  'python3 -c x',
  'find . -exec x',
])('what is not plainly a script says nothing by its end: %s', (line) => {
  expect(callerOf(line, SCRIPT)).toMatchObject({ kind: 'indirect', process: { pid: 100 }, forks: [] });
});

test.each<Made>([
  '/lib/systemd/systemd --user',
  '/sbin/init splash',
  '/usr/sbin/cron -f',
  '/usr/sbin/CRON -f',
  '(cron)',
  'crond -n',
  'busybox crond',
  '/usr/sbin/atd',
  { argv: ['sshd: ann@pts/0'] },
  '/usr/bin/python3 /usr/bin/supervisord -n',
  'runsv publish',
  '/usr/bin/containerd-shim-runc-v2 -id x',
  '/sbin/docker-init -- x',
  'tini -- runlock acquire ep',
  { argv: ['tmux', 'new'], comm: 'tmux: server' },
  { argv: ['SCREEN'] },
  '/usr/bin/gnome-shell',
  { argv: [], comm: 'gnome-session-b' },
  'C:\\Windows\\explorer.exe',
  'svchost.exe',
  'launchd',
])('a daemon is nobody, directly or past what ends with the call: %j', (daemon) => {
  for (const line of [[daemon], [sh('runlock acquire ep'), daemon], ['sudo runlock', daemon]])
    expect(callerOf(...line)).toMatchObject({ kind: 'nobody', process: null, forks: [] });
});

test('pid 1 is nobody, whatever it runs', () => {
  expect(
    callerOf({ pid: 100, ppid: 1, argv: ['sudo'] }, { pid: 1, argv: ['bash', './entry.sh'] }),
  ).toMatchObject({
    kind: 'nobody',
    name: 'bash ./entry.sh',
  });
  const copy = { argv: ['bash', './entry.sh'], image: 'same' };
  expect(callerOf({ ...copy, ppid: 1 }, { ...copy, pid: 1 }).kind).toBe('nobody');
});

test('forked copies are recorded up to the shell they came from', () => {
  const copy = { argv: ['bash', './publish.sh'], image: 'same' };
  expect(callerOf(copy, 'sudo x', copy)).toMatchObject({ process: { pid: 100 }, forks: [] });
  expect(callerOf('timeout 5 runlock', copy, copy, copy, '/usr/sbin/cron')).toEqual({
    kind: 'script',
    process: { pid: 97, started: '97' },
    forks: [
      { pid: 99, started: '99' },
      { pid: 98, started: '98' },
    ],
    name: SCRIPT,
  });
});

test('a script that calls itself is not its own copy', () => {
  const script = { argv: ['bash', './publish.sh'] };
  expect(callerOf(script, script)).toMatchObject({ process: { pid: 100 }, forks: [] });
});

test('where addresses are not shown, the same arguments make a copy, other ones do not', () => {
  const script = { argv: ['bash', './publish.sh'], image: '' };
  expect(callerOf(script, script, { argv: ['bash', './other.sh'], image: '' })).toMatchObject({
    process: { pid: 99 },
    forks: [{ pid: 100 }],
  });
});

test('a parent that is not shown may be anything, and its end says nothing', () => {
  const { look, start } = tableOf(['sudo runlock'], 'hidden');
  expect(climb(start, look, OWN)).toEqual({
    kind: 'indirect',
    process: { pid: 50, started: null },
    forks: [],
    name: '',
  });
  expect(
    climb(
      () => 1,
      () => 'hidden',
      OWN,
    ).kind,
  ).toBe('nobody');
  expect(
    climb(
      () => 0,
      () => 'hidden',
      OWN,
    ).kind,
  ).toBe('nobody');
});

test('when a parent ends in mid-climb, the climb begins again from who has us now', () => {
  const { look } = tableOf([SCRIPT]);
  const parents = [70, 100];
  expect(climb(() => parents.shift() ?? 0, look, OWN).process?.pid).toBe(100);
  expect(climb(() => 70, look, OWN).kind).toBe('nobody');
});

test.each<[string, string, object]>([
  ['powershell.exe', 'explorer.exe', { kind: 'script', process: { pid: 99 } }],
  ['bash.exe', 'explorer.exe', { kind: 'script', process: { pid: 99 } }],
  ['node.exe', 'explorer.exe', { kind: 'indirect', process: { pid: 99 } }],
  ['explorer.exe', 'winlogon.exe', { kind: 'script', process: { pid: 100 } }],
  ['WindowsTerminal.exe', 'explorer.exe', { kind: 'script', process: { pid: 100 } }],
  ['svchost.exe', 'services.exe', { kind: 'indirect', process: { pid: 100 } }],
  ['some-agent.exe', 'services.exe', { kind: 'indirect', process: { pid: 100 } }],
  ['dotnet.exe', 'pwsh.exe', { kind: 'indirect', process: { pid: 100 } }],
])('on Windows the shim is climbed below a script only: cmd.exe below %s', (parent, above, found) => {
  const line = ['cmd.exe', parent, above].map((name) => ({ argv: [name], image: '' }));
  expect(callerOf(...line)).toMatchObject(found);
});
