import { createScanner } from 'jsonc-parser';
import type { ObjectSpan } from './scan.ts';

/** How the next member of an object is to be written, so that it looks like its neighbours. */
export interface Layout {
  /** Where it goes. Nothing that stands in the text is replaced. */
  readonly at: number;
  /** What stands before its key: the comma, the line end, the indentation. */
  readonly before: string;
  /** What stands between key and value. */
  readonly colon: string;
  /** What stands behind its value. */
  readonly after: string;
  /** How a value of several lines goes on; null where all is on one line. */
  readonly lines: Lines | null;
}

interface Lines {
  readonly eol: string;
  /** The member's own indentation. */
  readonly indent: string;
  /** What one level deeper adds. */
  readonly unit: string;
}

const LINE_END = /\r\n|\n|\r/;
const DEFAULT_UNIT = '  ';

/**
 * Finds the style where the member goes: indentation by any blanks or none, any line end, or all on one line.
 *
 * @param chain the objects on the way; the last one gets the member
 */
export function layoutFor(text: string, chain: readonly [ObjectSpan, ...ObjectSpan[]]): Layout {
  const object = chain.at(-1) ?? chain[0];
  return object.members.length === 0
    ? layoutOfFirst(text, object, chain[0])
    : layoutOfNext(text, object, chain[0]);
}

/** As the last member is written. */
function layoutOfNext(text: string, object: ObjectSpan, root: ObjectSpan): Layout {
  const [previous, last] = [object.members.at(-2), object.members.at(-1)];
  if (last === undefined) throw new RangeError('an object without members');
  const colon = colonOf(text, object);
  const before =
    previous === undefined
      ? `,${text.slice(object.open + 1, last.keyStart) || (/\s/.test(colon) ? ' ' : '')}`
      : text.slice(previous.valueEnd, last.keyStart);
  const eol = LINE_END.exec(before)?.[0];
  const base = { at: last.valueEnd, before, colon, after: '' };
  if (eol === undefined) return { ...base, lines: null };
  const indent = indentationAt(text, last.keyStart);
  const outer = isFirstOnLine(text, object.close) ? indentationAt(text, object.close) : null;
  const unit = outer !== null && indent.startsWith(outer) ? indent.slice(outer.length) : unitOf(text, root);
  return { ...base, lines: { eol, indent, unit } };
}

function layoutOfFirst(text: string, object: ObjectSpan, root: ObjectSpan): Layout {
  const inner = text.slice(object.open + 1, object.close);
  const colon = colonOf(text, root);
  const eol = LINE_END.exec(text)?.[0] ?? '\n';
  const unit = unitOf(text, root);

  if (LINE_END.test(inner)) {
    const indent = indentationAt(text, object.close) + unit;
    return {
      at: object.open + 1,
      before: eol + indent,
      colon,
      after: '',
      lines: { eol, indent, unit },
    };
  }
  // A bare {} has no style yet: people read ledgers.
  if (object === root || LINE_END.test(text.slice(root.open, root.close))) {
    const outer = indentationAt(text, object.open);
    const indent = outer + unit;
    return {
      at: object.close,
      before: eol + indent,
      colon,
      after: eol + outer,
      lines: { eol, indent, unit },
    };
  }
  if (inner !== '') return { at: object.open + 1, before: inner, colon, after: '', lines: null };
  const pad = text.slice(root.open + 1, root.members[0]?.keyStart);
  return { at: object.close, before: pad, colon, after: pad, lines: null };
}

/** Between a key and its value, as the object's last member has it. */
function colonOf(text: string, object: ObjectSpan): string {
  const last = object.members.at(-1);
  const colon = last === undefined ? ': ' : text.slice(last.keyEnd, last.valueStart);
  return LINE_END.test(colon) ? ': ' : colon;
}

/** One level of indentation in this document: that of its first line inside. */
function unitOf(text: string, root: ObjectSpan): string {
  const first = root.members[0];
  return first !== undefined && isFirstOnLine(text, first.keyStart)
    ? indentationAt(text, first.keyStart)
    : DEFAULT_UNIT;
}

/** The blanks that the line of this place begins with. */
function indentationAt(text: string, offset: number): string {
  const blanks = /[ \t]*/y;
  blanks.lastIndex = lineStart(text, offset);
  return blanks.exec(text)?.[0] ?? '';
}

function isFirstOnLine(text: string, offset: number): boolean {
  const start = lineStart(text, offset);
  return start > 0 && /^[ \t]*$/.test(text.slice(start, offset));
}

function lineStart(text: string, offset: number): number {
  return Math.max(text.lastIndexOf('\n', offset - 1), text.lastIndexOf('\r', offset - 1)) + 1;
}

/**
 * JSON in the lines of another document: only the blanks around its line ends change. What is on one line stays as
 * it is, and where the document is on one line, all of it is.
 *
 * @param json valid JSON without blanks around it
 */
export function inLinesOf(json: string, layout: Layout): string {
  const { lines, before } = layout;
  const gap = /\s$/.test(before) ? ' ' : '';
  const scanner = createScanner(json, false);
  const pieces: string[] = [];
  let depth = 0;
  let blanks = '';
  for (;;) {
    scanner.scan();
    const token = json.slice(scanner.getTokenOffset(), scanner.getTokenOffset() + scanner.getTokenLength());
    if (token === '') return pieces.join('');
    if (/^\s/.test(token)) {
      blanks += token;
      continue;
    }
    if (token === '}' || token === ']') depth -= 1;
    if (blanks !== '') pieces.push(LINE_END.test(blanks) ? lineEnds(blanks, lines, depth, gap) : blanks);
    blanks = '';
    if (token === '{' || token === '[') depth += 1;
    pieces.push(token);
  }
}

function lineEnds(blanks: string, lines: Lines | null, depth: number, gap: string): string {
  if (lines === null) return gap;
  const count = blanks.split(LINE_END).length - 1;
  return lines.eol.repeat(count) + lines.indent + lines.unit.repeat(depth);
}
