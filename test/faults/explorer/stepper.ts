import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import {
  CALLS,
  type Channel,
  inodeNumber,
  type Message,
  ORDER,
  order,
  put,
  setState,
  state,
  type World,
  waitWhile,
} from './channel.ts';

/** Thrown into the code at the call before which its process dies; from then on every call throws it. */
export class Crash extends Error {}

interface Addon {
  tryLock(fd: number, offset: number, length: number, exclusive: boolean): void;
  unlock(fd: number, offset: number, length: number): void;
}

const real = { ...fs };
/** Files whose content changes in place; all others are replaced whole, so that a descriptor sees one content. */
const IN_PLACE = /^(lock\.guard|live\/\d+(\.hb)?|history\/[^/]+)$/;

/** Who has the guard sees no change by others of anything but the heartbeat in lock.json. */
const PRIVATE = /^(?!open lock\.json)(open \S+ 0|read|stat|existsSync|readdirSync)/;

/**
 * Makes this thread stop before every call on the state directory that others could see or whose result depends on
 * them, until the explorer lets it go on, crash, or give up waiting.
 */
export class Stepper {
  readonly #channel: Channel;
  readonly #world: World;
  #dir = '';
  #hash = 0;
  #crashed = false;
  #seed = 1;
  /** Set while nobody counts: between executions. */
  #off = true;
  readonly #open = new Map<number, string>();
  readonly #locked = new Set<number>();
  /** Descriptors that what a killed process has started has. */
  readonly #inherited: number[] = [];

  /** Stops also before reads under the guard, which matter only where somebody else may have a guard too. */
  readonly #everywhere: boolean;
  /** Nobody else may have one. */
  readonly #exclusive: boolean;
  #guard: number | null = null;
  /** The live file of its own run. */
  #live: number | null = null;

  constructor(channel: Channel, world: World, how: { everywhere: boolean; exclusive: boolean }) {
    this.#channel = channel;
    this.#world = world;
    this.#everywhere = how.everywhere;
    this.#exclusive = how.exclusive;
    this.#patchFiles();
    this.#patchLocks();
    // Names of temporary files and pauses: the same in every execution.
    Math.random = () => {
      this.#seed = (this.#seed * 16807) % 2147483647;
      return this.#seed / 2147483647;
    };
  }

  get hash(): string {
    return this.#hash.toString(36);
  }

  set hash(value: string) {
    this.#hash = Number.parseInt(value, 36);
  }

  begin(dir: string, seed: number): void {
    this.#dir = dir;
    this.#seed = seed;
    this.#hash = 7;
    this.#crashed = false;
    this.#off = false;
    for (const fd of this.#inherited.splice(0)) real.closeSync(fd);
  }

  /**
   * As the kernel does when a process ends.
   *
   * @param leftovers what it has started has the live file still, until the next execution begins
   */
  end(leftovers: boolean): void {
    this.#off = true;
    for (const [fd, name] of this.#open) {
      if (leftovers && fd === this.#live && name.startsWith('live/')) this.#inherited.push(fd);
      else real.closeSync(fd);
    }
    this.#leaveGuard(this.#guard);
    this.#open.clear();
    this.#locked.clear();
  }

  /** Stops until told to go on; tells whether it is to give up waiting. */
  stop(message: Message): boolean {
    if (this.#crashed) throw new Crash();
    const calls = this.#channel.words[CALLS] ?? 0;
    if (message.type === 'call' && calls > 0) {
      this.#channel.words[CALLS] = calls - 1;
      return false;
    }
    put(this.#channel, message);
    Atomics.store(this.#channel.words, ORDER, order.none);
    setState(this.#channel, state.waiting);
    waitWhile(this.#channel, ORDER, order.none, Number.POSITIVE_INFINITY);
    const told = Atomics.load(this.#channel.words, ORDER);
    if (told === order.crash) {
      this.#crashed = true;
      throw new Crash();
    }
    return told === order.expire;
  }

  /** Takes a result into the state that this actor is in. */
  note(value: string): void {
    let hash = this.#hash;
    for (let at = 0; at < value.length; at += 1)
      hash = Math.imul(hash ^ value.charCodeAt(at), 16777619) >>> 0;
    this.#hash = hash;
  }

  #step(call: string): void {
    if (!this.#everywhere && this.#guard !== null && PRIVATE.test(call)) {
      this.note(call);
      return;
    }
    this.stop({ type: 'call', call, hash: this.hash });
    this.note(call);
  }

  #enterGuard(fd: number): void {
    this.#guard = fd;
    const before = Atomics.add(this.#world.guards, 0, 1);
    if (this.#exclusive && before > 0) throw new Error('two have the guard');
  }

  #leaveGuard(fd: number | null): void {
    if (fd === null || fd !== this.#guard) return;
    this.#guard = null;
    Atomics.sub(this.#world.guards, 0, 1);
  }

  #name(file: unknown): string | null {
    if (this.#off || typeof file !== 'string' || !file.startsWith(`${this.#dir}/`)) return null;
    return path.relative(this.#dir, file);
  }

  /** Others take no notice of temporary files, and directories stay. */
  #seen(name: string | null): name is string {
    return name !== null && !name.endsWith('.tmp') && !/^(live|history|records)$/.test(name);
  }

  #attempt<T>(act: () => T, digest: (value: T) => string): T {
    try {
      const value = act();
      this.note(digest(value));
      return value;
    } catch (error) {
      this.note(String((error as NodeJS.ErrnoException).code));
      throw error;
    }
  }

  #setTime(fd: number): void {
    const seconds = (this.#world.now[0] ?? 0) / 1000;
    real.futimesSync(fd, seconds, seconds);
  }

  #patchFiles(): void {
    const patch = <K extends keyof typeof fs>(name: K, replacement: unknown) => {
      (fs as Record<string, unknown>)[name] = replacement;
    };
    const dead = () => {
      if (this.#crashed && !this.#off) throw new Crash();
    };
    const stat = (value: fs.Stats | fs.BigIntStats | undefined) =>
      value === undefined ? 'none' : `${inodeNumber(this.#world, Number(value.ino))} ${value.size}`;

    patch('openSync', (file: string, flags: number, mode?: number) => {
      dead();
      const name = this.#name(file);
      if (this.#seen(name)) this.#step(`open ${name} ${flags & 3}`);
      const fd =
        name === null
          ? real.openSync(file, flags, mode)
          : this.#attempt(
              () => real.openSync(file, flags, mode),
              () => 'ok',
            );
      if (name !== null) this.#open.set(fd, name);
      if (name !== null && (flags & fs.constants.O_CREAT) !== 0) this.#setTime(fd);
      return fd;
    });
    patch('closeSync', (fd: number) => {
      dead();
      if (this.#locked.has(fd)) this.#step(`close ${this.#open.get(fd)}`);
      this.#open.delete(fd);
      this.#locked.delete(fd);
      real.closeSync(fd);
      this.#leaveGuard(fd);
    });
    patch(
      'readSync',
      (fd: number, buffer: Buffer, offset: number, length: number, position: number | null) => {
        dead();
        const name = this.#open.get(fd);
        if (name !== undefined && IN_PLACE.test(name)) this.#step(`read ${name}`);
        const count = real.readSync(fd, buffer, offset, length, position);
        if (name !== undefined) this.note(buffer.toString('latin1', offset, offset + count));
        return count;
      },
    );
    patch('writeSync', (fd: number, ...rest: unknown[]) => {
      dead();
      const name = this.#open.get(fd);
      if (name !== undefined && IN_PLACE.test(name)) this.#step(`write ${name}`);
      const count = (real.writeSync as (...args: unknown[]) => number)(fd, ...rest);
      if (name !== undefined) this.#setTime(fd);
      return count;
    });
    for (const name of ['ftruncateSync', 'futimesSync'] as const) {
      patch(name, (fd: number, ...rest: unknown[]) => {
        dead();
        const file = this.#open.get(fd);
        if (file !== undefined) this.#step(`${name} ${file}`);
        return (real[name] as (...args: unknown[]) => unknown)(fd, ...rest);
      });
    }
    patch('fstatSync', (fd: number, ...rest: unknown[]) => {
      dead();
      const value = (real.fstatSync as (...args: unknown[]) => fs.Stats)(fd, ...rest);
      if (this.#open.has(fd)) this.note(stat(value));
      return value;
    });
    for (const name of ['lstatSync', 'statSync'] as const) {
      patch(name, (file: string, ...rest: unknown[]) => {
        dead();
        const target = this.#name(file);
        const act = () => (real[name] as unknown as (...args: unknown[]) => fs.Stats)(file, ...rest);
        if (!this.#seen(target)) return act();
        this.#step(`stat ${target}`);
        return this.#attempt(act, stat);
      });
    }
    for (const name of ['existsSync', 'readdirSync'] as const) {
      patch(name, (file: string) => {
        dead();
        const target = this.#name(file);
        if (target === null && file !== this.#dir) return real[name](file);
        this.#step(`${name} ${target ?? '.'}`);
        return this.#attempt(
          () => real[name](file) as boolean | string[],
          (value) =>
            Array.isArray(value) ? value.filter((one) => !one.endsWith('.tmp')).join() : String(value),
        );
      });
    }
    for (const name of ['linkSync', 'renameSync'] as const) {
      patch(name, (from: string, to: string) => {
        dead();
        const target = this.#name(to);
        if (target === null) return real[name](from, to);
        this.#step(`${name} ${target}`);
        return this.#attempt(
          () => {
            real[name](from, to);
            const old = this.#name(from);
            for (const [fd, open] of this.#open) if (open === old) this.#open.set(fd, target);
          },
          () => 'ok',
        );
      });
    }
    patch('unlinkSync', (file: string) => {
      dead();
      const target = this.#name(file);
      if (!this.#seen(target)) return real.unlinkSync(file);
      this.#step(`unlink ${target}`);
      return this.#attempt(
        () => real.unlinkSync(file),
        () => 'ok',
      );
    });
  }

  /** By the path by which the command loads it: both get the same object. */
  #patchLocks(): void {
    const require = createRequire(import.meta.filename);
    const root = path.dirname(require.resolve('fs-native-extensions/package.json'));
    const addon = require(
      path.join(root, 'prebuilds', `${process.platform}-${process.arch}`, 'fs-native-extensions.node'),
    ) as Addon;
    const { tryLock, unlock } = addon;
    addon.tryLock = (fd, offset, length, exclusive) => {
      if (this.#crashed && !this.#off) throw new Crash();
      const name = this.#open.get(fd);
      if (exclusive && name?.startsWith('live/')) this.#live = fd;
      if (name === undefined || name.endsWith('.tmp')) return tryLock(fd, offset, length, exclusive);
      this.#step(`${exclusive ? 'lock' : 'share'} ${name}`);
      this.#attempt(
        () => tryLock(fd, offset, length, exclusive),
        () => 'ok',
      );
      this.#locked.add(fd);
      if (exclusive && name === 'lock.guard') this.#enterGuard(fd);
    };
    addon.unlock = (fd, offset, length) => {
      if (this.#crashed && !this.#off) throw new Crash();
      const name = this.#open.get(fd);
      if (name !== undefined) this.#step(`unlock ${name}`);
      unlock(fd, offset, length);
      this.#locked.delete(fd);
      if (fd === this.#live) this.#live = null;
    };
  }
}
