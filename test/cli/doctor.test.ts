import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import { BINARY, isRoot, Sandbox } from './harness.ts';
import { mountOver } from './jobs.ts';
import { wrongClock } from './processes.ts';

/** A system of its own in the sandbox: `/` is at `root`. */
let box: Sandbox;
let root: string;

const HOOK = path.resolve(import.meta.dirname, 'fixtures/addon.cjs');
const NODE = 'usr/local/bin/node';
const RUN = 'runlock run';

beforeEach(() => {
  box = new Sandbox();
  root = path.join(box.dir, 'root');
  const gid = process.getgid?.() ?? 0;
  put(
    'etc/passwd',
    `root:x:0:0::/root:/bin/sh\nann:x:4711:${gid}::/home/ann:/bin/sh\nbob:x:4712:4712::/home/bob:/bin/sh\n`,
  );
  put('etc/group', `root:x:0:\nbob:x:4712:\n`);
  for (const dir of ['root', 'home/ann', 'srv/app/runs']) makeDirectory(dir);
  // Group and others may enter, the group may write: ann is in it.
  for (const dir of ['root', 'home/ann', 'srv/app/runs']) fs.chmodSync(path.join(root, dir), 0o775);
  put('usr/local/lib/node_modules/runlock/package.json', '{ "name": "runlock", "version": "0.1.0" }');
  put('usr/local/lib/node_modules/runlock/dist/runlock.cjs', fs.readFileSync(BINARY), 0o755);
  link('../lib/node_modules/runlock/dist/runlock.cjs', 'usr/local/bin/runlock');
  put(
    NODE,
    `\x7fELF${'\0'.repeat(5000)}https://nodejs.org/download/release/v20.20.2/node-v20.20.2.tar.gz`,
    0o755,
  );
  put('srv/app/backup.sh', '#!/bin/sh\n', 0o755);
});

function makeDirectory(name: string): void {
  fs.mkdirSync(path.join(root, name), { recursive: true });
}

function put(name: string, content: string | Uint8Array, mode = 0o644): void {
  const file = path.join(root, name);
  fs.mkdirSync(path.dirname(file), { recursive: true });
  fs.writeFileSync(file, content);
  fs.chmodSync(file, mode);
}

function link(target: string, name: string): void {
  const file = path.join(root, name);
  fs.mkdirSync(path.dirname(file), { recursive: true });
  fs.symlinkSync(target, file);
}

const PATH = 'PATH=/usr/local/bin:/usr/bin:/bin';

/** A crontab in /etc/cron.d whose PATH has runlock. */
function cron(name: string, ...lines: string[]): void {
  put(`etc/cron.d/${name}`, [PATH, ...lines, ''].join('\n'));
}

function unit(name: string, ...lines: string[]): void {
  put(`etc/systemd/system/${name}`, ['[Service]', ...lines, ''].join('\n'));
}

interface Told {
  readonly level: string;
  readonly about: string;
  readonly what: string;
  readonly file: string | null;
  readonly line: number | null;
  readonly advice: string | null;
}

interface Report {
  readonly ok: boolean;
  readonly findings: readonly Told[];
  readonly entries: readonly Record<string, unknown>[];
}

const doctor = (...args: string[]) => box.runlock(['doctor', '--root', root, ...args]);

async function report(): Promise<Report & { readonly code: number | null; readonly text: string }> {
  const { code, stdout, stderr } = await doctor('--json');
  expect(stderr).toBe('');
  const parsed = JSON.parse(stdout) as Report;
  return { ...parsed, code, text: stdout };
}

/** What was found of a kind, as `file:line what`. */
function found({ findings }: Report, level: string, about?: string): string[] {
  return findings
    .filter((one) => one.level === level && (about === undefined || one.about === about))
    .map(({ file, line, what }) => `${file ?? ''}:${line ?? ''} ${what}`);
}

test('entries that take one lock with the right programs are told as such, with 0, and nothing stays behind', async () => {
  cron('backup', `* * * * * ann ${RUN} --dir /srv/app/runs -- /srv/app/backup.sh >/dev/null 2>&1`);
  unit(
    'backup.service',
    'User=ann',
    'WorkingDirectory=/srv/app',
    `ExecStart=/usr/local/bin/${RUN} -- ./backup.sh`,
  );
  const before = fs.readdirSync(root, { recursive: true });
  const got = await doctor();
  expect(got).toMatchObject({ code: 0, stderr: '' });
  expect(got.stdout).toContain(
    'ok       /etc/cron.d/backup:2: cron, user ann: run on /srv/app/runs (--dir), by /usr/local/bin/runlock, Node 20.20.2\n',
  );
  expect(got.stdout).toContain(
    '/etc/systemd/system/backup.service:4: systemd, user ann: run on /srv/app/runs',
  );
  expect(got.stdout).toContain('ok       /srv/app/runs: kernel locks work');
  expect(fs.readdirSync(root, { recursive: true })).toEqual(before);
});

test('a cron entry that starts in its home and a unit that starts elsewhere do not meet, and that is said of both', async () => {
  makeDirectory('home/ann/runs');
  cron('backup', `@hourly ann ${RUN} -- /srv/app/backup.sh`);
  unit(
    'backup.service',
    'User=ann',
    'WorkingDirectory=/srv/app',
    `ExecStart=/usr/local/bin/${RUN} -- /srv/app/backup.sh`,
  );
  const got = await report();
  expect(got.code).toBe(1);
  expect(found(got, 'problem', 'differentLocks')).toEqual([
    '/etc/systemd/system/backup.service:4 /srv/app/backup.sh (systemd, user ann) takes /srv/app/runs (nothing names it, and it starts in /srv/app), but /etc/cron.d/backup:2 takes /home/ann/runs (nothing names it, and it starts in /home/ann): the two never meet, and the job can run twice',
  ]);
  expect(got.entries).toMatchObject([
    { kind: 'cron', user: 'ann', dir: '/home/ann/runs', by: 'nothing' },
    { kind: 'systemd', user: 'ann', dir: '/srv/app/runs' },
  ]);
});

test("what README shows is doctor's answer", async () => {
  const readme = fs.readFileSync(path.resolve(import.meta.dirname, '../../README.md'), 'utf8');
  const sample = /^```console\n\$ sudo runlock doctor\n(.*?)^```$/ms.exec(readme)?.[1]?.trimEnd().split('\n');
  makeDirectory('home/ann/runs');
  fs.chmodSync(path.join(root, 'home/ann/runs'), 0o775);
  put('usr/bin/runlock', '\x7fELF', 0o755);
  cron('publish', `*/30 * * * * ann ${RUN} -- /srv/app/publish.sh`);
  put('etc/cron.d/nightly', `0 3 * * * ann ${RUN} --dir /srv/app/runs -- /srv/app/nightly.sh\n`);
  unit(
    'publish.service',
    'User=ann',
    'WorkingDirectory=/srv/app',
    `ExecStart=/usr/local/bin/${RUN} -- /srv/app/publish.sh`,
  );
  const { code, stdout } = await doctor();
  expect(code).toBe(1);
  expect(stdout.split('\n')).toEqual(expect.arrayContaining(sample?.filter((line) => line !== '…') ?? []));
  expect(sample?.length).toBeGreaterThan(4);
  expect(stdout.match(/^problem/gm)).toHaveLength(2);
});

test('an entry that runlock would refuse for want of a directory is a problem', async () => {
  cron('backup', `@hourly ann ${RUN} -- /srv/app/backup.sh`);
  unit('root.service', `ExecStart=${RUN} -- /srv/app/other.sh`);
  const got = await report();
  expect(found(got, 'problem', 'nowhere')).toEqual([
    expect.stringContaining(
      '/etc/cron.d/backup:2 no state directory is named, and runlock makes no ./runs in /home/ann',
    ),
    expect.stringContaining(
      '/etc/systemd/system/root.service:2 no state directory is named, and runlock makes no ./runs in /,',
    ),
  ]);
});

test.each([
  [
    'a drop-in',
    () =>
      put(
        'etc/systemd/system/backup.service.d/dir.conf',
        '[Service]\nEnvironment="RUNLOCK_DIR=/srv/app/runs"\n',
      ),
  ],
  [
    'an environment file',
    () => {
      put('etc/default/backup', '# where\nRUNLOCK_DIR="/srv/app/runs"\n');
      put(
        'etc/systemd/system/backup.service.d/env.conf',
        '[Service]\nEnvironmentFile=-/etc/default/backup\n',
      );
    },
  ],
])('RUNLOCK_DIR that only the unit has, by %s, is seen', async (_, setIt) => {
  put('srv/other/runlock.json', '{}');
  makeDirectory('srv/other/runs');
  unit(
    'backup.service',
    'WorkingDirectory=/srv/other',
    `ExecStart=/usr/local/bin/${RUN} -- /srv/app/backup.sh`,
  );
  setIt();
  cron('backup', `0 3 * * * root cd /srv/other && ${RUN} -- /srv/app/backup.sh`);
  const [problem] = found(await report(), 'problem', 'differentLocks');
  expect(problem).toContain('takes /srv/app/runs (RUNLOCK_DIR)');
  expect(problem).toContain('takes /srv/other/runs (by /srv/other/runlock.json)');
});

test('the same command, once with and once without runlock, is a problem where it is bare', async () => {
  cron('backup', `0 3 * * * root ${RUN} --dir /srv/app/runs -- nice -n 10 /srv/app/backup.sh --all`);
  put('var/spool/cron/crontabs/ann', '# mine\n*/5 * * * * sh /srv/app/backup.sh --all | logger\n');
  const got = await report();
  expect(found(got, 'problem', 'unguarded')).toEqual([
    expect.stringContaining(
      '/var/spool/cron/crontabs/ann:2 /srv/app/backup.sh … (cron, user root) is started without runlock',
    ),
  ]);
  put('srv/app/backup.sh', '#!/bin/sh\nrun=$(runlock acquire) || exit\n', 0o755);
  expect(found(await report(), 'problem', 'unguarded')).toEqual([]);
});

test('a lock that is taken in one directory and freed in another, in one entry, is a problem', async () => {
  unit(
    'hooks.service',
    'WorkingDirectory=/srv/app',
    'ExecStartPre=/usr/local/bin/runlock acquire --no-pid --token "$INVOCATION_ID"',
    'ExecStart=/srv/app/backup.sh',
    'ExecStopPost=/usr/local/bin/runlock finish --dir /srv/other --token "$INVOCATION_ID"',
  );
  expect(found(await report(), 'problem', 'differentLocks')).toEqual([
    '/etc/systemd/system/hooks.service:5 runlock finish means the lock /srv/other, but acquire takes /srv/app/runs at /etc/systemd/system/hooks.service:3',
  ]);
});

test("another package's runlock, first on the PATH, is told from this one", async () => {
  put('usr/bin/runlock', '\x7fELF\x02\x01', 0o755);
  put('etc/cron.d/backup', `* * * * * root ${RUN} --dir /srv/app/runs -- /srv/app/backup.sh\n`);
  expect(found(await report(), 'problem')).toEqual([
    expect.stringContaining(
      "/etc/cron.d/backup:1 /usr/bin/runlock is another program of that name (a compiled one, such as Debian's cronutils has)",
    ),
  ]);
  put('var/lib/dpkg/info/cronutils.list', '/.\n/usr/bin/runcron\n/usr/bin/runlock\n');
  expect(found(await report(), 'problem')).toEqual([
    expect.stringContaining("from Debian's package cronutils"),
  ]);
});

test("an old Node on cron's PATH, and none at all, are problems, though runlock itself is found", async () => {
  put('usr/bin/node', `${'x'.repeat(5_000_000)}/node-v12.22.9.tar.gz`, 0o755);
  put(
    'etc/cron.d/backup',
    `* * * * * root /usr/local/bin/${RUN} --dir /srv/app/runs -- /srv/app/backup.sh\n`,
  );
  expect(found(await report(), 'problem')).toEqual([
    '/etc/cron.d/backup:1 finds Node 12.22.9 (/usr/bin/node); 20.19 or newer is needed',
  ]);
  fs.rmSync(path.join(root, 'usr/bin/node'));
  expect(found(await report(), 'problem')).toEqual([
    '/etc/cron.d/backup:1 /usr/local/bin/runlock needs node, and user root finds none on the PATH (/usr/bin:/bin)',
  ]);
});

test('a runlock that is not on the PATH is a problem, and no program that is found is ever run', async () => {
  put('usr/bin/node', `#!/bin/sh\ntouch ${box.dir}/ran\n`, 0o755);
  put('etc/crontab', `* * * * * root ${RUN} --dir /srv/app/runs -- /srv/app/backup.sh\n`);
  expect(found(await report(), 'problem')).toEqual([
    '/etc/crontab:1 user root finds no runlock: none on its PATH (/usr/bin:/bin)',
  ]);
  link('/usr/local/lib/node_modules/runlock/dist/runlock.cjs', 'usr/bin/runlock');
  expect(found(await report(), 'note', 'unknownNode')).toHaveLength(1);
  expect(fs.existsSync(path.join(box.dir, 'ran'))).toBe(false);
});

test('a PATH that a sourced file may have set is no problem but said, and so is a directory', async () => {
  put('etc/cron.d/nvm', `@daily root . /root/.nvm/nvm.sh; ${RUN} --dir /srv/app/runs -- true\n`);
  put('etc/cron.d/login', `@daily root bash -lc '${RUN} -- true'\n`);
  const got = await report();
  expect(found(got, 'problem')).toEqual([]);
  expect(found(got, 'note', 'unsure')).toEqual([
    expect.stringMatching(/^\/etc\/cron.d\/login:1 which lock .*RUNLOCK_DIR is set by then/),
    expect.stringMatching(/^\/etc\/cron.d\/login:1 which runlock .*PATH is set by then/),
    expect.stringMatching(/^\/etc\/cron.d\/nvm:1 which runlock .*PATH is set by then/),
  ]);
});

test("a number in a directory's name is Node's version only where the directory is Node's", async () => {
  const node = '\x7fELF node-v22.1.0';
  put('opt/app-1.2.3/bin/node', node, 0o755);
  put('root/.nvm/versions/node/v18.3.1/bin/node', node, 0o755);
  for (const dir of ['/opt/app-1.2.3/bin', '/root/.nvm/versions/node/v18.3.1/bin'])
    put(
      `etc/cron.d/${path.basename(path.dirname(dir)).replaceAll('.', '-')}`,
      `PATH=${dir}:/usr/local/bin\n@daily root ${RUN} --dir /srv/app/runs -- true\n`,
    );
  expect((await report()).entries.map(({ nodeVersion }) => nodeVersion)).toEqual(['22.1.0', '18.3.1']);
});

test("what the shell fills in behind a run's command does not hide which lock it is", async () => {
  cron('x', `@daily root ${RUN} --dir /srv/app/runs --name a -- /srv/app/backup.sh "$(date)" "$a"`);
  expect((await report()).entries).toMatchObject([{ dir: '/srv/app/runs', name: 'a' }]);
});

test('a unit with a /tmp of its own never meets others there; specifiers are those of its manager', async () => {
  makeDirectory('tmp');
  fs.chmodSync(path.join(root, 'tmp'), 0o1777);
  unit(
    'backup@.service',
    'User=ann',
    'PrivateTmp=yes',
    `ExecStart=/usr/local/bin/${RUN} --dir /tmp/%p-runs -- true`,
  );
  unit('home.service', 'User=ann', `ExecStart=/usr/local/bin/${RUN} --dir %h/%u -- true`);
  unit('instance@.service', `ExecStart=/usr/local/bin/${RUN} --dir /srv/%i -- true`);
  const got = await report();
  expect(found(got, 'problem', 'privateTmp')).toEqual([
    expect.stringContaining("/etc/systemd/system/backup@.service:4 /tmp/backup-runs is the unit's own"),
  ]);
  expect(got.entries.map(({ dir }) => dir)).toEqual(['/tmp/backup-runs', '/root/root', null]);
  expect(found(got, 'note', 'unsure')).toEqual([expect.stringContaining('instance@.service:2')]);
});

test('units and drop-ins that are masked do not count, and timers start what their services say', async () => {
  link('/dev/null', 'etc/systemd/system/off.service');
  put('usr/lib/systemd/system/off.service', `[Service]\nExecStart=/usr/local/bin/${RUN} -- true\n`);
  put(
    'usr/lib/systemd/system/on.service',
    `[Service]\nExecStart=/usr/local/bin/${RUN} --dir /srv/app/runs -- true\n`,
  );
  put('usr/lib/systemd/system/on.timer', '[Timer]\nOnCalendar=daily\n');
  put('usr/lib/systemd/system/on.service.d/a.conf', '[Service]\nEnvironment=RUNLOCK_NAME=other\n');
  link('/dev/null', 'etc/systemd/system/on.service.d/a.conf');
  const got = await report();
  expect(got.code).toBe(0);
  expect(got.entries).toMatchObject([{ file: '/usr/lib/systemd/system/on.service', name: 'default' }]);
});

test('two users, each with a directory in his home, are two locks', async () => {
  for (const name of ['ann', 'bob']) {
    makeDirectory(`home/${name}/runs`);
    put(`var/spool/cron/crontabs/${name}`, `${PATH}\n@daily ${RUN} --dir ~/runs -- /srv/app/backup.sh\n`);
  }
  const [problem] = found(await report(), 'problem', 'differentLocks');
  expect(problem).toContain('user bob) takes /home/bob/runs');
  expect(problem).toContain('/var/spool/cron/crontabs/ann:2 takes /home/ann/runs');
});

test('two users or two configurations around one lock are a note', async () => {
  put('srv/app/runlock.json', '{}');
  put('srv/other.json', '{}');
  cron(
    'backup',
    `@daily root ${RUN} --dir /srv/app/runs -- /srv/app/backup.sh`,
    `@daily ann ${RUN} --dir /srv/app/runs --config /srv/other.json -- /srv/app/backup.sh`,
  );
  const got = await report();
  expect(got.code).toBe(0);
  expect(found(got, 'note', 'differentUsers')).toEqual([
    expect.stringMatching(
      /^\/etc\/cron.d\/backup:3 .*user ann\) takes the same lock as \S+:2 does, there as user root/,
    ),
  ]);
  expect(found(got, 'note', 'differentConfigurations')).toEqual([
    expect.stringContaining('reads the configuration /srv/other.json, but /etc/cron.d/backup:2 reads'),
  ]);
});

test('a user who may not write to the directory that his entry uses is told', async () => {
  put('var/spool/cron/crontabs/bob', `${PATH}\n@daily ${RUN} --dir /srv/app/runs -- /srv/app/backup.sh\n`);
  expect(found(await report(), 'problem', 'notWritable')).toEqual([
    expect.stringContaining('/var/spool/cron/crontabs/bob:2 user bob may not write to /srv/app/runs'),
  ]);
});

test('a directory that is shut to its user gets no file from doctor either, as root would make it', async () => {
  const bob = `${PATH}\n@daily ${RUN} --dir /etc/cron.d -- true\n@daily ${RUN} --dir /srv/app/runs -- true\n`;
  put('var/spool/cron/crontabs/bob', bob);
  makeDirectory('etc/cron.d');
  const got = await report();
  expect(found(got, 'problem', 'notWritable')).toHaveLength(2);
  expect(found(got, 'ok')).toEqual([]);
  expect(found(got, 'unseen')).toEqual([]);
});

test.each([
  ['grantsTwice', 'grants one kernel lock to two'],
  ['ENOLCK', 'gives no kernel locks (ENOLCK)'],
])('a disk whose kernel locks do not work (%s) is a problem', async (addon, says) => {
  box.makeRuns();
  const { code, stdout } = await box.exec(
    process.execPath,
    ['--require', HOOK, BINARY, 'doctor', '--dir', box.runs],
    { env: { ADDON: addon } },
  );
  expect(code).toBe(1);
  expect(stdout.split('\n').filter((line) => line.startsWith('problem'))).toEqual([
    expect.stringContaining(says),
  ]);
  expect(fs.readdirSync(box.runs)).toEqual([]);
});

test('a disk without room for a record is a problem', async (ctx) => {
  mountOver(ctx, box, ['-t', 'tmpfs', '-o', 'size=64k', 'none']);
  const { code, stdout } = await box.runlock(['doctor', '--dir', box.runs]);
  expect(code).toBe(1);
  expect(stdout).toContain(`problem  ${box.runs}: has 64 kB of room`);
  expect(stdout).toContain(`note     ${box.runs}: is on tmpfs: it is empty after a restart`);
});

test("a disk whose clock is not this machine's is a problem", async (ctx) => {
  box.makeRuns();
  const { stdout } = await box.runlock(['doctor', '--dir', box.runs], {
    env: { ...wrongClock(ctx, '+90s'), NO_FAKE_STAT: '1' },
  });
  expect(stdout).toMatch(
    /problem {2}\S+\/runs: the file system's clock is (89|90|91) s behind this machine's/,
  );
});

test('a directory in which anybody may remove the lock is a problem, in /tmp it is at least worth a word', async () => {
  cron(
    'backup',
    `@daily root ${RUN} --dir /srv/app/runs -- /srv/app/backup.sh`,
    `@daily root ${RUN} --dir /tmp/runs -- /srv/app/x.sh`,
  );
  fs.chmodSync(path.join(root, 'srv/app/runs'), 0o777);
  makeDirectory('tmp');
  fs.chmodSync(path.join(root, 'tmp'), 0o1777);
  const got = await report();
  expect(found(got, 'problem')).toEqual([
    '/srv/app/runs: anybody may write here (mode 777): anybody can remove the lock',
  ]);
  expect(found(got, 'note', 'sweptPlace')).toEqual([expect.stringContaining('/tmp/runs: ')]);
});

test('a configuration with a mistake and a misspelt command line are told with the entry that fails by them', async () => {
  put('srv/app/runlock.json', '{ "hodl": "1h" }');
  cron(
    'backup',
    `@daily root cd /srv/app; ${RUN} -- ./backup.sh`,
    `@daily root runlock rnu -- /srv/app/backup.sh`,
  );
  const got = await report();
  expect(found(got, 'problem', 'configuration')).toEqual([
    expect.stringMatching(/^\/etc\/cron.d\/backup:2 .*did you mean "hold"/),
  ]);
  expect(found(got, 'problem', 'misuse')).toEqual([expect.stringContaining('there is no command "rnu"')]);
  expect(got.code).toBe(1);
});

test('what stands in crontabs and units can not act on the terminal', async () => {
  const evil = '/srv/\x1b]0;gone\x07\u202e';
  cron('backup', `@daily ann\x1b[2J ${RUN} --dir '${evil}' -- /srv/app/backup.sh`);
  unit(
    'evil.service',
    `ExecStart=/usr/local/bin/${RUN} --dir "${evil}" --\x1b[2J -- x`,
    `ExecStart=${evil}/runlock run x`,
  );
  const { stdout, code } = await doctor();
  expect(code).toBe(1);
  expect(stdout).toContain('\\u{1b}');
  expect(stdout).not.toMatch(/[\x00-\x09\x0b-\x1f\x7f\u202e]/);
  expect((await doctor('--json')).stdout).toMatch(/^[\x20-\x7e]*\n$/);
});

test('secrets in command lines and environments are not shown', async () => {
  const secret = 'hunter2';
  cron(
    'backup',
    `RUNLOCK_TOKEN=${secret}`,
    `DB_PASSWORD=${secret}`,
    `@daily root ${RUN} --dir /srv/app/runs -- /srv/app/backup.sh --password ${secret} ${secret}`,
    `@daily root /srv/app/backup.sh --password ${secret} ${secret}`,
    `@daily root runlock status --dir /srv/app/runs --token=${secret}`,
    `@daily root runlock status --dir /srv/app/runs API_KEY=${secret}`,
  );
  unit(
    'x.service',
    `Environment=RUNLOCK_STORE=redis://u:${secret}@h/`,
    `ExecStart=/usr/local/bin/${RUN} -- /srv/app/x.sh`,
  );
  const got = await report();
  expect(found(got, 'problem', 'unguarded')).toHaveLength(1);
  expect(found(got, 'problem', 'misuse')).toHaveLength(2);
  expect(got.text + (await doctor()).stdout).not.toContain(secret);
  const env = { RUNLOCK_STORE: `redis://u:${secret}@h/`, RUNLOCK_TOKEN: secret, RUNLOCK_DIR: box.runs };
  const own = await box.runlock(['doctor'], { env });
  expect(own.stdout).toContain(`RUNLOCK_DIR=${box.runs} is set here`);
  expect(own.stdout).toContain('RUNLOCK_TOKEN is set here');
  expect(own.stdout).not.toContain(secret);
});

test('a FIFO, a device or a directory in place of a unit or a crontab is passed over, and said', async () => {
  makeDirectory('etc/cron.d');
  makeDirectory('etc/systemd/system/dir.service');
  execFileSync('mkfifo', [
    path.join(root, 'etc/systemd/system/fifo.service'),
    path.join(root, 'etc/cron.d/fifo'),
  ]);
  put(
    'etc/crontab',
    `RUNLOCK_CONFIG=/etc/cron.d/fifo\n${PATH}\n@daily root ${RUN} --dir /srv/app/runs true\n`,
  );
  const got = await report();
  expect(got.code).toBe(1);
  expect(found(got, 'problem', 'configuration')).toHaveLength(1);
  expect(found(got, 'unseen').map((line) => line.split(':')[0])).toEqual([
    '/etc/cron.d/fifo',
    '/etc/systemd/system/dir.service',
    '/etc/systemd/system/fifo.service',
  ]);
});

test("links of the other system stay in it, and its configuration's search ends at its root", async () => {
  box.write('runlock.json', '{ "dir": "wrong" }');
  makeDirectory('data/app/runs');
  link('/data/app', 'srv/link');
  link('../../../../../../srv/app/backup.sh', 'data/app/backup.sh');
  cron(
    'backup',
    `@daily root cd /srv/link && ${RUN} -- ./backup.sh`,
    `@daily root ${RUN} --dir /data/app/runs -- /srv/app/backup.sh`,
  );
  const got = await report();
  expect(got.entries.map(({ dir, config }) => [dir, config])).toEqual([
    ['/data/app/runs', null],
    ['/data/app/runs', null],
  ]);
  expect(found(got, 'problem')).toEqual([]);
});

test('calls are found behind shells, wrappers and substitutions', async () => {
  for (const dir of ['a', 'b', 'c', 'd', 'e']) makeDirectory(`srv/${dir}`);
  cron(
    'wrapped',
    `@daily root flock -n /run/x.lock nice -n 5 env RUNLOCK_DIR=/srv/a ${RUN} true`,
    `@daily root bash -c 'cd /srv && ionice -c3 ${RUN} --dir b -- true'`,
    `@daily root run=$(runlock acquire --dir /srv/c) && date +\\%F >> /srv/log 2>&1`,
    `@daily root sudo -u ann -- sh -c "RUNLOCK_DIR=/srv/d ${RUN} true"`,
    `@daily root su - ann -c '${RUN} --dir ../../srv/e true'`,
  );
  expect((await report()).entries.map(({ user, dir, command }) => [user, dir, command])).toEqual([
    ['root', '/srv/a', 'run'],
    ['root', '/srv/b', 'run'],
    ['root', '/srv/c', 'acquire'],
    ['ann', '/srv/d', 'run'],
    ['ann', '/srv/e', 'run'],
  ]);
});

test('a directory that only the shell knows is no problem but said', async () => {
  cron(
    'unsure',
    `@daily root ${RUN} --dir "$WHERE/runs" true`,
    `@daily root cd "$(dirname /x/y)" && ${RUN} true`,
  );
  const got = await report();
  expect(got.code).toBe(0);
  expect(found(got, 'note', 'unsure')).toHaveLength(2);
});

test('the directory that is named is looked at on this system; with --root that is misuse', async () => {
  box.makeRuns();
  const got = await box.runlock(['doctor', '--dir', box.runs]);
  expect(got.stdout).toContain(`ok       ${box.runs}: kernel locks work`);
  expect(fs.readdirSync(box.runs)).toEqual([]);
  const missing = await box.runlock(['doctor', '--dir', path.join(box.dir, 'no/such')]);
  expect(missing.code).toBe(1);
  expect(missing.stdout).toContain(`problem  ${box.dir}/no/such: is not there, and neither is ${box.dir}/no`);
  expect((await doctor('--dir', box.runs)).code).toBe(2);
  expect((await box.runlock(['doctor', '--root', path.join(box.dir, 'nowhere')])).code).toBe(1);
});

test('from a deleted working directory entries and a named directory are looked at, and what is not is said', async () => {
  cron('backup', `@daily root ${RUN} --dir /srv/app/runs -- /srv/app/backup.sh`);
  box.makeRuns();
  const gone = async (args: string) => {
    const script = `mkdir gone && cd gone && rmdir ../gone && '${process.execPath}' '${BINARY}' doctor ${args}`;
    return await box.exec('sh', ['-c', script]);
  };
  expect(await gone(`--root '${root}'`)).toMatchObject({ code: 0, stderr: '' });
  const named = await gone(`--dir '${box.runs}'`);
  expect(named.stderr).toBe('');
  expect(named.stdout).toContain(`ok       ${box.runs}: kernel locks work`);
  const bare = await gone('');
  expect(bare).toMatchObject({ code: 1, stderr: '' });
  expect(bare.stdout).toContain('unseen   could not find the current directory for .: ENOENT');
});

const TAKE = `${RUN} --dir /srv/app/runs -- /srv/app/backup.sh`;

test.each([
  ['another machine or container', `ssh host ${TAKE}`],
  ['a container', `docker exec app ${TAKE}`],
  ['another root', `chroot /srv/jail ${TAKE}`],
  ['a text for another machine', `ssh host 'cd /srv && ${TAKE}'`],
  ['a program that nobody knows', `/opt/bin/wrap --lock=no '${TAKE}'`],
  ['one that gets the words by another', `parallel ${TAKE} ::: a b`],
  ['a variable', `$RUNLOCK run --dir /srv/app/runs -- /srv/app/backup.sh`],
  ['a text that the shell makes', `eval "${TAKE}"`],
  ['what a shell reads', `echo "${TAKE}" | at now`],
  ['the stdin of a shell', `sh %${TAKE}`],
  ['a trap', `trap '${TAKE}' EXIT`],
  ['a unit with properties of its own', `systemd-run -p DynamicUser=yes ${TAKE}`],
  ['a command that xargs completes', `cat list | xargs -n1 runlock`],
  ['a text in a text', `sh -c 'find / -exec ${TAKE} \\;'`],
])('runlock that is started by %s is told, and its entry is not ok', async (_, command) => {
  cron('astray', `@daily root ${command}`);
  const got = await report();
  expect(found(got, 'ok', 'entry')).toEqual([]);
  expect(found(got, 'note', 'unsure')).toEqual([
    expect.stringMatching(/^\/etc\/cron.d\/astray:2 whether this takes a lock, and which one, can't be told/),
  ]);
  expect(found(got, 'note', 'noEntries')).toEqual([]);
});

test('a line that is followed in part is not ok as a whole; one that only speaks of runlock is', async () => {
  cron(
    'part',
    `@daily root ${TAKE} && ssh host ${TAKE}`,
    `@daily root test -x /usr/local/bin/runlock && ${TAKE} || echo runlock failed; logger -t runlock "$(runlock status --dir /srv/app/runs)"`,
  );
  const got = await report();
  expect(found(got, 'note', 'unsure')).toEqual([expect.stringContaining('/etc/cron.d/part:2 whether')]);
  expect(found(got, 'note', 'entry')).toEqual([
    expect.stringContaining('/etc/cron.d/part:2 cron, user root: run'),
  ]);
  expect(found(got, 'ok', 'entry')).toEqual([
    expect.stringContaining('/etc/cron.d/part:3 cron, user root: run'),
    expect.stringContaining('/etc/cron.d/part:3 cron, user root: status'),
  ]);
});

test('wrappers that lead to runlock are followed, with the user that they name', async () => {
  const uid = '4711';
  cron(
    'wrapped',
    ...[
      `setpriv --reuid=ann --clear-groups ${TAKE}`,
      `chpst -u ann ${TAKE}`,
      `sudo -u '#${uid}' ${TAKE}`,
      `systemd-run --wait --uid=${uid} ${TAKE}`,
      `su - ann -c "/usr/local/bin/${TAKE}"`,
      `runuser -l ann -c "${TAKE}"`,
      `runuser -u ann -- ${TAKE}`,
      `script -qc "sudo -u ann ${TAKE}" /dev/null`,
    ].map((command) => `@daily root ${command}`),
  );
  const got = await report();
  expect(got.entries.map(({ user, dir }) => [user, dir])).toEqual(Array(8).fill(['ann', '/srv/app/runs']));
});

test('an entry whose user is not known there is not ok', async () => {
  unit('x.service', 'User=nobodyhere', `ExecStart=/usr/local/bin/${TAKE}`);
  const got = await report();
  expect(found(got, 'ok', 'entry')).toEqual([]);
  expect(found(got, 'note', 'unsure')).toEqual([
    expect.stringContaining("which user this runs as can't be told"),
  ]);
});

const EXEC = `ExecStart=/usr/local/bin/${TAKE}`;

test.each([
  ['EnvironmentFile=/etc/default/missing', 'missingFile', 'there is no /etc/default/missing'],
  ['ReadWritePaths=/srv/missing', 'missingFile', 'there is no /srv/missing'],
  ['WorkingDirectory=/srv/missing', 'missingFile', 'there is no /srv/missing'],
  ['ProtectSystem=strict', 'notWritable', 'may not write to /srv/app/runs (ProtectSystem=strict)'],
  ['DynamicUser=yes', 'notWritable', 'may not write to /srv/app/runs (DynamicUser=yes)'],
  ['ReadOnlyPaths=/srv', 'notWritable', 'may not write to /srv/app/runs (ReadOnlyPaths=/srv)'],
  ['BindReadOnlyPaths=/srv/app', 'notWritable', 'may not write to /srv/app/runs'],
  ['InaccessiblePaths=-/srv/app', 'notWritable', 'does not see /srv/app/runs (InaccessiblePaths=-/srv/app)'],
  [
    'TemporaryFileSystem=/srv:ro',
    'privateTmp',
    "/srv/app/runs is the unit's own (TemporaryFileSystem=/srv:ro)",
  ],
  ['InaccessiblePaths=/usr/local/bin', 'notFound', 'does not see /usr/local/bin/runlock'],
])('a unit with %s can not work, or means a lock of its own: %s', async (setting, about, what) => {
  unit('x.service', setting, EXEC);
  const got = await report();
  expect(got.code).toBe(1);
  expect(found(got, 'problem', about)).toEqual([expect.stringContaining(what)]);
  expect(found(got, 'ok', 'entry')).toEqual([]);
});

test('a state directory behind a link is that of the link, and the unit must see both', async () => {
  makeDirectory('data/runs');
  fs.rmdirSync(path.join(root, 'srv/app/runs'));
  link('/data/runs', 'srv/app/runs');
  const problems = async (...settings: string[]) => {
    unit('x.service', ...settings, EXEC);
    return found(await report(), 'problem').map((line) => /\((\w+=.*?)\)/.exec(line)?.[1]);
  };
  expect(await problems('ReadOnlyPaths=/srv')).toEqual([]);
  expect(await problems('ReadOnlyPaths=/data')).toEqual(['ReadOnlyPaths=/data']);
  expect(await problems('TemporaryFileSystem=/srv')).toEqual(['TemporaryFileSystem=/srv']);
  expect(await problems('InaccessiblePaths=/srv')).toEqual(['InaccessiblePaths=/srv']);
});

test('a drop-in or an environment file that can not be read leaves the unit in doubt', async () => {
  unit('x.service', EXEC);
  makeDirectory('etc/systemd/system/x.service.d/a.conf');
  unit('y.service', 'EnvironmentFile=/etc/default', EXEC);
  makeDirectory('etc/default');
  const got = await report();
  expect(found(got, 'unseen')).toHaveLength(2);
  expect(found(got, 'ok', 'entry')).toEqual([]);
});

test.each([
  ['RootDirectory=/srv/jail'],
  ['RootImage=/srv/jail.img'],
  ['BindPaths=/data:/srv/app'],
  ['BindPaths=/data:/srv/app/runs/locks'],
  ['ProtectSystem=strict', 'ReadWritePaths=/srv/%i'],
  ['EnvironmentFile=/etc/default/%i', 'ExecStart=', `ExecStart=/usr/local/bin/${RUN} -- true`],
  ['EnvironmentFile=/run/made-later', 'ExecStart=', `ExecStart=/usr/local/bin/${RUN} -- true`],
  ['PassEnvironment=RUNLOCK_DIR', 'ExecStart=', `ExecStart=/usr/local/bin/${RUN} -- true`],
  ['Environment=RUNLOCK_DIR=/srv/%i', 'ExecStart=', `ExecStart=/usr/local/bin/${RUN} -- true`],
])('a unit with %s has a lock that can not be told, and is not ok', async (...settings) => {
  makeDirectory('data');
  unit('x@.service', EXEC, ...settings);
  const got = await report();
  expect(found(got, 'note', 'unsure')[0]).toMatch(
    /^\/etc\/systemd\/system\/x@.service:\d+ which lock this is can't be told/,
  );
  expect(found(got, 'ok', 'entry')).toEqual([]);
  expect(found(got, 'problem')).toEqual([]);
});

test.each([
  ['EnvironmentFile=-/etc/default/missing'],
  ['ProtectSystem=full', 'ProtectHome=yes'],
  ['ProtectSystem=strict', 'ReadWritePaths=/srv/app/runs'],
  ['ProtectSystem=strict', 'ReadWritePaths=-/srv/missing /srv/app'],
  ['ReadOnlyPaths=/', 'BindPaths=/srv/app'],
  ['TemporaryFileSystem=/srv', 'BindPaths=/srv/app/runs'],
  ['InaccessiblePaths=/srv', 'InaccessiblePaths='],
  ['RootDirectory=/'],
  ['ReadOnlyPaths=/srv', 'ExecStart=', EXEC.replace('=', '=+')],
])('a unit with %s takes the lock that others take, and that is ok', async (...settings) => {
  unit('x.service', EXEC, ...settings);
  const got = await report();
  expect(got.code).toBe(0);
  expect(found(got, 'ok', 'entry')).toHaveLength(1);
});

test("a unit's state directory may be written to, but which user does is not known there", async () => {
  makeDirectory('var/lib/private/app/runs');
  link('private/app', 'var/lib/app');
  const exec = `ExecStart=/usr/local/bin/${RUN} --dir /var/lib/app/runs -- true`;
  unit('x.service', 'DynamicUser=yes', 'StateDirectory=app', exec);
  const got = await report();
  expect(found(got, 'problem')).toEqual([]);
  expect(found(got, 'note', 'unsure')).toEqual([
    expect.stringContaining("which user this runs as can't be told"),
  ]);
  unit('x.service', 'RuntimeDirectory=app', exec.replace('/var/lib', '/run'));
  expect(found(await report(), 'note', 'unsure')).toEqual([
    expect.stringContaining('/run/app/runs is removed when the unit ends (RuntimeDirectory=app)'),
  ]);
});

test('jobs of anacron are read: root runs them in /, with the variables above them', async () => {
  const lines = [
    'SHELL=/bin/sh',
    `1\t5\tcron.daily\trun-parts /etc/cron.daily`,
    `7 10 early ${RUN} --dir /srv/app/runs -- true`,
    PATH,
    `@monthly 15 late cd /srv/app && ${RUN} -- /srv/app/backup.sh 100%`,
    '',
  ];
  put('etc/anacrontab', lines.join('\n'));
  const got = await report();
  expect(got.entries).toMatchObject([
    { kind: 'anacron', file: '/etc/anacrontab', line: 3, user: 'root', cwd: '/', runlock: null },
    { kind: 'anacron', line: 5, dir: '/srv/app/runs', cwd: '/srv/app', runlock: '/usr/local/bin/runlock' },
  ]);
  expect(found(got, 'note', 'unsure')).toEqual([expect.stringContaining('/etc/anacrontab:3 which runlock')]);
});

test('units that are transient or generated are read, drop-ins of a common prefix count, units of all users are told', async () => {
  put('run/systemd/transient/run-u1.service', `[Service]\n${EXEC}\n`);
  put('run/systemd/generator/made.service', `[Service]\n${EXEC}\n`);
  put('etc/systemd/system/made-.service.d/a.conf', '[Service]\nEnvironment=RUNLOCK_NAME=wrong\n');
  unit('app-video-night.service', EXEC);
  put('etc/systemd/system/app-.service.d/a.conf', '[Service]\nEnvironment=RUNLOCK_NAME=video\n');
  put('usr/lib/systemd/user/all.service', `[Service]\n${EXEC}\n`);
  const got = await report();
  expect(got.entries.map(({ file, name }) => [path.basename(String(file)), name])).toEqual([
    ['app-video-night.service', 'video'],
    ['made.service', 'default'],
    ['run-u1.service', 'default'],
  ]);
  expect(found(got, 'note', 'unsure')).toEqual([
    expect.stringContaining('/usr/lib/systemd/user/all.service:2 which lock this takes'),
  ]);
});

test.runIf(isRoot())('an ordinary user is told what could not be read, and that is no 0', async () => {
  put('var/spool/cron/crontabs/ann', '@daily true\n');
  fs.chmodSync(path.join(root, 'var/spool/cron/crontabs'), 0o700);
  fs.chmodSync(box.dir, 0o755);
  const { code, stdout } = await box.runlock(['doctor', '--root', root], {
    user: { uid: 65534, gid: 65534 },
  });
  expect(code).toBe(1);
  expect(stdout).toContain(
    "unseen   other users' crontabs and units can't be read\n         to do: run doctor as root too\n",
  );
});
