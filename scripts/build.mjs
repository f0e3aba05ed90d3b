// Bundles the command into dist/runlock.cjs.
//
// One CommonJS file: on Node 20 an ES module entry costs about 10 % of a bare start, and every extra file
// a resolve and a read. Modules that are imported with import() keep their own initialiser, so that what
// a command doesn't use is only skimmed by the parser, never run.
import { chmodSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { build } from 'esbuild';

const ROOT = path.dirname(import.meta.dirname);
const { version } = JSON.parse(readFileSync(path.join(ROOT, 'package.json'), 'utf8'));

/**
 * Bundles the command into `outfile`; tests add plugins that break a guard on purpose.
 *
 * @param {string} outfile
 * @param {import('esbuild').Plugin[]} plugins
 */
export async function buildCommand(outfile, plugins = []) {
  await build({
    absWorkingDir: ROOT,
    entryPoints: ['src/cli/main.ts'],
    outfile,
    bundle: true,
    platform: 'node',
    format: 'cjs',
    target: 'node20.19',
    // jsonc-parser's main file is of a kind that can't be bundled, its ES modules are not.
    mainFields: ['module', 'main'],
    banner: {
      js: `#!/usr/bin/env node\nconst bundleUrl=require('node:url').pathToFileURL(__filename).href;`,
    },
    define: {
      RUNLOCK_VERSION: JSON.stringify(version),
      // What an ES module knows of its own place.
      'import.meta.filename': '__filename',
      'import.meta.url': 'bundleUrl',
    },
    // Packages that bring files of their own (a compiled addon, translations, a Windows helper) stay outside.
    external: ['fs-native-extensions', 'yargs', 'ps-list'],
    minifySyntax: true,
    minifyWhitespace: true,
    legalComments: 'none',
    logLevel: 'warning',
    plugins,
  });
  chmodSync(outfile, 0o755);
}

if (import.meta.filename === process.argv[1]) await buildCommand(path.join(ROOT, 'dist/runlock.cjs'));
