import type { Case } from './box.ts';
import { fileCases } from './cases/files.ts';
import { lockCases } from './cases/lock.ts';
import { runCases } from './cases/run.ts';

export const CASES: Readonly<Record<string, Case>> = { ...lockCases, ...runCases, ...fileCases };
