import { execFile } from 'node:child_process';
import path from 'node:path';
import { parseAnacrontab, parseCrontab } from './crontab.ts';
import type { Entry } from './entries.ts';
import { startedByText, UNKNOWN } from './started.ts';
import { parseEnvironmentFile } from './unit-file.ts';
import { findUser, type User } from './users.ts';
import { namesIn, type Visit } from './visit.ts';

/** Where the crontabs of users are, one file a user: Debian, SUSE, Red Hat, Alpine. */
const SPOOLS = ['/var/spool/cron/crontabs', '/var/spool/cron/tabs', '/var/spool/cron', '/etc/crontabs'];
const CRON_PATH = '/usr/bin:/bin';

/** Every job of every crontab that can be read. */
export async function cronEntries(visit: Visit): Promise<Entry[]> {
  const entries: Entry[] = [];
  const { root, findings } = visit;
  const read = (file: string, user: string | null) => {
    const reading = root.read(file);
    if ('refused' in reading)
      findings.add('unseen', 'unreadable', { file, line: null }, `could not be read: ${reading.refused}`);
    if ('text' in reading) entries.push(...entriesOf(visit, file, reading.text, user));
  };
  read('/etc/crontab', null);
  const debian = root.stat('/etc/debian_version') !== null;
  for (const name of namesIn(visit, '/etc/cron.d')) {
    const file = `/etc/cron.d/${name}`;
    if (!debian || /^[\w-]+$/.test(name)) read(file, null);
    else if (/\brunlock\b/.test(root.textOf(file) ?? '')) {
      findings.add(
        'note',
        'ignoredFile',
        { file, line: null },
        "Debian's cron passes over a file with such a name: its entries never start",
        'give it a name of letters, digits, - and _ alone',
      );
    }
  }
  const seen = new Set<string>();
  let refused = false;
  for (const spool of SPOOLS) {
    const listed = root.list(spool);
    refused ||= 'refused' in listed;
    for (const name of 'names' in listed ? listed.names : []) {
      const file = path.posix.join(spool, name);
      if (seen.has(root.real(file)) || root.stat(file)?.isFile() !== true) continue;
      seen.add(root.real(file));
      read(file, name);
    }
  }
  const { self } = visit;
  if (refused || (self !== null && self.uid !== 0)) {
    findings.add(
      'unseen',
      'otherUsers',
      null,
      "other users' crontabs and units can't be read",
      'run doctor as root too',
    );
  }
  if (refused && self !== null) entries.push(...(await ownEntries(visit, self)));
  return entries;
}

const ANACRONTAB = '/etc/anacrontab';

/** anacron starts its jobs as root, in `/`, with what its own starter gave it: cron, a unit or somebody's shell. */
export function anacronEntries({ root, users, findings }: Visit): Entry[] {
  const reading = root.read(ANACRONTAB);
  if ('refused' in reading)
    findings.add(
      'unseen',
      'unreadable',
      { file: ANACRONTAB, line: null },
      `could not be read: ${reading.refused}`,
    );
  if (!('text' in reading)) return [];
  return parseAnacrontab(reading.text).map(({ line, command, text, variables }) => {
    const env = new Map([['PATH', UNKNOWN], ...variables]);
    const user = findUser(users, 'root', null);
    const started = startedByText(command, { user, cwd: '/', env }, users);
    const step = { where: { file: ANACRONTAB, line }, text, started, sandbox: null };
    return { kind: 'anacron', steps: [step] };
  });
}

/** An ordinary user may not look into the spool: `crontab -l` shows his own. */
async function ownEntries(visit: Visit, self: User): Promise<Entry[]> {
  const text = await new Promise<string | null>((resolve) => {
    execFile('/usr/bin/crontab', ['-l'], { timeout: 5000, maxBuffer: 256 * 1024 }, (error, stdout) =>
      // Without a crontab it fails as well.
      resolve(error === null ? stdout : null),
    );
  });
  return text === null ? [] : entriesOf(visit, `crontab of ${self.name}`, text, self.name);
}

function entriesOf(visit: Visit, file: string, text: string, owner: string | null): Entry[] {
  const { root, users, findings } = visit;
  // Debian's cron reads it for every job; what the crontab says goes before.
  const everywhere = parseEnvironmentFile(root.textOf('/etc/environment') ?? '');
  const { jobs, cutLine } = parseCrontab(text, { userField: owner === null });
  return jobs.map((job) => {
    const where = { file, line: job.line };
    const name = owner ?? job.user ?? '';
    const user = findUser(users, name, null);
    const home = job.variables.get('HOME') ?? user?.home;
    const env = new Map([
      ...everywhere,
      ...[['PATH', CRON_PATH] as const, ['LOGNAME', name] as const],
      ...(home === undefined ? [] : [['HOME', home] as const]),
      ...job.variables,
    ]);
    const started = startedByText(job.command, { user, cwd: home ?? null, env }, users);
    if (/\brunlock\b/.test(job.command)) {
      if (user === null)
        findings.add(
          'problem',
          'noUser',
          where,
          `there is no user "${name}" in /etc/passwd`,
          'mend the user field',
        );
      if (cutLine === job.line)
        findings.add(
          'problem',
          'cutLine',
          where,
          'no line end follows: cron passes over the line',
          'end the line',
        );
    }
    return { kind: 'cron', steps: [{ where, text: job.text, started, sandbox: null }] };
  });
}
