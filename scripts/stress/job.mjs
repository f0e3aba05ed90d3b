// @ts-check
// The command of a `runlock run`: job.mjs LOG MS. It goes on when its supervisor is killed, and is a holder then too.
import { setTimeout as sleep } from 'node:timers/promises';
import { Oracle } from './oracle.mjs';

const [, , log = '', ms = '0'] = process.argv;
const run = Number(process.env.RUNLOCK_RUN);
const oracle = new Oracle(log);
oracle.enter(run);
await sleep(Number(ms));
oracle.leave(run);
process.stdout.write(`${run}\n`);
