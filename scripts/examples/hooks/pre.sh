#!/bin/sh
# When: a scheduler that runs a hook before and one after each job, in processes of their own, and skips the job if the
# first one fails. It must give each run an ID of its own, here JOB_RUN_ID: who shows the ID may free the lock.
# runlock refuses the last run's, but can't know all that came before.
# Not `runlock status` here: between the question and the start another copy can start. This asks and takes in one step.
set -eu
# The heartbeat alone decides, so the hold must be longer than the longest run.
exec runlock acquire --dir /srv/app/runs --no-pid --token="$JOB_RUN_ID" --hold 3h -- "$JOB_NAME"
