import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { type Clock, systemClock } from '../../src/clock.ts';
import { loadConfig } from '../../src/config/config.ts';
import { tryLock } from '../../src/disk/kernel-lock.ts';
import { LockedLedger } from '../../src/ledger/file.ts';
import { addToLedger, hasKey, listKeys } from '../../src/ledger/ledger.ts';
import { resolveLedger } from '../../src/ledger/reference.ts';

function makeDir(): string {
  const dir = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), 'runlock-ledger-')));
  onTestFinished(() => fs.rmSync(dir, { recursive: true, force: true }));
  return dir;
}

function ledgerWith(content: string | Uint8Array) {
  const dir = makeDir();
  const file = path.join(dir, 'ledger.json');
  fs.writeFileSync(file, content);
  return { dir, file, ledger: resolveLedger('ledger.json#a', loadConfig(null), dir) };
}

const ENTRY = { key: 'k', entry: '{}', stamp: null, create: false };

/** A clock at whose n-th question for the time, which an add asks after it has read, something happens. */
function clockThat(act: (question: number) => void): Clock {
  let asked = 0;
  return {
    ...systemClock,
    now: () => {
      asked += 1;
      act(asked);
      return systemClock.now();
    },
  };
}

describe('a writer that does not ask for the lock', () => {
  const ways: [string, (file: string, content: string) => void][] = [
    ['in place', (file, content) => fs.writeFileSync(file, content)],
    [
      'by another file',
      (file, content) => {
        fs.writeFileSync(`${file}.new`, content);
        fs.renameSync(`${file}.new`, file);
      },
    ],
    [
      'in place, with the same length and time',
      (file, content) => {
        const { atime, mtime } = fs.statSync(file);
        fs.writeFileSync(file, content);
        fs.utimesSync(file, atime, mtime);
      },
    ],
  ];

  test.each(ways)('is noticed, and its change is kept: %s', async (_way, write) => {
    const { file, ledger } = ledgerWith('{"a":{"x":1}}');
    fs.utimesSync(file, 1_700_000_000, 1_700_000_000);
    const clock = clockThat((question) => {
      if (question === 2) write(file, '{"a":{"y":1}}');
    });
    expect(await addToLedger(ledger, ENTRY, clock)).toMatchObject({ outcome: 'added', count: 2 });
    expect(fs.readFileSync(file, 'utf8')).toBe('{"a":{"y":1,"k":{}}}');
  });

  test('that never stops makes it an error, and the file stands as that writer left it', async () => {
    const { dir, file, ledger } = ledgerWith('{"a":{}}');
    const clock = clockThat((question) => fs.writeFileSync(file, `{"a":{"n":${question}}}`));
    await expect(addToLedger(ledger, ENTRY, clock)).rejects.toMatchObject({ code: 'io', path: file });
    expect(fs.readFileSync(file, 'utf8')).toMatch(/^\{"a":\{"n":\d+\}\}$/);
    expect(fs.readdirSync(dir)).toEqual(['ledger.json']);
  });

  test('that is half done is waited for', async () => {
    const { file, ledger } = ledgerWith('{"a":{"x"');
    let waits = 0;
    const clock: Clock = {
      ...systemClock,
      sleep: async () => {
        waits += 1;
        if (waits === 1) fs.writeFileSync(file, '{"a":{"x":1}}');
      },
    };
    expect(await addToLedger(ledger, ENTRY, clock)).toMatchObject({ outcome: 'added', count: 2 });
  });

  test('that turns the link to another ledger meanwhile', async () => {
    const { dir, file, ledger } = ledgerWith('{"a":{}}');
    const other = path.join(dir, 'other.json');
    fs.renameSync(file, path.join(dir, 'one.json'));
    fs.symlinkSync('one.json', file);
    fs.writeFileSync(other, '{"a":{"y":1}}');
    const clock = clockThat((question) => {
      if (question !== 2) return;
      fs.unlinkSync(file);
      fs.symlinkSync('other.json', file);
    });
    await addToLedger(ledger, ENTRY, clock);
    expect(fs.readFileSync(path.join(dir, 'one.json'), 'utf8')).toBe('{"a":{}}');
    expect(fs.readFileSync(other, 'utf8')).toBe('{"a":{"y":1,"k":{}}}');
  });

  test('that removes the ledger meanwhile: nothing is made anew', async () => {
    const { dir, file, ledger } = ledgerWith('{"a":{}}');
    const clock = clockThat((question) => {
      if (question === 2) fs.unlinkSync(file);
    });
    await expect(addToLedger(ledger, ENTRY, clock)).rejects.toMatchObject({ code: 'io' });
    expect(fs.readdirSync(dir)).toEqual([]);
  });
});

describe('the lock', () => {
  /** Time that passes only by waiting. */
  function fastClock(): Clock {
    let time = 0;
    return {
      now: () => time,
      monotonic: () => time,
      sleep: async (ms) => {
        time += ms;
      },
    };
  }

  test('of one who stopped in the middle is an error after ten seconds, not a wait for ever', async () => {
    const { file, ledger } = ledgerWith('{"a":{}}');
    const fd = fs.openSync(file, 'r+');
    onTestFinished(() => fs.closeSync(fd));
    expect(tryLock(fd, 'exclusive', file)).toBe(true);
    const clock = fastClock();
    await expect(addToLedger(ledger, ENTRY, clock)).rejects.toMatchObject({ code: 'guardBusy', path: file });
    expect(clock.now()).toBeGreaterThan(10_000);
    expect(hasKey(ledger, 'x')).toBe(false);
  });

  test('is waited for on the file that stands there by then', async () => {
    const { file } = ledgerWith('{"a":{}}');
    const held = await LockedLedger.open(file, systemClock);
    const clock = fastClock();
    const waiting = LockedLedger.open(file, {
      ...clock,
      sleep: async (ms) => {
        await clock.sleep(ms);
        const before = held?.read();
        if (clock.now() > 100 && before) {
          held?.replace(before, Buffer.from('{"b":{}}'));
          held?.close();
        }
      },
    });
    const next = await waiting;
    expect(next?.read()?.bytes.toString()).toBe('{"b":{}}');
    next?.close();
  });

  test('on a file that was replaced between opening and locking is not taken for the lock', async () => {
    const { file } = ledgerWith('{"a":{}}');
    const open = vi.spyOn(fs, 'openSync').mockImplementationOnce((...args) => {
      const fd = fs.openSync(...args);
      replaceByAnother(file);
      return fd;
    });
    onTestFinished(() => open.mockRestore());
    const held = await LockedLedger.open(file, systemClock);
    const before = held?.read();
    expect(before && held?.replace(before, Buffer.from('{}'))).toBe(true);
    held?.close();
  });

  test('on a file that is no longer in place allows no change', async () => {
    const { file } = ledgerWith('{"a":{}}');
    const held = await LockedLedger.open(file, systemClock);
    replaceByAnother(file);
    const before = held?.read();
    expect(before && held?.replace(before, Buffer.from('{}'))).toBe(false);
    held?.close();
    expect(fs.readFileSync(file, 'utf8')).toBe('{"by":"another"}');
  });

  function replaceByAnother(file: string): void {
    fs.writeFileSync(`${file}.new`, '{"by":"another"}');
    fs.renameSync(`${file}.new`, file);
  }

  test('is the same through a link', async () => {
    const { dir, file } = ledgerWith('{"a":{}}');
    const link = path.join(dir, 'link');
    fs.symlinkSync('ledger.json', link);
    const held = await LockedLedger.open(link, systemClock);
    await expect(LockedLedger.open(file, fastClock())).rejects.toMatchObject({ code: 'guardBusy' });
    held?.close();
  });
});

describe('temporary files that a killed add has left', () => {
  test('are removed by a later one, and nothing else is', async () => {
    const { dir, file, ledger } = ledgerWith('{"a":{}}');
    const old = ['ledger.json.123.abc9.tmp'];
    const others = [
      'ledger.json.tmp',
      'ledger.json.bak',
      'other.json.123.abc9.tmp',
      'ledger.json.123.abc.tmp.x',
    ];
    for (const name of [...old, ...others]) {
      fs.writeFileSync(path.join(dir, name), '');
      fs.utimesSync(path.join(dir, name), 1_700_000_000, 1_700_000_000);
    }
    fs.writeFileSync(path.join(dir, 'ledger.json.99.z1.tmp'), 'being written');
    await addToLedger(ledger, ENTRY, systemClock);
    expect(fs.readdirSync(dir).sort()).toEqual(
      [path.basename(file), 'ledger.json.99.z1.tmp', ...others].sort(),
    );
  });
});

describe('the encoding stays', () => {
  const TEXT = '{"a":{"é":"视频"}}\r\n';
  const AFTER = '{"a":{"é":"视频","ключ":{"t":"掘金"}}}\r\n';
  const encodings: [string, (text: string) => Buffer][] = [
    ['UTF-8', (text) => Buffer.from(text)],
    ['UTF-8 with a mark', (text) => Buffer.from(`\ufeff${text}`)],
    ['UTF-16 LE', (text) => Buffer.from(`\ufeff${text}`, 'utf16le')],
    ['UTF-16 BE', (text) => Buffer.from(`\ufeff${text}`, 'utf16le').swap16()],
  ];

  test.each(encodings)('%s', async (_name, encode) => {
    const { file, ledger } = ledgerWith(encode(TEXT));
    await addToLedger(ledger, { ...ENTRY, key: 'ключ', entry: '{"t":"掘金"}' }, systemClock);
    expect(fs.readFileSync(file)).toEqual(encode(AFTER));
    expect(listKeys(ledger)).toEqual(['é', 'ключ']);
  });

  test('other bytes are an error with their place, and stay', async () => {
    const gbk = Buffer.concat([Buffer.from('{"a":{"'), Buffer.from([0xbe, 0xf2]), Buffer.from('":1}}')]);
    const { file, ledger } = ledgerWith(gbk);
    const refused = expect.objectContaining({ code: 'corrupt', message: expect.stringContaining('0xbe') });
    await expect(addToLedger(ledger, ENTRY, systemClock)).rejects.toEqual(refused);
    expect(() => hasKey(ledger, 'k')).toThrow(refused);
    expect(fs.readFileSync(file)).toEqual(gbk);
  });
});

describe('hasKey never takes an answer that it can not have for "not there"', () => {
  test.each([
    ['cut', '{"a":{"k":1}', 'corrupt'],
    ['empty', '', 'corrupt'],
    ['no such place', '{"b":{"k":1}}', 'corrupt'],
    ['no object', '{"a":["k"]}', 'corrupt'],
    ['a key twice', '{"a":{"k":1,"k":2}}', 'corrupt'],
  ])('%s', (_what, content, code) => {
    const { ledger } = ledgerWith(content);
    expect(() => hasKey(ledger, 'k')).toThrow(expect.objectContaining({ code }));
  });

  test('a missing file', () => {
    const { file, ledger } = ledgerWith('{}');
    fs.unlinkSync(file);
    expect(() => hasKey(ledger, 'k')).toThrow(expect.objectContaining({ code: 'io', path: file }));
  });

  test('in either Unicode form it is there', () => {
    const { ledger } = ledgerWith('{"a":{"\\u00e9":1}}');
    expect(hasKey(ledger, 'e\u0301')).toBe(true);
    expect(hasKey(ledger, 'e')).toBe(false);
  });
});

describe('a ledger is named', () => {
  function named(text: string) {
    const dir = makeDir();
    fs.writeFileSync(
      path.join(dir, 'runlock.json'),
      JSON.stringify({
        ledgers: { 'pub#x': { file: 'data/l.json', at: '/a/b', stamp: 't' }, whole: { file: '/w.json' } },
      }),
    );
    const { configured, ...ledger } = resolveLedger(text, loadConfig(path.join(dir, 'runlock.json')), '/cwd');
    expect(configured).toEqual(['pub#x', 'whole']);
    return { ...ledger, file: ledger.file.replace(dir, 'DIR') };
  }

  test.each([
    ['pub#x', { file: 'DIR/data/l.json', place: ['a', 'b'], stamp: 't' }],
    ['whole', { file: '/w.json', place: [], stamp: null }],
    ['pub', { file: '/cwd/pub', place: [], stamp: null }],
    ['l.json#publishes', { file: '/cwd/l.json', place: ['publishes'], stamp: null }],
    ['/x/a#1/l.json#/a~1b/c', { file: '/x/a#1/l.json', place: ['a/b', 'c'], stamp: null }],
    ['issue#12.json#', { file: '/cwd/issue#12.json', place: [], stamp: null }],
  ])('%s', (text, ledger) => {
    expect(named(text)).toEqual(ledger);
  });

  test.each(['', '#a', 'l.json#/a~b', 'a\0b'])('but not by %j', (text) => {
    expect(() => named(text)).toThrow(expect.objectContaining({ code: 'usage' }));
  });

  test('one that was meant is guessed where the file is missing', () => {
    const config = {
      ...loadConfig(null),
      ledgers: new Map([['published', { file: '/l', place: [], stamp: null }]]),
    };
    const ledger = resolveLedger('publishd', config, makeDir());
    expect(() => hasKey(ledger, 'k')).toThrow('did you mean published?');
  });
});
