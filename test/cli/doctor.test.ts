import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import { BINARY, isRoot, Sandbox } from './harness.ts';

/** A system of its own in the sandbox: `/` is at `root`. */
let box: Sandbox;
let root: string;

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

test('two users, each with a directory in his home, are two locks', async () => {
  for (const name of ['ann', 'bob']) {
    makeDirectory(`home/${name}/runs`);
    put(`var/spool/cron/crontabs/${name}`, `${PATH}\n@daily ${RUN} --dir ~/runs -- /srv/app/backup.sh\n`);
  }
  const [problem] = found(await report(), 'problem', 'differentLocks');
  expect(problem).toContain('user bob) takes /home/bob/runs');
  expect(problem).toContain('/var/spool/cron/crontabs/ann:2 takes /home/ann/runs');
});

test('a user who may not write to the directory that his entry uses is told', async () => {
  put('var/spool/cron/crontabs/bob', `${PATH}\n@daily ${RUN} --dir /srv/app/runs -- /srv/app/backup.sh\n`);
  expect(found(await report(), 'problem', 'notWritable')).toEqual([
    expect.stringContaining('/var/spool/cron/crontabs/bob:2 user bob may not write to /srv/app/runs'),
  ]);
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
  const got = await report();
  expect(got.code).toBe(1);
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

test.runIf(isRoot())('an ordinary user is told what could not be read, and that is no 0', async () => {
  put('var/spool/cron/crontabs/ann', '@daily true\n');
  fs.chmodSync(path.join(root, 'var/spool/cron/crontabs'), 0o700);
  fs.chmodSync(box.dir, 0o755);
  const { code, stdout } = await box.runlock(['doctor', '--root', root], {
    user: { uid: 65534, gid: 65534 },
  });
  expect(code).toBe(1);
  expect(stdout).toContain("unseen   other users' crontabs can't be read");
});
