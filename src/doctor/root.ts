import fs from 'node:fs';
import path from 'node:path';
import { systemCode } from '../errors.ts';

/** Far more than a crontab or a unit has; a hostile one must not fill the memory. */
const MAX_BYTES = 256 * 1024;
/** As many as the kernel follows. */
const MAX_LINKS = 40;

/** What reading gave: the text, or why there is none. */
export type Reading = { readonly text: string } | { readonly missing: true } | { readonly refused: string };

/**
 * The files of a system: this one, or another whose `/` is at a directory here, such as a container's or a mounted
 * disk. Paths are that system's own, and its links stay inside it.
 */
export class Root {
  readonly dir: string;

  /** @param dir absolute, without links in it */
  constructor(dir: string) {
    this.dir = dir;
  }

  /** The system that `doctor` itself runs on. */
  get isOwn(): boolean {
    return this.dir === path.parse(this.dir).root;
  }

  /** Where a file of that system is found from here. On the own system that is the same path. */
  outer(inner: string): string {
    return this.isOwn ? inner : this.#followed(inner);
  }

  /** What a path from here is called there. */
  inner(outer: string): string {
    if (this.isOwn) return outer;
    if (outer === this.dir) return '/';
    return outer.startsWith(`${this.dir}/`) ? outer.slice(this.dir.length) : outer;
  }

  /** A text file, read without waiting for the other end of a FIFO and no further than a bound. */
  read(inner: string): Reading {
    let fd: number;
    try {
      fd = fs.openSync(this.outer(inner), fs.constants.O_RDONLY | (fs.constants.O_NONBLOCK ?? 0));
    } catch (error) {
      return isMissing(error) ? { missing: true } : { refused: reasonOf(error) };
    }
    try {
      const stat = fs.fstatSync(fd);
      if (!stat.isFile()) return { refused: 'it is no regular file' };
      if (stat.size > MAX_BYTES) return { refused: `it is larger than ${MAX_BYTES / 1024} kB` };
      const bytes = Buffer.alloc(stat.size);
      return { text: bytes.toString('utf8', 0, fs.readSync(fd, bytes, 0, bytes.length, 0)) };
    } catch (error) {
      return { refused: reasonOf(error) };
    } finally {
      fs.closeSync(fd);
    }
  }

  /** The text, or null where there is none to be had. */
  textOf(inner: string): string | null {
    const reading = this.read(inner);
    return 'text' in reading ? reading.text : null;
  }

  /** Names in a directory, sorted. */
  list(
    inner: string,
  ): { readonly names: readonly string[] } | { readonly missing: true } | { readonly refused: string } {
    try {
      return { names: fs.readdirSync(this.outer(inner)).sort() };
    } catch (error) {
      return isMissing(error) ? { missing: true } : { refused: reasonOf(error) };
    }
  }

  stat(inner: string): fs.Stats | null {
    try {
      return fs.statSync(this.outer(inner));
    } catch {
      return null;
    }
  }

  /** The path without links, as that system calls it; the path itself where it can't be followed. */
  real(inner: string): string {
    if (!this.isOwn) return this.inner(this.#followed(inner));
    try {
      return fs.realpathSync.native(inner);
    } catch {
      // What is not there yet may be in a directory that is reached by a link.
      const parent = path.dirname(inner);
      return parent === inner ? inner : path.join(this.real(parent), path.basename(inner));
    }
  }

  #followed(inner: string): string {
    let left = path
      .resolve('/', inner)
      .split('/')
      .filter((name) => name !== '');
    let at = this.dir;
    for (let links = 0; left.length > 0; ) {
      const [name = '', ...rest] = left;
      left = rest;
      if (name === '..') {
        if (at !== this.dir) at = path.dirname(at);
        continue;
      }
      const next = path.join(at, name);
      const target = linkAt(next);
      if (target === null || links >= MAX_LINKS) {
        at = next;
        continue;
      }
      links += 1;
      if (target.startsWith('/')) at = this.dir;
      left = [...target.split('/').filter((part) => part !== '' && part !== '.'), ...left];
    }
    return at;
  }
}

function linkAt(file: string): string | null {
  try {
    return fs.readlinkSync(file);
  } catch {
    return null;
  }
}

function isMissing(error: unknown): boolean {
  const code = systemCode(error);
  return code === 'ENOENT' || code === 'ENOTDIR';
}

/** The system's reason without its path, which stands beside it. */
export function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message.replace(/, \w+( '.*')?$/s, '') : String(error);
}
