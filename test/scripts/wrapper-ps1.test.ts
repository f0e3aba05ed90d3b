import fs from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { BINARY, Sandbox } from '../cli/harness.ts';
import { NEEDS_PWSH, npmShims, PWSH, PWSH_ENV, pwsh } from './powershell.ts';

const SCRIPTS = path.resolve(import.meta.dirname, '../../scripts');
const WRAPPER = fs.readFileSync(path.join(SCRIPTS, 'wrapper.ps1'), 'utf8');

/** The wrapper with another body. */
function withBody(body: string): string {
  const text = WRAPPER.replace(
    /^function Invoke-Body \{\n.*?^\}/ms,
    () => `function Invoke-Body {\n${body}\n}`,
  );
  expect(text).not.toBe(WRAPPER);
  return text;
}

interface Case {
  /** The body; null is that of the wrapper as it is. */
  readonly body: string | null;
  /** What is done before and after, in the caller's scope. */
  readonly before?: string;
  readonly after?: string;
  /** The exit code, or what the exception says. */
  readonly ends: number | RegExp;
  readonly state?: 'held';
  readonly item?: 'unknown';
  readonly says?: RegExp;
}

const NATIVE = (code: number) => `node -e 'process.exit(${code})'`;
const RESULT = `'{}' > result.json`;

/** Every way out, in one PowerShell: there a script that exits ends alone, and tells its code. */
const CASES: Readonly<Record<string, Case>> = {
  'as it is': { body: null, ends: 0 },
  'an early return': { body: `${RESULT}; return; throw 'went on'`, ends: 0 },
  exit: { body: `exit 7`, ends: 7, item: 'unknown' },
  'exit in a step': { body: `Step { exit 8 }`, ends: 8, item: 'unknown' },
  'a program that fails': { body: `Step { ${NATIVE(9)} }; throw 'went on'`, ends: 9, item: 'unknown' },
  'a program that fails, by a caller who wants exceptions': {
    before: `$ErrorActionPreference = 'Stop'; $PSNativeCommandUseErrorActionPreference = $true`,
    body: `Step { ${NATIVE(9)} }; throw 'went on'`,
    ends: 9,
    item: 'unknown',
  },
  'a program outside of a step, by a caller who wants exceptions': {
    before: `$PSNativeCommandUseErrorActionPreference = $true`,
    body: `${NATIVE(9)}; throw 'went on'`,
    ends: /non-zero exit code/,
    item: 'unknown',
  },
  'an old code': { before: NATIVE(9), body: `Step { Get-Date }; ${RESULT}`, ends: 0 },
  'the end of a pipeline': {
    body: `Step { 'a', 'b' | node -e 'process.stdin.resume().on("end", () => process.exit(5))' | Out-String }`,
    ends: 5,
    item: 'unknown',
  },
  'the middle of a pipeline': {
    body: `Step { ${NATIVE(6)} | ForEach-Object { $_ } }`,
    ends: 6,
    item: 'unknown',
  },
  'words on stderr': { body: `Step { node -e 'console.error("warning")' }; ${RESULT}`, ends: 0 },
  'an exception': { body: `throw 'oh no'`, ends: /oh no/, item: 'unknown' },
  'an error of a cmdlet': {
    body: `Step { Get-Item ./not-there }; throw 'went on'`,
    ends: /not-there/,
    item: 'unknown',
  },
  'a program that is not there': {
    body: `Step { no-such-program }; throw 'went on'`,
    ends: /no-such-program/,
    item: 'unknown',
  },
  'a body that goes elsewhere': { body: `${RESULT}; Set-Location /`, ends: 0 },
  'a result that is no JSON': { body: `'{"cut' > result.json`, ends: 2, item: 'unknown' },
  'a held lock': {
    before: `runlock acquire other --no-pid --token T --dir $runs`,
    body: `throw 'began'`,
    after: `runlock release --token T --dir $runs`,
    ends: 3,
    state: 'held',
  },
  'a lost lock': {
    body: `(Get-Item runs/lock.json).LastWriteTime = (Get-Date).AddHours(-2)
      runlock acquire next --no-pid --token L
      Step { runlock hb --run $run }
      throw 'went on'`,
    after: `runlock release --token L --dir $runs`,
    ends: 4,
    state: 'held',
    item: 'unknown',
  },
  'a job in a thread, whose lock is that of the whole process': {
    body: `$job = Start-ThreadJob { Set-Location -LiteralPath $using:PSScriptRoot; runlock hb --run $using:run; "hb $LASTEXITCODE"
        "pid $((runlock status --json | ConvertFrom-Json).pid -eq $PID)" }
      Receive-Job -Wait $job; ${RESULT}`,
    ends: 0,
    says: /hb 0 pid True/,
  },
};

const DRIVER = `param($Dir)
$runs = Join-Path $Dir runs
function Test-Case($Name, $File, [scriptblock] $Before, [scriptblock] $After) {
  . $Before | Out-Null
  $thrown = $null
  $said = ''
  try { $said = (& $File $Name) -join ' ' } catch { $thrown = $_.Exception.Message }
  $code = $LASTEXITCODE
  $status = runlock status --dir $runs --json | ConvertFrom-Json
  . $After | Out-Null
  $mark = $status.marker | Where-Object { $_.item -eq $Name } | ForEach-Object { $_.state }
  $found = [ordered] @{ name = $Name; said = $said; state = $status.state; item = $mark }
  if ($null -ne $thrown) { $found.thrown = $thrown } else { $found.code = $code }
  'FOUND ' + (ConvertTo-Json $found -Compress)
}
`;

interface Found {
  readonly name: string;
  readonly said: string;
  readonly state: string;
  readonly item: string | null;
  readonly code?: number;
  readonly thrown?: string;
}

test.skipIf(PWSH === undefined)(
  `wrapper.ps1 frees the lock on every way out and passes the code or the exception on, in a directory and with items of any name${NEEDS_PWSH}`,
  { timeout: 400_000 },
  async () => {
    const box = new Sandbox();
    const folder = "Größe 番組 [1] 'x'";
    const dir = path.join(box.dir, folder);
    box.write(`${folder}/prepare.ps1`, `param($Item) if ($Item -ne 'ep é "集" as it is') { exit 90 }`);
    box.write(`${folder}/publish.ps1`, `param($Item) '{"id": 7440123456789012399}'`);
    const calls = Object.entries(CASES).map(([name, { body, before = '', after = '' }], at) => {
      const file = box.write(`${folder}/case-${at}.ps1`, body === null ? WRAPPER : withBody(body));
      const quoted = (text: string) => `'${text.replaceAll("'", "''")}'`;
      return `Test-Case ${quoted(`ep é "集" ${name}`)} ${quoted(file)} { ${before} } { ${after} }`;
    });
    const driver = box.write('driver.ps1', `\ufeff${DRIVER}${calls.join('\n')}\n`);
    const { stdout, stderr } = await box.exec(...pwsh(driver, dir), { env: PWSH_ENV });
    const found = new Map(
      stdout
        .split('\n')
        .filter((line) => line.startsWith('FOUND '))
        .map((line) => JSON.parse(line.slice('FOUND '.length)) as Found)
        .map((line) => [line.name.replace('ep é "集" ', ''), line]),
    );
    for (const [name, { ends, state = 'free', item = null, says }] of Object.entries(CASES)) {
      const rest = found.get(name);
      const { code, thrown } = rest ?? {};
      expect(rest, `${name}: ${stderr}`).toMatchObject({ state, item });
      if (typeof ends === 'number') expect([name, code, thrown]).toEqual([name, ends, undefined]);
      else expect(thrown, name).toMatch(ends);
      if (says !== undefined) expect(rest?.said).toMatch(says);
    }
    expect(fs.readFileSync(path.join(dir, 'runs/records/1.json'), 'utf8')).toContain('7440123456789012399');
  },
);

test.skipIf(PWSH === undefined)(
  `wrapper.ps1 as a scheduler starts it: its exit code is that of the process${NEEDS_PWSH}`,
  { timeout: 300_000 },
  async () => {
    const box = new Sandbox();
    // An option instead of an item would leave the gates out, or be no call at all.
    const file = box.write('wrapper.ps1', withBody(`'began'`));
    for (const item of ['--no-default-gates', '--help']) {
      const { code, stdout } = await box.exec(...pwsh(file, '--', item), { env: PWSH_ENV });
      expect([item, code, stdout]).toEqual([item, 2, '']);
    }
    box.write('jobs/wrapper.ps1', withBody(RESULT));
    fs.symlinkSync('jobs/wrapper.ps1', path.join(box.dir, 'link.ps1'));
    expect((await box.exec(...pwsh(path.join(box.dir, 'link.ps1'), 'ep'), { env: PWSH_ENV })).code).toBe(0);
    expect(fs.existsSync(path.join(box.dir, 'jobs/runs/records/1.json'))).toBe(true);
    for (const [body, code] of [
      [RESULT, 0],
      ['exit 7', 7],
      [`throw 'oh no'`, 1],
    ] as const) {
      const file = box.write('wrapper.ps1', withBody(body));
      const ended = await box.exec(...pwsh(file, 'ep'), { cwd: '/', env: PWSH_ENV });
      expect([body, ended.code]).toEqual([body, code]);
      expect((await box.status()).state).toBe('free');
    }
  },
);

test.skipIf(PWSH === undefined)(
  `wrapper.ps1 on Ctrl-C: 130, and the next one gets the lock at once${NEEDS_PWSH}`,
  { timeout: 300_000 },
  async () => {
    const box = new Sandbox();
    for (const body of [
      `'at work'; Start-Sleep 1000; throw 'went on'`,
      `Step { node -e 'console.log("at work"); setInterval(() => {}, 1000)' }; throw 'went on'`,
    ]) {
      const file = box.write('wrapper.ps1', withBody(body));
      const script = box.start(...pwsh(file, 'ep'), { detached: true, env: PWSH_ENV });
      await script.says('at work');
      expect((await box.status()).state).toBe('held');
      script.killGroup('SIGINT');
      const { code, stdout } = await script.result;
      expect([code, stdout]).toEqual([130, 'at work\n']);
      expect(await box.status()).toMatchObject({ marker: [{ item: 'ep' }] });
      expect((await box.runlock(['run', '--', 'true'])).code).toBe(0);
    }
  },
);

test.skipIf(PWSH === undefined)(
  `PowerShell itself is the holder, whichever shim has started node, and holds until it is gone${NEEDS_PWSH}`,
  { timeout: 300_000 },
  async () => {
    const box = new Sandbox();
    const shims = await npmShims();
    const forms = {
      link: 'runlock',
      'shell-shim': `& '${shims}/runlock'`,
      'powershell-shim': `& '${shims}/runlock.ps1'`,
      node: `& node '${BINARY}'`,
    };
    const lines = Object.entries(forms).flatMap(([name, call]) => [
      `${call} acquire x --name ${name}`,
      `'${name} ' + ((${call} status --json --name ${name} | ConvertFrom-Json).pid -eq $PID)`,
    ]);
    // The shim of PowerShell takes the first -- out; what comes before the command is read the same.
    lines.push(
      `& '${shims}/runlock.ps1' run --name other -- node -e 'console.log(process.argv.slice(1).join())' -- --quiet é`,
      `"run $LASTEXITCODE"`,
      `'a', 'b' | & '${shims}/runlock.ps1' pick -n 1 --name other`,
      `[void] [Console]::In.ReadLine()`,
    );
    const file = box.write('holder.ps1', `\ufeff${lines.join('\n')}\n`);
    const script = box.start(...pwsh(file), { detached: true, env: PWSH_ENV });
    const said = await script.says(/^a$/m);
    for (const name of Object.keys(forms)) expect(said).toContain(`\n${name} True\n`);
    expect(said).toContain('--quiet,é\nrun 0\n');
    const stateOf = async (name: string) => (await box.status('--name', name)).state;
    for (const name of Object.keys(forms)) expect([name, await stateOf(name)]).toEqual([name, 'held']);
    script.tell('end');
    await script.ended;
    for (const name of Object.keys(forms)) expect([name, await stateOf(name)]).toEqual([name, 'stale']);
  },
);

test.skipIf(PWSH === undefined)(
  `a script that calls by pwsh -Command holds the lock itself${NEEDS_PWSH}`,
  async () => {
    const box = new Sandbox();
    const call = `'${PWSH}' -NoProfile -Command 'runlock acquire x; exit $LASTEXITCODE'`;
    const script = box.startScript('bash', `${call}; echo "code $?"; ${call}; echo "code $?"; read -r line`, {
      env: PWSH_ENV,
    });
    await script.says('code 3');
    expect(script.stdout).toBe('1\ncode 0\ncode 3\n');
    expect(await box.status()).toMatchObject({ state: 'held', pid: script.pid });
  },
);

// Windows PowerShell 5.1 can't be had here: what it can't read is looked for in the syntax tree of PowerShell 7.
const NEW_SYNTAX = `param($Files)
$tokens = 'QuestionQuestion QuestionQuestionEquals QuestionDot QuestionLBracket QuestionMark AndAnd OrOr Clean'.Split(' ')
$nodes = 'TernaryExpressionAst PipelineChainAst'.Split(' ')
$commands = 'Start-ThreadJob Test-Json Get-Error Join-String Remove-Alias'.Split(' ')
foreach ($file in $Files.Split('|')) {
  $read = $errors = $null
  $ast = [Management.Automation.Language.Parser]::ParseFile($file, [ref] $read, [ref] $errors)
  $errors | ForEach-Object { "$file error $($_.Message)" }
  $read | Where-Object { $tokens -contains "$($_.Kind)" } | ForEach-Object { "$file token $($_.Kind)" }
  $ast.FindAll({ $nodes -contains $args[0].GetType().Name }, $true) | ForEach-Object { "$file node $($_.GetType().Name)" }
  $ast.FindAll({ $args[0] -is [Management.Automation.Language.PipelineAst] -and $args[0].Background }, $true) |
    ForEach-Object { "$file background" }
  $ast.FindAll({ $args[0] -is [Management.Automation.Language.CommandParameterAst] -and
    $args[0].ParameterName -in 'Parallel', 'AsHashtable', 'EscapeHandling', 'SkipLast' }, $true) |
    ForEach-Object { "$file parameter $($_.ParameterName)" }
  $ast.FindAll({ $args[0] -is [Management.Automation.Language.CommandAst] -and
    $commands -contains $args[0].GetCommandName() }, $true) | ForEach-Object { "$file command $($_.GetCommandName())" }
}
'done'
`;

test.skipIf(PWSH === undefined)(
  `no script for PowerShell has anything that Windows PowerShell 5.1 can't read${NEEDS_PWSH}`,
  async () => {
    const box = new Sandbox();
    const newer = {
      'a ?? b': '$a ?? $b',
      'a ??= b': '$a ??= $b',
      'a?.b': '$' + '{a}?.b',
      'a?[0]': '$' + '{a}?[0]',
      'a ? b : c': '$a ? $b : $c',
      'a && b': 'a && b',
      'a || b': 'a || b',
      'a &': 'a &',
      'in parallel': '1 | ForEach-Object -Parallel { $_ }',
      'in a thread': 'Start-ThreadJob { 1 }',
      'no PowerShell': 'if (',
    };
    const samples = Object.values(newer).map((text, at) => box.write(`newer-${at}.ps1`, text));
    const ours = fs
      .readdirSync(SCRIPTS, { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ps1'))
      .map((name) => path.join(SCRIPTS, name));
    expect(ours.length).toBeGreaterThan(0);
    // Without a byte order mark 5.1 reads a script in the system's old code page.
    for (const file of ours) expect(fs.readFileSync(file, 'latin1')).toMatch(/^[\n -~]*$/);
    const reader = box.write('reader.ps1', NEW_SYNTAX);
    const { stdout } = await box.exec(...pwsh(reader, [...samples, ...ours].join('|')), { env: PWSH_ENV });
    expect(stdout).toMatch(/^done$/m);
    for (const file of samples) expect(stdout, fs.readFileSync(file, 'utf8')).toContain(`${file} `);
    expect(ours.filter((file) => stdout.includes(`${file} `))).toEqual([]);
  },
);
