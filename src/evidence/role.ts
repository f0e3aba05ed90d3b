import { readInvocation } from './invocation.ts';
import { endsWithOwnCall, isOwnCall, namesUs, type OwnCall } from './own-call.ts';
import {
  isLauncher,
  isLauncherScript,
  isNobody,
  isNobodyByComm,
  isNobodyScript,
  isTerminal,
} from './programs.ts';
import { simpleCommand } from './shell-text.ts';
import type { Look, Sight } from './sight.ts';

/**
 * What a process above us is to the call: `passing` ends with it; a `shell` or a `script` lives on and may
 * hold the lock; `nobody` lives on for ever and holds nothing; of an `indirect` one nothing is known.
 */
export type Role = 'passing' | 'shell' | 'script' | 'indirect' | 'nobody';

/** In the order of what is certain: a daemon by its name, a launcher by its name, then what the arguments show. */
export function roleOf(seen: Sight, look: Look, own: OwnCall): Role {
  const { program, kind, script, module, text } = readInvocation(seen.argv, seen.comm);
  if (kind === 'other' && (isNobody(program) || isNobodyByComm(seen.comm))) return 'nobody';
  if (kind === 'interpreter' && script !== null && isNobodyScript(script)) return 'nobody';
  if (isLauncher(program)) return 'passing';
  if (
    script !== null &&
    (isLauncherScript(script) || namesUs(own, script) || isPackageScript(program, script))
  )
    return 'passing';
  if (program === 'cmd') return roleOfCmd(seen, look);
  if (text !== null && kind === 'shell') {
    const passing = isOwnCall(own, text) || (simpleCommand(text) !== null && endsWithOwnCall(own, seen.argv));
    return passing ? 'passing' : 'shell';
  }
  if (endsWithOwnCall(own, seen.argv)) return 'passing';
  if (kind === 'shell') return 'shell';
  return script !== null || module !== null ? 'script' : 'indirect';
}

/** `bun run publish`, `bun x runlock`, `deno task publish`: a name, not a file, and it ends with that. */
function isPackageScript(program: string, script: string): boolean {
  return (program === 'bun' || program === 'deno') && !/[./\\]/.test(script);
}

/**
 * Windows shows names only. Below a script, `cmd.exe` is the shim that started us; below a desktop or a
 * terminal somebody sits in front of it; anywhere else (a service, a compiled program, `dotnet`) it may be
 * the shim or a batch file, and of a shim taken for a holder the lock would be stale at once.
 */
function roleOfCmd(seen: Sight, look: Look): Role {
  const parent = look(seen.ppid);
  if (parent === 'gone' || parent === 'hidden') return 'indirect';
  const { program, kind } = readInvocation(parent.argv, parent.comm);
  if (kind !== 'other') return 'passing';
  return isTerminal(program) ? 'shell' : 'indirect';
}
