import { describe, expect, test } from 'vitest';
import { parseGate } from '../../src/gates/parse.ts';

const parse = (text: string) => parseGate(text, '/srv/app');

describe('a gate is read as it is written', () => {
  test.each([
    ['item', { type: 'item' }],
    ['quota:juejin', { type: 'quota', name: 'juejin' }],
    ['quota:a:b', { type: 'quota', name: 'a:b' }],
    ['ledger:published', { type: 'ledger', ledger: 'published', base: '/srv/app' }],
    ['ledger:led.json#/a/b', { type: 'ledger', ledger: 'led.json#/a/b', base: '/srv/app' }],
    ['output:out/x.json', { type: 'output', path: { text: 'out/x.json', base: '/srv/app' } }],
    ['output:/tmp/x:y', { type: 'output', path: { text: '/tmp/x:y' } }],
    ['output:{yyyy-MM-dd}.json', { type: 'output', path: { pieces: [{ format: 'yyyy-MM-dd' }, '.json'] } }],
  ])('%s', (text, gate) => {
    expect(parse(text)).toMatchObject({ ...gate, text });
  });
});

describe('what is no gate is refused with what was expected', () => {
  test.each([
    ['quota', /quota:NAME/],
    ['quota:', /quota:NAME/],
    ['output:', /output:PATH/],
    ['output: ', /output:PATH/],
    ['ledger', /ledger:LEDGER/],
    ['item:ep-1', /just "item"/],
    ['', /expected quota:NAME/],
    ['qouta:juejin', /did you mean "quota:juejin"\?/],
    ['Item', /did you mean "item"\?/],
    ['nonsense', /expected quota:NAME, output:PATH, item or ledger:LEDGER$/],
    ['output:a\u001b[2Jb', /control characters/],
    ['output:{yyyy-mm-dd}.json', /"m" is minutes.*did you mean \{yyyy-MM-dd\}\?/],
    ['output:{yyyy', /"}" after each/],
  ])('%j', (text, message) => {
    expect(() => parse(text)).toThrow(expect.objectContaining({ code: 'usage' }));
    expect(() => parse(text)).toThrow(message);
  });
});
