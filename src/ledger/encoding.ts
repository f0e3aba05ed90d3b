import { RunlockError } from '../errors.ts';
import { decodeText } from '../text.ts';

/** A ledger's text, and the way back into the bytes that it came from. */
export interface LedgerText {
  readonly text: string;
  /** In the encoding that the ledger has, with its byte order mark. */
  encode(text: string): Buffer;
}

/** @throws RunlockError `corrupt` for bytes that are no text, with their place */
export function decodeLedger(bytes: Buffer, file: string): LedgerText {
  return { text: textOf(bytes, file), encode: encoderFor(bytes) };
}

function textOf(bytes: Buffer, file: string): string {
  try {
    return decodeText(bytes, file);
  } catch (cause) {
    if (!(cause instanceof RunlockError)) throw cause;
    throw new RunlockError('corrupt', cause.message, { path: file, cause });
  }
}

function encoderFor(bytes: Buffer): (text: string) => Buffer {
  const [first, second] = bytes;
  if (first === 0xff && second === 0xfe) return (text) => Buffer.from(`\ufeff${text}`, 'utf16le');
  if (first === 0xfe && second === 0xff) return (text) => Buffer.from(`\ufeff${text}`, 'utf16le').swap16();
  const mark = bytes.subarray(0, 3).equals(Buffer.from('\ufeff')) ? '\ufeff' : '';
  return (text) => Buffer.from(mark + text);
}
