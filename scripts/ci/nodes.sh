#!/usr/bin/env bash
# nodes.sh [VERSION…] [-- FILE…]: runs the black-box tests, or some of their files, by other versions of Node: 22, 24 and 26 unless named.
# They are npm packages, installed beside nothing of the project's. Needs a built dist/.
set -eu
cd "$(dirname "$0")/../.."

versions=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do versions+=("$1") && shift; done
[ $# -eq 0 ] || shift
[ ${#versions[@]} -gt 0 ] || versions=(22 24 26)
[ $# -gt 0 ] || set -- test/cli

dir=$(mktemp -d)
# Some tests run it as another user.
chmod 755 "$dir"
trap 'rm -rf "$dir"' EXIT

failed=0
for version in "${versions[@]}"; do
  npm install --silent --no-audit --no-fund --prefix "$dir/$version" "node@$version"
  bin=$dir/$version/node_modules/node/bin
  got=$("$bin/node" --version)
  # A wrong one would pass all the tests.
  case $got in v"$version".*) echo "Node $got" ;; *) echo "expected Node $version, got $got" >&2 && exit 1 ;; esac
  # The tests run runlock by the node that runs them, and by the first on the PATH.
  PATH=$bin:$PATH "$bin/node" node_modules/vitest/vitest.mjs run --project tests "$@" || failed=1
done
exit $failed
