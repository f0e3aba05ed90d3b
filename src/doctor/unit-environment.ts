import path from 'node:path';
import { afterUnknown, UNKNOWN, type Word, withAll } from './started.ts';
import { listOf, parseEnvironmentFile, type Setting, splitWords } from './unit-file.ts';
import type { Visit } from './visit.ts';

/** What systemd's settings make of an environment; a file that must be there and is not fails the unit. */
export function unitEnvironment(
  settings: readonly Setting[],
  begun: ReadonlyMap<string, string>,
  expand: (text: string) => Word,
  visit: Visit,
  say: { readonly missing: (what: string, setting: Setting) => void; readonly unread: () => void },
): ReadonlyMap<string, string> {
  const words = (key: string) => listOf(settings, key).flatMap(({ value }) => splitWords(value));
  // The manager's own values are only known when it runs.
  let env = withAll(
    begun,
    words('PassEnvironment').map((name) => [name, UNKNOWN]),
  );
  for (const word of words('Environment')) {
    const [, name, text] = /^(\w+)=(.*)$/s.exec(word) ?? [];
    if (name === undefined || text === undefined) continue;
    const value = expand(text);
    env = withAll(env, [[name, value.certain ? value.text : UNKNOWN]]);
  }
  for (const setting of listOf(settings, 'EnvironmentFile')) {
    const { text: file, certain } = expand(setting.value.replace(/^-/, ''));
    if (!certain || /[*?[]/.test(file)) {
      env = afterUnknown(env);
      continue;
    }
    // systemd passes over a relative one.
    if (!path.posix.isAbsolute(file)) continue;
    const reading = visit.root.read(file);
    if ('text' in reading) env = withAll(env, [...parseEnvironmentFile(reading.text)]);
    else if ('refused' in reading) {
      visit.findings.add(
        'unseen',
        'unreadable',
        setting.where,
        `${file} could not be read: ${reading.refused}`,
      );
      say.unread();
      env = afterUnknown(env);
    } else if (isMadeLater(file)) env = afterUnknown(env);
    else if (!setting.value.startsWith('-')) say.missing(`there is no ${file}`, setting);
  }
  const taken = new Set(words('UnsetEnvironment'));
  return new Map([...env].filter(([name, value]) => !taken.has(name) && !taken.has(`${name}=${value}`)));
}

/** What is there while the system runs may be made by another unit, and is not in an image. */
export function isMadeLater(file: string): boolean {
  return /^\/(?:run|var\/run|tmp|var\/tmp|proc|sys|dev)(?:\/|$)/.test(file);
}
