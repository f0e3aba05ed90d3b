import { expect, test } from 'vitest';
import { Sandbox } from './harness.ts';

test('an input that never ends is refused, and nothing is begun', async () => {
  const box = new Sandbox();
  box.write('ledger.json', '{}');
  await box.runlock(['acquire', '--no-pid', '--token', 'one']);
  const asked = [
    ['run', '--name', 'other', '--from', '/dev/zero', '--', 'touch', 'ran'],
    ['finish', '--token', 'one', '/dev/zero'],
    ['ledger', 'add', 'ledger.json', 'ep-1', '/dev/zero'],
  ];
  for (const args of asked) {
    const { code, stderr } = await box.runlock(args);
    expect([args[0], code]).toEqual([args[0], args[0] === 'run' ? 125 : 2]);
    expect(stderr).toBe('runlock: /dev/zero: expected at most 64 MiB, got more\n');
  }
  expect((await box.runlock(['status'])).code).toBe(3);
  expect((await box.runlock(['status', '--name', 'other'])).code).toBe(0);
  expect((await box.exec('cat', ['ledger.json'])).stdout).toBe('{}');
});
