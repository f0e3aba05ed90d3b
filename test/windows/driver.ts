import fs from 'node:fs';
import { Box } from './box.ts';
import { CASES } from './cases.ts';

/*
 * What Windows' node runs: all cases in one process, since starting one from outside takes a second or two. Each
 * outcome is appended to a file as soon as it is known: the problem, or null.
 */

const [, , output = '', only = ''] = process.argv;
const waiting = Object.entries(CASES).filter(([name]) => name.includes(only));

async function work(): Promise<void> {
  for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
    const [name, act] = next;
    const start = performance.now();
    const problem = await problemOf(act);
    const ms = Math.round(performance.now() - start);
    fs.appendFileSync(output, `${JSON.stringify({ name, problem, ms })}\n`);
  }
}

async function problemOf(act: (box: Box) => Promise<void> | void): Promise<string | null> {
  const box = new Box();
  try {
    await act(box);
    return null;
  } catch (error) {
    return error instanceof Error ? `${error.message}\n${error.stack}` : String(error);
  } finally {
    await box.clear();
  }
}

// Two at once, as many as the machine has cores at least.
void Promise.all([work(), work()]);
