# Records what the real programs of this Windows machine print, as transcripts in the form of
# tests/transcripts: one file for each stream of each situation. What differs from run to run (times
# for one) becomes an elision.
#
#   pwsh ci/transcripts/record.ps1 -Out DIR [-Source URL]
#
# The situations are those that a machine with a network and without a cluster can be brought into.
# Compare with: WINCONFORM_RECORDED=DIR cargo test -p hybrid-sim --lib transcripts
param(
    [Parameter(Mandatory)] [string] $Out,
    [string] $Source = 'https://github.com/actions/runner-images'
)
$ErrorActionPreference = 'Stop'
Set-StrictMode -Version Latest
. (Join-Path $PSScriptRoot 'lib.ps1')
New-Item -ItemType Directory -Force -Path $Out | Out-Null

$system32 = Join-Path $env:SystemRoot 'System32'
$windows = [System.Environment]::OSVersion.Version.ToString(3)
$banner = & (Join-Path $system32 'curl.exe') --version
if ($banner[0] -notmatch '^curl (\d+\.\d+\.\d+)') { throw "curl says: $($banner[0])" }
$curl = $Matches[1]
$banner | Set-Content -Path (Join-Path $Out 'curl-version.txt')

# A refused port, and an address behind which nobody is (RFC 5737 would be answered by some routers)
$refused = '127.0.0.1:1'
$silent = '10.255.255.1:80'

$situations = @(
    @{ name = 'curl-refused'; program = 'curl'; situation = 'nobody listens'
       command = @('curl.exe', '-q', '-sS', "http://$refused/") }
    @{ name = 'curl-connect-timeout'; program = 'curl'; situation = '--connect-timeout runs out while connecting'
       command = @('curl.exe', '-q', '-sS', '--connect-timeout', '3', "http://$silent/"); network = @{ silent = @($silent) } }
    @{ name = 'curl-max-time'; program = 'curl'; situation = '--max-time runs out while connecting'
       command = @('curl.exe', '-q', '-sS', '-m', '3', "http://$silent/"); network = @{ silent = @($silent) } }
    @{ name = 'curl-system-limit'; program = 'curl'; situation = 'without a limit of its own, the system gives up'
       command = @('curl.exe', '-q', '-sS', "http://$silent/"); network = @{ silent = @($silent) } }
    @{ name = 'curl-no-such-name'; program = 'curl'; situation = 'the name does not resolve'
       command = @('curl.exe', '-q', '-sS', 'http://nowhere.invalid/') }
    @{ name = 'ping-itself'; program = 'ping'; situation = 'the machine itself answers'
       command = @('ping.exe', '-n', '2', '127.0.0.1') }
    @{ name = 'ping-lost'; program = 'ping'; situation = 'nobody answers'
       command = @('ping.exe', '-n', '1', '-w', '1000', '10.255.255.1') }
    @{ name = 'cmd-no-such-program'; program = 'cmd'; situation = 'a program that there is not'
       command = @('nonesuch') }
)

foreach ($one in $situations) {
    $list = @($one.command | Select-Object -Skip 1)
    $ran = switch ($one.program) {
        'cmd' { Invoke-Raw 'cmd.exe' ('/c ' + ($one.command -join ' ')) @() }
        default { Invoke-Raw (Join-Path $system32 $one.command[0]) '' $list }
    }
    $network = if ($one.ContainsKey('network')) { $one.network } else { @{} }
    $version = if ($one.program -eq 'curl') { $curl } else { $windows }
    Save-Transcripts $Out $one.name $one.program $version $one.situation $network $one.command $ran $Source
    Write-Output "$($one.name): $($ran.code)"
}
