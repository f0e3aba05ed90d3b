// Bundles the command into dist/: runlock.cjs, and a file beside it for each module of src/cli/parts.
//
// CommonJS, and few files: on Node 20 an ES module entry costs about 10 % of a bare start, and every extra file
// a resolve and a read. Modules that are imported with import() keep their own initialiser, so that what a command
// doesn't use is only skimmed by the parser, never run. Skimming 100 kB still costs some 5 % of a bare start: hence
// the parts, which are loaded on demand. They take what runlock.cjs has from there, so that each module is there once.
import { chmodSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { build } from 'esbuild';

const ROOT = path.dirname(import.meta.dirname);
const PARTS = path.join(ROOT, 'src/cli/parts');
const { version } = JSON.parse(readFileSync(path.join(ROOT, 'package.json'), 'utf8'));

const COMMON = /** @satisfies {import('esbuild').BuildOptions} */ ({
  absWorkingDir: ROOT,
  bundle: true,
  write: false,
  platform: /** @type {const} */ ('node'),
  format: /** @type {const} */ ('cjs'),
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
  legalComments: /** @type {const} */ ('none'),
  logLevel: /** @type {const} */ ('warning'),
});

/**
 * Bundles the command into a directory; tests add plugins that break a guard on purpose.
 *
 * @param {string} directory
 * @param {import('esbuild').Plugin[]} plugins
 * @returns {Promise<string>} the file to run
 */
export async function buildCommand(directory, plugins = []) {
  const parts = readdirSync(PARTS).map((name) => path.join(PARTS, name));
  const main = await build({
    ...COMMON,
    entryPoints: ['src/cli/main.ts'],
    metafile: true,
    outdir: directory,
    plugins: [partsBeside()],
  });
  const inMain = new Set(Object.keys(main.metafile.inputs));

  // First the parts, which show what they take from there.
  /** @type {Set<string>} */
  const taken = new Set();
  const beside = await build({
    ...COMMON,
    entryPoints: parts,
    outdir: directory,
    outExtension: { '.js': '.cjs' },
    plugins: [takenFromMain(inMain, taken), ...plugins],
  });

  const file = path.join(directory, 'runlock.cjs');
  const command = await build({
    ...COMMON,
    stdin: { contents: entryThatShares(taken), resolveDir: ROOT, sourcefile: 'entry.js' },
    outfile: file,
    plugins: [partsBeside(), ...plugins],
  });
  mkdirSync(directory, { recursive: true });
  for (const output of [...beside.outputFiles, ...command.outputFiles])
    writeFileSync(output.path, withLightBuiltins(output.text));
  chmodSync(file, 0o755);
  return file;
}

/**
 * esbuild copies a getter for each of the 100 properties of node:fs, in each module that imports it: 7 % of a `status`.
 * An object that inherits them does the same.
 *
 * @param {string} code
 */
function withLightBuiltins(code) {
  const heavy = /__toESM\(require\("(node:[a-z_/]+)"\),1\)/g;
  const light = code.replace(heavy, '{__proto__:require("$1"),default:require("$1")}');
  if (light === code)
    throw new Error('esbuild no longer writes __toESM(require("node:…"),1): see withLightBuiltins');
  return light;
}

/**
 * Leaves each part to the file beside.
 *
 * @returns {import('esbuild').Plugin}
 */
function partsBeside() {
  return {
    name: 'parts-beside',
    setup({ onResolve, onLoad }) {
      onResolve({ filter: /\/parts\/\w+\.ts$/ }, (args) => ({
        path: path.basename(args.path, '.ts'),
        namespace: 'part',
      }));
      onLoad({ filter: /./, namespace: 'part' }, (args) => ({
        contents: `module.exports = require('./${args.path}.cjs');`,
      }));
      onResolve({ filter: /./, namespace: 'part' }, (args) => ({ path: args.path, external: true }));
    },
  };
}

/**
 * Lets a part take the modules that the main bundle has from there, and notes which.
 *
 * @param {Set<string>} inMain relative to the project
 * @param {Set<string>} taken
 * @returns {import('esbuild').Plugin}
 */
function takenFromMain(inMain, taken) {
  return {
    name: 'taken-from-main',
    setup({ onResolve, onLoad }) {
      onResolve({ filter: /^\./ }, (args) => {
        const module = path.relative(ROOT, path.resolve(args.resolveDir, args.path)).replaceAll('\\', '/');
        if (!module.startsWith('src/') || !inMain.has(module)) return null;
        taken.add(module);
        return { path: module, namespace: 'main' };
      });
      onLoad({ filter: /./, namespace: 'main' }, (args) => ({
        contents: `module.exports = require('./runlock.cjs').modules[${JSON.stringify(args.path)}];`,
      }));
      onResolve({ filter: /./, namespace: 'main' }, (args) => ({ path: args.path, external: true }));
    },
  };
}

/**
 * The main bundle's entry: modules for the parts, each initialised when it is first asked for, then the command.
 *
 * @param {Set<string>} modules
 */
function entryThatShares(modules) {
  const getters = [...modules]
    .sort()
    .map((module) => `get ${JSON.stringify(module)}() { return require(${JSON.stringify(`./${module}`)}); }`);
  return `exports.modules = {${getters.join(',\n')}};\nrequire('./src/cli/main.ts');`;
}

if (import.meta.filename === process.argv[1]) {
  const dist = path.join(ROOT, 'dist');
  await buildCommand(dist);
  // The package takes the directory whole: what an older build has left there would be shipped.
  const made = new Set(['runlock.cjs', ...readdirSync(PARTS).map((name) => name.replace(/\.ts$/, '.cjs'))]);
  for (const name of readdirSync(dist))
    if (!made.has(name)) rmSync(path.join(dist, name), { recursive: true });
}
