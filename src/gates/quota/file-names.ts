import { resolve } from 'node:path';
import { TZDate } from '@date-fns/tz/date';
import { format } from 'date-fns/format';
import type { DatedPath } from '../../dated-path.ts';
import { DAY_MS } from './periods.ts';

/** Weeks from Monday, of which the first has the year's first Thursday, as ISO 8601 has them. */
const WEEKS = { weekStartsOn: 1, firstWeekContainsDate: 4 } as const;

/** The absolute path of the file of a day; days are counted from 1970-01-01. */
export function fileOfDay({ pieces, base }: DatedPath, day: number): string {
  // At noon UTC, whatever the zone of this process: a zone may lack a midnight, or a whole day.
  const noon = new TZDate(day * DAY_MS + DAY_MS / 2, 'UTC');
  const text = pieces.map((piece) => (typeof piece === 'string' ? piece : format(noon, piece.format, WEEKS)));
  return resolve(base, text.join(''));
}
