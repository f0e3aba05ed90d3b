import { defineConfig } from 'vitest/config';

/** `npm run windows`: what Windows' own Node runs, under Wine; scripts/ci/wine.sh sets that up. */
export default defineConfig({
  test: {
    include: ['test/windows/**/*.windows.ts'],
  },
});
