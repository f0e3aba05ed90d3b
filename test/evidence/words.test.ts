import fc from 'fast-check';
import { afterEach, expect, test } from 'vitest';
import { nameOf, wordsOf } from '../../src/evidence/words.ts';
import { endAll, LINUX, start } from './fixtures/processes.ts';

afterEach(endAll);

test.each<[string[], string]>([
  [['/bin/bash', './publish.sh', '--password', 'hunter2'], 'bash ./publish.sh'],
  [['/usr/bin/node', '--require', 'x', 'publish.js', 'hunter2'], 'node publish.js'],
  [['sh', '-c', 'curl -u ann:hunter2 https://x'], 'sh -c …'],
  [['node', '-e', 'hunter2()'], 'node …'],
  [['python3', '-m', 'jobs.publish', 'hunter2'], 'python3 -m jobs.publish'],
  [['/usr/bin/sleep', '300'], 'sleep'],
  [['-bash'], 'bash'],
  [['busybox', 'sh', './x.sh'], 'sh ./x.sh'],
  [['npm run deploy --token=hunter2'], 'npm'],
  [['sshd: ann@pts/0'], 'sshd'],
  [['/opt/MyTool', 'hunter2'], 'MyTool'],
  [[], ''],
  [[''], ''],
])('%j is named without what may be secret', (argv, words) => {
  expect(wordsOf(argv)).toBe(words);
});

test('no name reaches a terminal with control or bidi characters in it', () => {
  expect(wordsOf(['bash', './a\u001b[2Jb\u202ec\u0007.sh'])).toBe('bash ./a\\u{1b}[2Jb\\u{202e}c\\u{7}.sh');
  expect(wordsOf(['\u001b]0;x\u0007'])).toBe('\\u{1b}]0;x\\u{7}');
  expect(wordsOf(['bash', '视频 é.sh'])).toBe('bash 视频 é.sh');
});

test('whatever a process calls itself, its name is short and printable', () => {
  fc.assert(
    fc.property(fc.array(fc.string({ unit: 'binary', maxLength: 200 })), (argv) => {
      const words = wordsOf(argv);
      expect(words.length).toBeLessThanOrEqual(81);
      expect(words).not.toMatch(/[\p{C}\p{Zl}\p{Zp}]/u);
    }),
  );
});

test('a living process is named, one out of sight is not', async (ctx) => {
  if (!LINUX) ctx.skip('needs /proc');
  const { pid, end } = await start('sh', ['-c', 'echo ready; read x', 'hunter2']);
  expect(await nameOf(pid)).toBe('sh -c …');
  await end();
  expect(await nameOf(pid)).toBe('');
});
