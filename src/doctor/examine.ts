import { execFile } from 'node:child_process';
import fs from 'node:fs';
import { type Binaries, BinaryFinder } from './binaries.ts';
import { byWords, compareJobs, lockWords } from './compare.ts';
import { anacronEntries, cronEntries } from './cron.ts';
import { examineDirectory, type StateDirectory } from './directory.ts';
import { type Entry, kindWords } from './entries.ts';
import { startedByWords } from './started.ts';
import { parseTasks, splitWindowsWords } from './tasks.ts';
import { unitEntries } from './units.ts';
import { findUses, type ReadCall, type Use, type UsedPlace } from './uses.ts';
import type { Visit } from './visit.ts';

/** One call of runlock's in an entry, with all that it would use. */
export interface EntryFacts {
  readonly use: Use;
  readonly binaries: Binaries;
}

/** A state directory that is looked at whether an entry uses it or not. */
export type NamedDirectory = Pick<UsedPlace, 'base' | 'singleMachine'>;

/** Looks at everything that starts runlock, and at every directory that it would use. */
export async function examine(
  visit: Visit,
  readCall: ReadCall,
  also: NamedDirectory | null,
): Promise<EntryFacts[]> {
  const entries =
    process.platform === 'win32'
      ? await taskEntries(visit)
      : [...(await cronEntries(visit)), ...anacronEntries(visit), ...unitEntries(visit)];
  const { uses, jobs } = findUses(entries, visit, readCall);
  if (uses.length === 0 && !visit.findings.list.some(({ about }) => about === 'unsure'))
    visit.findings.add('note', 'noEntries', null, 'nothing that was looked at starts runlock');
  compareJobs(uses, jobs, visit);
  const finder = new BinaryFinder(visit);
  const facts = uses.map((use) => ({ use, binaries: finder.examine(use) }));
  for (const state of directoriesOf(uses, also)) examineDirectory(state, visit);
  for (const one of facts) sayEntry(one, visit);
  sayVersions(facts, visit);
  if (visit.root.isOwn) await examineClock(visit);
  return facts;
}

/** Each directory once, with all who use it. */
function directoriesOf(uses: readonly Use[], also: NamedDirectory | null): StateDirectory[] {
  const found = new Map<string, StateDirectory>();
  const add = ({ base, singleMachine }: NamedDirectory, users: StateDirectory['users']) => {
    const known = found.get(base);
    found.set(base, {
      base,
      singleMachine: singleMachine || known?.singleMachine === true,
      users: [
        ...(known?.users ?? []),
        ...users.filter(({ user }) => known?.users.every((one) => one.user.name !== user.name) ?? true),
      ],
    });
  };
  for (const { place, started, where } of uses) {
    if (place !== null) add(place, started.user === null ? [] : [{ user: started.user, where }]);
  }
  if (also !== null) add(also, []);
  return [...found.values()];
}

function sayEntry({ use, binaries }: EntryFacts, { findings }: Visit): void {
  const { entry, where, started, call, place } = use;
  if (place === null || binaries.runlock === null) return;
  const node = binaries.nodeVersion === null ? '' : `, Node ${binaries.nodeVersion}`;
  findings.add(
    findings.hasDoubt(where) ? 'note' : 'ok',
    'entry',
    where,
    `${kindWords(entry.kind)}, user ${started.user?.name ?? 'unknown'}: ${call.verb} on ${lockWords(place)} (${byWords(place)}), by ${binaries.runlock}${node}`,
  );
  for (const name of ['RUNLOCK_LOCK', 'RUNLOCK_RUN', 'RUNLOCK_TOKEN']) {
    // Values stay out of visit: a token is a secret.
    if (started.env.has(name))
      findings.add(
        'note',
        'variable',
        where,
        `${name} is set: it names one run, and runlock sets it by itself`,
        'leave it out',
      );
  }
}

function sayVersions(facts: readonly EntryFacts[], { findings }: Visit): void {
  const versions = new Map(
    facts.flatMap(({ binaries }) =>
      binaries.version === null ? [] : [[binaries.version, binaries.runlock]],
    ),
  );
  if (versions.size < 2) return;
  const words = [...versions].map(([version, file]) => `${version} (${file})`).join(', ');
  findings.add(
    'note',
    'versions',
    null,
    `entries start different versions of runlock: ${words}`,
    'update the older one',
  );
}

/** Written from its documentation and tried on a sample: there was no Windows to run it on. */
async function taskEntries({ findings }: Visit): Promise<Entry[]> {
  const xml = await outputOf('schtasks.exe', ['/query', '/xml']);
  if (xml === null) {
    findings.add(
      'unseen',
      'unreadable',
      null,
      'the tasks could not be listed: schtasks /query /xml failed',
      'run doctor as an administrator',
    );
    return [];
  }
  return parseTasks(xml).map(({ task, user, command, args, cwd }) => {
    const words = [command, ...splitWindowsWords(args)].map((text) => ({
      text,
      certain: !text.includes('%'),
    }));
    const env = new Map(
      Object.entries(process.env).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
    );
    const around = {
      user: user === null ? null : { name: user, uid: -1, gids: [], home: '' },
      cwd: cwd ?? 'C:\\Windows\\System32',
      env,
    };
    return {
      kind: 'task',
      steps: [
        {
          where: { file: task, line: null },
          text: `${command} ${args}`,
          started: startedByWords(words, around, new Map()),
          sandbox: null,
        },
      ],
    };
  });
}

/** Heartbeats are wall times: a clock that is set by hand steps. */
async function examineClock({ findings }: Visit): Promise<void> {
  // Without systemd as init it only says so, after some time.
  if (!fs.existsSync('/run/systemd/system')) return;
  const answer = await outputOf('/usr/bin/timedatectl', ['show', '--property=NTPSynchronized', '--value']);
  if (answer?.trim() === 'no')
    findings.add(
      'note',
      'clock',
      null,
      'the clock is not synchronised (timedatectl): a step of it makes heartbeats older or younger',
      'timedatectl set-ntp true',
    );
}

function outputOf(program: string, args: readonly string[]): Promise<string | null> {
  return new Promise((resolve) => {
    execFile(program, args, { timeout: 10_000, maxBuffer: 16 * 1024 * 1024 }, (error, stdout) =>
      resolve(error === null ? stdout : null),
    );
  });
}
