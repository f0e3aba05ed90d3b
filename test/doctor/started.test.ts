import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type Started, startedByText, UNKNOWN } from '../../src/doctor/started.ts';
import type { User } from '../../src/doctor/users.ts';

const USERS: readonly User[] = [
  { name: 'root', uid: 0, gids: [0], home: '/root' },
  { name: 'ann', uid: 1000, gids: [1000], home: '/home/ann' },
];
const USERS_BY_NAME = new Map(USERS.map((user) => [user.name, user]));
const AROUND = {
  user: USERS_BY_NAME.get('root') ?? null,
  cwd: '/root',
  env: new Map([
    ['HOME', '/root'],
    ['PATH', '/bin'],
    ['DIR', '/srv'],
  ]),
};

const read = (text: string) => startedByText(text, AROUND, USERS_BY_NAME);
const words = ({ words }: Started) => words.map((word) => word.text).join('|');

test.each([
  ['a b && c || d; e | f & g', ['a|b', 'c', 'd', 'e', 'f', 'g']],
  [`a 'b c' "d $DIR" e\\ f # no`, ['a|b c|d /srv|e f']],
  ['a >x 2>&1 <y &>z b', ['a|b']],
  ['if a; then b; else c; fi', ['a', 'b', 'c']],
  ['for x in 1 $(b); do a; done', ['b', 'a']],
  ['select x in 1 2; do a; done', ['a']],
  ['case "$1" in a|b) c;; *) d;; esac; e', ['c', 'd', 'e']],
  ['while ! a; do b; done', ['a', 'b']],
  ['echo for x', ['echo|for|x']],
  ['x=$(a b `c`) && d "$(e)"', ['c', 'a|b|`c`', 'e', 'd|$(e)']],
  ['nice -n 5 ionice -c3 timeout -k 5s 1h a b', ['a|b']],
  ['flock -n -E 5 /x a b', ['a|b']],
  ['flock -n /x -c "a b"', ['a|b']],
  ["bash -euc 'a; b'", ['a', 'b']],
  ['exec a', ['a']],
  ['npx -y runlock run a', ['runlock|run|a']],
  ["npx -c 'a b'", ['a|b']],
  ['setpriv --reuid=ann --regid 4 --init-groups -- a b', ['a|b']],
  ['chpst -u ann -o 5 a b', ['a|b']],
  ['envdir /etc/x setuidgid ann softlimit -m 5 a b', ['a|b']],
  ['systemd-run --wait -q --unit x --setenv=A=1 a b', ['a|b']],
  ['systemd-run -p User=ann a b', ['systemd-run|-p|User=ann|a|b']],
  ['sudo -R /x a b', ['sudo|-R|/x|a|b']],
  ["env -S 'a b'", ['env|-S|a b']],
  ['x | xargs -n1 -0 a b', ['x', 'a|b|…']],
  ['xargs -I% a b%', ['a|b%']],
  ["watch -n 5 'a; b'", ['a', 'b']],
  ["script -qc 'a b' /dev/null", ['a|b']],
  ['cross-env A=1 a', ['a']],
  ['sh script.sh a', ['sh|script.sh|a']],
])('%s starts what it starts', (text, expected) => {
  expect(read(text).map(words)).toEqual(expected);
});

test.each([
  ['cd /a && x', '/a'],
  ['cd a/b; cd ..; x', '/root/a'],
  ['cd; x', '/root'],
  ['cd -- "$DIR/y" && x', '/srv/y'],
  ['cd ~/y && x', '/root/y'],
  ['(cd /a; true); x', '/root'],
  ['cd $UNKNOWN && x', null],
  ['cd "$(pwd)" && x', null],
  ['cd - && x', null],
  ['env -C /a x', '/a'],
  ['sudo -i -u ann x', '/home/ann'],
  ['sudo -u ann x', '/root'],
  ["su - ann -c 'x'", '/home/ann'],
  ["su ann -c 'x'", '/root'],
  ['systemd-run x', '/'],
  ['systemd-run --working-directory=/a x', '/a'],
  ['chpst -C /a x', '/a'],
  ["su - nobody -c 'cd; x'", null],
])('%s starts x where it starts it', (text, cwd) => {
  expect(read(text).at(-1)).toMatchObject({ cwd });
  expect(read(text).map(words).at(-1)).toBe('x');
});

test.each([
  ['x', undefined],
  ['A=1 x', '1'],
  ['A=1; x', undefined],
  ['A=1; export A; x', '1'],
  ['export A=1 B=2; x', '1'],
  ['export A=1; A=2; x', '2'],
  ['export A=1; unset A; x', undefined],
  ['env A=1 x', '1'],
  ['A=1 env -i x', undefined],
  ['A=1 env -u A x', undefined],
  ['export A=1; sudo x', undefined],
  ['sudo A=1 x', '1'],
  ['export A=1; (export A=2); x', '1'],
  ['export A=1; export A; x', '1'],
  ['systemd-run -E A=1 x', '1'],
  ['export A=1; systemd-run x', undefined],
  ['export A=1; systemd-run --setenv=A x', '1'],
  ['cross-env A=1 x', '1'],
  ['A=$(y) x', UNKNOWN],
  ['export A="$UNKNOWN"; x', UNKNOWN],
])('%s: what x gets as A', (text, value) => {
  expect(read(text).at(-1)?.env.get('A')).toBe(value);
});

test.each([
  ['x', '/bin'],
  ['. ~/.profile && x', UNKNOWN],
  ['source nvm.sh; x', UNKNOWN],
  ['eval "$(fnm env)"; x', UNKNOWN],
  ["bash -lc 'x'", UNKNOWN],
  ["bash --login -c 'x'", UNKNOWN],
  ["bash -ec 'x -l'", '/bin'],
  ['su - ann -c x', UNKNOWN],
  ['PATH=/opt:$PATH x', '/opt:/bin'],
  ['PATH=$(npm bin):$PATH x', UNKNOWN],
  ['. ./env; PATH=/opt x', '/opt'],
  ['chpst -e /etc/x x', UNKNOWN],
  ['s6-envdir /etc/x x', UNKNOWN],
  ['systemd-run x', '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'],
])('%s: the PATH that x gets', (text, value) => {
  expect(read(text).at(-1)?.env.get('PATH')).toBe(value);
});

test.each([
  ['sudo -u ann x', 'ann'],
  ['sudo x', 'root'],
  ['runuser -u ann -- x', 'ann'],
  ['su ann -s /bin/sh -c x', 'ann'],
  ['gosu ann x', 'ann'],
  ['sudo -u "$WHO" x', undefined],
  ["sudo -u '#1000' x", 'ann'],
  ['sudo -u 1000 x', undefined],
  ['sudo --user=#1000 x', 'ann'],
  ['doas -u 1000 x', 'ann'],
  ['setpriv --reuid 1000 x', 'ann'],
  ['setpriv --nnp x', 'root'],
  ['chpst -u ann:staff x', 'ann'],
  ['chpst -u :1000:50 x', 'ann'],
  ['chpst -u 1000 x', undefined],
  ['gosu 1000:50 x', 'ann'],
  ['s6-setuidgid ann x', 'ann'],
  ['systemd-run --uid=1000 x', 'ann'],
])('%s: who starts x', (text, user) => {
  expect(read(text).map((one) => [words(one), one.user?.name])).toEqual([['x', user]]);
});

test('what only the shell knows is told apart from what is known', () => {
  const [found] = read(`x "$DIR" $1 *.txt "a*" $\{Y%z} ~bob/x`);
  expect(found?.words.map(({ certain }) => certain)).toEqual([true, true, false, false, true, false, false]);
});

test('any text is read without an error, and comes to an end', () => {
  const piece = fc.constantFrom(
    ...[
      '$(',
      '`',
      ')',
      '(',
      '"',
      "'",
      '\\',
      ' ',
      'sh -c ',
      'sudo -u ',
      'env ',
      'cd ',
      '${',
      '}',
      '<<',
      '&',
      ';',
      '\n',
      'a=',
      '--',
      '-c',
      'su ',
      'xargs -I',
      'watch ',
      'chpst -u :',
      'systemd-run -E ',
    ],
  );
  const text = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.array(piece, { maxLength: 60 }).map((all) => all.join('')),
  );
  fc.assert(
    fc.property(text, (source) => {
      for (const { words } of read(source)) expect(words.length).toBeGreaterThan(0);
    }),
    { numRuns: 500 },
  );
});

test('200 kB of anything are read in one go, and start no more than anybody writes', () => {
  const exports = Array.from({ length: 10_000 }, (_, at) => `export A${at}=1;`).join('');
  const pieces = [
    'x;',
    '(',
    '()',
    '$(',
    '`',
    '"',
    '"$(',
    '${',
    '\\',
    '<',
    'A=1;',
    'sudo ',
    'watch ',
    'xargs ',
    'sudo;',
    'sh -c ',
    'a',
    '$a',
    '$(',
  ];
  const texts = [
    ...pieces.map((piece) => piece.repeat(200_000 / piece.length)),
    `${exports}${'x;'.repeat(20_000)}`,
  ];
  for (const text of texts) expect(read(text).length).toBeLessThanOrEqual(500);
});
