import type { LogSource } from '../../config/quotas.ts';
import { encodeText } from '../../encodings.ts';
import { RunlockError } from '../../errors.ts';
import { printable } from '../../printable.ts';
import { badEvidence, type EvidenceFile, requireFolder } from './evidence.ts';
import { fileOfDay } from './file-names.ts';
import { type FoundLine, LineSearch } from './line-search.ts';
import { closeAll, type Generation, openGenerations, readableOf, readChunks } from './log-files.ts';
import { isWithin, latestIn, type Moment, parseMoment } from './moments.ts';
import { daysOf, type Period } from './periods.ts';
import { addTo, type Tally } from './tally.ts';

/**
 * Counts the lines that contain the text, for each of the periods. Every file whose days touch a period is read,
 * and one on either side, with what rotation has made of it; times decide.
 *
 * @throws RunlockError `corrupt` if lines match and none of them tells a time, if a gzip file is torn, or one is packed
 *   in another way; `io` if a
 *   file can't be read; `config` if the text can't be written in the source's encoding
 */
export async function countLog(source: LogSource, periods: readonly Period[]): Promise<Tally> {
  await requireFolder(source.path);
  const counts = periods.map(() => 0);
  const from = Math.min(...periods.map((period) => period.from));
  const files: string[] = [];
  const untimed = periods.map(() => 0);
  const seen = new Set<string>();
  let timed = 0;
  let timeless = 0;
  let timelessIn: string | null = null;
  const take: Take = {
    periods,
    line({ moment, path }) {
      if (moment === null) {
        timeless += 1;
        timelessIn ??= path;
      } else {
        timed += 1;
        addTo(counts, (index) => isIn(moment, periods[index]));
      }
      return true;
    },
    between(moment, lines) {
      addTo(untimed, (index) => isIn(moment, periods[index]), lines);
    },
  };
  for (const path of namesOf(source, periods)) {
    const generations = await openGenerations(path);
    try {
      for (const generation of generations) {
        // Each line once, though a file has several names.
        const unseen = await readableOf(
          generation.filter((file) => !seen.has(file.identity)),
          from,
        );
        for (const file of unseen) {
          seen.add(file.identity);
          files.push(file.path);
        }
        await readGeneration(source, unseen, take);
      }
    } finally {
      await closeAll(generations.flat());
    }
  }
  if (timelessIn !== null && timed === 0) {
    const lines = timeless === 1 ? 'a line contains' : `${timeless} lines contain`;
    const what = `${lines} "${printable(source.contains, 60)}", but "time" (${printable(source.time.source, 100)}) finds no time in any`;
    throw badEvidence(timelessIn, `${what}: they would never count`);
  }
  return { counts, files, untimed };
}

function isIn(moment: Moment, period: Period | undefined): boolean {
  return period !== undefined && isWithin(moment, period);
}

function namesOf(source: LogSource, periods: readonly Period[]): ReadonlySet<string> {
  const days = new Set(periods.flatMap((period) => daysOf(period, source.zone, 1)));
  return new Set([...days].map((day) => fileOfDay(source.path, day)));
}

interface Line {
  readonly path: string;
  readonly text: string;
  readonly moment: Moment | null;
}

interface Take {
  readonly periods: readonly Period[];
  /** @returns false for a line that was taken before */
  line(line: Line): boolean;
  /** So many lines without a time stand between two that have one: they are of some time in between. */
  between(moment: Moment, lines: number): void;
}

/**
 * While logrotate compresses NAME.1 both it and NAME.1.gz are there: a line that stands in both counts once, one that
 * stands in either counts. The latter is torn until it is done; nothing tells that from one that is damaged and held
 * something else, so it is an error all the same.
 */
async function readGeneration(source: LogSource, [plain, packed]: Generation, take: Take): Promise<void> {
  if (plain === undefined) return;
  if (packed === undefined) {
    await readFile(source, plain, take);
    return;
  }
  const left = new Map<string, number>();
  await readFile(source, plain, {
    ...take,
    line(line) {
      left.set(line.text, (left.get(line.text) ?? 0) + 1);
      return take.line(line);
    },
  });
  await readFile(source, packed, {
    ...take,
    line(line) {
      const same = left.get(line.text) ?? 0;
      if (same === 0) return take.line(line);
      left.set(line.text, same - 1);
      return false;
    },
  });
}

async function readFile(source: LogSource, file: EvidenceFile, take: Take): Promise<void> {
  let search: LineSearch | null = null;
  let earliest = Number.NEGATIVE_INFINITY;
  let waiting = 0;
  const latest = latestIn(file.changed, take.periods);
  const place = (latest: number) => {
    if (waiting > 0)
      take.between({ earliest: Math.min(earliest, latest), latest: Math.max(earliest, latest) }, waiting);
    waiting = 0;
  };
  const found = (line: Line) => {
    const { moment } = line;
    if (moment !== null && moment.earliest > latest) {
      const at = new Date(moment.earliest).toISOString();
      const what = `a line contains "${printable(source.contains, 60)}" and tells a time to come (${at}): does "time" find the right one?`;
      throw badEvidence(file.path, what);
    }
    if (moment !== null) place(moment.latest);
    if (take.line(line) && moment === null) waiting += 1;
    if (moment !== null) ({ earliest } = moment);
  };
  for await (const chunk of readChunks(file)) {
    search ??= searchFor(source, encodingOf(chunk, source), file, found);
    search.push(chunk);
  }
  search?.end();
  place(file.changed);
}

/** PowerShell's `>>` begins a log in UTF-16 with a byte order mark; in UTF-8 nothing would ever be found there. */
function encodingOf(beginning: Buffer, { encoding }: LogSource): string {
  const [first, second] = beginning;
  if (first === 0xff && second === 0xfe) return 'utf-16le';
  if (first === 0xfe && second === 0xff) return 'utf-16be';
  return encoding;
}

function searchFor(
  source: LogSource,
  encoding: string,
  { path }: EvidenceFile,
  found: (line: Line) => void,
): LineSearch {
  const needle = needleOf(source, encoding);
  const decoder = new TextDecoder(encoding);
  const newline = encodeText('\n', encoding) ?? Buffer.from('\n');
  return new LineSearch(needle, newline, (line) => {
    const text = decoder.decode(line.bytes).replace(/\r$/, '');
    const [, time] = source.time.exec(text) ?? [];
    const moment = time === undefined ? null : parseMoment(time, source.zone);
    if (moment === null && line.cut) throw tooLong(source, path, line);
    found({ path, text, moment });
  });
}

const needles = new WeakMap<LogSource, Map<string, Buffer>>();

/** Once for all files of a source: for some encodings all characters are gone through. */
function needleOf(source: LogSource, encoding: string): Buffer {
  const known = needles.get(source) ?? new Map<string, Buffer>();
  needles.set(source, known);
  const needle = known.get(encoding) ?? encodeText(source.contains, encoding);
  if (needle === null) {
    const what = `"contains" can't be written in ${encoding}: "${printable(source.contains, 60)}"`;
    throw new RunlockError('config', what);
  }
  known.set(encoding, needle);
  return needle;
}

function tooLong(source: LogSource, path: string, { bytes }: FoundLine): RunlockError {
  const what = `a line with "${printable(source.contains, 60)}" tells no time in its first ${bytes.length} bytes`;
  return badEvidence(path, what);
}
