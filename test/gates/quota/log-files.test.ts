import fs from 'node:fs';
import type * as promises from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { closeAll, openGenerations, readChunks } from '../../../src/gates/quota/log-files.ts';
import { ask, errorOf, folderWith } from './harness.ts';

/** What happens just after a folder has been listed, once for each entry. */
const afterListing: (() => void)[] = vi.hoisted(() => []);
vi.mock('node:fs/promises', async (original) => {
  const real = await original<typeof promises>();
  const readdir = async (folder: string) => {
    const names = await real.readdir(folder);
    afterListing.shift()?.();
    return names;
  };
  return { ...real, readdir };
});

async function textsOf(path: string): Promise<string[]> {
  const generations = await openGenerations(path);
  try {
    const texts: string[] = [];
    for (const file of generations.flat()) {
      for await (const chunk of readChunks(file)) texts.push(chunk.toString());
    }
    return texts.sort();
  } finally {
    await closeAll(generations.flat());
  }
}

test('a rotation while the files are opened shows each generation once', async () => {
  const rotate = (dir: string) => () => {
    fs.renameSync(join(dir, 'app.log.1'), join(dir, 'app.log.2'));
    fs.renameSync(join(dir, 'app.log'), join(dir, 'app.log.1'));
    fs.writeFileSync(join(dir, 'app.log'), 'new');
  };
  // Before the files are opened, and before they are looked at again.
  for (const turns of [[rotate], [() => () => {}, rotate]]) {
    const dir = folderWith({ 'app.log': 'today', 'app.log.1': 'yesterday' });
    afterListing.push(...turns.map((turn) => turn(dir)));
    const texts = await textsOf(join(dir, 'app.log'));
    expect(afterListing).toEqual([]);
    expect(texts).toEqual(expect.arrayContaining(['today', 'yesterday']));
    expect(new Set(texts).size).toBe(texts.length);
  }
});

test('a rotated file that is gone before it is opened is looked for again', async () => {
  const dir = folderWith({ 'app.log': 'today', 'app.log.1': 'yesterday' });
  afterListing.push(() => fs.renameSync(join(dir, 'app.log.1'), join(dir, 'app.log.2')));
  expect(await textsOf(join(dir, 'app.log'))).toEqual(['today', 'yesterday']);
});

test('names that never stand still are an error, not a count', async () => {
  const dir = folderWith({ 'app.log': 'today' });
  let turn = 0;
  const rename = () => {
    fs.renameSync(join(dir, turn === 0 ? 'app.log' : `app.log.${turn}`), join(dir, `app.log.${turn + 1}`));
    turn += 1;
  };
  for (let times = 0; times < 100; times += 1) afterListing.push(rename);
  const error = await errorOf(openGenerations(join(dir, 'app.log')));
  afterListing.length = 0;
  expect(error.message).toMatch(/renamed all the time/);
});

test('a log that is emptied while it is read is an error; one that grows ends where it ended', async () => {
  const MIB = 2 ** 20;
  const readWith = async (change: (path: string) => void) => {
    const path = join(folderWith({ 'app.log': Buffer.alloc(3 * MIB, 'x') }), 'app.log');
    const [[file] = []] = await openGenerations(path);
    if (file === undefined) throw new Error('not opened');
    try {
      let bytes = 0;
      for await (const chunk of readChunks(file)) {
        bytes += chunk.length;
        change(path);
      }
      return bytes;
    } finally {
      await closeAll([file]);
    }
  };
  const error = await errorOf(readWith((path) => fs.truncateSync(path)));
  expect([error.code, error.message]).toEqual([
    'corrupt',
    expect.stringMatching(/cut short while it was read/),
  ]);
  const grown = await readWith((path) => fs.appendFileSync(path, Buffer.alloc(2 * MIB)));
  expect(grown).toBe(3 * MIB);
});

test('no descriptor is left open, whatever came in between', async () => {
  const open = () => fs.readdirSync('/proc/self/fd').length;
  const source = { log: 'logs/{yyyy-MM-dd}.log', contains: 'ok', time: '^(\\S+)' };
  const files = { 'logs/2026-10-15.log': 'ok\n', 'logs/2026-10-15.log.1.gz': 'torn' };
  const before = open();
  for (let times = 0; times < 5; times += 1) {
    await errorOf(ask(files, '2026-10-15T12:00:00Z', { sources: [source] }));
  }
  expect(open()).toBe(before);
});
