import fs from 'node:fs';
import path from 'node:path';
import type { Sandbox } from '../cli/harness.ts';

/* What a command that has answered with success promises to be on the disk. */

export function numberIsKept(box: Sandbox, run: number): string[] {
  const guard = fs.existsSync(box.file('lock.guard')) ? box.read('lock.guard') : '';
  return Number.parseInt(guard, 10) === run
    ? []
    : [`run ${run} was given out, and the guard says "${guard}"`];
}

export function marked(box: Sandbox, item: string): string[] {
  const marker = fs.existsSync(box.file('current.json')) ? box.read('current.json') : '';
  return marker.includes(`"item":"${item}"`) || marker.includes(`"item": "${item}"`)
    ? []
    : [`${item} is not marked`];
}

export function hasRecord(box: Sandbox, text: string): string[] {
  const records = fs.existsSync(box.file('records')) ? fs.readdirSync(box.file('records')) : [];
  return records.some((name) => box.read('records', name).includes(text)) ? [] : ['the record is not there'];
}

export function inHistory(box: Sandbox, text: string): string[] {
  const names = fs.existsSync(box.file('history')) ? fs.readdirSync(box.file('history')) : [];
  return names.some((name) => box.read('history', name).includes(text)) ? [] : [`the history has no ${text}`];
}

/** A ledger is the old one or the new one, never anything in between. */
export function ledgerIs(box: Sandbox, ...texts: readonly string[]): string[] {
  const text = fs.readFileSync(path.join(box.dir, 'ledger.json'), 'utf8');
  return texts.includes(text) ? [] : [`the ledger is ${JSON.stringify(text)}`];
}
