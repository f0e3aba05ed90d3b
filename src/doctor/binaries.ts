import {
  blockedAt,
  findProgram,
  identifyRunlock,
  isTooOld,
  nodeVersion,
  type RunlockProgram,
} from './programs.ts';
import { UNKNOWN } from './started.ts';
import type { Use } from './uses.ts';
import type { Visit } from './visit.ts';

/** Which programs an entry would find. */
export interface Binaries {
  readonly runlock: string | null;
  readonly version: string | null;
  readonly node: string | null;
  readonly nodeVersion: string | null;
}

/** Looks up `runlock`, and the Node that would run it, as the entry would, each file once. */
export class BinaryFinder {
  readonly #visit: Visit;
  readonly #programs = new Map<string, RunlockProgram>();
  readonly #nodes = new Map<string, string | null>();

  constructor(visit: Visit) {
    this.#visit = visit;
  }

  examine(use: Use): Binaries {
    const { root, findings } = this.#visit;
    const { where, started, program, node } = use;
    const PATH = started.env.get('PATH') ?? started.env.get('Path') ?? '';
    const search = node === null ? (started.searched ?? PATH) : PATH;
    const none = { runlock: null, version: null, node: null, nodeVersion: null };
    const named = node ?? program;
    const user = started.user?.name ?? 'unknown';
    if (search.includes(UNKNOWN) || PATH.includes(UNKNOWN)) {
      findings.add(
        'note',
        'unsure',
        where,
        `which ${named} and which node this finds is only known when it runs: PATH is set by then`,
        'give their whole paths to be sure',
      );
      return none;
    }
    const file = findProgram(root, named, search, started.cwd);
    if (file === null) {
      const looked = named.includes('/')
        ? 'it is not there, or not executable'
        : `none on its PATH (${search})`;
      findings.add(
        'problem',
        'notFound',
        where,
        `user ${user} finds no ${named}: ${looked}`,
        'give the path that `command -v runlock` prints, or add its directory to PATH',
      );
      return none;
    }
    const blocked = blockedAt(root, started.user, file);
    if (blocked !== null) {
      findings.add(
        'problem',
        'notFound',
        where,
        `user ${user} may not enter ${blocked}, where ${file} is`,
        'install it where every user may go, such as /usr/local',
      );
      return none;
    }
    if (this.#isHidden(use, file)) return none;
    if (node !== null) return { ...none, ...this.#examineNode(use, file), runlock: program };
    const found = this.#identify(file);
    if (found.type !== 'ours') {
      this.#sayForeign(use, file, found);
      return { ...none, runlock: file };
    }
    const interpreter = findProgram(root, found.interpreter ?? 'node', PATH, started.cwd);
    if (interpreter === null) {
      findings.add(
        'problem',
        'noNode',
        where,
        `${file} needs node, and user ${user} finds none on the PATH (${PATH})`,
        'add the directory of node to PATH: `command -v node` tells it',
      );
      return { ...none, runlock: file, version: found.version };
    }
    if (this.#isHidden(use, interpreter)) return { ...none, runlock: file, version: found.version };
    return { ...this.#examineNode(use, interpreter), runlock: file, version: found.version };
  }

  /** A unit may not see what is on the disk. */
  #isHidden({ where, sandbox }: Use, file: string): boolean {
    const seen = sandbox?.look(file);
    if (seen?.type !== 'hidden' && seen?.type !== 'own') return false;
    this.#visit.findings.add(
      'problem',
      'notFound',
      where,
      `the unit does not see ${file} (${seen.by})`,
      'install it where the unit may look, such as /usr/local',
    );
    return true;
  }

  #identify(file: string): RunlockProgram {
    const known = this.#programs.get(file) ?? identifyRunlock(this.#visit.root, file);
    this.#programs.set(file, known);
    return known;
  }

  #sayForeign({ where }: Use, file: string, found: RunlockProgram): void {
    const { findings } = this.#visit;
    switch (found.type) {
      case 'cronutils':
        findings.add(
          'problem',
          'foreignRunlock',
          where,
          `${file} is another program of that name, from Debian's package cronutils`,
          'give the whole path of this one, or put its directory first in PATH',
        );
        return;
      case 'compiled':
        findings.add(
          'problem',
          'foreignRunlock',
          where,
          `${file} is another program of that name (a compiled one, such as Debian's cronutils has)`,
          'give the whole path of this one, or put its directory first in PATH',
        );
        return;
      case 'script':
        findings.add(
          'note',
          'foreignRunlock',
          where,
          `${file} is a script of its own: what it starts was not looked into`,
        );
        return;
      case 'unreadable':
        findings.add('unseen', 'unreadable', where, `${file} could not be read: ${found.reason}`);
        return;
      case 'ours':
        return;
    }
  }

  #examineNode({ where }: Use, file: string): Pick<Binaries, 'node' | 'nodeVersion'> {
    const { root, findings } = this.#visit;
    if (!this.#nodes.has(file)) this.#nodes.set(file, nodeVersion(root, file));
    const version = this.#nodes.get(file) ?? null;
    if (version === null)
      findings.add(
        'note',
        'unknownNode',
        where,
        `the version of ${file} can't be told from its files; 20.19 or newer is needed`,
        `ask it: ${file} --version`,
      );
    else if (isTooOld(version))
      findings.add(
        'problem',
        'oldNode',
        where,
        `finds Node ${version} (${file}); 20.19 or newer is needed`,
        'put the directory of a newer one first in PATH',
      );
    return { node: file, nodeVersion: version };
  }
}
