import type { Arguments } from '../arguments.ts';
import { reportEnded } from '../ended.ts';
import { findSubject } from '../identity.ts';

export async function main(args: Arguments): Promise<number> {
  const subject = await findSubject(args);
  if (subject === null) return reportEnded(args, 'release', null, null);
  const { target, claim, run } = subject;
  return reportEnded(args, 'release', target, await target.lock.release(claim, run, args.flag('settled')));
}
