import fc from 'fast-check';
import { expect, test } from 'vitest';
import { simpleCommand } from '../../src/evidence/shell-text.ts';

test.each<[string, string[]]>([
  ['runlock acquire x', ['runlock', 'acquire', 'x']],
  ['  runlock\tacquire   x  \n', ['runlock', 'acquire', 'x']],
  ['runlock acquire x;', ['runlock', 'acquire', 'x']],
  ['\n# why\nrunlock acquire x # and why\n', ['runlock', 'acquire', 'x']],
  ['runlock acquire x \\\n  --job y', ['runlock', 'acquire', 'x', '--job', 'y']],
  ['A=1 B="x y" exec runlock acquire', ['exec', 'runlock', 'acquire']],
  ['runlock acquire A=1', ['runlock', 'acquire', 'A=1']],
  [`runlock acquire 'a;b' "c|d" e\\&f`, ['runlock', 'acquire', 'a;b', 'c|d', 'e&f']],
  [`runlock acquire "a\\"b" 'it'\\''s'`, ['runlock', 'acquire', 'a"b', "it's"]],
  ['runlock acquire x >/dev/null 2>&1 </dev/null', ['runlock', 'acquire', 'x']],
  ['runlock acquire x >> log &> all', ['runlock', 'acquire', 'x']],
  ['> log runlock acquire x', ['runlock', 'acquire', 'x']],
  ['runlock acquire a#b', ['runlock', 'acquire', 'a#b']],
  ['runlock acquire "ep-$(date +%F; echo)" $N', ['runlock', 'acquire', 'ep-$(date +%F; echo)', '$N']],
  ['runlock acquire `date`', ['runlock', 'acquire', '`date`']],
  ['"$RUNLOCK" acquire', ['$RUNLOCK', 'acquire']],
  ['! runlock hb', ['!', 'runlock', 'hb']],
])('one simple command is read as its words: %j', (text, words) => {
  expect(simpleCommand(text)).toEqual(words);
});

test.each(['$(', '"$(', '${', '"${'])(
  'text that is nested deeper than anybody writes is not read: %s…',
  (open) => {
    expect(simpleCommand(`runlock acquire ${open.repeat(60_000)}`)).toBeNull();
    expect(simpleCommand(open.repeat(60_000))).toBeNull();
  },
);

test.each([
  'runlock acquire x; sleep 1',
  'runlock acquire x && work',
  'runlock acquire x || exit',
  'runlock acquire x | tee log',
  'runlock acquire x & work',
  'runlock acquire x &',
  'runlock acquire x\nwork',
  'runlock acquire x;;',
  '(runlock acquire x)',
  '{ runlock acquire x; }',
  'if runlock acquire x; then work; fi',
  'while runlock hb',
  'f() runlock acquire',
  'cat <<EOF\nrunlock acquire x\nEOF',
  'diff <(runlock acquire x) y',
  'runlock acquire "x',
  "runlock acquire 'x",
  'runlock acquire $(date',
  'runlock acquire `date',
  '',
  '   ',
  '# runlock acquire x',
  'A=1',
])('more than one simple command, or what cannot be read for certain, is none: %j', (text) => {
  expect(simpleCommand(text)).toBeNull();
});

test('any quoted words come back as they were', () => {
  fc.assert(
    fc.property(fc.array(fc.string({ unit: 'binary' }), { minLength: 1 }), (words) => {
      const quoted = words.map((word) => `'${word.replaceAll("'", `'\\''`)}'`);
      expect(simpleCommand(['runlock', ...quoted].join(' '))).toEqual(['runlock', ...words]);
    }),
  );
});

test('no text makes it throw or hang', () => {
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...'ab \\\'"`$(){}<>;&|#\n='.split(''))), (chars) => {
      simpleCommand(chars.join(''));
    }),
    { numRuns: 5000 },
  );
});
