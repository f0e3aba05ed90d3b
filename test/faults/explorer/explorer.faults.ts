import { brokenInSomeOrder, keptInEveryOrder } from './rows.ts';
import { LIMITS, SCENARIOS } from './scenarios.ts';

keptInEveryOrder(SCENARIOS);
brokenInSomeOrder(LIMITS);
