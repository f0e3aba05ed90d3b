/**
 * What went wrong, as a stable code. Contention is not here: that a lock is held is an outcome, not an error.
 *
 * - `usage`: the command line is wrong
 * - `config`: the configuration is wrong
 * - `input`: an input file or stdin is wrong
 * - `io`: the system refused a file operation (`cause` has its error)
 * - `corrupt`: a file is not what it should be (a link, a directory, an unknown version, unreadable evidence)
 * - `guardBusy`: the guard was not given within its deadline
 * - `noKernelLock`: this platform or this mount has no working kernel locks
 */
export type ErrorCode = 'usage' | 'config' | 'input' | 'io' | 'corrupt' | 'guardBusy' | 'noKernelLock';

/** The one error this project throws on purpose. `message` says what was expected, where, and what was got. */
export class RunlockError extends Error {
  override readonly name = 'RunlockError';
  readonly code: ErrorCode;
  /** Absolute path of the file or directory concerned. */
  readonly path: string | undefined;

  constructor(code: ErrorCode, message: string, options: { path?: string; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.path = options.path;
  }
}

/** The system's code (`ENOENT`, `EACCES`…) of an error thrown by Node, else undefined. */
export function systemCode(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}

/** The longest path that the system takes; a longer one must not push the reason out of the message. */
const PATH_MAX = 4096;

/** Wraps an error of the file system; `doing` completes "could not …". */
export function ioError(doing: string, path: string, cause: unknown): RunlockError {
  const reason = cause instanceof Error ? cause.message.replace(/, \w+( '.*')?$/s, '') : String(cause);
  const shown = path.length > PATH_MAX ? `${path.slice(0, PATH_MAX)}…` : path;
  return new RunlockError('io', `could not ${doing} ${shown}: ${reason}`, { path, cause });
}
