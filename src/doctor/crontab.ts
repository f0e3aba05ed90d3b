/** One job of a crontab. */
export interface CronJob {
  /** Counts from 1. */
  readonly line: number;
  /** Its user field; null in a user's own crontab. */
  readonly user: string | null;
  /** What the shell is given: up to the first `%`, which begins its stdin. */
  readonly command: string;
  /** The command with its stdin. */
  readonly text: string;
  /** The environment lines above it. */
  readonly variables: ReadonlyMap<string, string>;
}

export interface Crontab {
  readonly jobs: readonly CronJob[];
  /** The line that cron passes over, since no line end follows it. */
  readonly cutLine: number | null;
}

/** Nobody has as many; each job has them all, and a hostile crontab must not fill the memory. */
const MAX_VARIABLES = 500;
const VARIABLE = /^("[^"]*"|'[^']*'|[^\s=]+)\s*=\s*(.*)$/s;
const SCHEDULE = /^(?:@[a-z]+(?:\s+\d+(?=\s))?|(?:\S+\s+){4}\S+)\s+/i;

/**
 * Reads a crontab as cron does: an environment line holds for the jobs below it, and nothing in it is expanded.
 * @param options `userField`: each job names its user, as in /etc/crontab and /etc/cron.d
 */
export function parseCrontab(text: string, { userField }: { userField: boolean }): Crontab {
  const jobs: CronJob[] = [];
  let variables: ReadonlyMap<string, string> = new Map();
  const lines = text.split('\n');
  for (const [index, raw] of lines.entries()) {
    const line = raw.replace(/\r$/, '').trim();
    if (line === '' || line.startsWith('#')) continue;
    const schedule = SCHEDULE.exec(line)?.[0];
    const assigned = isSchedule(schedule) ? null : VARIABLE.exec(line);
    if (assigned !== null) {
      const [, name = '', value = ''] = assigned;
      if (variables.size < MAX_VARIABLES) variables = new Map(variables).set(unquote(name), unquote(value));
    } else if (schedule !== undefined) {
      const job = readJob(line.slice(schedule.length), userField);
      if (job !== null) jobs.push({ line: index + 1, ...job, variables });
    }
  }
  return { jobs, cutLine: (lines.at(-1) ?? '').trim() === '' ? null : lines.length };
}

const ANACRON_JOB = /^(?:\d+|@\S+)\s+\d+\s+[^\s/]+\s+(.*)$/s;
const ANACRON_VARIABLE = /^(\S+?)\s*=\s*(.*)$/s;

/** Reads an anacrontab: period, delay, a name for the job, and a command that root runs. Nothing is unquoted. */
export function parseAnacrontab(text: string): readonly CronJob[] {
  const jobs: CronJob[] = [];
  let variables: ReadonlyMap<string, string> = new Map();
  for (const [index, raw] of text.split('\n').entries()) {
    const line = raw.trim();
    if (line.startsWith('#')) continue;
    const command = ANACRON_JOB.exec(line)?.[1];
    const [, name, value = ''] = ANACRON_VARIABLE.exec(line) ?? [];
    if (command !== undefined && command !== '')
      jobs.push({ line: index + 1, user: 'root', command, text: command, variables });
    else if (name !== undefined && variables.size < MAX_VARIABLES)
      variables = new Map(variables).set(name, value);
  }
  return jobs;
}

/** `A = b c d e` has five fields as well, but no time has a letter and then `=`. */
function isSchedule(schedule: string | undefined): boolean {
  return schedule !== undefined && !schedule.includes('=');
}

function readJob(line: string, userField: boolean): Pick<CronJob, 'user' | 'command' | 'text'> | null {
  // FreeBSD has options, others a dash that turns off the log, before the command or the user.
  const text = line.replace(/^(?:-[nq]+\s+)+/, '');
  const [, user = '', rest = ''] = userField ? (/^-?(\S+)\s+(.*)$/s.exec(text) ?? []) : [null, '', text];
  const command = beforePercent(rest);
  return command === '' ? null : { user: userField ? user : null, command, text: rest };
}

/** `%` begins the command's stdin, `\%` is a percent sign. */
function beforePercent(command: string): string {
  return (/^(?:\\%|[^%])*/s.exec(command)?.[0] ?? '').replaceAll('\\%', '%');
}

function unquote(text: string): string {
  const trimmed = text.trim();
  return /^(["']).*\1$/s.test(trimmed) && trimmed.length > 1 ? trimmed.slice(1, -1) : trimmed;
}
