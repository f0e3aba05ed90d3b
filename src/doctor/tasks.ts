/** What a task of Windows' Task Scheduler starts. */
export interface TaskAction {
  /** `\Backup`. */
  readonly task: string;
  readonly user: string | null;
  readonly command: string;
  readonly args: string;
  readonly cwd: string | null;
}

/** Reads what `schtasks /query /xml` prints: one document a task, its name in a comment before it. */
export function parseTasks(xml: string): TaskAction[] {
  const actions: TaskAction[] = [];
  let end = 0;
  for (const { text: body, start } of elements(xml, 'Task')) {
    const before = xml.slice(end, start);
    const task =
      before
        .slice(before.lastIndexOf('<!--') + '<!--'.length)
        .split('-->', 1)[0]
        ?.trim() ?? '';
    end = start + body.length;
    for (const { text: exec } of elements(body, 'Exec')) {
      const command = (textOf(exec, 'Command') ?? '').replace(/^"(.*)"$/s, '$1');
      if (command === '') continue;
      actions.push({
        task: decodeEntities(task),
        user: textOf(body, 'UserId'),
        command,
        args: textOf(exec, 'Arguments') ?? '',
        cwd: textOf(exec, 'WorkingDirectory'),
      });
    }
  }
  return actions;
}

/** The words of a Windows command line: quotes keep blanks, `\"` is a quote. */
export function splitWindowsWords(line: string): string[] {
  const words: string[] = [];
  for (const [word] of line.matchAll(/(?:[^\s"\\]|\\+(?!")|\\"|"(?:[^"\\]|\\"|\\+(?!"))*"?|\\)+/g)) {
    words.push(word.replace(/\\"|"/g, (part) => (part === '"' ? '' : '"')));
  }
  return words;
}

/** What stands in each element of a name; none of these stands in one of its own. */
function elements(xml: string, name: string): { readonly text: string; readonly start: number }[] {
  const found: { text: string; start: number }[] = [];
  const open = new RegExp(`<${name}(?=[\\s>])`, 'g');
  const close = `</${name}>`;
  for (let match = open.exec(xml); match !== null; match = open.exec(xml)) {
    const start = xml.indexOf('>', match.index) + 1;
    const end = xml.indexOf(close, start);
    if (start === 0 || end < 0) return found;
    found.push({ text: xml.slice(start, end), start });
    open.lastIndex = end + close.length;
  }
  return found;
}

function textOf(xml: string, name: string): string | null {
  const [first] = elements(xml, name);
  return first === undefined ? null : decodeEntities(first.text.trim());
}

const ENTITIES = new Map(Object.entries({ lt: '<', gt: '>', quot: '"', apos: "'", amp: '&' }));

function decodeEntities(text: string): string {
  return text.replace(/&(\w+);/g, (whole, name: string) => ENTITIES.get(name) ?? whole);
}
