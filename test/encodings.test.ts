import { expect, test } from 'vitest';
import { encodeText, findEncoding } from '../src/encodings.ts';

test.each([
  ['utf-8', 'utf-8'],
  ['UTF8', 'utf-8'],
  ['utf-16', 'utf-16le'],
  ['utf16le', 'utf-16le'],
  ['UTF-16BE', 'utf-16be'],
  ['GBK', 'gbk'],
  ['gb2312', 'gbk'],
  ['cp936', 'gbk'],
  ['latin1', 'windows-1252'],
  ['shift_jis', 'shift_jis'],
  ['iso-2022-jp', null],
  ['utf-7', null],
  ['gkb', null],
])('the encoding %s is %s', (label, expected) => expect(findEncoding(label)).toBe(expected));

test.each(['gbk', 'gb18030', 'big5', 'shift_jis', 'euc-kr', 'windows-1251', 'utf-16be', 'utf-8'])(
  'what is written in %s is read back as the same',
  (encoding) => {
    const texts: Readonly<Record<string, string>> = {
      gb18030: '发布成功€ok\u00ff\u1ec7',
      big5: '發布成功 ok',
      shift_jis: '公開しました ok',
      'euc-kr': '게시 완료 ok',
      'windows-1251': 'опубликовано ok',
    };
    const text = texts[encoding] ?? '文章发布成功 ok';
    const bytes = encodeText(text, encoding);
    expect(bytes && new TextDecoder(encoding).decode(bytes)).toBe(text);
  },
);

test('the bytes are those that other programs write', () => {
  expect(encodeText('发布成功', 'gbk')?.toString('hex')).toBe('b7a2b2bcb3c9b9a6');
  expect(encodeText('é', 'windows-1252')?.toString('hex')).toBe('e9');
  expect(encodeText('é', 'gb18030')?.toString('hex')).toBe('a8a6');
});

test('a character that an encoding does not have is said', () => {
  expect(encodeText('发布', 'windows-1252')).toBeNull();
  expect(encodeText('a\u1ec7', 'gbk')).toBeNull();
});
