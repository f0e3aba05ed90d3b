# A job of several steps that holds the lock meanwhile: for PowerShell 7 and Windows PowerShell 5.1. Copy it, put your
# steps into Invoke-Body, start it by: pwsh -NoProfile -File wrapper.ps1 ITEM
# One command alone needs none of this: runlock run --item ITEM -- COMMAND
#
# It ends with the code of the step that failed, with 1 after an exception, 3 if another copy is at work, 4 if the lock
# was lost, 5, 6, 7 or 9 if a gate is closed, and 130 after Ctrl-C.
param([Parameter(Mandatory = $true)] [string] $Item)

function Invoke-Body {
    Step { ./prepare.ps1 $Item }
    Step { runlock hb --run $run }    # before what can't be undone: am I still the one? If not, the script ends here
    Step { ./publish.ps1 $Item > result.json }
}

# Runs a program or script. If it fails, the wrapper ends with its code, which is no exception in here, whatever the
# version and the caller's settings make of it. (5.1 makes one of what a program says on a redirected stderr: no 2> here.)
function Step([scriptblock] $Command) {
    $PSNativeCommandUseErrorActionPreference = $false
    $global:LASTEXITCODE = 0
    & $Command
    if ($LASTEXITCODE -ne 0) { exit $LASTEXITCODE }
}

$ErrorActionPreference = 'Stop'
if (-not $MyInvocation.Line) { $Host.SetShouldExit(130) }    # under -File: PowerShell would end with 0 after Ctrl-C
# An item that looks like an option would be one. (A -- before it is for PowerShell itself where npm's shim is a script.)
if ($Item.StartsWith('-')) { [Console]::Error.WriteLine("an item may not begin with -: $Item"); exit 2 }
# The lock is that of the runlock.json or runs/ beside the script, also where it is called by a link.
$file = Get-Item -LiteralPath $PSCommandPath
while ($file.LinkType -eq 'SymbolicLink') { $file = Get-Item -LiteralPath ([IO.Path]::Combine($file.DirectoryName, @($file.Target)[0])) }
$here = $file.DirectoryName
Push-Location -LiteralPath $here
try {
    $run = Step { runlock acquire $Item }
    if ("$run" -notmatch '^[0-9]+$') { [Console]::Error.WriteLine("expected a run number, got: $run"); exit 125 }
    try {
        Invoke-Body
        Set-Location -LiteralPath $here
        Step { runlock finish --run $run result.json }
    } finally {    # on every way out: also exceptions, exit, Ctrl-C; after finish it changes nothing
        $PSNativeCommandUseErrorActionPreference = $false
        $ErrorActionPreference = 'Continue'
        Set-Location -LiteralPath $here
        runlock release --run $run
    }
} finally { Pop-Location }
exit 0
# TERM on Linux ends PowerShell at once, without finally: the item stays marked, and a program that is still at work keeps
# the lock until it ends. Where that can happen use runlock run, which passes TERM on and waits.
# There is no heartbeat in the background: it would keep the lock of a job that hangs. Where one step takes longer than
# 45 minutes, say so: runlock acquire --hold 3h
