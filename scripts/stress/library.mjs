// @ts-check
// The lock from its source, for contenders that ask it in their own process: a binary's start costs a hundred times
// what the lock does.
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

/**
 * @typedef {{
 *   Lock: typeof import('../../src/lock.ts').Lock,
 *   FileStore: typeof import('../../src/stores/file/file-store.ts').FileStore,
 *   systemWitness: import('../../src/lock.ts').Witness,
 *   systemClock: import('../../src/clock.ts').Clock,
 *   here: typeof import('../../src/evidence/host.ts').here,
 *   hashToken: typeof import('../../src/token.ts').hashToken,
 *   newToken: typeof import('../../src/token.ts').newToken,
 * }} Library
 */

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** @param {string} outfile */
export async function bundleLibrary(outfile) {
  const { build } = await import('esbuild');
  await build({
    stdin: {
      resolveDir: path.join(ROOT, 'src'),
      contents: `
        export { Lock } from './lock.ts';
        export { FileStore } from './stores/file/file-store.ts';
        export { systemWitness } from './evidence/witness.ts';
        export { systemClock } from './clock.ts';
        export { here } from './evidence/host.ts';
        export { hashToken, newToken } from './token.ts';
      `,
    },
    outfile,
    bundle: true,
    platform: 'node',
    format: 'cjs',
    // The kernel lock addon is looked for from where the code is.
    define: { 'import.meta.filename': JSON.stringify(path.join(ROOT, 'dist/library.cjs')) },
    external: ['fs-native-extensions', 'ps-list'],
    logLevel: 'warning',
  });
}

/** @param {string} file @returns {Library} */
export function loadLibrary(file) {
  return createRequire(import.meta.url)(file);
}
