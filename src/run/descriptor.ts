import fs from 'node:fs';

/**
 * Above this Node leaves inherited descriptors alone: at start it marks the low ones close-on-exec, up to the
 * first gap behind 15, so a run inside a run would cut the outer tree off from its live file.
 */
const LOWEST = 97;

/**
 * At which descriptor the command's tree gets the live file: a free one, so that a run inside a run leaves the
 * outer one's alone, and below the limit of open files.
 */
export function freeDescriptor(): number {
  const limit = openFilesLimit();
  // Node needs one more above it while it starts the command.
  for (let fd = LOWEST; fd < limit - 1; fd += 1) if (isFree(fd)) return fd;
  for (let fd = Math.min(limit - 1, LOWEST) - 1; fd > 2; fd -= 1) if (isFree(fd)) return fd;
  return LOWEST;
}

function isFree(fd: number): boolean {
  try {
    fs.fstatSync(fd);
    return false;
  } catch {
    return true;
  }
}

function openFilesLimit(): number {
  try {
    const limits = fs.readFileSync('/proc/self/limits', 'utf8');
    return Number(/^Max open files\s+(\d+)/m.exec(limits)?.[1] ?? 1024);
  } catch {
    // Not Linux: the smallest limit that is usual anywhere.
    return 256;
  }
}
