import { defineConfig } from 'vitest/config';

/** `npm run faults`: crashes and broken disks at every step. Minutes, not seconds. */
export default defineConfig({
  test: {
    include: ['test/faults/**/*.faults.ts'],
    testTimeout: 900_000,
    maxWorkers: 2,
  },
});
