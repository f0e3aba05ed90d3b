import { describe, expect, test } from 'vitest';
import { Sandbox } from '../cli/harness.ts';
import { type Fault, runWithFault } from './command.ts';
import { nextGoesOn, SCENARIOS, startHolder } from './scenarios.ts';

describe('a disk that fails at any change gives 1 and a reason, nothing half-written, and never a wrong "free"', () => {
  for (const kind of ['ENOSPC', 'EIO', 'EACCES'] as const) {
    for (const scenario of SCENARIOS) {
      test(`${kind}: ${scenario.name}`, async () => {
        const wrong: string[] = [];
        let at = 1;
        for (; ; at += 1) {
          const box = new Sandbox();
          const holder = startHolder(box);
          await scenario.prepare(box, holder);
          const options = scenario.input === undefined ? {} : { input: scenario.input };
          const fault: Fault = { kind, at };
          const failed = await runWithFault(box, scenario.args(holder), fault, options);
          if (failed.calls.length < at) break;
          const expected = scenario.name.startsWith('run') ? [0, 125] : [0, 1];
          const call = failed.calls[at - 1];
          const blame = (what: string) => wrong.push(`${kind} at call ${at} (${call}): ${what}`);
          if (!expected.includes(failed.code ?? -1)) blame(`code ${failed.code}: ${failed.stderr}`);
          if (/^\s+at /m.test(failed.stderr)) blame(`a stack trace: ${failed.stderr}`);
          if (failed.code !== 0 && !failed.stderr.includes(kind)) blame(`no reason: ${failed.stderr}`);
          if (failed.code !== 0 && /^(finish|release|hb)/.test(scenario.name)) {
            // Not done means still held, and done again means done.
            if ((await box.runlock(['status'])).code !== 3) blame('it failed, and yet the lock is free');
            const again = await box.runlock(scenario.args(holder), options);
            if (again.code !== 0) blame(`again: ${again.code} ${again.stderr}`);
          }
          if (failed.code === 1 && scenario.name.startsWith('acquire')) {
            if ((await box.runlock(['status'])).code === 3) blame('it failed, and yet the lock is held');
          }
          for (const what of await nextGoesOn(box, holder)) blame(what);
        }
        expect(at).toBeGreaterThan(1);
        expect(wrong).toEqual([]);
      });
    }
  }
});
