/** What of cross-spawn finds a program as Windows does, and writes its command line. */
declare module 'cross-spawn/lib/parse.js' {
  import type { SpawnOptions } from 'node:child_process';

  export default function parse<Options extends SpawnOptions>(
    command: string,
    args: readonly string[],
    options: Options,
  ): {
    command: string;
    args: string[];
    options: Options;
    /** The program's file; none where it was not found. */
    file?: string | null;
  };
}
