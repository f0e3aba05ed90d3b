import { RunlockError } from '../errors.ts';
import { printable } from '../printable.ts';
import { EXIT_MEANINGS } from './exit-codes.ts';
import { COMMANDS, COMMON, type CommandSpec, type OptionSpec } from './spec.ts';

/** `runlock --help`. */
export function generalHelp(): string {
  const width = Math.max(...Object.keys(COMMANDS).map((name) => name.length));
  const commands = Object.entries(COMMANDS).map(([name, spec]) => `  ${name.padEnd(width)}  ${spec.summary}`);
  return [
    'runlock: may I start, and who is running?',
    '',
    'Usage: runlock COMMAND [OPTION…]',
    '',
    ...commands,
    '',
    'runlock COMMAND --help shows its options, an example and its exit codes.',
    '',
    'Exit codes:',
    ...codeLines(EXIT_MEANINGS.map(([code]) => code)),
    '',
  ].join('\n');
}

/** `runlock COMMAND --help`, laid out by yargs. */
export async function helpFor(command: string | undefined): Promise<string> {
  if (command === undefined) return generalHelp();
  const spec = Object.hasOwn(COMMANDS, command) ? COMMANDS[command] : undefined;
  if (spec === undefined)
    throw new RunlockError('usage', `there is no command "${printable(command, 40)}": see runlock --help`);
  const { default: yargs } = await import('yargs');
  const parser = yargs([])
    .scriptName('runlock')
    .usage(
      `runlock ${command} [OPTION…]${spec.operands === '' ? '' : ` ${spec.operands}`}\n\n${spec.summary}`,
    )
    .locale('en')
    .help(false)
    .version(false)
    .wrap(Math.min(110, process.stdout.columns ?? 100))
    .epilogue(
      [
        'Exit codes:',
        ...codeLines(spec.codes),
        ...(spec.codesNote === undefined ? [] : [spec.codesNote]),
      ].join('\n'),
    );
  for (const [line, meaning] of spec.examples) parser.example(line, meaning);
  addOptions(parser, spec, 'Options:');
  return `${await parser.getHelp()}\n`;
}

function addOptions(
  parser: { option(name: string, options: object): unknown },
  spec: CommandSpec,
  group: string,
): void {
  for (const [options, title] of [
    [spec.options, group],
    [COMMON, 'Common options:'],
  ] as const) {
    for (const [name, option] of Object.entries(options)) parser.option(name, describe(option, title));
  }
}

function describe(option: OptionSpec, group: string): object {
  const flag = option.value === undefined;
  return {
    group,
    describe: flag ? option.describe : `${option.value}: ${option.describe}`,
    type: flag ? 'boolean' : 'string',
  };
}

function codeLines(codes: readonly string[]): string[] {
  return EXIT_MEANINGS.filter(([code]) => codes.includes(code)).map(
    ([code, meaning]) => `  ${code.padEnd(6)} ${meaning}`,
  );
}
