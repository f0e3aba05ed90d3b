import fs from 'node:fs';
import path from 'node:path';
import type { Call } from './command.ts';

interface File {
  /** What a reader sees. */
  data: Buffer;
  /** What a power cut leaves. */
  durable: Buffer;
}

/** What a power cut may do to what was not synced. */
export type Loss =
  /** Neither names nor data had been written out. */
  | 'names and data'
  /** Names had: the files are there, without what was written into them. */
  | 'data'
  /** Data had: it is in files that have no name, or the old one. */
  | 'names';

/**
 * A disk as POSIX lets it behave: what is written into a file is safe when the file is synced, a name when its
 * directory is. Until then either may be lost: here all names, all data, or both, not those of one file and not
 * another's.
 */
export class Disk {
  readonly #files = new Map<string, File>();
  readonly #durableFiles: Map<string, File>;
  readonly #dirs = new Set<string>(['']);
  readonly #durableDirs: Set<string>;
  readonly #openings = new Map<number, File>();

  /** As it stands in a directory, all of it safe. */
  constructor(root: string) {
    for (const name of fs.readdirSync(root, { recursive: true, encoding: 'utf8' })) {
      const file = path.join(root, name);
      if (fs.statSync(file).isDirectory()) this.#dirs.add(name);
      else {
        const data = fs.readFileSync(file);
        this.#files.set(name, { data, durable: data });
      }
    }
    this.#durableFiles = new Map(this.#files);
    this.#durableDirs = new Set(this.#dirs);
  }

  /** Does what a command has done. */
  apply({ call, file, opening, to, bytes, position, length, truncates }: Call): void {
    switch (call) {
      case 'open': {
        const there = this.#files.get(file);
        const opened = there ?? { data: Buffer.alloc(0), durable: Buffer.alloc(0) };
        if (truncates) opened.data = Buffer.alloc(0);
        this.#files.set(file, opened);
        this.#openings.set(opening, opened);
        return;
      }
      case 'write': {
        const target = this.#opened(file, opening);
        const written = Buffer.from(bytes ?? '', 'base64');
        const at = position ?? target.data.length;
        const after = target.data.subarray(Math.min(target.data.length, at + written.length));
        target.data = Buffer.concat([target.data.subarray(0, at), written, after]);
        return;
      }
      case 'ftruncate': {
        const target = this.#opened(file, opening);
        target.data = Buffer.concat([
          target.data.subarray(0, length),
          Buffer.alloc(Math.max(0, (length ?? 0) - target.data.length)),
        ]);
        return;
      }
      case 'fsync':
        if (this.#dirs.has(file)) this.#syncDirectory(file);
        else this.#sync(this.#opened(file, opening));
        return;
      case 'link':
        this.#files.set(to ?? '', this.#named(file));
        return;
      case 'rename':
        this.#files.set(to ?? '', this.#named(file));
        this.#files.delete(file);
        return;
      case 'unlink':
        this.#files.delete(file);
        return;
      case 'mkdir':
        this.#dirs.add(file);
        return;
      case 'futimes':
      case 'fchmod':
      case 'fchown':
      case 'chmod':
      case 'chown':
        return;
      default:
        throw new Error(`what does ${call} do to a disk?`);
    }
  }

  /** Writes what is left after a power cut into a directory that is empty. */
  leave(loss: Loss, root: string, edit: (text: string) => string): void {
    const names = loss === 'data' ? this.#files : this.#durableFiles;
    const dirs = loss === 'data' ? this.#dirs : this.#durableDirs;
    for (const name of [...dirs].sort()) fs.mkdirSync(path.join(root, name), { recursive: true });
    for (const [name, file] of names) {
      if (!dirs.has(parent(name))) continue;
      const data = loss === 'names' ? file.data : file.durable;
      fs.writeFileSync(path.join(root, name), edit(data.toString('latin1')), 'latin1');
    }
  }

  #sync(file: File): void {
    file.durable = file.data;
  }

  #syncDirectory(dir: string): void {
    const inside = (name: string) => parent(name) === dir;
    for (const name of [...this.#durableFiles.keys()].filter(inside)) this.#durableFiles.delete(name);
    for (const [name, file] of this.#files) if (inside(name)) this.#durableFiles.set(name, file);
    for (const name of this.#dirs) if (inside(name)) this.#durableDirs.add(name);
  }

  #named(name: string): File {
    const file = this.#files.get(name);
    if (file === undefined) throw new Error(`${name} is not on the disk`);
    return file;
  }

  /** One that was there before is known by its name. */
  #opened(name: string, opening: number): File {
    const file = this.#openings.get(opening) ?? this.#named(name);
    this.#openings.set(opening, file);
    return file;
  }
}

function parent(name: string): string {
  const dir = path.dirname(name);
  return dir === '.' ? '' : dir;
}
