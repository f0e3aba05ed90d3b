import { RunlockError } from '../../errors.ts';
import { decodeText, parseJson } from '../../text.ts';
import type { Arguments } from '../arguments.ts';
import { reportEnded } from '../ended.ts';
import { findSubject, type Subject } from '../identity.ts';
import { readInput } from '../input.ts';

export async function main(args: Arguments): Promise<number> {
  const subject = await findSubject(args);
  if (subject === null) return reportEnded(args, 'finish', null, null);
  const { target, claim, run } = subject;
  const result = await readResult(args.operands[0], subject);
  const how = args.flag('failed') ? 'failed' : 'finished';
  return reportEnded(args, 'finish', target, await target.lock.finish(claim, run, result, how));
}

/**
 * The result as the text it is: parsed only to see that it is JSON.
 *
 * @throws RunlockError `input`; what came from a pipe is kept first, since nobody could hand it in again
 */
async function readResult(source: string | undefined, subject: Subject): Promise<string | null> {
  if (source === undefined) return null;
  const where = source === '-' ? 'the result on stdin' : source;
  const bytes = readInput(source, 'the result');
  try {
    const text = decodeText(bytes, where);
    parseJson(text, where);
    return text;
  } catch (error) {
    if (!(error instanceof RunlockError) || source !== '-') throw error;
    const kept = await keep(bytes, subject);
    throw new RunlockError(
      'input',
      `${error.message}; the lock stays${kept === null ? '' : `, what was piped is kept as ${kept}`}: finish again`,
      {
        ...(kept === null ? {} : { path: kept }),
        cause: error,
      },
    );
  }
}

/** Only the holder's own piped result is kept beside its record. */
async function keep(bytes: Buffer, { target, claim, run }: Subject): Promise<string | null> {
  const mine = await target.lock.ownRun(claim, run);
  return mine === null ? null : target.lock.store.keepRejected(mine, bytes);
}
