import { type Invocation, readInvocation } from './invocation.ts';
import { procIsOurs, readArgv, readStat } from './procfs.ts';
import { baseName } from './programs.ts';

const LONGEST = 80;

/** What the process runs, in words fit for a terminal: `bash ./publish.sh`. Empty if it can't be seen. */
export async function nameOf(pid: number): Promise<string> {
  if (process.platform === 'linux') {
    if (!procIsOurs()) return '';
    const argv = readArgv(pid);
    return wordsOf(argv?.[0] ? argv : [readStat(pid)?.comm ?? '']);
  }
  const { readTable } = await import('./table.ts');
  return wordsOf((await readTable()).get(pid)?.argv ?? []);
}

/**
 * The program, and the script or module it runs. No further arguments and no code: they may hold
 * passwords, and these words go to terminals, logs and mails.
 */
export function wordsOf(argv: readonly string[]): string {
  const [first = ''] = argv;
  const read = readInvocation(argv);
  if (read.kind === 'other') return harmless(shownName(first));
  return harmless([read.program, ...shownOperand(read)].join(' '));
}

function shownOperand({ script, module, text, kind }: Invocation): string[] {
  if (module !== null) return ['-m', module];
  if (text !== null) return kind === 'shell' ? ['-c', '…'] : ['…'];
  return script === null ? [] : [script];
}

/** Of a title (`npm run x`, `nginx: worker process`) the first word alone: the rest may be arguments. */
function shownName(first: string): string {
  return baseName((first.split(' ')[0] ?? '').replace(/^-/, '')).replace(/:$/, '');
}

/** Any process may write escape sequences or text that runs backwards into its own name. */
function harmless(text: string): string {
  let shown = '';
  for (const char of text) {
    const safe = isPlain(char) ? char : `\\u{${char.codePointAt(0)?.toString(16)}}`;
    if (shown.length + safe.length > LONGEST) return `${shown}…`;
    shown += safe;
  }
  return shown;
}

/** Most names are ASCII, and compiling the tables of Unicode takes longer than all else here. */
function isPlain(char: string): boolean {
  return /[ -~]/.test(char) || !/[\p{C}\p{Zl}\p{Zp}]/u.test(char);
}
