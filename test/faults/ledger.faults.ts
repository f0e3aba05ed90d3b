import fs from 'node:fs';
import { describe, expect, test } from 'vitest';
import { Sandbox } from '../cli/harness.ts';
import { type Fault, runWithFault } from './command.ts';

const OLD = '{\n  "publishes": {\n    "ep-1": { "id": 7440123456789012345 }\n  }\n}\n';
const NEW = OLD.replace(' }\n', ' },\n    "ep-2": {}\n');
const ADD = ['ledger', 'add', 'runs/ledger.json#publishes', 'ep-2'];
const FIRST = '{\n  "publishes": {\n    "ep-2": {}\n  }\n}\n';

/** What the ledger holds before, after, and whether the command may make it. */
const CASES = [
  { name: 'ledger add', before: OLD, after: NEW, args: ADD },
  { name: 'ledger add --create', before: null, after: FIRST, args: [...ADD, '--create'] },
] as const;

function content(box: Sandbox): string | null {
  return fs.existsSync(box.file('ledger.json')) ? box.read('ledger.json') : null;
}

/** Ages what a killed add has left, so that it counts as left. */
function temporaries(box: Sandbox): string[] {
  const names = fs.readdirSync(box.runs).filter((name) => name !== 'ledger.json');
  for (const name of names) box.age(box.file(name), 120_000);
  return names;
}

/** Goes through all calls that change something, one fault at each. */
async function atEachCall(
  kind: Fault['kind'],
  { before, args }: (typeof CASES)[number],
  check: (box: Sandbox, fault: { at: number; code: number | null; stderr: string }) => Promise<void>,
): Promise<void> {
  let at = 1;
  for (; ; at += 1) {
    const box = new Sandbox();
    box.makeRuns();
    if (before !== null) fs.writeFileSync(box.file('ledger.json'), before);
    const { signal, code, stderr, calls } = await runWithFault(box, { args }, { kind, calls: 'changes', at });
    if (signal !== 'SIGKILL' && calls.length < at) break;
    await check(box, { at, code, stderr });
  }
  // A command that made no changes would prove nothing.
  expect(at).toBeGreaterThan(5);
}

describe.each(CASES)('$name', (scenario) => {
  test('killed at any call leaves the old ledger or the new one, and the next add goes on and tidies up', async () => {
    await atEachCall('kill', scenario, async (box, { at }) => {
      const found = content(box);
      expect([scenario.before, scenario.after], `call ${at}`).toContain(found);
      temporaries(box);
      const next = await box.runlock([...scenario.args]);
      expect([at, next.code, content(box)]).toEqual([at, found === scenario.after ? 7 : 0, scenario.after]);
      await box.runlock(['ledger', 'add', 'runs/ledger.json#publishes', 'ep-3']);
      expect(temporaries(box), `call ${at}`).toEqual([]);
    });
  });

  test.each(['EIO', 'ENOSPC', 'EACCES'] as const)(
    '%s at any call is 1 in one line, or harmless',
    async (kind) => {
      await atEachCall(kind, scenario, async (box, { at, code, stderr }) => {
        expect([0, 1], `call ${at}`).toContain(code);
        if (code === 0) expect([at, content(box)]).toEqual([at, scenario.after]);
        else expect([scenario.before, scenario.after], `call ${at}`).toContain(content(box));
        expect(stderr.split('\n').length, stderr).toBe(code === 0 ? 1 : 2);
        expect(stderr).not.toContain('unexpected failure');
      });
    },
  );
});
