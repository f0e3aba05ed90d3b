const MAX_ARGUMENTS = 20;
const MAX_CODE_POINTS = 200;
/** Far more than is shown, so that a secret is seen whole; and a bound, as an argument may be 128 kB. */
const MAX_SCANNED = 4000;

const HIDDEN = '***';

/** Secret as a part of any word: `PGPASSWORD`, `accesstoken`. */
const SECRET_PART =
  /passw(?:or)?d|passphrase|secret|token|(?:api|access|private|secret)key|credential|cookie|bearer|authorization/;
/** Too short for that (`monkey`, `author`, `compass`): secret as a word of its own. */
const SECRET_WORDS = new Set(['pass', 'pwd', 'pw', 'key', 'keys', 'auth', 'creds']);

/** Options of curl and its like whose value is `user:password`. */
const USER_OPTION = /^(?:-u|--user|--proxy-user|-U)$/;
/** Options whose value is program text, where a value ends with its word and not with the argument. */
const PROGRAM_OPTION = /^(?:-[a-z]{0,3}[ce]|\/[ck]|--command|--eval|-command)$/i;

/**
 * The command line as it may be written to a file that others read: what looks like a password, a token or a
 * key is `***`. It goes by names and by form, so a secret that stands bare as an operand is not found; in doubt
 * it hides more than it must. At most 20 arguments of at most 200 code points; what is cut ends in `…`.
 */
export function redactArgv(argv: readonly string[]): string[] {
  const shown = argv.slice(0, MAX_ARGUMENTS).map((argument, index) => {
    const scanned = argument.length > MAX_SCANNED ? `${argument.slice(0, MAX_SCANNED)}…` : argument;
    return cut(redactArgument(scanned, argv[index - 1] ?? ''));
  });
  return argv.length > MAX_ARGUMENTS ? [...shown, '…'] : shown;
}

function redactArgument(argument: string, before: string): string {
  // By the argument before as it was written: in `--auth --password x` both are values, and x is one as well.
  if (isSecretOption(before) || /^bearer$/i.test(before)) return HIDDEN;
  if (USER_OPTION.test(before)) return redactUser(argument);

  // Outside of program text the whole rest is the value, whatever characters a shell would end it at.
  const assigned = /^([\w./-]+)[=:]\s*/.exec(argument);
  if (assigned?.[1] !== undefined && !PROGRAM_OPTION.test(before)) {
    if (isSecretName(assigned[1])) return assigned[0] + HIDDEN;
    if (USER_OPTION.test(assigned[1])) return assigned[0] + redactUser(argument.slice(assigned[0].length));
  }
  return redactText(redactUrls(argument));
}

/** `user:password` to `user:***`. */
function redactUser(text: string): string {
  return text.includes(':') ? `${text.slice(0, text.indexOf(':'))}:${HIDDEN}` : text;
}

/** The password in `https://user:password@host`; of a web address all before the `@`, as tokens stand there. */
function redactUrls(text: string): string {
  return (
    text
      .replace(/(https?)?:\/\/([^\s/?#]*)@/gi, (match, web: string | undefined, user: string) => {
        if (user.includes(':')) return `${web ?? ''}://${redactUser(user)}@`;
        return web === undefined ? match : `${web}://${HIDDEN}@`;
      })
      // A password with a raw slash in it, where what follows the colon is no port.
      .replace(/:\/\/([^\s/?#@:]*):(?!\d{1,5}[/?#])[^\s@]*@/g, `://$1:${HIDDEN}@`)
  );
}

const NAME = /[\w.-]+/g;
/** What may stand between a name and its value: quotes and a bracket first (`"token": …`, `['key'] = …`). */
const SEPARATOR = /["'\]\\]*\s*([=:])\s*|\s+/y;
/** One word of a shell, with its quoted parts; in a URL it ends at the next parameter. */
const WORD = /(?:"(?:\\.|[^"\\])*"?|'[^']*'?|\\.|[^\s'"\\;&|<>()])+/sy;
/** A header's value has blanks (`Authorization: Basic x`): it ends where its quotes or its line do. */
const HEADER_VALUE = /\\?"(?:\\.|[^"\\])*"?|'[^']*'?|[^"'\r\n]+/sy;

/** Redacts within a text: a shell command, a header, a URL's parameters, JSON. */
function redactText(text: string): string {
  let answer = '';
  let done = 0;
  NAME.lastIndex = 0;
  for (let name = NAME.exec(text); name !== null; name = NAME.exec(text)) {
    SEPARATOR.lastIndex = NAME.lastIndex;
    const separator = SEPARATOR.exec(text);
    if (separator === null) continue;
    const start = SEPARATOR.lastIndex;
    const kind = valueKind(name[0], separator[1]);
    if (kind === null) continue;
    const pattern = separator[1] === ':' && kind === 'secret' ? HEADER_VALUE : WORD;
    pattern.lastIndex = start;
    const value = pattern.exec(text)?.[0] ?? '';
    // `--auth --token x`: the word behind is not the value but says where it is, on the next turn.
    if (value === '' || isSecretOption(value) || /^bearer$/i.test(value)) continue;
    answer += text.slice(done, start) + (kind === 'user' ? redactUser(value) : HIDDEN);
    done = start + value.length;
    NAME.lastIndex = done;
  }
  return answer + text.slice(done);
}

function valueKind(name: string, separator: string | undefined): 'secret' | 'user' | null {
  if (USER_OPTION.test(name) && separator !== ':') return 'user';
  // `-uname:password`
  if (separator === ':' && /^-u[^-]/.test(name)) return 'secret';
  if (separator !== undefined) return isSecretName(name) ? 'secret' : null;
  return isSecretOption(name) || /^bearer$/i.test(name) ? 'secret' : null;
}

/** An option whose value is the next argument. One letter says too little: `-p` is a port as often. */
function isSecretOption(argument: string): boolean {
  return /^--?[a-z][\w.-]+$/i.test(argument) && isSecretName(argument);
}

function isSecretName(name: string): boolean {
  const words = name.replace(/([a-z0-9])([A-Z])/g, '$1-$2').toLowerCase();
  if (SECRET_PART.test(words.replace(/[^a-z0-9]/g, ''))) return true;
  return words.split(/[^a-z0-9]+/).some((word) => SECRET_WORDS.has(word));
}

function cut(text: string): string {
  const chars = [...text];
  return chars.length > MAX_CODE_POINTS ? `${chars.slice(0, MAX_CODE_POINTS - 1).join('')}…` : text;
}
