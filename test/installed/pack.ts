import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import type { TestProject } from 'vitest/node';

declare module 'vitest' {
  interface ProvidedContext {
    /** The packed package. */
    readonly tarball: string;
    /** Where all is installed; gone when the tests have ended. */
    readonly place: string;
  }
}

const ROOT = path.resolve(import.meta.dirname, '../..');

/** Packs the package once for all tests, in a checkout in which an older build has left a file. */
export default function setup(project: TestProject): () => void {
  const place = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), 'runlock-installed-')));
  fs.chmodSync(place, 0o755);
  const older = path.join(ROOT, 'dist/older.cjs');
  fs.mkdirSync(path.dirname(older), { recursive: true });
  fs.writeFileSync(older, '');
  try {
    execFileSync('npm', ['pack', '--silent', '--pack-destination', place], { cwd: ROOT, stdio: 'pipe' });
  } finally {
    fs.rmSync(older, { force: true });
  }
  const [tarball = ''] = fs.readdirSync(place);
  project.provide('place', place);
  project.provide('tarball', path.join(place, tarball));
  return () => fs.rmSync(place, { recursive: true, force: true });
}
