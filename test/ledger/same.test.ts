import { expect, it } from 'vitest';
import { isSameJson } from '../../src/ledger/same.ts';

it.each([
  ['{"a":1,"b":[1,2]}', '{ "b" : [1, 2],\n "a":1 }', true],
  ['"\\u00e9"', '"é"', true],
  ['7440123456789012345', '7440123456789012346', false],
  ['1.10', '1.1', false],
  ['1e400', '1e401', false],
  ['1', '"1"', false],
  ['1', '"#1"', false],
  ['null', '"null"', false],
  ['[1,2]', '[2,1]', false],
  ['{}', '[]', false],
  ['{"__proto__":1}', '{}', false],
  ['{"__proto__":1}', '{"__proto__":1}', true],
])('%s and %s', (one, other, same) => {
  expect(isSameJson(one, other)).toBe(same);
});

it('what is nested too deep to be compared is not said to be the same', () => {
  const nested = (value: string) => `${'['.repeat(100_000)}${value}${']'.repeat(100_000)}`;
  expect(isSameJson(nested('1'), nested('2'))).toBe(false);
});
