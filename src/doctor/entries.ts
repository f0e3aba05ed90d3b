import type { Where } from './finding.ts';
import type { Sandbox } from './sandbox.ts';
import type { Started } from './started.ts';

/** Something that a scheduler or a service manager starts by itself: a line of a crontab, a unit, a task. */
export interface Entry {
  readonly kind: 'cron' | 'anacron' | 'systemd' | 'task';
  /** What it starts, one after the other: a unit has several lines. */
  readonly steps: readonly Step[];
}

export interface Step {
  readonly where: Where;
  /** The line as it is written, with what of it could not be read as a command. */
  readonly text: string;
  readonly started: readonly Started[];
  /** Null where it sees what everybody does. */
  readonly sandbox: Sandbox | null;
}

/** What a crontab, a unit or a task is called where its lines are spoken of. */
export function kindWords(kind: Entry['kind']): string {
  switch (kind) {
    case 'cron':
    case 'anacron':
      return kind;
    case 'systemd':
      return 'systemd';
    case 'task':
      return 'Task Scheduler';
  }
}
