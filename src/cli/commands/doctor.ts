import fs from 'node:fs';
import path from 'node:path';
import { type EntryFacts, examine, type NamedDirectory } from '../../doctor/examine.ts';
import { type Finding, Findings, placeOf } from '../../doctor/finding.ts';
import { Root } from '../../doctor/root.ts';
import { readUsers, type User } from '../../doctor/users.ts';
import type { Call } from '../../doctor/uses.ts';
import type { Visit } from '../../doctor/visit.ts';
import { ioError, RunlockError } from '../../errors.ts';
import { printable } from '../../printable.ts';
import { type Arguments, parseArguments } from '../arguments.ts';
import { EXIT } from '../exit-codes.ts';
import { answerJson } from '../output.ts';
import { COMMANDS } from '../spec.ts';
import { answer } from '../streams.ts';
import { absolute, findPlace, namesLock } from '../target.ts';
import { splitVerb } from '../verb.ts';

/** Settings of the user's; the values of other variables may be secrets and are not shown. */
const SHOWN = ['RUNLOCK_DIR', 'RUNLOCK_NAME', 'RUNLOCK_CONFIG'];

export async function main(args: Arguments): Promise<number> {
  const root = new Root(rootOf(args));
  const users = readUsers(root);
  const visit: Visit = { root, users, findings: new Findings(), self: root.isOwn ? selfIn(users) : null };
  if (root.isOwn) sayVariables(visit.findings);
  const facts = await examine(visit, readCall, ownPlace(args, visit));
  const findings = visit.findings.list;
  const wrong = findings.some(({ level }) => level === 'problem' || level === 'unseen');
  if (args.flag('json'))
    answerJson({ ok: !wrong, findings: findings.map(findingJson), entries: facts.map(entryJson) });
  else answer(`${findings.map(findingLine).join('\n')}\n`);
  return wrong ? EXIT.failed : EXIT.ok;
}

function rootOf(args: Arguments): string {
  const named = args.text('root');
  // An absolute path, so that a current directory that was deleted does not matter.
  if (named === undefined) return path.resolve('/');
  try {
    const dir = fs.realpathSync(absolute(named));
    if (!fs.statSync(dir).isDirectory())
      throw new RunlockError('usage', `--root: expected a directory, got ${dir}`);
    return dir;
  } catch (error) {
    throw error instanceof RunlockError ? error : ioError('open --root', named, error);
  }
}

function selfIn(users: ReadonlyMap<string, User>): User | null {
  const uid = process.geteuid?.();
  if (uid === undefined) return null;
  const known = [...users.values()].find((user) => user.uid === uid);
  // A user of a directory service stands in no file.
  return (
    known ?? { name: String(uid), uid, gids: process.getgroups?.() ?? [], home: process.env.HOME || '/' }
  );
}

/** The lock that the common options name, or that a command in this directory would take. */
function ownPlace(args: Arguments, { root, findings }: Visit): NamedDirectory | null {
  const named = namesLock(args);
  if (!root.isOwn) {
    if (named)
      throw new RunlockError(
        'usage',
        'runlock doctor: expected --root or a lock (--dir, --name, --config), got both',
      );
    return null;
  }
  try {
    const { base, config, by } = findPlace(args);
    // Nobody said that there should be a lock here.
    if (by === 'nothing' && !fs.existsSync(base)) return null;
    return { base, singleMachine: config.singleMachine };
  } catch (error) {
    if (named || !(error instanceof RunlockError)) throw error;
    if (error.code === 'io') findings.add('unseen', 'unreadable', null, error.message);
    else findings.add('problem', 'configuration', null, error.message, 'mend it');
    return null;
  }
}

function sayVariables(findings: Findings): void {
  for (const name of Object.keys(process.env).sort()) {
    if (!name.startsWith('RUNLOCK_')) continue;
    const value = SHOWN.includes(name) ? `=${process.env[name]}` : '';
    findings.add(
      'note',
      'variable',
      null,
      `${name}${value} is set here, and in what cron and systemd start only if they say so too`,
    );
  }
}

/** As the command itself reads what stands behind its name. */
function readCall(argv: readonly string[]): Call | null {
  const { verb, rest } = splitVerb(argv);
  const spec = verb !== null && Object.hasOwn(COMMANDS, verb) ? COMMANDS[verb] : undefined;
  if (verb === null || verb === 'help') return null;
  if (spec === undefined) throw new RunlockError('usage', `there is no command "${printable(verb, 40)}"`);
  const args = parseArguments(verb, spec, rest);
  if (args.flag('help') || verb === 'doctor') return null;
  const named = { dir: args.text('dir'), name: args.text('name'), config: args.text('config') };
  return { verb, named, command: verb === 'run' ? args.operands : [] };
}

function findingLine({ level, what, where, advice }: Finding): string {
  const place = where === null ? '' : `${placeOf(where)}: `;
  const todo = advice === null ? '' : `\n         to do: ${printable(advice, 2000)}`;
  return printable(`${level.padEnd(7)}  ${place}${what}`, 8000) + todo;
}

function findingJson({ level, about, what, where, advice }: Finding) {
  return { level, about, what, file: where?.file ?? null, line: where?.line ?? null, advice };
}

function entryJson({ use, binaries }: EntryFacts) {
  const { entry, where, started, call, place } = use;
  return {
    kind: entry.kind,
    ...{ file: where.file, line: where.line, user: started.user?.name ?? null, cwd: started.cwd },
    command: call.verb,
    ...{
      dir: place?.base ?? null,
      name: place?.lock ?? null,
      config: place?.config ?? null,
      by: place?.by ?? null,
    },
    ...binaries,
  };
}
