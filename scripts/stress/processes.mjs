// @ts-check
// What is known of processes without the lock under test: read from /proc by code of its own.
import fs from 'node:fs';

/** @typedef {{ pid: number, started: string }} ProcessId */

/** The kernel's flag of a task that is ending and runs no more code of its own (PF_EXITING in linux/sched.h). */
const EXITING = 0x4;

/**
 * @param {number} pid
 * @returns {{ started: string, alive: boolean } | null} null: there is none
 */
function read(pid) {
  let text;
  try {
    text = fs.readFileSync(`/proc/${pid}/stat`, 'latin1');
  } catch {
    return null;
  }
  // The name may hold blanks and brackets; fields are counted from behind it.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const [state = '', flags = '0', started = ''] = [fields[0], fields[6], fields[19]];
  return { started, alive: !'ZXx'.includes(state) && (Number(flags) & EXITING) === 0 };
}

/** @param {number} pid @returns {ProcessId | null} */
export function identify(pid) {
  const found = read(pid);
  return found === null ? null : { pid, started: found.started };
}

/** Whether the very process can still do anything. @param {ProcessId} id */
export function lives(id) {
  const found = read(id.pid);
  return found?.alive === true && found.started === id.started;
}

/** @returns {ProcessId} */
export function self() {
  const id = identify(process.pid);
  if (id === null) throw new Error('/proc does not show this very process');
  return id;
}
