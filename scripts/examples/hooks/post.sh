#!/bin/sh
# When: with pre.sh, after each job, however it ended: JOB_EXIT is its exit code, nothing if it was killed.
# After a pre.sh that was refused it changes nothing: the lock is not this ID's.
set -eu
case ${JOB_EXIT-} in
  0) exec runlock finish --dir /srv/app/runs --token="$JOB_RUN_ID" ;;
  *) exec runlock release --dir /srv/app/runs --token="$JOB_RUN_ID" ;;
esac
