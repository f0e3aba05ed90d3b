import { expect, test } from 'vitest';
import { Random } from '../../scripts/stress/random.mjs';
import { dayAgo, EARLY, type Kill, LATE, nameOfDay, Pipeline, type Victim } from '../cli/pipeline.ts';
import { needs } from '../cli/processes.ts';

/** A month of the pipeline that users copy: three schedulers at once, once or twice a day, and kills. */

const DAYS = 30;
const SCHEDULERS = 3;
/** Fewer than days, so that the last days have none left. */
const CANDIDATES = 20;
/** Each step of the script that leaves something behind. */
const STEPS = ['runlock hb', 'echo *', 'mv *', 'sync published', 'runlock ledger *', 'runlock finish *'];
const SETTLE_STEPS = ['ls *', 'runlock ledger *', 'runlock settle *'] as const;
/** Kills at times that no step tells, while other programs work for the script; ms after its start. */
const KILLS_BY_TIME = 3;
const LONGEST_MS = 600;
/** The days on which kills may fall: on the last of them there is a candidate left, whatever came before. */
const KILL_DAYS = CANDIDATES;

interface Day {
  readonly day: number;
  readonly early: Kill | null;
  /** Of what this day has left unknown, while it is settled. */
  readonly late: Kill | null;
  readonly isLong: boolean;
}

/** Each step with the whole group and with one of its processes, in an order that the seed decides. */
function plan(random: Random): Day[] {
  const one = (): Victim => (random.chance(0.5) ? 'runlock' : 'script');
  const any = (): Victim => (random.chance(0.5) ? 'group' : one());
  const kills: (Kill | null)[] = [
    ...STEPS.flatMap((before): Kill[] => [
      { script: 'publish.sh', victim: 'group', before },
      { script: 'publish.sh', victim: one(), before },
    ]),
    ...Array.from({ length: KILLS_BY_TIME }, (): Kill => {
      return { script: 'publish.sh', victim: any(), afterMs: Math.round(random.between(0, LONGEST_MS)) };
    }),
  ];
  while (kills.length < KILL_DAYS) kills.push(null);
  const inOrder = kills.map((kill) => ({ kill, key: random.next() })).sort((a, b) => a.key - b.key);
  return Array.from({ length: DAYS }, (_, index): Day => {
    const day = dayAgo(DAYS - index);
    const early = inOrder[index]?.kill ?? null;
    const before = random.pick(SETTLE_STEPS) ?? SETTLE_STEPS[0];
    const late: Kill = { script: 'settle.sh', victim: any(), before };
    const again = early !== null && random.chance(0.5);
    return { day, early, late: again ? late : null, isLong: early !== null || random.chance(0.2) };
  });
}

test('a month of three schedulers and many kills: one a day at most, none twice, none lost', async (ctx) => {
  needs(ctx, 'jq');
  const seed = Number(process.env.PIPELINE_SEED ?? Math.floor(Math.random() * 2 ** 32));
  console.log(`PIPELINE_SEED=${seed}`);
  const pipeline = new Pipeline(ctx, CANDIDATES);
  const month = plan(new Random(seed));
  const clean: string[] = [];
  let killed = 0;
  for (const { day, early, late, isLong } of month) {
    const before = pipeline.skips().length;
    const published = pipeline.published().length;
    const rounds = [await pipeline.start(day + EARLY, SCHEDULERS, early)];
    if (isLong) rounds.push(await pipeline.start(day + LATE, SCHEDULERS, late));
    const what = `seed ${seed}, ${nameOfDay(day)}, ${JSON.stringify({ early, late })}`;
    killed += rounds.filter((round) => round.killed).length;
    if (early !== null) {
      expect(rounds[0]?.killed, what).toBe(true);
      continue;
    }
    clean.push(nameOfDay(day));
    const codes = rounds.flatMap(({ ended }) => ended.map(({ code }) => code));
    expect(codes, what).toEqual(codes.map(() => 0));
    const skips = pipeline.skips().slice(before);
    const began = pipeline.published().length - published;
    expect(
      skips.filter(({ job }) => job === 'publish'),
      what,
    ).toHaveLength(codes.length - began);
  }
  expect((await pipeline.settle(dayAgo(0))).code).toBe(0);
  expect(pipeline.broken(clean), `seed ${seed}`).toEqual([]);
  expect((await pipeline.box.status()).marker).toEqual([]);
  expect(pipeline.published()).toHaveLength(CANDIDATES);
  // Kills came before and after the publication, or nothing was proved.
  const settled = pipeline.box.history().filter(({ event }) => event === 'settled');
  expect(new Set(settled.map(({ as }) => as))).toEqual(new Set(['done', 'notDone']));
  console.log(`${killed} kills, ${settled.length} items settled`);
});

test('control: the same without the quota publishes more than one a day, and that is seen', async (ctx) => {
  needs(ctx, 'jq');
  const pipeline = new Pipeline(ctx, CANDIDATES);
  pipeline.change('runlock.json', '"quota:posts", ', '');
  const day = dayAgo(1);
  for (const hour of [EARLY, LATE]) await pipeline.start(day + hour, SCHEDULERS);
  expect(pipeline.broken()).toEqual([`more than one was published on ${nameOfDay(day)}`]);
});
