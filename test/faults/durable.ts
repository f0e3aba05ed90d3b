import fs from 'node:fs';
import type { Sandbox } from '../cli/harness.ts';
import type { Left } from './power-cut.ts';

/** What a command that has answered with success promises to be on the disk. */
export function durable(name: string, { box, stdout }: Left): string[] {
  if (name.startsWith('acquire'))
    return [...numberIsKept(box, Number.parseInt(stdout, 10)), ...marked(box, 'ep-1')];
  if (name.startsWith('finish, with')) return hasRecord(box, '7440123456789012345');
  if (name.startsWith('run')) return hasRecord(box, '"outcome"');
  if (name === 'release') return inHistory(box, '"outcome":"released"');
  if (name === 'settle') return inHistory(box, '"event":"settled"');
  return [];
}

function numberIsKept(box: Sandbox, run: number): string[] {
  const guard = fs.existsSync(box.file('lock.guard')) ? box.read('lock.guard') : '';
  return Number.parseInt(guard, 10) === run
    ? []
    : [`run ${run} was given out, and the guard says "${guard}"`];
}

function marked(box: Sandbox, item: string): string[] {
  const marker = fs.existsSync(box.file('current.json')) ? box.read('current.json') : '';
  return marker.includes(`"item":"${item}"`) || marker.includes(`"item": "${item}"`)
    ? []
    : [`${item} is not marked`];
}

function hasRecord(box: Sandbox, text: string): string[] {
  const records = fs.existsSync(box.file('records')) ? fs.readdirSync(box.file('records')) : [];
  return records.some((name) => box.read('records', name).includes(text)) ? [] : ['the record is not there'];
}

function inHistory(box: Sandbox, text: string): string[] {
  const names = fs.existsSync(box.file('history')) ? fs.readdirSync(box.file('history')) : [];
  return names.some((name) => box.read('history', name).includes(text)) ? [] : [`the history has no ${text}`];
}
