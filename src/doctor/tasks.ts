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
  for (const [, name = '', body = ''] of xml.matchAll(/<!--\s*(.*?)\s*-->|<Task[\s>](.*?)<\/Task>/gs)) {
    if (name !== '') {
      actions.push({ task: decodeEntities(name), user: null, command: '', args: '', cwd: null });
      continue;
    }
    const named = actions.at(-1);
    const task = named?.command === '' ? named.task : '?';
    if (named?.command === '') actions.pop();
    const user = textOf(body, 'UserId');
    for (const [, exec = ''] of body.matchAll(/<Exec[\s>](.*?)<\/Exec>/gs)) {
      const command = (textOf(exec, 'Command') ?? '').replace(/^"(.*)"$/, '$1');
      if (command === '') continue;
      actions.push({
        task,
        user,
        command,
        args: textOf(exec, 'Arguments') ?? '',
        cwd: textOf(exec, 'WorkingDirectory'),
      });
    }
  }
  return actions.filter(({ command }) => command !== '');
}

/** The words of a Windows command line: quotes keep blanks, `\"` is a quote. */
export function splitWindowsWords(line: string): string[] {
  const words: string[] = [];
  for (const [word] of line.matchAll(/(?:[^\s"\\]|\\+(?!")|\\"|"(?:[^"\\]|\\"|\\+(?!"))*"?|\\)+/g)) {
    words.push(word.replace(/\\"|"/g, (part) => (part === '"' ? '' : '"')));
  }
  return words;
}

function textOf(xml: string, tag: string): string | null {
  const text = new RegExp(`<${tag}(?:\\s[^>]*)?>(.*?)</${tag}>`, 's').exec(xml)?.[1];
  return text === undefined ? null : decodeEntities(text.trim());
}

const ENTITIES = new Map(Object.entries({ lt: '<', gt: '>', quot: '"', apos: "'", amp: '&' }));

function decodeEntities(text: string): string {
  return text.replace(/&(\w+);/g, (whole, name: string) => ENTITIES.get(name) ?? whole);
}
