<?php
// When: artisan's scheduler, on one machine. Instead of withoutOverlapping(), whose lock stays for a day after a kill, and
// which sees neither a second `artisan publish:due` in a shell nor another program. Both together: the longer lock wins.
// Not ->when(fn () => runlock status …): between the question and the start another copy can start.
$schedule->exec('/usr/local/bin/runlock run --dir /srv/app/runs --quiet --skip-code 0 -- php /srv/app/artisan publish:due')
    ->everyMinute()
    ->runInBackground();
