// Bundles the command into dist/runlock.cjs.
//
// One CommonJS file: on Node 20 an ES module entry costs about 10 % of a bare start, and every extra file
// a resolve and a read. Modules that are imported with import() keep their own initialiser, so that what
// a command doesn't use is only skimmed by the parser, never run.
import { chmodSync, readFileSync } from 'node:fs';
import { build } from 'esbuild';

const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));

await build({
  absWorkingDir: new URL('..', import.meta.url).pathname,
  entryPoints: { runlock: 'src/cli/main.ts' },
  outdir: 'dist',
  outExtension: { '.js': '.cjs' },
  bundle: true,
  platform: 'node',
  format: 'cjs',
  target: 'node20.19',
  banner: { js: `#!/usr/bin/env node\nconst bundleUrl=require('node:url').pathToFileURL(__filename).href;` },
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
});
chmodSync(new URL('../dist/runlock.cjs', import.meta.url), 0o755);
