//! Windows' own programs: `cmd`, PowerShell in its least, and the System32 tools that workloads
//! wait with.
//!
//! Texts are those of an English Windows Server 2022, from public transcripts; output lines end in
//! CR LF.

use std::collections::BTreeMap;
use std::time::Duration;

use super::serve::Page;
use super::shell::{Joint, Step, number, sequence};
use super::{Place, Ran, Refusal, Started, View, agnhost, curl, powershell};
use crate::image::Family;

/// Exit code of a process that Ctrl-C ended: 0xC000013A, `STATUS_CONTROL_C_EXIT`.
pub(crate) const CONTROL_C: u32 = 0xC000_013A;

const SYSTEM32: &str = "c:\\windows\\system32\\";

/// Finds a program and runs it.
pub(super) fn launch(
    place: &Place,
    file: &str,
    argv: &[String],
    input: &[u8],
    view: &View<'_>,
) -> Started {
    let path = file.replace('/', "\\").to_ascii_lowercase();
    let (folder, name) = path
        .rsplit_once('\\')
        .map_or(("", path.as_str()), |(folder, name)| (folder, name));
    let name = name.strip_suffix(".exe").unwrap_or(name);
    let rest = argv.get(1..).unwrap_or_default();
    let full = matches!(place.family, Family::Servercore | Family::Iis) || place.host_process;
    let in_system = folder.is_empty() || format!("{folder}\\").starts_with(SYSTEM32);
    let missing = || Started::Refused(Refusal::Missing(file.to_owned()));
    match name {
        "agnhost" if place.family == Family::Agnhost => agnhost::run(place, rest, view),
        // Dockerfile_windows of agnhost: its own curl stands in C:\curl\AMD64, while PATH has
        // C:\curl
        "curl" if folder == "c:\\curl\\amd64" && place.family == Family::Agnhost => Started::Ended(
            curl::run(place, curl::Build::AgnhostWindows, rest, input, view),
        ),
        "pause" if place.family == Family::Pause => Started::stays(),
        "servicemonitor" if place.family == Family::Iis => iis(),
        _ if !in_system => missing(),
        "curl" => Started::Ended(curl::run(place, curl::Build::System32, rest, input, view)),
        "cmd" => match rest.split_first() {
            Some((flag, inner)) if flag.eq_ignore_ascii_case("/c") => {
                cmd(place, &inner.join(" "), input, view)
            }
            // Without input a shell has nothing to do
            _ => Started::Ended(Ran::code(0)),
        },
        "powershell" if full => powershell::run(place, rest, view),
        "pwsh" if place.family == Family::Agnhost => powershell::run(place, rest, view),
        "hostname" => Started::Ended(Ran::prints(format!("{}\r\n", place.hostname))),
        "ping" if full => ping(rest),
        "timeout" | "ipconfig" | "nslookup" | "whoami" | "tasklist" | "sc" | "netsh" | "route"
        | "findstr" => Refusal::not_simulated(name),
        _ => missing(),
    }
}

fn iis() -> Started {
    Started::Serves {
        listening: BTreeMap::from([(80, Page::Iis)]),
        warm_up: Duration::from_secs(4),
        prints: "Service 'w3svc' has been stopped\r\n\r\nService 'w3svc' started\r\n".to_owned(),
    }
}

/// One command line out of arguments, as Go's `windows.ComposeCommandLine` makes it.
pub(super) fn command_line(argv: &[String]) -> String {
    let escaped = argv.iter().map(|arg| {
        if arg.is_empty() || arg.contains([' ', '\t', '"']) {
            format!("\"{}\"", arg.replace('"', "\\\""))
        } else {
            arg.clone()
        }
    });
    escaped.collect::<Vec<_>>().join(" ")
}

/// `cmd /c LINE`: `& && ||` join commands, `| < >` redirect, `^` escapes, `%NAME%` expands; quotes
/// protect.
pub(super) fn cmd(place: &Place, line: &str, input: &[u8], view: &View<'_>) -> Started {
    let Some(commands) = split(&expanded(place, line)) else {
        // Redirections are not simulated beyond the error that a missing file gives
        return Started::Ended(Ran::complains(
            "The system cannot find the file specified.\r\n",
            1,
        ));
    };
    sequence(&commands, |command| {
        let words = words(command);
        let Some(first) = words.first() else {
            return Step::Next(Started::Ended(if commands.len() > 1 {
                Ran::complains("The syntax of the command is incorrect.\r\n", 1)
            } else {
                Ran::code(0)
            }));
        };
        match first.to_ascii_lowercase().as_str() {
            "exit" => {
                let code = words
                    .iter()
                    .skip(1)
                    .find(|word| !word.eq_ignore_ascii_case("/b"));
                Step::Last(Ran::code(number(code).unwrap_or(0)))
            }
            "echo" => {
                let said = command.get(4..).unwrap_or_default().trim_start();
                Step::Next(Started::Ended(Ran::prints(format!("{said}\r\n"))))
            }
            "rem" => Step::Next(Started::Ended(Ran::code(0))),
            "dir" | "type" | "set" | "ver" | "cd" | "if" | "for" => {
                Step::Next(Refusal::not_simulated(command))
            }
            _ => Step::Next(match launch(place, first, &words, input, view) {
                Started::Refused(Refusal::Missing(file)) => Started::Ended(Ran::complains(
                    format!(
                        "'{file}' is not recognized as an internal or external command,\r\n\
                         operable program or batch file.\r\n"
                    ),
                    1,
                )),
                other => other,
            }),
        }
    })
}

fn expanded(place: &Place, line: &str) -> String {
    let mut out = line.to_owned();
    // Under bindflt a HostProcess container's files also stand at this mount point
    for (name, value) in [
        ("%CONTAINER_SANDBOX_MOUNT_POINT%", "C:\\hpc"),
        ("%COMPUTERNAME%", place.hostname.as_str()),
        ("%SystemRoot%", "C:\\Windows"),
    ] {
        out = out.replace(name, value);
    }
    out
}

/// Splits a line at its unquoted joints; `None` where it redirects.
fn split(line: &str) -> Option<Vec<(Joint, String)>> {
    let mut commands = Vec::new();
    let (mut joint, mut command, mut quoted) = (Joint::Always, String::new(), false);
    let mut letters = line.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '"' => {
                quoted = !quoted;
                command.push(letter);
            }
            '^' if !quoted => command.extend(letters.next()),
            '<' | '>' if !quoted => return None,
            '&' | '|' if !quoted => {
                let doubled = letters.next_if_eq(&letter).is_some();
                let next = match (letter, doubled) {
                    ('&', false) => Joint::Always,
                    ('&', true) => Joint::AfterSuccess,
                    (_, true) => Joint::AfterFailure,
                    (_, false) => return None,
                };
                commands.push((joint, std::mem::take(&mut command).trim().to_owned()));
                joint = next;
            }
            _ => command.push(letter),
        }
    }
    commands.push((joint, command.trim().to_owned()));
    Some(commands)
}

/// The arguments of one command.
pub(super) fn words(command: &str) -> Vec<String> {
    let (mut words, mut word, mut quoted, mut begun) = (Vec::new(), String::new(), false, false);
    for letter in command.chars() {
        match letter {
            '"' => (quoted, begun) = (!quoted, true),
            ' ' | '\t' if !quoted => {
                if begun {
                    words.push(std::mem::take(&mut word));
                }
                begun = false;
            }
            _ => {
                word.push(letter);
                begun = true;
            }
        }
    }
    if begun {
        words.push(word);
    }
    words
}

/// `ping` as a way to wait; it sends nothing here.
fn ping(args: &[String]) -> Started {
    if args.iter().any(|arg| arg == "-t") {
        return Started::stays();
    }
    let count = args
        .iter()
        .position(|arg| arg == "-n")
        .and_then(|at| number(args.get(at + 1)));
    let local = args
        .iter()
        .any(|arg| arg == "127.0.0.1" || arg == "localhost");
    match (count, local) {
        (Some(count), true) => {
            let slept = Duration::from_secs(u64::from(count.saturating_sub(1)));
            Started::Ended(Ran {
                slept,
                ..Ran::prints("\r\nPinging 127.0.0.1 with 32 bytes of data:\r\n")
            })
        }
        _ => Refusal::not_simulated("ping"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{place, run};
    use super::*;
    use crate::topology::Os;

    fn host(args: &[&str]) -> Started {
        run(
            &Place {
                host_process: true,
                ..place(Os::Windows, Family::Servercore)
            },
            args,
        )
    }

    fn ended(started: Started) -> Ran {
        match started {
            Started::Ended(ran) => ran,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn host_process_goes_through_cmd() {
        assert_eq!(ended(host(&["cmd", "/c", "exit 7"])).code, 7);
        let missing = ended(host(&["nonesuch"]));
        assert_eq!(missing.code, 1);
        assert_eq!(
            String::from_utf8_lossy(&missing.stderr),
            "'nonesuch' is not recognized as an internal or external command,\r\noperable program or batch file.\r\n"
        );
        // The `&` of a query string splits the command
        let split = ended(host(&["hostname", "a&b=c"]));
        assert!(
            String::from_utf8_lossy(&split.stderr).starts_with("'b=c' is not recognized"),
            "{split:?}"
        );
        assert_eq!(ended(host(&["hostname", "<", "x"])).code, 1);
        assert_eq!(
            ended(host(&["echo", "a b&c"])).stdout,
            b"\"a b&c\"\r\n",
            "quotes protect"
        );
        assert_eq!(ended(host(&["echo", "a^&b"])).stdout, b"a&b\r\n");
    }

    #[test]
    fn odd_lines_do_no_harm() {
        for line in [
            "",
            "\"",
            "^",
            "&",
            "&&&",
            "|",
            "%",
            "exit 99999999999999999999",
            "echo",
            "é",
        ] {
            let _ = run(
                &place(Os::Windows, Family::Servercore),
                &["cmd", "/c", line],
            );
            let _ = host(&[line]);
        }
    }
}
