import path from 'node:path';
import { bundleDirectory, bundleScript } from '../bundle.ts';
import { before } from './before.ts';
import { explore } from './explorer.ts';
import { SCENARIOS } from './scenarios.ts';

const which = Number(process.argv[2]);
const max = Number(process.argv[3] ?? 2000);
void (async () => {
  const dir = bundleDirectory();
  const worker = path.join(dir, 'actor.cjs');
  await bundleScript(path.resolve('test/faults/explorer/actor.ts'), worker);
  const s = { ...SCENARIOS[which]!, ...JSON.parse(process.argv[4] ?? '{}') };
  const t = performance.now();
  try {
    const r = await explore(s, { worker, makeState: before(s), maxExecutions: max });
    console.log(
      s.promise,
      r.executions,
      r.states,
      Math.round(performance.now() - t),
      r.counterexample?.broken,
    );
    console.log(r.counterexample?.events.join('\n'));
  } catch (e) {
    console.log(String(e), Math.round(performance.now() - t));
  }
  process.exit(0);
})();
