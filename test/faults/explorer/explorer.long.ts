import { keptInEveryOrder } from './rows.ts';
import { LONG_SCENARIOS } from './scenarios.ts';

keptInEveryOrder(LONG_SCENARIOS);
