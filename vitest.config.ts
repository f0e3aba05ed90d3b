import path from 'node:path';
import { defineConfig, type TestProjectInlineConfiguration } from 'vitest/config';
import type { InlineConfig } from 'vitest/node';

const MINUTE = 60_000;

/** One for each script of package.json that runs tests. Black-box tests start real processes: all have room on a slow machine. */
const projects: TestProjectInlineConfiguration[] = [
  project('tests', 'test/**/*.test.ts', MINUTE),
  // Crashes and broken disks at every step: minutes, not seconds.
  project('faults', 'test/faults/**/*.faults.ts', 15 * MINUTE),
  // What takes minutes and shows what shorter tests show, at its full size. No part of the gate.
  project('long', 'test/faults/**/*.long.ts', 45 * MINUTE),
  // The packed package, installed in every way there is; needs the registry.
  project('installed', 'test/installed/**/*.installed.ts', 3 * MINUTE, ['test/installed/pack.ts']),
  // What Windows' own Node runs, under Wine; scripts/ci/wine.sh sets that up.
  project('windows', 'test/windows/**/*.windows.ts', 10 * MINUTE),
];

/** .ci/run names a directory: it reads afterwards what failed or was skipped there. */
const reports = process.env.RUNLOCK_TEST_REPORTS;
const reporters: InlineConfig['reporters'] =
  reports === undefined
    ? ['default']
    : ['default', ['json', { outputFile: path.join(reports, `${process.pid}.json`) }]];

export default defineConfig({ test: { projects, maxWorkers: 2, reporters } });

function project(
  name: string,
  files: string,
  timeout: number,
  globalSetup: string[] = [],
): TestProjectInlineConfiguration {
  return { test: { name, include: [files], testTimeout: timeout, hookTimeout: timeout, globalSetup } };
}
