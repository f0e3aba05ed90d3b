import path from 'node:path';
import { RunlockError, systemCode } from '../errors.ts';
import { nearest } from '../guess.ts';
import { asciiJson, printable } from '../printable.ts';
import { parseArguments } from './arguments.ts';
import { EXIT, exitCodeOf } from './exit-codes.ts';
import { answerJson, errorJson, NO_RUN } from './output.ts';
import { COMMANDS } from './spec.ts';
import { answer, say } from './streams.ts';
import { splitVerb } from './verb.ts';

declare const RUNLOCK_VERSION: string;

/** Node's own warnings are not for those who read cron's mail. */
process.removeAllListeners('warning');

void main(process.argv.slice(2)).then((code) => {
  process.exitCode = code;
});

async function main(argv: readonly string[]): Promise<number> {
  try {
    return await dispatch(argv);
  } catch (error) {
    return report(error, argv);
  }
}

async function dispatch(argv: readonly string[]): Promise<number> {
  const { verb, rest } = splitVerb(argv);
  if (verb === null) {
    if (argv.includes('--version')) {
      answer(`${RUNLOCK_VERSION}\n`);
      return EXIT.ok;
    }
    const help = (await import('./help.ts')).generalHelp();
    if (argv.includes('--help')) {
      answer(help);
      return EXIT.ok;
    }
    throw new RunlockError(
      'usage',
      `expected a command: ${Object.keys(COMMANDS).join(', ')}; see runlock --help`,
    );
  }
  const spec = Object.hasOwn(COMMANDS, verb) ? COMMANDS[verb] : undefined;
  if (spec === undefined) {
    if (verb === 'help') {
      answer(await (await import('./help.ts')).helpFor(rest[0]));
      return EXIT.ok;
    }
    const near = nearest(verb, Object.keys(COMMANDS));
    throw new RunlockError(
      'usage',
      `there is no command "${printable(verb, 40)}": ${near === null ? 'see runlock --help' : `did you mean ${near}?`}`,
    );
  }
  const args = parseArguments(verb, spec, rest);
  if (args.flag('help')) {
    answer(await (await import('./help.ts')).helpFor(verb));
    return EXIT.ok;
  }
  return (await spec.load()).main(args);
}

function verbOrNull(argv: readonly string[]): string | null {
  try {
    return splitVerb(argv).verb;
  } catch {
    return null;
  }
}

/** One clear line, never a stack trace. */
function report(error: unknown, argv: readonly string[]): number {
  const known = error instanceof RunlockError ? error : unexpected(error);
  // Room for the longest path and the reason behind it.
  say(`runlock: ${printable(known.message, 6000)}`);
  const verb = verbOrNull(argv);
  const code = verb === 'run' ? EXIT.runFailed : exitCodeOf(known);
  if (wantsJson(argv)) {
    // The command's stdout is its own: `run` tells programs on stderr.
    if (verb === 'run') say(asciiJson({ ...NO_RUN, outcome: 'error', exitCode: code, ...errorJson(known) }));
    else tryToAnswer(errorJson(known));
  }
  return code;
}

/** An answer that can't be written was the error perhaps. */
function tryToAnswer(value: object): void {
  try {
    answerJson(value);
  } catch {
    // Said on stderr already.
  }
}

function wantsJson(argv: readonly string[]): boolean {
  const own = argv.includes('--') ? argv.slice(0, argv.indexOf('--')) : argv;
  return own.includes('--json');
}

/** Node's codes for a module that is not there: a part, or a package, that was not copied or has been removed. */
const MISSING: readonly unknown[] = ['MODULE_NOT_FOUND', 'ERR_MODULE_NOT_FOUND'];

function unexpected(error: unknown): RunlockError {
  if (error instanceof Error && MISSING.includes(systemCode(error))) {
    const [what] = error.message.split('\n'); // who required it follows
    const where = path.dirname(import.meta.filename);
    return new RunlockError('io', `${where} is not whole (${what}): install runlock anew`, { cause: error });
  }
  const what = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  return new RunlockError('io', `unexpected failure (${what}): please report it`, { cause: error });
}
