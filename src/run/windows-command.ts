import type { SpawnOptions } from 'node:child_process';
import parse from 'cross-spawn/lib/parse.js';

/** An argument that a batch file would take for something else. */
class UnsafeArgument extends Error {
  readonly code = 'UNSAFE_ARGUMENT';
}

/**
 * How to start a program on Windows. Batch files run in cmd.exe: cross-spawn sees to it that their arguments come
 * through its first reading whole; a second one, where the batch file passes them on (`%*`), is beyond it.
 *
 * @throws Error ENOENT where there is no such program: cmd.exe would be started for it and say so in its own way
 * @throws UnsafeArgument
 */
export function windowsCommand<Options extends SpawnOptions>(
  program: string,
  args: readonly string[],
  options: Options,
) {
  const parsed = parse(program, args, options);
  const file = parsed.file ?? null;
  if (file === null) throw Object.assign(new Error(`${program}: not found`), { code: 'ENOENT' });
  if (/\.(?:cmd|bat)$/i.test(file)) refuseUnsafe(file, args);
  return parsed;
}

/** npm's shims pass their arguments on in a way that cross-spawn knows. */
const SHIM = /node_modules[\\/]\.bin[\\/][^\\/]+\.cmd$/i;

function refuseUnsafe(file: string, args: readonly string[]): void {
  if (args.some((arg) => /[\r\n]/.test(arg)))
    throw new UnsafeArgument("a batch file can't be given an argument with a line end");
  // A quotation mark ends the quotes around an argument, and what follows, in this or another one, would be run.
  if (!SHIM.test(file) && args.some((arg) => arg.includes('"')) && args.some((arg) => /[&|<>^]/.test(arg)))
    throw new UnsafeArgument(
      "a batch file can't safely be given arguments with a quotation mark and one of & | < > ^: name the program that it calls",
    );
}
