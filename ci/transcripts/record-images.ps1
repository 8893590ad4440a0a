# Records what the programs in the images of Windows pods print when they get the commands that winconform
# sends (core/src/command/forms.txt), as transcripts in the form of tests/transcripts, and their versions.
#
#   pwsh ci/transcripts/record-images.ps1 -Out DIR -Tag ltsc2022 [-Source URL]
#
# Needs docker for Windows containers on a host of the tag's build. Nothing answers in these containers: targets of
# HTTP and pings are addresses of a cluster that there is not. Commands that only HostProcess pods get fail in their
# way, which is recorded, too.
param(
    [Parameter(Mandatory)] [string] $Out,
    [Parameter(Mandatory)] [string] $Tag,
    [string] $Source = 'https://github.com/actions/runner-images'
)
$ErrorActionPreference = 'Stop'
Set-StrictMode -Version Latest
. (Join-Path $PSScriptRoot 'lib.ps1')
New-Item -ItemType Directory -Force -Path $Out | Out-Null

$images = [ordered]@{
    agnhost = 'registry.k8s.io/e2e-test-images/agnhost:2.66.1'
    servercore = "mcr.microsoft.com/windows/servercore:$Tag"
    nanoserver = "mcr.microsoft.com/windows/nanoserver:$Tag"
}

# NAME windows ["PROGRAM", "ARGUMENT"] < "STANDARD INPUT"
$forms = Get-Content (Join-Path $PSScriptRoot '../../core/src/command/forms.txt') |
    Where-Object { $_ -match '^(\w+) windows (\[.*\])(?: < (".*"))?$' } |
    ForEach-Object {
        @{
            name = $Matches[1]
            command = @($Matches[2] | ConvertFrom-Json)
            stdin = if ($Matches.ContainsKey(3)) { $Matches[3] | ConvertFrom-Json } else { '' }
        }
    }
if (-not $forms) { throw 'core/src/command/forms.txt has no command for Windows' }

foreach ($image in $images.Keys) {
    $reference = $images[$image]
    docker pull --quiet $reference
    if ($LASTEXITCODE) { throw "$reference is not pulled" }
    $windows = docker image inspect --format '{{.OsVersion}}' $reference
    $container = docker run --detach --entrypoint cmd.exe $reference /c 'ping -t localhost'
    if ($LASTEXITCODE) { throw "$reference does not start" }
    try {
        $in = { param($List, $Stdin) Invoke-Raw 'docker' '' (@('exec', '--interactive', $container) + $List) $Stdin }
        $banner = & $in @('curl.exe', '--version') ''
        $banner.stdout | Set-Content -Path (Join-Path $Out "$image-curl-version.txt")
        $curl = if ($banner.stdout -match '^curl (\d+\.\d+\.\d+)') { $Matches[1] } else { $windows }
        # The folder of the commands about files
        & $in @('cmd.exe', '/c', 'mkdir C:\shared') '' | Out-Null
        $number = 0
        foreach ($form in $forms) {
            $number++
            $ran = & $in $form.command $form.stdin
            $program = [System.IO.Path]::GetFileNameWithoutExtension(($form.command[0] -replace '\\', '/'))
            $version = if ($program -eq 'curl') { $curl } else { $windows }
            $name = '{0}-{1:d2}-{2}' -f $image, $number, $form.name.ToLowerInvariant()
            Save-Transcripts $Out $name $program $version "$($form.name) in $reference" @{} $form.command $ran $Source
            Write-Output "$name`: $($ran.code)"
        }
    } finally {
        docker rm --force $container | Out-Null
    }
}
