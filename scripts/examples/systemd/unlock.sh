#!/bin/sh
# ExecStopPost= of publish.service: how the service ended decides whether its run has finished or is unknown. Not
# SERVICE_RESULT alone: a service that was stopped in mid-work, or before it began, may be a success to systemd.
case ${SERVICE_RESULT:?}-${EXIT_CODE-nothing} in
  success-exited) exec /usr/local/bin/runlock finish --dir /srv/app/runs --token "$INVOCATION_ID" ;;
  *) exec /usr/local/bin/runlock release --dir /srv/app/runs --token "$INVOCATION_ID" ;;
esac
