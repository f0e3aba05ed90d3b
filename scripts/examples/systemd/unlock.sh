#!/bin/sh
# ExecStopPost= of publish.service: the result of the service decides whether its run has finished or is unknown.
case ${SERVICE_RESULT:?} in
  success) exec /usr/local/bin/runlock finish --dir /srv/app/runs --token "$INVOCATION_ID" ;;
  *) exec /usr/local/bin/runlock release --dir /srv/app/runs --token "$INVOCATION_ID" ;;
esac
