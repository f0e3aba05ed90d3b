import { defineConfig } from 'vitest/config';

/** `npm run long`: what takes minutes and shows what shorter tests show, at its full size. No part of the gate. */
export default defineConfig({
  test: {
    include: ['test/faults/**/*.long.ts'],
    testTimeout: 1_800_000,
    maxWorkers: 2,
  },
});
