import fc from 'fast-check';
import { expect, test } from 'vitest';
import { parseTasks, splitWindowsWords } from '../../src/doctor/tasks.ts';

const XML = `<?xml version="1.0" encoding="UTF-16"?>
<Tasks>
<!-- \\Backup & more -->
<Task version="1.2" xmlns="http://schemas.microsoft.com/windows/2004/02/mit/task">
  <Principals><Principal id="Author"><UserId>CI\\ann</UserId></Principal></Principals>
  <Actions Context="Author">
    <Exec><Command>"C:\\Program Files\\nodejs\\runlock.cmd"</Command>
      <Arguments>run --dir &quot;C:\\my app\\runs&quot; -- publish.cmd</Arguments>
      <WorkingDirectory>C:\\app</WorkingDirectory></Exec>
    <ComHandler><ClassId>{0}</ClassId></ComHandler>
  </Actions>
</Task>
<!-- \\Nothing -->
<Task version="1.2"><Actions><ComHandler/></Actions></Task>
</Tasks>`;

test('tasks are read with their name, user, command, arguments and directory', () => {
  expect(parseTasks(XML)).toEqual([
    {
      ...{ task: '\\Backup & more', user: 'CI\\ann', cwd: 'C:\\app' },
      command: 'C:\\Program Files\\nodejs\\runlock.cmd',
      args: 'run --dir "C:\\my app\\runs" -- publish.cmd',
    },
  ]);
});

test('a Windows command line is split by its quotes', () => {
  expect(splitWindowsWords('run --dir "C:\\my app\\runs" -- a\\"b \\\\x')).toEqual([
    ...['run', '--dir', 'C:\\my app\\runs', '--', 'a"b', '\\\\x'],
  ]);
});

test('any text is read without an error', () => {
  const piece = fc.constantFrom(
    '<Task>',
    '</Task>',
    '<Exec>',
    '</Exec>',
    '<Command>',
    '</Command>',
    '<!--',
    '-->',
    '&lt;',
    '&constructor;',
    '"',
    '\\',
  );
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string({ unit: 'binary' }),
        fc.array(piece).map((all) => all.join('')),
      ),
      (text) => {
        for (const { command } of parseTasks(text)) expect(command).not.toBe('');
        expect(splitWindowsWords(text).every((word) => word.length <= text.length)).toBe(true);
      },
    ),
  );
});

test('200 kB of anything are read in one go', () => {
  for (const piece of ['<Task>', '<Task', '<!--', '<Task><Exec>', '\\', '\\"', '"', '"\\', ' " ', '&lt']) {
    const text = piece.repeat(200_000 / piece.length);
    expect(parseTasks(text)).toEqual([]);
    expect(splitWindowsWords(text).join('').length).toBeLessThanOrEqual(text.length);
  }
});
