import fs from 'node:fs';
import path from 'node:path';
import { expect, type TestContext, test } from 'vitest';
import { eventually, Sandbox } from '../cli/harness.ts';
import { needs, needsRoot } from '../cli/jobs.ts';
import { complaintsAbout } from './units.ts';

const EXAMPLES = path.resolve(import.meta.dirname, '../../scripts/examples');

/** An example, about the sandbox instead of /srv/app, and with the `runlock` that is there. */
async function example(box: Sandbox, name: string): Promise<string> {
  const { stdout } = await box.exec('sh', ['-c', 'command -v runlock']);
  return fs
    .readFileSync(path.join(EXAMPLES, name), 'utf8')
    .replaceAll('/usr/local/bin/runlock', stdout.trim())
    .replaceAll('/srv/app', box.dir);
}

async function place(box: Sandbox, name: string): Promise<string> {
  const file = box.write(path.basename(name), await example(box, name));
  fs.chmodSync(file, 0o755);
  return file;
}

/** A job of the reader's: says that it ran, and what the lock was meanwhile. */
function standIn(box: Sandbox, name: string, code = 0): void {
  const text = `#!/bin/sh\nrunlock status --dir '${box.runs}' | head -c 4 >>'${box.dir}/log'\nexit ${code}\n`;
  fs.chmodSync(box.write(name, text), 0o755);
}

function log(box: Sandbox): string {
  const file = path.join(box.dir, 'log');
  return fs.existsSync(file) ? fs.readFileSync(file, 'utf8') : '';
}

test('each says when to use it, and why asking first is not enough', () => {
  for (const name of [
    'cron/crontab',
    'systemd/backup.service',
    'systemd/publish.service',
    'hooks/pre.sh',
  ].concat('laravel/schedule.php', 'task-scheduler/publish.xml')) {
    const text = fs.readFileSync(path.join(EXAMPLES, name), 'utf8');
    expect(text, name).toContain('When: ');
    expect(text, name).toMatch(/Not .*between the question and the start another copy can start/);
  }
});

test("Debian's cron runs the crontab's line, and the lock is held meanwhile", {
  timeout: 180_000,
}, async (ctx) => {
  needsRoot(ctx);
  needs(ctx, 'cron', 'unshare', 'mount');
  const box = new Sandbox();
  standIn(box, 'backup.sh');
  const text = (await example(box, 'cron/crontab')).replace(
    /^PATH=.*$/m,
    `PATH=${path.dirname((await box.exec('sh', ['-c', 'command -v runlock'])).stdout.trim())}:${path.dirname(process.execPath)}:/usr/bin:/bin`,
  );
  const tab = box.write('crontab', text);
  // Mounts of its own, so that neither this machine's crontabs are run nor its own cron is met.
  const cron = box.start(
    'unshare',
    [
      '--mount',
      '--pid',
      '--fork',
      '--kill-child',
      '--mount-proc',
      'sh',
      '-ec',
      `for dir in /run /var/spool/cron /etc/cron.d; do mount -t tmpfs tmpfs "$dir"; done
       mount --bind /dev/null /etc/crontab
       mkdir -p /var/spool/cron/crontabs
       install -m 600 '${tab}' /var/spool/cron/crontabs/root
       exec cron -f`,
    ],
    { detached: true },
  );
  const finished = () => box.history().some((event) => event.outcome === 'finished');
  await Promise.race([
    eventually('a finished run', finished, 150_000),
    cron.ended.then(() => Promise.reject(new Error(`cron ended: ${cron.stderr}`))),
  ]);
  expect(log(box)).toBe('held');
  cron.killGroup();
  await cron.ended;
});

test.for(['backup.service', 'publish.service', 'backup.timer'])(
  'systemd takes %s without a word',
  async (name, ctx) => {
    const box = new Sandbox();
    for (const script of ['backup.sh', 'publish.sh', 'unlock.sh']) standIn(box, script);
    for (const other of ['backup.service', 'publish.service'])
      box.write(other, await example(box, `systemd/${other}`));
    expect(await complaintsAbout(ctx, box, name, await example(box, `systemd/${name}`))).toEqual([]);
  },
);

test('systemd would say so if a unit had a word it does not know', async (ctx) => {
  const box = new Sandbox();
  standIn(box, 'backup.sh');
  const unit = (await example(box, 'systemd/backup.service')).replace('KillMode=', 'KillMod=');
  expect(await complaintsAbout(ctx, box, 'backup.service', unit)).toEqual([
    expect.stringMatching(/Unknown key.*KillMod/),
  ]);
});

/** The command of a directive, with the variables that systemd fills in. */
function commandOf(unit: string, directive: string, env: Record<string, string>): string[] {
  const [, command = ''] = new RegExp(`^${directive}=(.*)$`, 'm').exec(unit) ?? [];
  return command
    .split(' ')
    .map((word) => word.replace(/^\$\{(\w+)\}$/, (_, name: string) => env[name] ?? ''));
}

test("the service's run: a skip is one of the codes that count as success", async () => {
  const box = new Sandbox();
  standIn(box, 'backup.sh');
  const unit = await example(box, 'systemd/backup.service');
  const [program = '', ...words] = commandOf(unit, 'ExecStart', {});
  expect((await box.exec(program, words, { cwd: '/' })).code).toBe(0);
  expect(log(box)).toBe('held');
  expect((await box.runlock(['acquire', 'x', '--no-pid', '--token', 'T'])).code).toBe(0);
  const { code } = await box.exec(program, words, { cwd: '/' });
  expect(commandOf(unit, 'SuccessExitStatus', {})).toContain(String(code));
});

test.for([
  ['success', 'exited', []],
  ['exit-code', 'exited', ['unknown']],
  // Stopped in mid-work: a success to systemd for all types but oneshot.
  ['success', 'killed', ['unknown']],
  // Stopped before its program had begun.
  ['success', undefined, ['unknown']],
] as const)(
  'the pair around a service frees the lock after %s (%s), and a refused start frees nothing',
  async ([result, exit, marks]) => {
    const box = new Sandbox();
    const unit = await example(box, 'systemd/publish.service');
    await place(box, 'systemd/unlock.sh');
    const call = (directive: string, env: Record<string, string>) => {
      const [program = '', ...words] = commandOf(unit, directive, env);
      return box.exec(program, directive === 'ExecStartPre' ? [...words, 'ep'] : words, { cwd: '/', env });
    };
    const first = { INVOCATION_ID: 'a1', SERVICE_RESULT: result, ...(exit && { EXIT_CODE: exit }) };
    const second = { INVOCATION_ID: 'b2', SERVICE_RESULT: 'exit-code' };
    expect((await call('ExecStartPre', first)).code).toBe(0);
    expect((await call('ExecStartPre', second)).code).toBe(3);
    expect((await call('ExecStopPost', second)).code).toBe(0);
    expect((await box.status()).state).toBe('held');
    expect((await call('ExecStopPost', first)).code).toBe(0);
    expect(await box.status()).toMatchObject({ state: 'free', marker: marks.map((state) => ({ state })) });
  },
);

test.for([
  ['0', []],
  ['7', ['unknown']],
  ['', ['unknown']],
] as const)(
  'hooks of a scheduler: a job that ended with "%s" frees its lock and no other',
  async ([exit, marks]) => {
    const box = new Sandbox();
    const hook = async (name: string, id: string) =>
      box.exec(await place(box, `hooks/${name}.sh`), [], {
        cwd: '/',
        env: { JOB_NAME: 'mail', JOB_RUN_ID: id, JOB_EXIT: exit },
      });
    expect((await hook('pre', 'a1')).code).toBe(0);
    expect((await hook('pre', 'b2')).code).toBe(3);
    // Of a run that was refused: finish says 4, release 0, and neither changes anything.
    expect((await hook('post', 'b2')).code).toBe(exit === '0' ? 4 : 0);
    expect((await box.status()).state).toBe('held');
    expect((await hook('post', 'a1')).code).toBe(0);
    expect(await box.status()).toMatchObject({ state: 'free', marker: marks.map((state) => ({ state })) });
    expect((await hook('pre', 'a1')).code).toBe(2);
  },
);

/** Laravel's schedule as far as the example uses it: it tells the command and how it is to be run. */
const SCHEDULE = `<?php
$schedule = new class {
  function exec($command) { echo $command, "\\n"; return $this; }
  function __call($name, $arguments) { return $this; }
};
require $argv[1];
`;

test("Laravel's schedule runs the job under the lock, and a skip is no failure", async (ctx: TestContext) => {
  needs(ctx, 'php');
  const box = new Sandbox();
  const file = await place(box, 'laravel/schedule.php');
  box.write('artisan', `<?php file_put_contents('${box.dir}/log', implode(' ', array_slice($argv, 1)));`);
  const { stdout } = await box.exec('php', [box.write('console.php', SCHEDULE), file]);
  const run = () => box.exec('sh', ['-c', stdout], { cwd: '/', detached: true });
  expect((await run()).code).toBe(0);
  expect(log(box)).toBe('publish:due');
  expect((await box.runlock(['acquire', 'x', '--no-pid', '--token', 'T'])).code).toBe(0);
  expect(await run()).toMatchObject({ code: 0, stdout: '', stderr: '' });
  expect(box.history().at(-1)).toMatchObject({ event: 'skipped' });
});

/** Names and values of Task Scheduler's schema, as far as the example uses them; the schema itself is Windows'. */
const TASK: Readonly<Record<string, RegExp>> = {
  '/Task/RegistrationInfo/Description': /./,
  '/Task/Triggers/TimeTrigger/Repetition/Interval': /^PT\d+[MH]$/,
  '/Task/Triggers/TimeTrigger/StartBoundary': /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d$/,
  '/Task/Triggers/TimeTrigger/Enabled': /^true$/,
  '/Task/Principals/Principal/LogonType': /^(S4U|Password|InteractiveToken|InteractiveTokenOrPassword)$/,
  '/Task/Principals/Principal/RunLevel': /^(LeastPrivilege|HighestAvailable)$/,
  '/Task/Settings/MultipleInstancesPolicy': /^IgnoreNew$/,
  '/Task/Settings/DisallowStartIfOnBatteries': /^false$/,
  '/Task/Settings/StopIfGoingOnBatteries': /^false$/,
  '/Task/Settings/AllowHardTerminate': /^true$/,
  '/Task/Settings/StartWhenAvailable': /^true$/,
  '/Task/Settings/ExecutionTimeLimit': /^PT\d+H$/,
  '/Task/Settings/Enabled': /^true$/,
  '/Task/Actions/Exec/Command': /^runlock\.cmd$/,
  '/Task/Actions/Exec/Arguments': /^run .*--skip-code 0 .*-- /,
  '/Task/Actions/Exec/WorkingDirectory': /^C:\\/,
};

const READ_XML = `import sys, xml.etree.ElementTree as tree
def walk(node, path):
    path += '/' + node.tag.replace('{http://schemas.microsoft.com/windows/2004/02/mit/task}', '')
    if len(node) == 0: print(path, (node.text or '').strip(), sep='\\t')
    for child in node: walk(child, path)
walk(tree.parse(sys.argv[1]).getroot(), '')
`;

test("the task is well-formed, and has the names and values of Task Scheduler's schema alone", async (ctx) => {
  needs(ctx, 'python3');
  const box = new Sandbox();
  const file = path.join(EXAMPLES, 'task-scheduler/publish.xml');
  const { code, stdout } = await box.exec('python3', [box.write('read.py', READ_XML), file]);
  expect(code).toBe(0);
  const found = Object.fromEntries(
    stdout
      .trim()
      .split('\n')
      .map((line) => line.split('\t')),
  );
  expect(Object.keys(found)).toEqual(Object.keys(TASK));
  for (const [name, value] of Object.entries(TASK)) expect(found[name], name).toMatch(value);
});

test('what launchers make of a skip is what README says, and --skip-code 0 is no failure to any', async (ctx) => {
  needs(ctx, 'make', 'xargs', 'npm', 'timeout');
  const box = new Sandbox();
  expect((await box.runlock(['acquire', 'x', '--no-pid', '--token', 'T'])).code).toBe(0);
  const launchers = { make: 2, npm: 3, xargs: 123, timeout: 3 };
  const codes = async (options: string) => {
    const run = `runlock run --quiet ${options}`;
    box.write('rules', `job:\n\t${run} true\n`);
    box.write('package.json', JSON.stringify({ scripts: { job: `${run} true` } }));
    const calls = {
      make: 'make -s -f rules job',
      npm: 'npm run --silent job',
      xargs: `echo true | xargs ${run}`,
      timeout: `timeout 60 ${run} true`,
    };
    const found: Record<string, number | null> = {};
    for (const [name, call] of Object.entries(calls)) found[name] = (await box.exec('sh', ['-c', call])).code;
    return found;
  };
  expect(await codes('')).toEqual(launchers);
  expect(await codes('--skip-code 0')).toEqual({ make: 0, npm: 0, xargs: 0, timeout: 0 });
});
