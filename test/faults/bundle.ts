import fs from 'node:fs';
import path from 'node:path';
import { build, type Plugin } from 'esbuild';

const ROOT = path.resolve(import.meta.dirname, '../..');

/** A guard taken out of the sources on purpose, to see that its absence is noticed. */
export interface Mutation {
  readonly what: string;
  /** A file under src. */
  readonly file: string;
  readonly from: string;
  readonly to: string;
}

/** Builds with a mutation. A text that is no longer in the source is an error, not a build without it. */
export async function withMutation<T>(
  { file, from, to }: Mutation,
  build: (plugins: Plugin[]) => Promise<T>,
): Promise<T> {
  const target = path.join(ROOT, 'src', file);
  let done = false;
  const plugin: Plugin = {
    name: 'mutate',
    setup({ onLoad }) {
      onLoad({ filter: /\.ts$/ }, (args) => {
        if (args.path !== target) return null;
        const source = fs.readFileSync(target, 'utf8');
        if (source.split(from).length !== 2) throw new Error(`${file} has not one "${from}"`);
        done = true;
        return { contents: source.replace(from, () => to), loader: 'ts' };
      });
    },
  };
  const built = await build([plugin]);
  if (!done) throw new Error(`${file} is no part of this build`);
  return built;
}

/** A directory for bundles, inside the project so that they find its packages. */
export function bundleDirectory(): string {
  const dir = path.join(ROOT, 'node_modules/.cache');
  fs.mkdirSync(dir, { recursive: true });
  return fs.mkdtempSync(path.join(dir, 'runlock-'));
}

/** Bundles a TypeScript file, since Node 20 runs none. */
export async function bundleScript(entry: string, outfile: string, plugins: Plugin[] = []): Promise<void> {
  await build({
    entryPoints: [entry],
    outfile,
    bundle: true,
    platform: 'node',
    format: 'cjs',
    target: 'node20.19',
    banner: { js: `const bundleUrl=require('node:url').pathToFileURL(__filename).href;` },
    define: { 'import.meta.filename': '__filename', 'import.meta.url': 'bundleUrl' },
    external: ['fs-native-extensions', 'ps-list'],
    plugins,
    logLevel: 'warning',
  });
}
