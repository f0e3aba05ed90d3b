#!/usr/bin/env bash
# Settles what a run that broke off has left unknown: looks whether its item is out, and completes the ledger.
set -euo pipefail
CDPATH= cd -- "$(dirname -- "$(readlink -f -- "$0")")"
status=$(runlock status --json) || [ $? = 3 ] # 3: held, perhaps by ourselves
items=$(jq -r '.marker[].item' <<<"$status")
[ -n "$items" ] || exit 0

# Between the look and the answer nobody may publish: so this, too, is a run. If another one holds the lock, the
# next start settles.
[ "${1-}" = --locked ] ||
  exec runlock run --no-default-gates --job settle --quiet --skip-code 0 -- ./settle.sh --locked

ls published >/dev/null # a folder that is gone does not say that nothing was published
while IFS= read -r item; do
  posts=(published/????-??-??-"$item".md)
  if [ -e "${posts[0]}" ]; then
    runlock ledger add -- published "$item" - <<<"{ \"file\": \"${posts[0]}\" }" || [ $? = 7 ] # 7: it is there
    runlock settle --done -- "$item"
  else
    runlock settle --not-done -- "$item"
  fi
done <<<"$items"
