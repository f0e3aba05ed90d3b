import { expect, test } from 'vitest';
import { readInvocation } from '../../src/evidence/invocation.ts';

const SCRIPTS: string[] = [
  'bash ./job.sh',
  '/bin/bash -eu ./job.sh -c x',
  'bash -euo pipefail ./job.sh',
  'bash --rcfile rc +O extglob -- ./job.sh',
  'busybox sh ./job.sh',
  'ksh93 ./job.sh',
  'pwsh -NoProfile -File ./job.sh',
  'pwsh -nop -noni -ExecutionPolicy Bypass -wd /srv ./job.sh -c x',
  'powershell.exe -NoLogo -ep Bypass -fi ./job.sh -Command x',
  'dotnet /root/.dotnet/tools/.store/any/unix/pwsh.dll -NoProfile -File ./job.sh',
  'node ./job.sh -e',
  'node -r dotenv/config --import tsx --max-old-space-size=100 ./job.sh',
  'python3.11 -u -W ignore ./job.sh',
  'perl -w -I lib ./job.sh',
  'ruby -rjson ./job.sh',
  'php8.2 -d memory_limit=1 -f ./job.sh',
  'deno run --allow-all ./job.sh',
  'bun ./job.sh',
  'tclsh ./job.sh',
];

test.each(SCRIPTS)('the script is found behind options and their values: %s', (line) => {
  expect(readInvocation(line.split(' '))).toMatchObject({ script: './job.sh', text: null, module: null });
});

test.each<[string[], string]>([
  [['sh', '-c', 'work; more', 'name', 'arg'], 'work; more'],
  [['bash', '-ec', 'work'], 'work'],
  [['bash', '-c', '-e', 'work'], 'work'],
  [['bash', '-euo', 'pipefail', '-c', 'work'], 'work'],
  [['bash', '-c', '--', 'work'], 'work'],
  [['-bash', '-c', 'work'], 'work'],
  [['busybox', 'ash', '-c', 'work'], 'work'],
  [['pwsh', '-NoProfile', '-Command', 'work', 'a'], 'work a'],
  [['pwsh', '-CommandWithArgs', 'work', 'a'], 'work'],
  [['powershell', '-NoProfile', 'work', 'a'], 'work a'],
  [['dotnet', 'exec', '/opt/pwsh.dll', '-c', 'work'], 'work'],
  [['node', '-e', 'work'], 'work'],
  [['node', '--eval=work'], 'work'],
  [['python3', '-Ec', 'work'], 'work'],
  [['perl', '-lne', 'work', 'file'], 'work'],
  [['php', '-r', 'work'], 'work'],
])('code on the command line is no script: %j', (argv, text) => {
  expect(readInvocation(argv)).toMatchObject({ script: null, text });
});

test.each(['bash', '-bash', 'bash -i', 'bash -s arg', 'bash -', 'python3', 'python3 -', 'node -'])(
  'a shell or interpreter on its own has neither: %s',
  (line) => {
    expect(readInvocation(line.split(' '))).toMatchObject({ script: null, text: null });
  },
);

test('a program of .NET that is not PowerShell is just another program', () => {
  expect(readInvocation(['dotnet', 'app.dll', 'pwsh.dll', '-c', 'work'])).toMatchObject({
    kind: 'other',
    text: null,
  });
});

test('a module of Python counts as what it runs', () => {
  expect(readInvocation(['python3', '-um', 'jobs.publish'])).toMatchObject({ module: 'jobs.publish' });
});

test('a title is read like the command line it resembles', () => {
  expect(readInvocation(['npm run publish']).program).toBe('npm');
  expect(readInvocation(['sshd: ann@pts/0']).program).toBe('sshd');
});

test('a login shell is a shell whatever its first argument says', () => {
  expect(readInvocation(['-su'], 'bash')).toMatchObject({ kind: 'shell', program: 'bash' });
  expect(readInvocation(['su', '-'], 'su')).toMatchObject({ kind: 'other', program: 'su' });
});

test.each(['', 'constructor', '__proto__', 'toString'])('an odd name is just another program: %j', (name) => {
  expect(readInvocation([name, 'x'])).toMatchObject({ kind: 'other', script: null });
});
