#!/bin/sh
# A job of several steps that holds the lock meanwhile: for bash, dash, busybox sh and zsh. Copy it, put your steps
# into body(), call it with the item. One command alone needs none of this: runlock run --item ITEM -- COMMAND
#
# It ends with the code of the step that failed, with 3 if another copy is at work, 4 if the lock was lost, and
# 5, 6, 7 or 9 if a gate is closed.
set -eu
# The lock is that of the runlock.json or runs/ beside the script, whatever it is called by; cron starts in the home directory.
here=$(CDPATH= cd -- "$(dirname -- "$(readlink -f -- "$0")")" && pwd)
cd "$here"

body() {
  # A step that goes elsewhere does so in parentheses: ( cd elsewhere && … )
  ./prepare.sh "$item"
  runlock hb --run "$run" # before what can't be undone: am I still the one? If not, the script ends here
  ./publish.sh "$item" >result.json
}

[ $# -eq 1 ] || { echo "usage: $0 ITEM" >&2 && exit 2; }
item=$1
[ -z "${ZSH_VERSION-}" ] || setopt posix_traps # else zsh forgets the trap when a function fails
run=$(runlock acquire -- "$item")
case $run in '' | *[!0-9]*) echo "$0: expected a run number, got: $run" >&2 && exit 125 ;; esac
trap 'cd "$here" && runlock release --run "$run" || :' EXIT # on every way out; after finish it changes nothing
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM # to this shell alone: the step under way ends first, and the lock is held as long
body                 # not `body || …`: there the shell would go on after a step that failed
cd "$here"
runlock finish --run "$run" result.json
# There is no heartbeat in the background: it would keep the lock of a job that hangs. Where one step takes longer
# than 45 minutes, say so: runlock acquire --hold 3h
