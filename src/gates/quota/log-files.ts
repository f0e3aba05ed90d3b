import { readdir, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { pipeline } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { systemCode } from '../../errors.ts';
import { badEvidence, type EvidenceFile, openEvidence, unreadable } from './evidence.ts';
import { isForeignPacked, isRotationOf } from './rotation.ts';

/** One generation of a log: its file, or the compressed copy, or both while one is being made of the other. */
export type Generation = readonly EvidenceFile[];

const ATTEMPTS = 20;
const CHUNK_BYTES = 2 ** 20;

/**
 * Opens a log with its rotated and compressed neighbours, all at one moment: a rotation in between would show one
 * generation twice and another not at all.
 *
 * @returns empty if there are none. The caller closes what it is given.
 * @throws RunlockError `io` if a file can't be read, or if the names never stand still
 */
export async function openGenerations(path: string): Promise<readonly Generation[]> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    const names = await neighbours(path);
    const opened: EvidenceFile[] = [];
    let kept = false;
    try {
      for (const name of names) {
        const file = await openEvidence(join(dirname(path), name));
        if (file !== null) opened.push(file);
      }
      const same = await Promise.all(opened.map(isStillThere));
      const namesNow = await neighbours(path);
      kept = opened.length === names.length && same.every(Boolean) && namesNow.join('/') === names.join('/');
      if (kept) return byGeneration(opened);
    } finally {
      if (!kept) await closeAll(opened);
    }
  }
  throw badEvidence(path, 'its rotated files are renamed all the time, so that nothing can be counted');
}

export async function closeAll(files: readonly EvidenceFile[]): Promise<void> {
  await Promise.all(files.map((file) => file.handle.close()));
}

async function neighbours(path: string): Promise<string[]> {
  const listed = await list(dirname(path));
  return listed.filter((name) => isRotationOf(basename(path), name)).sort();
}

async function list(folder: string): Promise<string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    // A folder with a date in its name that nobody has made yet.
    if (systemCode(error) === 'ENOENT') return [];
    throw unreadable(folder, error);
  }
}

async function isStillThere({ path, identity }: EvidenceFile): Promise<boolean> {
  try {
    const { dev, ino } = await stat(path, { bigint: true });
    return `${dev}:${ino}` === identity;
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return false;
    throw unreadable(path, error);
  }
}

/** The plain file first. */
function byGeneration(files: readonly EvidenceFile[]): Generation[] {
  const generations = new Map<string, EvidenceFile[]>();
  for (const file of files) {
    const plain = file.path.replace(/\.gz$/, '');
    generations.set(plain, [...(generations.get(plain) ?? []), file]);
  }
  return [...generations.values()].map((both) => both.sort((a, b) => a.path.length - b.path.length));
}

/**
 * The bytes of a log, unpacked if it is a gzip file, as far as it went when it was opened. A chunk is good until
 * the next one is asked for.
 *
 * @throws RunlockError `io` if it can't be read, `corrupt` for a torn gzip file
 */
export async function* readChunks(file: EvidenceFile): AsyncGenerator<Buffer> {
  if (!(await isGzip(file))) {
    yield* readPlain(file);
    return;
  }
  if (file.size === 0) throw badEvidence(file.path, 'expected a gzip file, got an empty one');
  const source = file.handle.createReadStream({ autoClose: false, start: 0, end: file.size - 1 });
  const unpacked = createGunzip({ chunkSize: CHUNK_BYTES });
  // An error of either ends the loop below.
  pipeline(source, unpacked, () => {});
  try {
    for await (const chunk of unpacked) yield chunk;
  } catch (error) {
    if (!systemCode(error)?.startsWith('Z_')) throw unreadable(file.path, error);
    const reason = error instanceof Error ? error.message : '';
    throw badEvidence(file.path, `expected a whole gzip file, got a torn or damaged one (${reason})`, error);
  }
}

/**
 * Leaves out what is packed so that it can't be read here, and was not changed since `from`: it has nothing of later.
 *
 * @throws RunlockError `corrupt` for one that was changed since
 */
export async function readableOf(generation: Generation, from: number): Promise<Generation> {
  const readable: EvidenceFile[] = [];
  for (const file of generation) {
    if (!isForeignPacked(basename(file.path), await beginningOf(file))) readable.push(file);
    else if (file.changed >= from)
      throw badEvidence(
        file.path,
        'packed in a way that is not read here, and may hold successes of the period: unpack it, and let what rotates the log use gzip',
      );
  }
  return readable;
}

/** By its first bytes as well: compressed lines under a plain name would be searched in vain. */
async function isGzip(file: EvidenceFile): Promise<boolean> {
  const beginning = await beginningOf(file);
  return file.path.endsWith('.gz') || (beginning[0] === 0x1f && beginning[1] === 0x8b);
}

async function beginningOf(file: EvidenceFile): Promise<Buffer> {
  const bytes = Buffer.alloc(6);
  await read(file, bytes, 0);
  return bytes;
}

async function* readPlain(file: EvidenceFile): AsyncGenerator<Buffer> {
  const buffer = Buffer.allocUnsafe(CHUNK_BYTES);
  // No further than it was: one that grows as fast as it is read would never end.
  for (let position = 0; position < file.size; ) {
    const count = await read(file, buffer, position);
    // Emptied by a rotation that copies: what was not read yet stands in the copy.
    if (count === 0) throw badEvidence(file.path, 'it was cut short while it was read; ask again');
    yield buffer.subarray(0, count);
    position += count;
  }
}

async function read(file: EvidenceFile, buffer: Buffer, position: number): Promise<number> {
  try {
    return (await file.handle.read(buffer, 0, buffer.length, position)).bytesRead;
  } catch (error) {
    throw unreadable(file.path, error);
  }
}
