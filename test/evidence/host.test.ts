import { readFileSync, readlinkSync } from 'node:fs';
import { hostname, uptime } from 'node:os';
import { expect, test } from 'vitest';
import { here } from '../../src/evidence/host.ts';
import { LINUX } from './fixtures/processes.ts';

test('the place is named by platform and host everywhere', () => {
  expect(here()).toMatchObject({ platform: process.platform, host: hostname() });
});

test('on Linux boot and namespace are named too, as the kernel does', (ctx) => {
  if (!LINUX) ctx.skip('Linux only');
  expect(here().bootId).toBe(readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim());
  expect(here().pidNamespace).toBe(readlinkSync('/proc/self/ns/pid'));
});

test('the boot time is reckoned from the time given', () => {
  const then = Date.parse('2026-11-30T12:00:00Z');
  const { bootedAt } = here(then);
  expect(Math.abs(then - bootedAt - uptime() * 1000)).toBeLessThan(2000);
});
