import fs from 'node:fs';
import path from 'node:path';
import type { TestContext } from 'vitest';
import { MINUTE, type Result, Sandbox } from './harness.ts';
import { wrongClock } from './processes.ts';

/*
 * The pipeline that users copy, as it is shipped, started by its own crontab line, on days that the test chooses. The
 * clock is moved for all processes of it, not the kernel's: heartbeats (mtimes) tell the real time. Days of the past
 * make that harmless: a heartbeat from the future counts as now, and no rule about a `run` asks a clock but the one
 * that bounds leftovers.
 */

const EXAMPLE = path.resolve(import.meta.dirname, '../../scripts/examples/publish');
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
/** The zone of its quota, which knows no summer time. */
const SHANGHAI = 8 * HOUR;

/** Who is killed: the whole process group of a scheduler, the supervisor alone, or the script alone. */
export type Victim = 'group' | 'runlock' | 'script';

/** SIGKILL in one of the scripts: before a command of it (a pattern), or so long after it began. */
export interface Kill {
  readonly script: 'publish.sh' | 'settle.sh';
  readonly victim: Victim;
  readonly before?: string;
  readonly afterMs?: number;
}

/** bash reads this before a script that it runs: the scripts stay as they are shipped. Of a round, one is killed. */
const KILLER = `
case $KILL_VICTIM in group) victim=0 ;; runlock) victim=$PPID ;; script) victim=$$ ;; esac
if [[ $0 == */"$KILL_SCRIPT" && ( $KILL_SCRIPT == publish.sh || \${1-} == --locked ) ]]; then
  if [[ -n $KILL_AFTER ]]; then
    mkdir "$KILL_FLAG" 2>/dev/null && (sleep "$KILL_AFTER"; kill -KILL $victim) &
  else
    trap 'if [[ $BASH_COMMAND == $KILL_BEFORE ]] && mkdir "$KILL_FLAG" 2>/dev/null; then kill -KILL $victim; fi' DEBUG
  fi
fi
`;

/** A day in Shanghai, counted back from today: 1 is yesterday. Epoch ms of its beginning. */
export function dayAgo(ago: number): number {
  return Math.floor((Date.now() + SHANGHAI) / DAY - ago) * DAY - SHANGHAI;
}

export function nameOfDay(day: number): string {
  return new Date(day + SHANGHAI).toISOString().slice(0, 10);
}

/** Minutes after midnight and minutes before: one of them is another day in UTC. */
export const EARLY = 30 * MINUTE;
export const LATE = DAY - 30 * MINUTE;

export interface Skip {
  readonly event: 'skipped';
  readonly job: string | null;
  readonly code: number;
  readonly reason: string;
  readonly gates?: readonly { readonly gate: string; readonly open: boolean; readonly code: number }[];
}

export class Pipeline {
  readonly box = new Sandbox();
  readonly #ctx: TestContext;
  readonly #items: readonly string[];
  #rounds = 0;

  constructor(ctx: TestContext, candidates: number) {
    this.#ctx = ctx;
    this.#items = Array.from({ length: candidates }, (_, index) => `ep-${index + 1}`);
    fs.cpSync(EXAMPLE, this.box.dir, { recursive: true });
    this.box.makeRuns();
    fs.mkdirSync(this.#path('build'));
    fs.mkdirSync(this.#path('published'));
    for (const item of this.#items) this.box.write(`drafts/${item}.md`, `# ${item}\n`);
    this.box.write('candidates.txt', this.#items.map((item) => `${item}\n`).join(''));
    this.box.write('ledger.json', '{\n  "publishes": {}\n}\n');
    this.box.write('killer.sh', KILLER);
  }

  /** Rewrites one of its files, for a control. A text that is no longer there is an error, not a control without it. */
  change(file: string, from: string, to: string): void {
    const text = fs.readFileSync(this.#path(file), 'utf8');
    if (text.split(from).length !== 2) throw new Error(`${file} has not one "${from}"`);
    fs.writeFileSync(
      this.#path(file),
      text.replace(from, () => to),
    );
  }

  /**
   * All schedulers start at once, at a time; ends when nothing that they started lives any more.
   *
   * @returns how the crontab line ended for each, and whether the kill found its victim
   */
  async start(
    at: number,
    schedulers: number,
    kill: Kill | null = null,
  ): Promise<{ ended: Result[]; killed: boolean }> {
    this.#rounds += 1;
    const flag = this.#path(`killed-${this.#rounds}`);
    const env = { ...this.#clock(at), ...(kill === null ? {} : this.#killer(kill, flag)) };
    const options = { cwd: '/', detached: true, env };
    const line = cronLine(fs.readFileSync(this.#path('crontab'), 'utf8'), this.box.dir);
    const started = Array.from({ length: schedulers }, () => this.box.start('sh', ['-c', line], options));
    const ended = await Promise.all(started.map((scheduler) => scheduler.result));
    return { ended, killed: fs.existsSync(flag) };
  }

  /** Settles what is left at the end, as the next start would. */
  settle(at: number): Promise<Result> {
    return this.box.exec('bash', ['settle.sh'], { env: this.#clock(at) });
  }

  /** The days and items of what is published, by the names of the files. */
  published(): { file: string; day: string; item: string }[] {
    const names = fs.readdirSync(this.#path('published')).sort();
    return names.map((name) => ({
      file: `published/${name}`,
      day: name.slice(0, 10),
      item: name.slice(11, -'.md'.length),
    }));
  }

  /** What the files on disk say against the promises, once all is settled. */
  broken(cleanDays: readonly string[] = []): string[] {
    const posts = this.published();
    const text = fs.readFileSync(this.#path('ledger.json'), 'utf8');
    const ledger = (JSON.parse(text) as { publishes: Record<string, { file: string }> }).publishes;
    const lastDay = posts.length === this.#items.length ? (posts.at(-1)?.day ?? '') : '9999';
    return [
      ...repeated(posts.map(({ day }) => day)).map((day) => `more than one was published on ${day}`),
      ...repeated(posts.map(({ item }) => item)).map((item) => `${item} was published twice`),
      ...posts
        .filter(({ item, file }) => ledger[item]?.file !== file)
        .map(({ file }) => `${file} is not in the ledger`),
      ...Object.keys(ledger)
        .filter((item) => !posts.some((post) => post.item === item))
        .map((item) => `${item} is in the ledger and was not published`),
      ...cleanDays
        .filter((day) => day <= lastDay && !posts.some((post) => post.day === day))
        .map((day) => `nothing was published on ${day}`),
      ...this.skips()
        .filter((skip) => !tellsWhy(skip))
        .map((skip) => `a skip without its gate: ${JSON.stringify(skip)}`),
    ];
  }

  skips(): Skip[] {
    return this.box.history().filter(({ event }) => event === 'skipped') as unknown as Skip[];
  }

  #clock(at: number): NodeJS.ProcessEnv {
    // It runs on from there, for all of them alike.
    return wrongClock(this.#ctx, String(Math.round((at - Date.now()) / 1000)));
  }

  #killer({ script, victim, before, afterMs }: Kill, flag: string): NodeJS.ProcessEnv {
    return {
      BASH_ENV: this.#path('killer.sh'),
      KILL_FLAG: flag,
      KILL_SCRIPT: script,
      KILL_VICTIM: victim,
      KILL_BEFORE: before ?? '',
      KILL_AFTER: afterMs === undefined ? '' : String(afterMs / 1000),
    };
  }

  #path(name: string): string {
    return path.join(this.box.dir, name);
  }
}

/** The command of the crontab, where it is installed in `dir`. */
function cronLine(crontab: string, dir: string): string {
  const [line = ''] = crontab.split('\n').filter((text) => /^[\d*]/.test(text));
  return line.split(' ').slice(5).join(' ').replaceAll('/srv/publish', dir);
}

function repeated(values: readonly string[]): string[] {
  return [...new Set(values.filter((value, index) => values.indexOf(value) !== index))];
}

/** Held by whom; no candidate left; or which gate said so, with the code that goes with it. */
function tellsWhy({ code, reason, gates = [] }: Skip): boolean {
  if (code === 3) return reason.startsWith('held by run ');
  if (code === 6 && reason.startsWith('no candidate is left: ')) return true;
  return gates.some(
    (answer) => !answer.open && answer.code === code && reason.startsWith(`${answer.gate}: `),
  );
}
