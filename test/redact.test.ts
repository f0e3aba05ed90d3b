import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { redactArgv } from '../src/redact.ts';

describe('a secret on the command line is not written down', () => {
  it.each([
    [
      ['--password', 'hunter2'],
      ['--password', '***'],
    ],
    [['--password=hunter2 x'], ['--password=***']],
    [
      ['-password', 'hunter2'],
      ['-password', '***'],
    ],
    [['/password:hunter2'], ['/password:***']],
    [['-DdbPassword=hunter2'], ['-DdbPassword=***']],
    [
      ['--auth', '--password', 'hunter2'],
      ['--auth', '***', '***'],
    ],
    [
      ['--api-key', 'hunter2'],
      ['--api-key', '***'],
    ],
    [['--apiKey=hunter2'], ['--apiKey=***']],
    [['GITHUB_TOKEN=hunter2'], ['GITHUB_TOKEN=***']],
    [['PGPASSWORD=hunter2'], ['PGPASSWORD=***']],
    [['MYSQL_PWD=hunter2'], ['MYSQL_PWD=***']],
    [
      ['-H', 'Authorization: Bearer hunter2'],
      ['-H', 'Authorization: ***'],
    ],
    [['--header=Authorization: Basic hunter2'], ['--header=Authorization: ***']],
    [
      ['-H', 'Cookie: sid=hunter2; x=hunter2'],
      ['-H', 'Cookie: ***'],
    ],
    [
      ['-H', 'X-Api-Key: hunter2'],
      ['-H', 'X-Api-Key: ***'],
    ],
    [
      ['say', 'Bearer hunter2'],
      ['say', 'Bearer ***'],
    ],
    [
      ['say', 'Bearer', 'hunter2'],
      ['say', 'Bearer', '***'],
    ],
    [['https://user:hunter2@host/x'], ['https://user:***@host/x']],
    [['https://user:hun@ter2@host/?a=b@c'], ['https://user:***@host/?a=b@c']],
    [['redis://:hun/ter2@host:6379'], ['redis://:***@host:6379']],
    [['--url=https://hunter2@host/x'], ['--url=https://***@host/x']],
    [['https://h/?page=2&token=hunter2&x=1'], ['https://h/?page=2&token=***&x=1']],
    [['https://h/cb?access_token=hunter2#top'], ['https://h/cb?access_token=***']],
    [
      ['curl', '-u', 'me:hunter2'],
      ['curl', '-u', 'me:***'],
    ],
    [
      ['curl', '-ume:hunter2'],
      ['curl', '-ume:***'],
    ],
    [
      ['curl', '--user=me:hunter2'],
      ['curl', '--user=me:***'],
    ],
    [
      ['-d', '{"user":"me","password":"hun\\"ter2","n":1}'],
      ['-d', '{"user":"me","password":***,"n":1}'],
    ],
  ])('%j', (argv, shown) => {
    expect(redactArgv(argv)).toEqual(shown);
    expect(redactArgv(argv).join(' ')).not.toMatch(/hun|ter2/);
  });

  it.each([
    ['TOKEN=hunter2 node publish.js', 'TOKEN=*** node publish.js'],
    ["TOKEN='hunter2 x'y node publish.js", 'TOKEN=*** node publish.js'],
    ['TOKEN="hunter2 \\" x" node publish.js', 'TOKEN=*** node publish.js'],
    ['TOKEN=hunter2; node publish.js', 'TOKEN=***; node publish.js'],
    ['curl -u me:hunter2 https://h && echo ok', 'curl -u me:*** https://h && echo ok'],
    ['curl -H "Authorization: Bearer hunter2" https://h', 'curl -H "Authorization: ***" https://h'],
    ["curl 'https://u:hunter2@h/x' -o f", "curl 'https://u:***@h/x' -o f"],
    ['mysql --password hunter2 db', 'mysql --password *** db'],
    ['mysql --password=hunter2 db', 'mysql --password=*** db'],
    ['x --auth Bearer hunter2', 'x --auth Bearer ***'],
    ['x --auth --token hunter2', 'x --auth --token ***'],
  ])('nor in the text of sh -c: %s', (text, shown) => {
    const [, , third] = redactArgv(['sh', '-c', text]);
    expect(third).not.toMatch(/hunter2/);
    expect(third).toBe(shown);
  });

  it.each([
    [['node', 'publish.js', '--port', '8080']],
    [['ssh', 'git@host', '-p', '22']],
    [['git', 'clone', 'ssh://git@host/x.git']],
    [['curl', 'http://host:8080/a@b']],
    [['--author', 'me', '--monkey=1', 'keyboard=x', 'compass:north']],
    [['sh', '-c', 'echo "$TOKEN"; ls C:\\x']],
    [['视频', 'a b', '']],
  ])('what is none stays: %j', (argv) => {
    expect(redactArgv(argv)).toEqual(argv);
  });

  it('whatever the value, behind a name that says secret', () => {
    const value = fc
      .string({ unit: 'binary', minLength: 1, maxLength: 30 })
      .map((text) => `@hunter2${text}hunter2`);
    const name = fc.constantFrom('--password', '--token', '--client-secret', '--api-key', '--auth');
    fc.assert(
      fc.property(name, value, (option, secret) => {
        for (const argv of [
          ['x', option, secret],
          ['x', `${option}=${secret}`],
          ['env', `MY_${option.slice(2)}=${secret}`],
        ]) {
          expect(redactArgv(argv).join(' ')).not.toContain('hunter2');
        }
      }),
    );
  });

  it('at most 20 arguments of at most 200 code points', () => {
    expect(redactArgv(Array.from({ length: 20 }, () => 'a'))).toHaveLength(20);
    expect(redactArgv(Array.from({ length: 500 }, () => 'a'))).toEqual([...Array(20).fill('a'), '…']);
    const [long] = redactArgv(['😀'.repeat(5000)]);
    expect([...(long ?? '')]).toHaveLength(200);
    expect(long?.endsWith('😀…')).toBe(true);
    expect(redactArgv([`TOKEN=${'x'.repeat(100_000)}`])).toEqual(['TOKEN=***']);
  });

  it('no argument makes it slow', () => {
    const start = performance.now();
    for (const piece of ['a', '-', '"', '\\', ' ', 'token=', 'token "', '://', ':', '@', "'", 'key: ', '=']) {
      redactArgv(['sh', '-c', ...Array.from({ length: 30 }, () => piece.repeat(100_000))]);
    }
    expect(performance.now() - start).toBeLessThan(5000);
  });
});
