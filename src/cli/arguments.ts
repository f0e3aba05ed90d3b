import parse from 'yargs-parser';
import { RunlockError } from '../errors.ts';
import { nearest } from '../guess.ts';
import { printable } from '../printable.ts';
import { COMMON, type CommandSpec } from './spec.ts';

/** A parsed command line, checked against the command's options. */
export class Arguments {
  readonly operands: readonly string[];
  readonly #values: ReadonlyMap<string, string | true | readonly string[]>;

  constructor(operands: readonly string[], values: ReadonlyMap<string, string | true | readonly string[]>) {
    this.operands = operands;
    this.#values = values;
  }

  flag(name: string): boolean {
    return this.#values.has(name);
  }

  /** The option's value; an empty one is refused, since it is most likely an unset variable. */
  text(name: string): string | undefined {
    const value = this.possiblyEmpty(name);
    if (value === '') throw new RunlockError('usage', `${spelt(name)} needs a value, got an empty one`);
    return value;
  }

  /** The option's value, where an empty one has a meaning of its own. */
  possiblyEmpty(name: string): string | undefined {
    const value = this.#values.get(name);
    return typeof value === 'string' || value === undefined ? value : '';
  }

  /** The values of an option that may be repeated, in order; an empty one is refused. */
  texts(name: string): readonly string[] {
    const value = this.#values.get(name);
    const texts = typeof value === 'object' ? value : [];
    if (texts.includes('')) throw new RunlockError('usage', `${spelt(name)} needs a value, got an empty one`);
    return texts;
  }
}

/**
 * Parses with yargs' own parser: the whole of yargs takes longer to load than all the rest of `hb`, and is loaded
 * for help alone.
 *
 * @throws RunlockError `usage`
 */
export function parseArguments(command: string, spec: CommandSpec, argv: readonly string[]): Arguments {
  const options = { ...COMMON, ...spec.options };
  const texts = Object.keys(options).filter((name) => options[name]?.value !== undefined);
  const flags = Object.keys(options).filter((name) => options[name]?.value === undefined);
  const parsed = parse([...argv], {
    string: [...texts, '_', '--'],
    boolean: flags,
    // Or `run --json true` would take its command for the flag's value.
    narg: Object.fromEntries(flags.map((name) => [name, 0])),
    configuration: {
      'boolean-negation': false,
      'camel-case-expansion': false,
      'dot-notation': false,
      'parse-numbers': false,
      'parse-positional-numbers': false,
      'halt-at-non-option': spec.verbatim === true,
      'populate--': true,
      'greedy-arrays': false,
      'short-option-groups': false,
    },
  });
  const values = new Map<string, string | true | readonly string[]>();
  for (const [name, value] of Object.entries(parsed)) {
    if (name === '_' || name === '--') continue;
    const option = Object.hasOwn(options, name) ? options[name] : undefined;
    if (option === undefined) throw unknown(command, name, Object.keys(options));
    if (option.repeatable === true) {
      values.set(name, Array.isArray(value) ? value.map(String) : [String(value)]);
      continue;
    }
    if (Array.isArray(value))
      throw new RunlockError('usage', `${spelt(name)} is given ${value.length} times, expected once`);
    if (option.value !== undefined) values.set(name, String(value));
    else if (value === true) values.set(name, true);
  }
  const operands = [...parsed._.map(String), ...(parsed['--'] ?? []).map(String)];
  if (operands.length > spec.maxOperands) {
    const extra = operands[spec.maxOperands] ?? '';
    throw new RunlockError(
      'usage',
      `runlock ${command}: expected ${spec.maxOperands === 0 ? 'no operand' : `at most ${spec.operands}`}, got also "${printable(extra, 60)}"`,
    );
  }
  for (const [name, value] of values)
    if (value !== true) for (const text of [value].flat()) requireText(text, spelt(name));
  // A command's own words are passed on byte for byte.
  if (spec.verbatim !== true) for (const operand of operands) requireText(operand, `runlock ${command}`);
  return new Arguments(operands, values);
}

/**
 * Node puts U+FFFD in place of bytes that are no UTF-8. What such a text names is not known, and two names would be one.
 *
 * @param where in whose words it is told: an option, a variable
 * @throws RunlockError `usage`
 */
export function requireText(text: string, where: string): void {
  if (!text.includes('\uFFFD')) return;
  throw new RunlockError('usage', `${where}: expected UTF-8, got "${printable(text, 200)}"`);
}

function unknown(command: string, name: string, known: readonly string[]): RunlockError {
  const near = nearest(name, known);
  const hint = near === null ? `see runlock ${command} --help` : `did you mean ${spelt(near)}?`;
  return new RunlockError('usage', `runlock ${command} has no option ${printable(spelt(name), 60)}: ${hint}`);
}

function spelt(name: string): string {
  return name.length === 1 ? `-${name}` : `--${name}`;
}
