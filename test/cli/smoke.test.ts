import { expect, test } from 'vitest';
import { Sandbox } from './harness.ts';

test('a script that acquires holds the lock until it finishes, and the result is the record', async () => {
  const box = new Sandbox();
  const script = box.startScript(
    'bash',
    `runlock acquire ep-42 --job x.json && echo taken; read line; echo '{"id":7440123456789012345}' | runlock finish -; echo "finish $?"`,
  );
  await script.says('taken');
  expect((await box.runlock(['status'])).code).toBe(3);
  script.tell('go on');
  await script.says('finish 0');
  expect((await box.runlock(['status'])).code).toBe(0);
  expect(box.read('records', '1.json')).toContain('"result": {"id":7440123456789012345}');
});
