/**
 * What programs do by their names. Names are given as the system shows them (`/usr/bin/python3.11`,
 * `-bash`, `(cron)`, `CMD.EXE`, `sshd: ann@pts/0`) and are known by `programName` of that.
 */

const SHELLS = new Set(
  'sh bash rbash dash ash hush zsh ksh mksh pdksh lksh yash posh fish csh tcsh elvish nu pwsh powershell cmd'.split(
    ' ',
  ),
);

/** They end with what they start, so their caller is asked instead. */
const LAUNCHERS = new Set(
  (
    'npm npx pnpm pnpx yarn yarnpkg corepack bunx volta volta-shim fnm cross-env dotenv ' +
    'sudo sudo-rs doas su sg runuser pkexec setpriv gosu su-exec chroot capsh ' +
    'timeout time nice ionice env xargs parallel setsid chronic nohup stdbuf script flock lckdo setlock ' +
    'chrt taskset numactl prlimit unshare nsenter setarch strace ltrace faketime dbus-run-session ' +
    'systemd-inhibit fakeroot eatmydata'
  ).split(' '),
);

/** The same, where an interpreter runs them. Exact names: somebody's own `script.py` or `timeout.rb` is none of them. */
const LAUNCHER_SCRIPTS = new Set(
  (
    'npm npx npm-cli.js npx-cli.js pnpm pnpx pnpm.js pnpm.cjs pnpm.mjs pnpx.cjs yarn yarnpkg yarn.js yarn.cjs ' +
    'corepack corepack.js cross-env cross-env.js cross-env-shell dotenv chronic parallel unbuffer xvfb-run ' +
    'annotate-output fakeroot faketime'
  ).split(' '),
);

/** They start whatever they are told to and go on for ever: a lock of theirs would outlive each run. */
const NOBODY = (
  'systemd systemd-executor init openrc runit launchd upstart s6-svscan s6-supervise s6-linux-init ' +
  'runsv runsvdir supervise supervisord tini dumb-init docker-init catatonit containerd-shim dockerd containerd ' +
  'conmon cron crond cronie anacron atd fcron dcron supercronic go-cron pm2 jobber jobberrunner dkron xinetd inetd ' +
  'sshd sshd-session dropbear telnetd login gdm gdm-session-worker lightdm sddm sddm-helper ' +
  'gnome-shell gnome-session-binary plasmashell kwin_x11 kwin_wayland xfce4-panel xfce4-session cinnamon mate-panel ' +
  'lxpanel lxqt-panel explorer finder dock services svchost taskeng taskhostw wininit winlogon userinit ' +
  'tmux screen zellij kthreadd'
).split(' ');
const NOBODY_NAMES = new Set(NOBODY);
/** The kernel keeps 15 bytes of a name. */
const NOBODY_SHORT = new Set(NOBODY.map((name) => name.slice(0, 15)));

/** Daemons that are scripts, so that the interpreter's name says nothing. */
const NOBODY_SCRIPTS = new Set(['supervisord', 'cronicle', 'airflow', 'celery', 'salt-minion']);

/** What somebody on Windows types into, or clicks in. */
const TERMINALS = new Set(
  'explorer windowsterminal wt conhost openconsole code cursor devenv mintty alacritty wezterm-gui conemu conemuc conemu64 conemuc64 hyper tabby'.split(
    ' ',
  ),
);

/** `/usr/bin/python3.11` → `python3.11`, `-bash` → `bash`, `CMD.EXE` → `cmd`, `(cron)` → `cron`, `sshd: ann` → `sshd`. */
export function programName(shown: string): string {
  const base = baseName(shown.replace(/^[-([]+/, ''));
  return base
    .toLowerCase()
    .replace(/:.*$/s, '')
    .replace(/[\])]+$/, '')
    .replace(/\.exe$/, '');
}

/** The last part of a path of either kind. */
export function baseName(path: string): string {
  return path.slice(Math.max(path.lastIndexOf('/'), path.lastIndexOf('\\')) + 1);
}

/** `python3.11` → `python`, `ksh93` → `ksh`: the family whose options it has. */
export function familyOf(program: string): string {
  return program.replace(/-?[\d.]+$/, '') || program;
}

export function isShell(program: string): boolean {
  return SHELLS.has(familyOf(program));
}

export function isLauncher(program: string): boolean {
  return LAUNCHERS.has(program.replace(/\.cmd$/, ''));
}

export function isLauncherScript(script: string): boolean {
  // A project's own yarn has its version in its name: `yarn-4.1.0.cjs`.
  return LAUNCHER_SCRIPTS.has(baseName(script).replace(/^yarn-[\d.]+(?=\.)/, 'yarn'));
}

export function isNobody(program: string): boolean {
  return NOBODY_NAMES.has(program) || program.startsWith('containerd-shim');
}

/** By the kernel's cut name: `gnome-session-b`, `tmux: server`, `CRON`. */
export function isNobodyByComm(comm: string): boolean {
  return NOBODY_SHORT.has(programName(comm));
}

export function isNobodyScript(script: string): boolean {
  return NOBODY_SCRIPTS.has(programName(script));
}

export function isTerminal(program: string): boolean {
  return TERMINALS.has(program);
}
