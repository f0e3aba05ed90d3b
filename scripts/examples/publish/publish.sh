#!/usr/bin/env bash
# Publishes $RUNLOCK_ITEM. `runlock run` starts it, with the lock held and all gates open: see crontab.
set -euo pipefail
CDPATH= cd -- "$(dirname -- "$(readlink -f -- "$0")")"
item=$RUNLOCK_ITEM
case $item in
  [-.]* | *[!A-Za-z0-9._-]*) echo "publish.sh: '$item' can't be a file name" >&2; exit 65 ;;
esac
if compgen -G "published/????-??-??-$item.md" >/dev/null; then
  echo "publish.sh: $item is out already, settle.sh will say so" >&2; exit 65
fi

# What may take long, may fail, and may be done again.
cp "drafts/$item.md" build/post.md

# What can't be undone. The log line comes first, and the quota counts it: whatever kills us from here on, today
# nothing else is published. The clock is read once, in the quota's zone: line and name tell the same day.
runlock hb
now=$(TZ=Asia/Shanghai date +%FT%T%:z)
post=published/${now%%T*}-$item.md
echo "$now publishing $item" >>publish.log
sync publish.log build/post.md
mv -T build/post.md "$post"
sync published

# What settle.sh makes up for, should we not get here.
runlock ledger add -- published "$item" - <<<"{ \"file\": \"$post\" }"
runlock finish - <<<"{ \"file\": \"$post\" }"
