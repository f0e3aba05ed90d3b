import fs from 'node:fs';
import { expect, test } from 'vitest';
import { Sandbox } from '../cli/harness.ts';

test('of 8 processes that add 200 keys each loses none', async () => {
  const box = new Sandbox();
  box.write('ledger.json', '{"publishes": {}}');
  const adder = `i=0; while [ $i -lt 200 ]; do i=$((i+1))
    runlock ledger add ledger.json#publishes "$1-$i" || exit; done`;
  const file = box.write('adder.sh', adder);
  const ended = await Promise.all([1, 2, 3, 4, 5, 6, 7, 8].map((n) => box.exec('sh', [file, `p${n}`])));
  expect(ended.map(({ code, stderr }) => [code, stderr])).toEqual(ended.map(() => [0, '']));
  const { publishes } = JSON.parse(fs.readFileSync(`${box.dir}/ledger.json`, 'utf8')) as {
    publishes: object;
  };
  expect(Object.keys(publishes)).toHaveLength(1600);
}, 1_800_000);
