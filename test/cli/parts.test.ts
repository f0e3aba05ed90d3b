import { expect, test } from 'vitest';
import { BINARY, Sandbox } from './harness.ts';

/** Which of the files in dist/ a command has loaded by its end. */
async function loadedBy(box: Sandbox, args: readonly string[]): Promise<string[]> {
  const probe = box.write(
    'probe.cjs',
    `process.on('exit', () => console.error('loaded', Object.keys(require.cache).map((file) => file.replace(/.*[\\\\/]/, '')).join()))`,
  );
  const { stderr } = await box.exec(process.execPath, ['--require', probe, BINARY, ...args]);
  return (/^loaded (.*)$/m.exec(stderr)?.[1] ?? '').split(',').filter((name) => name !== 'probe.cjs');
}

test('who beats, looks or runs a command without gates does not wait for gates, ledgers and the doctor to load', async () => {
  const box = new Sandbox();
  for (const args of [['status'], ['hb'], ['release'], ['run', 'true'], ['history']]) {
    const loaded = await loadedBy(box, args);
    expect(loaded, args.join()).toContain('runlock.cjs');
    expect(loaded, args.join()).not.toContain('gates.cjs');
    expect(loaded, args.join()).not.toContain('doctor.cjs');
  }
  expect(await loadedBy(box, ['run', '--gate', 'item', '--item', 'x', 'true'])).toContain('gates.cjs');
  expect(await loadedBy(box, ['doctor'])).toContain('doctor.cjs');
});
