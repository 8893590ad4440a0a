//! `powershell`: the web server of the user guide, a wait, and encoded scripts. The texts are those of
//! PowerShell 5.1.

use std::collections::BTreeMap;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;

use crate::program::forms::{self, Call};
use crate::program::windows::{folder, host, pipe, share, system};
use crate::program::{Ran, Started};
use crate::world::Page;

/// What a script calls to be told of the signal to end.
pub(crate) const LATE: &str = "SetConsoleCtrlHandler(";

/// Runs `powershell ARGS`.
pub(crate) fn run(call: &Call<'_>) -> Option<Started> {
    let mut args = call.args.iter().map(String::as_str);
    loop {
        match args.next()?.to_ascii_lowercase().as_str() {
            "-nologo" | "-noninteractive" | "-noprofile" => {}
            "-command" => break,
            "-encodedcommand" => return encoded(call, &decoded(args.next()?)?),
            program if program.ends_with("cmd.exe") => {
                return Some(forms::run(call.seat, call.args, b""));
            }
            _ => return None,
        }
    }
    let script = args.collect::<Vec<_>>().join(" ");
    if script.contains("New-Object System.Net.HttpListener") {
        return http_listener(&script);
    }
    if script.contains(pipe::SERVER) {
        return Some(Started::stays());
    }
    if script.contains(LATE) {
        let written = call.place().files.write(r"C:\handles", b"handles");
        return written.ok().map(|()| Started::stays());
    }
    Some(Started::Ended(Ran::sleeps(slept(&script)?)))
}

/// Decodes a script from UTF-16, lower byte first (`about_PowerShell_exe`).
fn decoded(text: &str) -> Option<String> {
    let bytes = BASE64_STANDARD.decode(text).ok()?;
    let units = bytes
        .chunks_exact(2)
        .map(|pair| u16::from_le_bytes([pair[0], pair[1]]));
    String::from_utf16(&units.collect::<Vec<_>>()).ok()
}

/// What each encoded script begins with.
const STRICT: &str = "$ErrorActionPreference = 'Stop'; $ProgressPreference = 'SilentlyContinue'; ";

/// The script that looks for a word in the command line of each process: what it has before the word, and after it.
const FIND: [&str; 2] = [
    "if (Get-CimInstance Win32_Process | Where-Object { $_.CommandLine -like '*",
    "*' }) { exit 0 } else { exit 2 }",
];

/// The script that is busy for four seconds, and ends with 0 if it got less than three quarters of a processor.
const BUSY: &str = "$own = [Diagnostics.Process]::GetCurrentProcess(); $before = $own.TotalProcessorTime; $clock = [Diagnostics.Stopwatch]::StartNew(); while ($clock.ElapsedMilliseconds -lt 4000) { }; $own.Refresh(); $used = ($own.TotalProcessorTime - $before).TotalMilliseconds; if ($used -lt 0.75 * $clock.ElapsedMilliseconds) { exit 0 } else { exit 2 }";

/// The script that wants so many MiB of memory, and ends with 0 if it is refused them.
const HOLD: [&str; 2] = [
    "try { $held = [byte[]]::new(",
    "MB) } catch { if ($_.Exception.GetBaseException() -is [OutOfMemoryException]) { exit 0 }; throw }; exit 2",
];

fn encoded(call: &Call<'_>, script: &str) -> Option<Started> {
    let script = script.strip_prefix(STRICT)?;
    let within = |[before, after]: [&str; 2]| script.strip_prefix(before)?.strip_suffix(after);
    if let Some(path) = within(folder::READ) {
        return folder::read(call, path).map(Started::Ended);
    }
    if let Some(variable) = within(share::REACH) {
        return Some(Started::Ended(share::reach(call, variable)));
    }
    if script == host::PAGE_FILES {
        return Some(Started::Ended(host::page_files(call)));
    }
    if script == host::ENCRYPTION {
        return Some(Started::Ended(host::encryption(call)));
    }
    let limits = &call.place().limits;
    let (ran, is_so) = if script == BUSY {
        let is_limited = limits.cpu.is_some_and(|limit| limit < 750);
        (Ran::sleeps(Duration::from_secs(4)), is_limited)
    } else if let Some(mebibytes) = within(HOLD) {
        let wanted = i128::from(mebibytes.parse::<u32>().ok()?) << 20;
        let is_refused = limits.memory.is_some_and(|limit| limit < wanted * 1000);
        if let Some(kills) = limits.kills.as_ref().filter(|_| is_refused) {
            kills.notify_one();
        }
        (Ran::default(), is_refused)
    } else {
        let word = within(FIND)?;
        let is_seen = system::lines(call).iter().any(|line| line.contains(word));
        (Ran::default(), is_seen)
    };
    Some(Started::Ended(ran.ending(if is_so { 0 } else { 2 })))
}

/// `Start-Sleep -Seconds N`.
fn slept(statement: &str) -> Option<Duration> {
    let seconds = statement.strip_prefix("Start-Sleep -Seconds ")?;
    Some(Duration::from_secs(seconds.trim_end().parse().ok()?))
}

/// Runs the listener of a script. Kubernetes un-escapes `$$`, so a script that still has it came by another
/// way, and PowerShell fails on it: there `$$` is the last token of the line before.
fn http_listener(script: &str) -> Option<Started> {
    if script.contains("$$") {
        return Some(Started::Ended(Ran::complains(
            "The property 'Prefixes' cannot be found on this object.\r\n",
            1,
        )));
    }
    let prefixes = script.split(".Prefixes.Add('http://*:").skip(1);
    let ports = prefixes.map(|prefix| prefix.split_once("/')")?.0.parse().ok());
    let ports: Vec<u16> = ports.collect::<Option<_>>()?;
    let port = ports.first()?;
    let before = script.split(".Start()").next().unwrap_or_default();
    let before: Duration = before.lines().filter_map(slept).sum();
    Some(Started::Serves {
        listening: ports
            .iter()
            .map(|port| (*port, Page::WinWebserver))
            .collect(),
        listening_udp: BTreeMap::new(),
        // PowerShell takes seconds to start before it listens; without a probe the pod is Ready by then
        warm_up: Duration::from_secs(4) + before,
        prints: format!("Listening at http://*:{port}/\r\n"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nodes::image::Family;
    use crate::program::tests::{place, run as start};
    use crate::program::{NOT_SIMULATED, Refusal};
    use crate::topology::Os;

    #[test]
    fn the_listener_of_the_guide_serves() {
        let script = "$listener = New-Object System.Net.HttpListener\n$listener.Prefixes.Add('http://*:80/')\n$listener.Start()";
        let servercore = place(Os::Windows, Family::Servercore);
        let slow = format!("Start-Sleep -Seconds 20\n{script}");
        let both = script.replace(
            "\n$listener.Start",
            "\n$listener.Prefixes.Add('http://*:81/')\n$listener.Start",
        );
        for (script, seconds, ports) in [
            (script, 4, &[80][..]),
            (&slow, 24, &[80]),
            (&both, 4, &[80, 81]),
        ] {
            match start(&servercore, &["powershell.exe", "-command", script]) {
                Started::Serves {
                    listening, warm_up, ..
                } => {
                    assert!(listening.keys().eq(ports));
                    assert_eq!(listening.get(&80), Some(&Page::WinWebserver));
                    assert_eq!(warm_up.as_secs(), seconds);
                }
                other => panic!("{other:?}"),
            }
        }
        let escaped = script.replace('$', "$$");
        let started = start(&servercore, &["powershell.exe", "-command", &escaped]);
        assert!(matches!(started, Started::Ended(Ran { code: 1, .. })));
    }

    #[test]
    fn it_waits_and_the_rest_is_refused() {
        let servercore = place(Os::Windows, Family::Servercore);
        let code = |line: &[&str]| match start(&servercore, line) {
            Started::Ended(ran) => (ran.code, ran.slept.as_secs()),
            other => panic!("{other:?}"),
        };
        assert_eq!(
            code(&["powershell", "-Command", "Start-Sleep -Seconds 9"]),
            (0, 9)
        );
        for line in [
            &["powershell", "-Command", "Get-Process"][..],
            &["powershell", "-EncodedCommand", "aAA="],
            &["powershell"],
        ] {
            assert_eq!(code(line), (NOT_SIMULATED, 0), "{line:?}");
        }
        let nano = place(Os::Windows, Family::Nanoserver);
        let started = start(&nano, &["powershell"]);
        assert!(matches!(started, Started::Refused(Refusal::Missing(_))));
    }
}
