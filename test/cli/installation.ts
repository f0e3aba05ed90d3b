import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { BINARY } from './harness.ts';

/** The kernel lock addon that is used here. */
export const ADDON = path.join(
  path.dirname(createRequire(BINARY).resolve('fs-native-extensions/package.json')),
  'prebuilds',
  `${process.platform}-${process.arch}`,
  'fs-native-extensions.node',
);

/** Installs the built command in a directory, with an addon of its own that a test may damage. */
export function installation(dir: string): { binary: string; addon: string } {
  const dist = path.dirname(BINARY);
  fs.cpSync(dist, path.join(dir, 'dist'), { recursive: true });
  fs.copyFileSync(path.join(dist, '..', 'package.json'), path.join(dir, 'package.json'));
  const origin = path.resolve(ADDON, '../../..');
  const copy = path.join(dir, 'node_modules', 'fs-native-extensions');
  const addon = path.join(copy, path.relative(origin, ADDON));
  fs.mkdirSync(path.dirname(addon), { recursive: true });
  fs.copyFileSync(path.join(origin, 'package.json'), path.join(copy, 'package.json'));
  fs.copyFileSync(ADDON, addon);
  return { binary: path.join(dir, 'dist', path.basename(BINARY)), addon };
}
