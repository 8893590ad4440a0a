//! `powershell -command`, in its least: the web server of the user guide, waiting, and a name resolved.
//!
//! Whatever else a script does is refused by name. Texts are those of PowerShell 5.1.

use std::collections::BTreeMap;
use std::time::Duration;

use super::seat::Seat;
use super::windows::words;
use super::{Ran, Refusal, Started, nslookup};
use crate::world::Page;

/// Runs `powershell ARGS`.
pub(super) fn run(args: &[String], seat: &Seat<'_>) -> Started {
    let Some(script) = script(args).filter(|script| !script.is_empty()) else {
        return Refusal::not_simulated(&format!("powershell {}", args.join(" ")));
    };
    if script.contains("HttpListener") {
        return http_listener(&script);
    }
    let mut ran = Ran::default();
    for statement in statements(&script) {
        let words = words(statement);
        let name = words[0].to_ascii_lowercase();
        // What is more than a command and its plain arguments has one of these
        let plain = !statement.contains(['$', '|', '<', '>', '(', '{', '@', ',', '`']);
        let next = match name.as_str() {
            "start-sleep" if plain => wait(&words[1..]),
            "resolve-dnsname" if plain => nslookup::resolve_dns_name(&words[1..], seat),
            _ => return Started::Ended(ran.then(Refusal::instead_of(statement))),
        };
        ran = ran.then(next);
    }
    // about_PowerShell_exe: codes other than 0 and 1 are converted to 1
    let code = ran.code.min(1);
    Started::Ended(ran.ending(code))
}

/// What is to be run, by the arguments (`about_PowerShell_exe`); none where they ask for more.
fn script(args: &[String]) -> Option<String> {
    let mut args = args.iter();
    loop {
        let rest = args.clone();
        let Some(arg) = args.next() else {
            return Some(String::new());
        };
        match arg.to_ascii_lowercase().as_str() {
            "-command" | "-c" => break,
            "-nologo" | "-noninteractive" | "-noprofile" | "-nop" => {}
            "-executionpolicy" | "-ep" | "-inputformat" | "-outputformat" => drop(args.next()),
            flag if flag.len() > 1 && flag.starts_with('-') => return None,
            _ => {
                args = rest;
                break;
            }
        }
    }
    let words: Vec<&str> = args.map(String::as_str).collect();
    Some(words.join(" "))
}

fn statements(script: &str) -> impl Iterator<Item = &str> {
    let statements = script.split([';', '\n']).map(str::trim);
    statements.filter(|statement| !statement.is_empty())
}

fn wait(args: &[String]) -> Ran {
    let in_millis = args
        .iter()
        .any(|word| word.to_ascii_lowercase().starts_with("-m"));
    let amount = args
        .iter()
        .find_map(|word| word.parse::<f64>().ok())
        .unwrap_or(0.0);
    let seconds = if in_millis { amount / 1000.0 } else { amount };
    Ran {
        slept: Duration::try_from_secs_f64(seconds).unwrap_or_default(),
        ..Ran::default()
    }
}

/// The listener of a script. Kubernetes un-escapes `$$`, so a script that still has it was
/// passed on by something else, and PowerShell would fail on it: `$$` is the last token of the line
/// before.
fn http_listener(script: &str) -> Started {
    if script.contains("$$") {
        return Started::Ended(Ran::complains(
            "The property 'Prefixes' cannot be found on this object.\r\n",
            1,
        ));
    }
    let prefix = script
        .split_once("Prefixes.Add(")
        .and_then(|(_, rest)| rest.split_once(')'));
    let port = prefix.and_then(|(address, _)| {
        let digits: String = address
            .rsplit_once(':')?
            .1
            .chars()
            .take_while(char::is_ascii_digit)
            .collect();
        digits.parse().ok()
    });
    match port {
        Some(port) => Started::Serves {
            listening: BTreeMap::from([(port, Page::WinWebserver)]),
            listening_udp: BTreeMap::new(),
            // PowerShell starts for seconds before it listens, and without a probe the pod is Ready
            // by then
            warm_up: Duration::from_secs(4) + slept_before(script),
            prints: format!("Listening at http://*:{port}/\r\n"),
        },
        None => Refusal::not_simulated("an HttpListener without a prefix"),
    }
}

/// What a listener's script sleeps before it starts to listen.
fn slept_before(script: &str) -> Duration {
    let lower = script.to_ascii_lowercase();
    let before = lower.split(".start()").next().unwrap_or_default();
    let sleeps = statements(before).map(words);
    let sleeps = sleeps.filter(|words| words.first().is_some_and(|word| word == "start-sleep"));
    sleeps.map(|words| wait(&words[1..]).slept).sum()
}

#[cfg(test)]
mod tests {
    use super::super::NOT_SIMULATED;
    use super::super::tests::{place, run as start};
    use super::*;
    use crate::image::Family;
    use crate::topology::Os;

    fn ended(started: Started) -> Ran {
        match started {
            Started::Ended(ran) => ran,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_listener_of_the_guide_serves() {
        let script = "$listener = New-Object System.Net.HttpListener ; $listener.Prefixes.Add('http://*:80/') ;";
        let servercore = place(Os::Windows, Family::Servercore);
        match start(&servercore, &["powershell.exe", "-command", script]) {
            Started::Serves { listening, .. } => {
                assert_eq!(listening.get(&80), Some(&Page::WinWebserver));
            }
            other => panic!("{other:?}"),
        }
        let slow = format!("Start-Sleep -Seconds 20\n{script} $listener.Start() ; Start-Sleep 5");
        match start(&servercore, &["powershell.exe", "-command", &slow]) {
            Started::Serves { warm_up, .. } => assert_eq!(warm_up, Duration::from_secs(24)),
            other => panic!("{other:?}"),
        }
        let escaped = script.replace('$', "$$");
        assert_eq!(
            ended(start(
                &servercore,
                &["powershell.exe", "-command", &escaped]
            ))
            .code,
            1
        );
    }

    #[test]
    fn it_waits_and_resolves_names_and_the_rest_is_refused() {
        let servercore = place(Os::Windows, Family::Servercore);
        let lines = [
            (
                &[
                    "powershell",
                    "-Command",
                    "Start-Sleep -Milliseconds 500; start-sleep 2",
                ][..],
                0,
            ),
            (
                &[
                    "powershell",
                    "-NoLogo",
                    "-ExecutionPolicy",
                    "Bypass",
                    "Resolve-DnsName x",
                ],
                1,
            ),
            (&["powershell", "-Command", "Start-Sleep $x"], NOT_SIMULATED),
            (&["powershell", "-Command", "Get-Process"], NOT_SIMULATED),
            (&["powershell", "-File", "a.ps1"], NOT_SIMULATED),
            (&["powershell", "-EncodedCommand", "aAA="], NOT_SIMULATED),
            (&["powershell", "-Command", "-"], NOT_SIMULATED),
            (&["powershell"], NOT_SIMULATED),
        ];
        let ran = lines.map(|(line, code)| {
            let ran = ended(start(&servercore, line));
            assert_eq!(ran.code, code, "{line:?}");
            ran
        });
        assert_eq!(ran[0].slept, Duration::from_millis(2500));
        let nano = place(Os::Windows, Family::Nanoserver);
        assert!(matches!(
            start(&nano, &["powershell"]),
            Started::Refused(Refusal::Missing(_))
        ));
    }
}
