import { execFileSync, spawn } from 'node:child_process';
import {
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import { findConfig, loadConfig } from '../../src/config/config.ts';
import { RunlockError } from '../../src/errors.ts';
import { parseLockName } from '../../src/names.ts';

const root = mkdtempSync(join(realpathSync(tmpdir()), 'runlock-config-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

let count = 0;
/** A directory of its own with this as runlock.json; answers the file's path. */
function fileWith(content: string | Uint8Array | object): string {
  count += 1;
  const dir = join(root, String(count));
  mkdirSync(dir);
  const path = join(dir, 'runlock.json');
  const isBytes = typeof content === 'string' || content instanceof Uint8Array;
  writeFileSync(path, isBytes ? content : JSON.stringify(content));
  return path;
}

function errorOf(path: string): RunlockError {
  try {
    loadConfig(path);
  } catch (error) {
    if (error instanceof RunlockError) return error;
    throw error;
  }
  throw new Error('expected a RunlockError');
}

const DEFAULTS = {
  holdMs: 2_700_000,
  freshMs: 7_200_000,
  unknownForMs: 7_200_000,
  timeoutMs: null,
  killAfterMs: 10_000,
  watchdogMs: null,
  gates: [],
};

describe('findConfig', () => {
  it('takes the nearest file upwards, also from a directory that does not exist', () => {
    const path = fileWith({});
    const inner = join(path, '..', 'a', 'b');
    mkdirSync(inner, { recursive: true });
    expect(findConfig(inner)).toBe(path);
    expect(findConfig(join(inner, 'not', 'yet'))).toBe(path);
    expect(findConfig(join(path, 'under', 'a', 'file'))).toBe(path);
    writeFileSync(join(inner, 'runlock.json'), '{}');
    expect(findConfig(inner)).toBe(join(inner, 'runlock.json'));
    expect(findConfig(root)).toBeNull();
  });

  it('does not pass over a dangling link, which might have chosen another directory', () => {
    const dir = join(root, 'dangling');
    mkdirSync(dir);
    symlinkSync('nowhere', join(dir, 'runlock.json'));
    expect(findConfig(dir)).toBe(join(dir, 'runlock.json'));
    expect(errorOf(join(dir, 'runlock.json')).code).toBe('config');
  });

  it('throws io rather than look elsewhere when it may not look', () => {
    const path = join(root, 'x'.repeat(300));
    expect(() => findConfig(path)).toThrow(expect.objectContaining({ code: 'io' }));
  });
});

describe('what the configuration says', () => {
  it('without a file: the defaults', () => {
    const config = loadConfig(null);
    expect(config).toMatchObject({ path: null, dir: null, store: null, singleMachine: false });
    expect(config.settingsFor(parseLockName('video'))).toEqual(DEFAULTS);
  });

  it('an empty file says only where it is', () => {
    const path = fileWith({});
    const config = loadConfig(path);
    expect(config).toMatchObject({ path, dir: join(path, '..', 'runs'), store: null, singleMachine: false });
    expect(config.settingsFor(parseLockName('default'))).toEqual(DEFAULTS);
  });

  it('top level for every lock, locks for one, by any spelling of its name', () => {
    const path = fileWith({
      $schema: 'x.json',
      dir: '../state',
      store: 'redis://h',
      singleMachine: true,
      hold: 'never',
      fresh: '1h',
      timeout: '45m',
      killAfter: '0s',
      watchdog: '10m',
      locks: {
        Vidéo: { hold: '20m', fresh: '3h', unknownFor: 'settled', watchdog: '15m' },
        default: { timeout: '1h' },
      },
    });
    const config = loadConfig(path);
    expect(config).toMatchObject({ dir: join(root, 'state'), store: 'redis://h', singleMachine: true });
    const top = {
      holdMs: null,
      freshMs: 3_600_000,
      unknownForMs: 3_600_000,
      timeoutMs: 2_700_000,
      killAfterMs: 0,
      watchdogMs: 600_000,
      gates: [],
    };
    expect(config.settingsFor(parseLockName('other'))).toEqual(top);
    expect(config.settingsFor(parseLockName('DEFAULT'))).toEqual({ ...top, timeoutMs: 3_600_000 });
    expect(config.settingsFor(parseLockName('VIDE\u0301O'))).toEqual({
      ...top,
      holdMs: 1_200_000,
      freshMs: 10_800_000,
      unknownForMs: null,
      watchdogMs: 900_000,
    });
  });

  it("unknownFor is the lock's own fresh unless given anywhere", () => {
    const lock = parseLockName('a');
    const own = loadConfig(fileWith({ fresh: '1h', locks: { a: { fresh: '2m' } } }));
    expect(own.settingsFor(lock).unknownForMs).toBe(120_000);
    const given = loadConfig(fileWith({ unknownFor: 'settled', locks: { a: { fresh: '2m' } } }));
    expect(given.settingsFor(lock).unknownForMs).toBeNull();
  });

  it('reads UTF-8 and UTF-16 with their marks, through a link too', () => {
    const text = '{"locks": {"视频": {"hold": "20m"}}}';
    const path = fileWith(Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from(text, 'utf16le')]));
    const link = join(root, 'link.json');
    symlinkSync(path, link);
    for (const file of [path, link, fileWith(`\ufeff${text}`)]) {
      expect(loadConfig(file).settingsFor(parseLockName('视频')).holdMs).toBe(1_200_000);
    }
    expect(loadConfig(link).dir).toBe(join(root, 'runs'));
  });
});

describe('what it refuses, in one line with path, place, expected and got', () => {
  it.each([
    [
      { hold: 45 },
      'hold: expected a duration in quotes such as "90s", "45m", "2h" or "1d", or "never", got 45',
    ],
    [{ hold: '45' }, 'hold: expected a duration such as 90s, 45m, 2h or 1d, or "never", got "45"'],
    [{ timeout: 'never' }, 'timeout: expected a duration such as 90s, 45m, 2h or 1d, got "never"'],
    [{ fresh: '0s' }, 'fresh: expected a duration longer than 0, got "0s"'],
    [{ unknownFor: null }, 'or "settled", got null'],
    [{ dir: 7 }, 'dir: expected a text, got 7'],
    [{ dir: '' }, 'dir: expected a text, got an empty one'],
    [{ dir: 'a\u0000b' }, 'dir: expected a text without control characters, got one with'],
    [{ singleMachine: 'yes' }, 'singleMachine: expected true or false, got "yes"'],
    [{ locks: [] }, 'locks: expected an object, got an array'],
    [{ locks: { video: null } }, 'locks.video: expected an object, got null'],
    [{ locks: { video: { hold: '1x' } } }, 'locks.video.hold: expected a duration'],
    [{ locks: { 'my lock': { hold: {} } } }, 'locks["my lock"].hold: expected a duration'],
    [{ locks: { '\u001b[2J': {} } }, 'locks: lock name "\\u{1b}[2J": expected text without control'],
    [{ locks: { '': {} } }, 'locks: lock name: expected 1 to 100 characters, got none'],
    [{ locks: { Video: {}, vIDEO: {} } }, 'each lock once, got "Video" and "vIDEO", which are the same lock'],
    [{ locks: { a: { dir: 'x' } } }, 'locks.a.dir: unknown key, expected one of hold, fresh, unknownFor,'],
    [{ hodl: '1h' }, 'hodl: unknown key, expected a known key, did you mean "hold"?'],
    [{ kill_after: '1h' }, 'kill_after: unknown key, expected a known key, did you mean "killAfter"?'],
    [
      { locks: { a: { watchdgo: '1m' } } },
      'locks.a.watchdgo: unknown key, expected a known key, did you mean "watchdog"?',
    ],
    [{ toString: 1 }, 'toString: unknown key, expected one of'],
    ['{"__proto__": 1}', '__proto__: unknown key'],
    ['[]', ': expected an object, got an array'],
    ['null', ': expected an object, got null'],
    ['{"hold": "1h",\n "hold": "2h"}', ': expected each key once, got a second "hold" at line 2, column 2'],
    ['{"hold": "1h",}', ': expected a key in double quotes, got "}" at line 1, column 15'],
    ['', ': expected a JSON value, got the end at line 1, column 1'],
  ])('%j', (content, message) => {
    const path = fileWith(content);
    const error = errorOf(path);
    expect(error).toMatchObject({ code: 'config', path });
    expect(error.message.startsWith(`${path}: `)).toBe(true);
    expect(error.message).toContain(message);
    expect(error.message).not.toMatch(/[\p{Cc}\p{Cs}]/u);
    expect(error.message.length).toBeLessThan(path.length + 250);
  });

  it('any JSON gives settings or a config error in one harmless, bounded line', () => {
    const key = fc.oneof(
      fc.constantFrom('hold', 'fresh', 'locks', 'dir', 'hodl', '$schema'),
      fc.string({ unit: 'binary' }),
    );
    const value = fc.oneof(
      fc.constantFrom('1h', 'never', true),
      fc.jsonValue(),
      fc.string({ unit: 'binary', maxLength: 500 }),
    );
    fc.assert(
      fc.property(fc.dictionary(key, fc.oneof(value, fc.dictionary(key, value))), (content) => {
        const path = fileWith(content);
        try {
          loadConfig(path).settingsFor(parseLockName('hold'));
        } catch (error) {
          expect(error).toMatchObject({ code: 'config' });
          if (!(error instanceof Error)) return;
          expect(error.message).not.toMatch(/[\p{Cc}\p{Zl}\p{Zp}\p{Cs}\p{Bidi_Control}]/u);
          expect(error.message.length).toBeLessThan(path.length + 400);
        }
      }),
      { numRuns: 300 },
    );
  });

  it('GBK, with the place', () => {
    const path = fileWith(Buffer.from([0x7b, 0x22, 0xbe, 0xf2, 0x22, 0x7d]));
    expect(errorOf(path).message).toContain(`${path}: expected UTF-8`);
    expect(errorOf(path).message).toContain('byte offset 2 (line 1, column 3)');
  });

  it('a file that is not there, a directory, a FIFO without hanging, one that is too long', () => {
    expect(errorOf(join(root, 'none.json'))).toMatchObject({ code: 'config' });
    expect(errorOf(join(root, 'none.json')).message).toContain('expected a configuration file, got none');
    expect(errorOf(root)).toMatchObject({ code: 'io', message: `could not read ${root}: it is a directory` });
    const long = fileWith('{}');
    truncateSync(long, 2 ** 20 + 1);
    expect(errorOf(long).message).toContain('expected at most 1 MiB');
    expect(errorOf('/dev/zero').message).toContain('expected a regular file');
  });

  it.skipIf(process.platform === 'win32')('a FIFO, without hanging', () => {
    const fifo = join(root, 'fifo.json');
    execFileSync('mkfifo', [fifo]);
    // Whoever hangs on it is let go, to fail instead.
    const writer = spawn('sh', ['-c', 'sleep 5; : > "$0"', fifo], { stdio: 'ignore' });
    const start = performance.now();
    expect(errorOf(fifo)).toMatchObject({ code: 'config' });
    expect(performance.now() - start).toBeLessThan(3000);
    writer.kill();
  });
});
