import type { Arguments } from '../arguments.ts';
import { reportEnded } from '../ended.ts';
import { findSubject } from '../identity.ts';

export async function main(args: Arguments): Promise<number> {
  const subject = await findSubject(args);
  if (subject === null) return reportEnded(args, 'hb', null, null);
  return reportEnded(args, 'hb', subject.target, await subject.target.lock.hb(subject.claim, subject.run));
}
