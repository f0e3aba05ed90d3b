import { hostname, uptime } from 'node:os';
import type { Here } from '../rules.ts';
import { readLink, readText } from './procfs.ts';

/** `now` in epoch ms. Never throws: what can't be found out is null, empty or 0. */
export function here(now: number = Date.now()): Here {
  const linux = process.platform === 'linux';
  return {
    platform: process.platform,
    host: orElse(hostname, ''),
    bootId: linux ? readText('/proc/sys/kernel/random/boot_id')?.trim() || null : null,
    pidNamespace: linux ? readLink('/proc/self/ns/pid') : null,
    bootedAt: orElse(() => now - Math.round(uptime() * 1000), 0),
  };
}

/** Node throws where the system won't say, as for a host name that is not UTF-8. */
function orElse<T>(ask: () => T, otherwise: T): T {
  try {
    return ask();
  } catch {
    return otherwise;
  }
}
