# What the recorders of transcripts share.

# Runs a program and gives its streams as they come, without a shell in between.
function Invoke-Raw([string] $File, [string] $Arguments, [string[]] $List, [string] $Stdin = '') {
    $start = [System.Diagnostics.ProcessStartInfo]::new($File)
    if ($Arguments) { $start.Arguments = $Arguments } else { foreach ($one in $List) { $start.ArgumentList.Add($one) } }
    $start.RedirectStandardOutput = $true
    $start.RedirectStandardError = $true
    $start.RedirectStandardInput = $true
    $start.UseShellExecute = $false
    $process = [System.Diagnostics.Process]::Start($start)
    # Both at once, or a full pipe would stop it
    $stdout = $process.StandardOutput.ReadToEndAsync()
    $stderr = $process.StandardError.ReadToEndAsync()
    # A program that reads nothing may have ended already
    try { $process.StandardInput.Write($Stdin); $process.StandardInput.Close() } catch [System.IO.IOException] { }
    $process.WaitForExit()
    @{ stdout = $stdout.Result; stderr = $stderr.Result; code = $process.ExitCode }
}

# What differs from run to run is left out.
function Format-Text([string] $Text) {
    $Text = $Text -replace "`r`n", "`n"
    $Text = $Text -replace 'after \d+ ms', 'after … ms' -replace 'after \d+ milliseconds', 'after … milliseconds'
    $Text.TrimEnd("`n")
}

# Writes one file for each stream of what was run.
function Save-Transcripts([string] $Out, [string] $Name, [string] $Program, [string] $Version, [string] $Situation,
    [hashtable] $Network, [string[]] $Command, [hashtable] $Ran, [string] $Source) {
    foreach ($stream in 'stdout', 'stderr') {
        $transcript = [ordered]@{
            program = $Program
            version = $Version
            os = 'windows'
            situation = "recorded: $Situation"
            network = $Network
            command = @($Command)
            text = Format-Text $Ran[$stream]
            stream = $stream
            code = $Ran.code
            source = $Source
        }
        $path = Join-Path $Out "$Name-$stream.json"
        $transcript | ConvertTo-Json -Depth 5 | Set-Content -Path $path -Encoding utf8NoBOM
    }
}
