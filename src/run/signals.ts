import fs from 'node:fs';

/** What is passed on to the command. The other signals have no meaning of their own for a supervisor. */
const PASSED_ON: readonly NodeJS.Signals[] =
  process.platform === 'win32'
    ? ['SIGINT', 'SIGHUP', 'SIGBREAK']
    : ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2'];

/** Those that a terminal sends to everyone in its foreground group, on Windows also when its window is closed. */
const FROM_TERMINAL: ReadonlySet<NodeJS.Signals> = new Set(
  process.platform === 'win32' ? PASSED_ON : ['SIGINT', 'SIGQUIT'],
);

/** Minds signals from the very start, so that none ends us while we have the lock. */
export class Signals {
  /** Aborted by the first signal that asks to end; its reason is the signal. */
  readonly ending = new AbortController();
  #first: NodeJS.Signals | null = null;
  #deliver: ((signal: NodeJS.Signals) => void) | null = null;

  constructor() {
    for (const signal of PASSED_ON) process.on(signal, () => this.#receive(signal));
  }

  /** The first signal that came before a command was there to get it. */
  get first(): NodeJS.Signals | null {
    return this.#first;
  }

  /** From now on signals go to the command. */
  passTo(deliver: (signal: NodeJS.Signals) => void): void {
    this.#deliver = deliver;
  }

  #receive(signal: NodeJS.Signals): void {
    if (this.#deliver === null) {
      if (signal === 'SIGUSR1' || signal === 'SIGUSR2') return;
      this.#first ??= signal;
      this.ending.abort(signal);
    } else if (!FROM_TERMINAL.has(signal) || !inForeground()) {
      this.#deliver(signal);
    }
  }
}

/** Whether we are in our terminal's foreground group: then the terminal has given the signal to the command too. */
function inForeground(): boolean {
  if (process.platform === 'win32') return true;
  try {
    const stat = fs.readFileSync('/proc/self/stat', 'latin1');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    // Fields 5 and 8 of the whole line: our process group, and the terminal's foreground group.
    return fields[2] === fields[5];
  } catch {
    // No /proc (macOS): a terminal on stdin is the best sign there is.
    return process.stdin.isTTY === true;
  }
}
