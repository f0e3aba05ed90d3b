import fs from 'node:fs';
import path from 'node:path';
import type { Root } from './root.ts';
import { mayAccess, type User } from './users.ts';

/** What a file called `runlock` is. */
export type RunlockProgram =
  | { readonly type: 'ours'; readonly version: string | null; readonly interpreter: string | null }
  | { readonly type: 'cronutils' }
  | { readonly type: 'compiled' }
  | { readonly type: 'script' }
  | { readonly type: 'unreadable'; readonly reason: string };

const ENDINGS = process.platform === 'win32' ? ['.exe', '.cmd', ''] : [''];

/** The file that a shell would start, with its path on that system; null if there is none. */
export function findProgram(root: Root, name: string, search: string, cwd: string | null): string | null {
  if (/[/\\]/.test(name)) {
    const file = path.isAbsolute(name) ? name : cwd === null ? null : path.resolve(cwd, name);
    return file !== null && isExecutable(root, file) ? file : null;
  }
  for (const dir of search.split(path.delimiter)) {
    const base = path.isAbsolute(dir) ? dir : cwd === null ? null : path.resolve(cwd, dir);
    if (base === null) continue;
    const file = ENDINGS.map((ending) => path.join(base, name + ending)).find((one) =>
      isExecutable(root, one),
    );
    if (file !== undefined) return file;
  }
  return null;
}

function isExecutable(root: Root, file: string): boolean {
  const stat = root.stat(file);
  if (stat === null || !stat.isFile()) return false;
  return process.platform === 'win32' || (stat.mode & 0o111) !== 0;
}

/** The first directory on the way to a file that a user may not enter; null if the way is free. */
export function blockedAt(root: Root, user: User | null, file: string): string | null {
  if (user === null) return null;
  const ways = new Set([file, root.real(file)]);
  for (const way of ways) {
    const dirs: string[] = [];
    for (let dir = path.dirname(way); !dirs.includes(dir); dir = path.dirname(dir)) dirs.unshift(dir);
    const blocked = dirs.find((dir) => {
      const stat = root.stat(dir);
      return stat !== null && !mayAccess(user, stat, 'enter');
    });
    if (blocked !== undefined) return blocked;
  }
  return null;
}

/** Nothing that is found is ever run to see what it is: on another user's PATH it may be anything. */
export function identifyRunlock(root: Root, file: string): RunlockProgram {
  const head = readHead(root, file, 4096);
  if (typeof head !== 'string') return { type: 'unreadable', reason: head.reason };
  const real = root.real(file);
  if (head.startsWith('#!') && /\bnode\b/.test(head.split('\n')[0] ?? '')) {
    const version = versionOfPackage(root, real);
    if (version !== undefined) return { type: 'ours', version, interpreter: interpreterOf(head) };
  }
  if (root.textOf('/var/lib/dpkg/info/cronutils.list')?.split('\n').includes(file))
    return { type: 'cronutils' };
  return head.startsWith('\x7fELF') ? { type: 'compiled' } : { type: 'script' };
}

/** Undefined if the file belongs to no package of that name. */
function versionOfPackage(root: Root, real: string): string | null | undefined {
  let dir = path.dirname(real);
  for (let up = 0; up < 3; up++, dir = path.dirname(dir)) {
    const text = root.textOf(path.join(dir, 'package.json'));
    if (text === null) continue;
    try {
      const found: unknown = JSON.parse(text);
      if (typeof found !== 'object' || found === null || !('name' in found) || found.name !== 'runlock')
        return undefined;
      return 'version' in found && typeof found.version === 'string' ? found.version : null;
    } catch {
      return undefined;
    }
  }
  return undefined;
}

/** The program in a `#!` line; null where `env` looks for it on the PATH. */
function interpreterOf(head: string): string | null {
  const [program = '', argument] = (head.split('\n')[0] ?? '').slice(2).trim().split(/\s+/);
  return path.basename(program) === 'env' && argument !== undefined ? null : program;
}

const OLDEST_NODE = [20, 19] as const;

export function isTooOld(version: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  return major < OLDEST_NODE[0] || (major === OLDEST_NODE[0] && minor < OLDEST_NODE[1]);
}

/** A release's own address is in every build of Node; with it stands the version. */
const RELEASE = /node-v(\d{1,3}\.\d{1,3}\.\d{1,3})/;
const CHUNK = 4 * 1024 * 1024;
const MOST_SCANNED = 400 * 1024 * 1024;

/** The version of a Node, read off its files: `20.20.2`; null where they don't tell. */
export function nodeVersion(root: Root, file: string): string | null {
  const real = root.real(file);
  if (root.isOwn && real === fs.realpathSync(process.execPath)) return process.versions.node;
  const byPath = /\bnode[^/]*[/-]v?(\d{1,3}\.\d{1,3}\.\d{1,3})(?=[/-]|$)/.exec(path.dirname(real))?.[1];
  if (byPath !== undefined) return byPath;
  return scan(root, real);
}

function scan(root: Root, file: string): string | null {
  let fd: number;
  try {
    fd = fs.openSync(root.outer(file), fs.constants.O_RDONLY | (fs.constants.O_NONBLOCK ?? 0));
  } catch {
    return null;
  }
  try {
    if (!fs.fstatSync(fd).isFile()) return null;
    const bytes = Buffer.alloc(CHUNK);
    // Some bytes twice, or a version across two pieces would be missed.
    for (let at = 0; at < MOST_SCANNED; at += CHUNK - 64) {
      const count = fs.readSync(fd, bytes, 0, CHUNK, at);
      const piece = bytes.subarray(0, count);
      for (let found = piece.indexOf('node-v'); found >= 0; found = piece.indexOf('node-v', found + 1)) {
        const version = RELEASE.exec(piece.toString('latin1', found, found + 32))?.[1];
        if (version !== undefined) return version;
      }
      if (count < CHUNK) return null;
    }
    return null;
  } catch {
    return null;
  } finally {
    fs.closeSync(fd);
  }
}

function readHead(root: Root, file: string, length: number): string | { readonly reason: string } {
  try {
    const fd = fs.openSync(root.outer(file), fs.constants.O_RDONLY | (fs.constants.O_NONBLOCK ?? 0));
    try {
      if (!fs.fstatSync(fd).isFile()) return { reason: 'it is no regular file' };
      const bytes = Buffer.alloc(length);
      return bytes.toString('latin1', 0, fs.readSync(fd, bytes, 0, length, 0));
    } finally {
      fs.closeSync(fd);
    }
  } catch (error) {
    return { reason: error instanceof Error ? error.message : String(error) };
  }
}
