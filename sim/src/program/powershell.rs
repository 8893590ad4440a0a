//! `powershell -command`, in its least: the web server of the user guide, waiting, printing, files,
//! variables, names and single requests.
//!
//! Whatever else a script does is refused by name. Texts are those of PowerShell 5.1.

use std::time::Duration;

use super::http::Asked;
use super::input::Input;
use super::net::{Link, Lookup, Net};
use super::script::{Machine, Phrase, Step, Tongue, not_understood, number, path};
use super::seat::Seat;
use super::windows::{launch, words};
use super::{Place, Ran, Refusal, Sight, Started, cmd, nslookup, system_limit};
use crate::image::Family;
use crate::topology::{Build, Os, Pool};

mod listener;
mod statements;

/// Runs `powershell ARGS`.
pub(super) fn run(place: &Place, args: &[String], input: &Input, view: &Sight<'_>) -> Started {
    let is_command = |arg: &String| matches!(arg.to_ascii_lowercase().as_str(), "-command" | "-c");
    let script = match args.iter().position(is_command) {
        Some(at) => args[at + 1..].join(" "),
        None => args
            .iter()
            .skip_while(|arg| arg.starts_with('-') && *arg != "-")
            .cloned()
            .collect::<Vec<_>>()
            .join(" "),
    };
    // about_PowerShell_exe: the value `-` of -Command stands for the input, and no prompt is shown
    if script == "-" {
        let script = String::from_utf8_lossy(input.bytes());
        if script.contains("HttpListener") {
            return listener::http_listener(&script);
        }
        return Machine::reading(&PowerShell, place, false, input, view).run(view);
    }
    if script.is_empty() {
        return prompting(place, args, input, view);
    }
    if script.contains("HttpListener") {
        return listener::http_listener(&script);
    }
    match statements::parse(&script) {
        Ok(list) => Machine::new(&PowerShell, place, list, input.clone(), view).run(view),
        Err(why) => not_understood(&script, why),
    }
}

/// Reads its commands from its input, and says so.
fn prompting(place: &Place, args: &[String], input: &Input, view: &Sight<'_>) -> Started {
    if place.family == Family::Agnhost {
        // Its banner names its version, which nobody here knows
        return Refusal::not_simulated("pwsh with its prompt");
    }
    let quiet = args.iter().any(|arg| arg.eq_ignore_ascii_case("-nologo"));
    let banner = if quiet { "" } else { BANNER };
    let machine = Machine::reading(&PowerShell, place, true, input, view);
    machine.run(view).after(Ran::prints(banner))
}

const BANNER: &str =
    "Windows PowerShell\r\nCopyright (C) Microsoft Corporation. All rights reserved.\r\n\r\n";

struct PowerShell;

impl Tongue for PowerShell {
    fn step(&self, machine: &mut Machine, text: &str, input: &Input, view: &Sight<'_>) -> Step {
        step(&machine.place, text, input, view)
    }

    fn words(&self, _: &Machine, _: &str, _: &Sight<'_>) -> Result<Vec<String>, Ran> {
        Ok(Vec::new())
    }

    fn set(&self, _: &mut Machine, _: &str, _: String) {}

    fn prompt(&self, machine: &Machine, more: bool) -> String {
        match more {
            true => ">> ".to_owned(),
            false => format!("PS {}> ", cmd::standing(&machine.place)),
        }
    }

    /// PowerShell, `ConsoleHostUserInterface.ReadLineFromFile`: letter by letter, as it stands.
    fn shown(&self, line: &str) -> String {
        line.to_owned()
    }

    fn phrase(&self, _: &mut Machine, lines: &str) -> Phrase {
        if statements::is_open(lines) {
            return Phrase::Unfinished;
        }
        match statements::parse(lines) {
            Ok(list) => Phrase::Commands(list),
            Err(why) => {
                let text = format!("{why} in `{}`", lines.trim_end());
                Phrase::NotUnderstood(Refusal::instead_of(&text))
            }
        }
    }

    /// PowerShell, `ConsoleHost.DoRunspaceLoop`: whether the last command was a success. At a console
    /// no key stands for the end.
    fn end(&self, machine: &Machine, terminal: bool) -> Option<Ran> {
        (!terminal).then(|| Ran::code(u32::from(machine.code != 0)))
    }
}

fn step(place: &Place, statement: &str, input: &Input, view: &Sight<'_>) -> Step {
    let seat = Seat { place, view: *view };
    let words: Vec<String> = words(&statement.replace('\'', "\""))
        .iter()
        .map(|word| valued(place, word))
        .collect();
    let Some(first) = words.first().map(|word| word.to_ascii_lowercase()) else {
        return Step::Next(Started::Ended(Ran::default()));
    };
    let args = &words[1..];
    let line = |text: String| Ran::prints(format!("{text}\r\n"));
    // A pipe or a sub-expression is more than one statement
    if statement.contains('|') && !statement.contains('"') {
        return Step::Next(Refusal::not_simulated(statement));
    }
    Step::Next(Started::Ended(match first.as_str() {
        "exit" => return Step::Last(Ran::code(number(words.get(1)).unwrap_or(0))),
        "start-sleep" | "sleep" => wait(args),
        "write-host" | "write-output" | "echo" => line(args.join(" ")),
        "hostname" => line(place.hostname.clone()),
        "break" => return Step::Leave,
        "continue" => return Step::Again,
        "get-date" => match date(args, &seat) {
            Some(ran) => ran,
            None => return Step::Next(Refusal::not_simulated(statement)),
        },
        "get-content" | "gc" | "cat" | "type" => content(place, args),
        "set-content" | "sc" => put(place, args),
        "test-path" => {
            let at = path(place, value(args, "-path").as_deref().unwrap_or_default());
            let there = place.files.read(&at).is_ok() || place.files.list(&at).is_some();
            line(if there { "True" } else { "False" }.to_owned())
        }
        "resolve-dnsname" if place.family != Family::Agnhost => {
            nslookup::resolve_dns_name(args, &seat)
        }
        "test-netconnection" | "tnc" if place.family != Family::Agnhost => probe(args, &seat),
        "invoke-webrequest" | "iwr" | "curl" | "wget" => {
            return Step::Next(Refusal::not_simulated(
                "Invoke-WebRequest but for its .Content and .StatusCode",
            ));
        }
        "[system.environment]::osversion.version" => version(&seat),
        _ if first.starts_with("(invoke-webrequest") || first.starts_with("(iwr") => {
            return Step::Next(fetch(statement, &words, &seat));
        }
        _ if statement.starts_with(['"', '\''])
            || statement.to_ascii_lowercase().starts_with("$env:") && !statement.contains('=') =>
        {
            line(words.join(" "))
        }
        name if ALIASES.contains(&name) => {
            return Step::Next(Refusal::not_simulated(statement));
        }
        name if name.contains('-') || name.starts_with(['$', '[', '(', '&']) => {
            return Step::Next(Refusal::not_simulated(statement));
        }
        _ => {
            return Step::Next(match launch(place, &words[0], &words, input, view) {
                Started::Refused(Refusal::Missing(file)) => Started::Ended(Ran::complains(
                    format!(
                        "{file} : The term '{file}' is not recognized as the name of a cmdlet, function, script \
                         file, or operable program. Check the spelling of the name, or if a path was included, \
                         verify that the path is correct and try again.\r\n"
                    ),
                    1,
                )),
                other => other,
            });
        }
    }))
}

/// Other names of cmdlets, and words of the language (`about_Aliases`, `about_Language_Keywords`), that
/// are not simulated.
const ALIASES: &[&str] = &[
    "cd", "chdir", "clear", "cls", "copy", "cp", "cpi", "del", "diff", "dir", "erase", "fl", "for",
    "foreach", "ft", "function", "gal", "gci", "gcm", "gi", "gjb", "gl", "gm", "gmo", "gp", "gps",
    "group", "gsv", "gv", "h", "help", "history", "icm", "iex", "if", "irm", "kill", "ls", "man",
    "md", "measure", "mkdir", "move", "mv", "ni", "param", "ps", "pwd", "rd", "rename", "ren",
    "return", "ri", "rm", "rmdir", "rni", "saps", "sasv", "select", "set", "sl", "sort", "spps",
    "start", "sv", "switch", "tee", "throw", "try", "where",
];

/// A word with `$env:NAME` replaced.
fn valued(place: &Place, word: &str) -> String {
    let mut out = String::new();
    let mut rest = word;
    while let Some(at) = rest.to_ascii_lowercase().find("$env:") {
        out.push_str(&rest[..at]);
        let after = &rest[at + 5..];
        let end = after
            .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .unwrap_or(after.len());
        out.push_str(&cmd::variable(place, &after[..end]).unwrap_or_default());
        rest = &after[end..];
    }
    out + rest
}

/// The value of a parameter, or the first argument without one.
fn value(args: &[String], name: &str) -> Option<String> {
    let named = args.iter().position(|arg| arg.eq_ignore_ascii_case(name));
    match named {
        Some(at) => args.get(at + 1).cloned(),
        None => args.iter().find(|arg| !arg.starts_with('-')).cloned(),
    }
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

/// `Get-Date`, as an English one writes it, and with the letters of a `-Format` that are numbers.
fn date(args: &[String], seat: &Seat<'_>) -> Option<Ran> {
    let now = seat.now();
    let format = match args {
        [] => {
            return Some(Ran::prints(
                now.strftime("\r\n%A, %B %-d, %Y %-I:%M:%S %p\r\n\r\n\r\n")
                    .to_string(),
            ));
        }
        [flag, format] if flag.eq_ignore_ascii_case("-format") => format,
        _ => return None,
    };
    let mut format = format.clone();
    let known = [
        ("yyyy", "%Y"),
        ("MM", "%m"),
        ("dd", "%d"),
        ("HH", "%H"),
        ("mm", "%M"),
        ("ss", "%S"),
        ("fff", "%3f"),
    ];
    for (letters, code) in known {
        format = format.replace(letters, code);
    }
    let mut letters = format.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '%' => drop(letters.by_ref().find(char::is_ascii_alphabetic)),
            letter if letter.is_ascii_alphabetic() && letter != 'T' && letter != 'Z' => {
                return None;
            }
            _ => {}
        }
    }
    Some(Ran::prints(now.strftime(&format).to_string() + "\r\n"))
}

fn content(place: &Place, args: &[String]) -> Ran {
    let file = value(args, "-path").unwrap_or_default();
    let at = path(place, &file);
    match place.files.read(&at) {
        Ok(bytes) => {
            let text = String::from_utf8_lossy(&bytes);
            Ran::prints(
                text.lines()
                    .map(|line| format!("{line}\r\n"))
                    .collect::<Vec<_>>()
                    .concat(),
            )
        }
        Err(_) => {
            let shown = at.replace('/', "\\");
            let shown = if shown.contains(':') {
                shown
            } else {
                format!("C:{shown}")
            };
            Ran::complains(
                format!(
                    "Get-Content : Cannot find path '{shown}' because it does not exist.\r\nAt line:1 char:1\r\n"
                ),
                1,
            )
        }
    }
}

fn put(place: &Place, args: &[String]) -> Ran {
    let plain: Vec<&String> = args.iter().filter(|arg| !arg.starts_with('-')).collect();
    let file = value(args, "-path").unwrap_or_default();
    let named = args.iter().any(|arg| arg.eq_ignore_ascii_case("-value"));
    let text = if named {
        value(args, "-value")
    } else {
        plain.get(1).map(|text| (*text).clone())
    };
    let bytes = format!("{}\r\n", text.unwrap_or_default());
    match place
        .files
        .write(&path(place, &file), bytes.as_bytes(), false)
    {
        Ok(()) => Ran::default(),
        Err(error) => {
            let why = match error.text(Os::Windows) {
                "Access is denied." => format!("Access to the path '{file}' is denied."),
                other => other.to_owned(),
            };
            Ran::complains(format!("Set-Content : {why}\r\nAt line:1 char:1\r\n"), 1)
        }
    }
}

/// `[System.Environment]::OSVersion.Version`.
fn version(seat: &Seat<'_>) -> Ran {
    let build = seat.pool().and_then(Pool::build).unwrap_or(Build::Ws2022);
    let number = build.kernel_version().split('.').nth(2).unwrap_or_default();
    Ran::prints(format!(
        "\r\nMajor  Minor  Build  Revision\r\n-----  -----  -----  --------\r\n10     0      {number}  0       \r\n\r\n\r\n"
    ))
}

/// `Test-NetConnection HOST -Port N -InformationLevel Quiet`.
fn probe(args: &[String], seat: &Seat<'_>) -> Ran {
    let quiet = args.iter().any(|arg| arg.eq_ignore_ascii_case("quiet"));
    let port = args
        .iter()
        .position(|arg| arg.eq_ignore_ascii_case("-port"));
    let port = port.and_then(|at| args.get(at + 1)?.parse().ok());
    let host = value(args, "-computername").unwrap_or_default();
    let (Some(port), true) = (port, quiet) else {
        return Ran::complains(
            "hybrid-sim simulates Test-NetConnection with -Port and Quiet alone\r\n",
            1,
        );
    };
    let (link, took) = match seat.lookup(&host) {
        (Lookup::Address(address), took) => (seat.open(address, port), took),
        (_, took) => (Link::NoRoute, took),
    };
    let there = match link {
        Link::Open(_) => "True",
        Link::Refused | Link::TimedOut | Link::NoRoute | Link::Unreachable => "False",
    };
    Ran {
        took: took + failure(&link),
        ..Ran::prints(format!("{there}\r\n"))
    }
}

/// How long Windows takes to find that a connection cannot be made: it tries three times in 2 s where
/// it is refused.
fn failure(link: &Link) -> Duration {
    match link {
        Link::Refused => Duration::from_secs(2),
        Link::TimedOut => system_limit(Os::Windows),
        Link::Open(_) | Link::NoRoute | Link::Unreachable => Duration::ZERO,
    }
}

/// `(Invoke-WebRequest -UseBasicParsing URL).Content` and its like.
fn fetch(statement: &str, words: &[String], net: &dyn Net) -> Started {
    let Some((_, wanted)) = statement.rsplit_once(").") else {
        return Refusal::not_simulated(statement);
    };
    let url = words
        .iter()
        .find(|word| word.to_ascii_lowercase().contains("http://"));
    let url = url.map(|url| {
        url.split(").")
            .next()
            .unwrap_or_default()
            .trim_end_matches(')')
    });
    let Some(rest) = url.and_then(|url| url.split_once("://").map(|(_, rest)| rest)) else {
        return Refusal::not_simulated(statement);
    };
    let (authority, request) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let (host, port) = authority.split_once(':').unwrap_or((authority, "80"));
    let Ok(port) = port.parse() else {
        return Refusal::not_simulated(statement);
    };
    let fails = |why: &str, took| {
        Started::Ended(Ran {
            took,
            ..Ran::complains(
                format!("Invoke-WebRequest : {why}\r\nAt line:1 char:2\r\n"),
                1,
            )
        })
    };
    let (address, took) = match net.lookup(host) {
        (Lookup::Address(address), took) => (address, took),
        (_, took) => {
            return fails(
                &format!("The remote name could not be resolved: '{host}'"),
                took,
            );
        }
    };
    let peer = match net.open(address, port) {
        Link::Open(peer) => peer,
        failed => {
            let why = "Unable to connect to the remote server";
            return fails(why, took + failure(&failed));
        }
    };
    let request = if request.is_empty() { "/" } else { request };
    let Some(answer) = net.ask(&peer, &Asked::get(request)) else {
        return fails(
            "The operation has timed out.",
            took + Duration::from_secs(100),
        );
    };
    if answer.status >= 400 {
        return fails(
            &format!(
                "The remote server returned an error: ({}) {}.",
                answer.status,
                super::http::phrase(answer.status)
            ),
            took,
        );
    }
    Started::Ended(match wanted.trim() {
        "Content" => Ran::prints(format!("{}\r\n", answer.body)),
        "StatusCode" => Ran::prints(format!("{}\r\n", answer.status)),
        _ => return Refusal::not_simulated(statement),
    })
}

#[cfg(test)]
mod tests {
    use super::super::NOT_SIMULATED;
    use super::super::serve::Page;
    use super::super::tests::{Empty, argv, place, run as start};
    use super::*;

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
    fn files_variables_and_quotes() {
        let mut place = place(Os::Windows, Family::Servercore);
        place.env = std::sync::Arc::new([("ANSWER".to_owned(), "42".to_owned())].into());
        let text = |script: &str| {
            let ran = ended(start(&place, &["powershell", "-Command", script]));
            String::from_utf8(ran.stdout).expect("text") + &String::from_utf8_lossy(&ran.stderr)
        };
        assert_eq!(text("$env:ANSWER"), "42\r\n");
        assert_eq!(
            text("Write-Output 'a; b' ; Write-Host \"x $env:ANSWER\""),
            "a; b\r\nx 42\r\n"
        );
        assert_eq!(
            text("Set-Content -Path C:\\a.txt -Value hi; Get-Content C:\\a.txt; Test-Path C:\\b"),
            "hi\r\nFalse\r\n"
        );
        assert!(
            text("Get-Content C:\\none")
                .starts_with("Get-Content : Cannot find path 'C:\\none' because")
        );
        assert!(text("[System.Environment]::OSVersion.Version").contains("20348"));
        assert!(
            text("(Invoke-WebRequest -UseBasicParsing http://nowhere/).Content")
                .contains("could not be resolved: 'nowhere'")
        );
    }

    #[test]
    fn a_failed_request_takes_the_time_of_its_failure() {
        use super::super::table::Table;
        let net = Table::new(Os::Windows)
            .link([10, 0, 0, 2], 80, Link::TimedOut)
            .link([10, 0, 0, 3], 80, Link::NoRoute);
        for (host, seconds) in [("10.0.0.1", 2), ("10.0.0.2", 21), ("10.0.0.3", 0)] {
            let statement = format!("(Invoke-WebRequest http://{host}/).Content");
            let ran = ended(fetch(&statement, &words(&statement), &net));
            assert_eq!(
                String::from_utf8_lossy(&ran.stderr),
                "Invoke-WebRequest : Unable to connect to the remote server\r\nAt line:1 char:2\r\n"
            );
            assert_eq!(ran.took, Duration::from_secs(seconds), "{host}");
        }
    }

    #[test]
    fn powershell_waits_and_exits() {
        let servercore = place(Os::Windows, Family::Servercore);
        let ran = ended(start(
            &servercore,
            &["powershell", "-Command", "Start-Sleep -Seconds 5; exit 3"],
        ));
        assert_eq!((ran.code, ran.slept), (3, Duration::from_secs(5)));
        let script =
            "Write-Output up; while($true){ Get-Date -Format HH:mm:ss; Start-Sleep 2 }; exit 1";
        let started = start(&servercore, &["powershell", "-Command", script]);
        let Started::GoesOn { ran, rest } = &started else {
            panic!("{started:?}")
        };
        assert_eq!(String::from_utf8_lossy(&ran.stdout), "up\r\n00:00:00\r\n");
        assert_eq!(ran.slept, Duration::from_secs(2));
        let again = rest.start(&Empty::default().view());
        assert!(matches!(again, Started::GoesOn { ran, .. } if ran.stdout == b"00:00:00\r\n"));
        for (script, code) in [
            ("do { 'x'; break } while ($true); exit 4", 4),
            ("while ($i -lt 3) { $i++ }", NOT_SIMULATED),
            ("if ($true) { 'x' }", NOT_SIMULATED),
            ("while ($true) { 'x'", NOT_SIMULATED),
        ] {
            let ran = ended(start(&servercore, &["powershell", "-Command", script]));
            assert_eq!(ran.code, code, "{script}");
        }
        let typed = |args: &[&str], input: &str| {
            let nothing = Empty::default();
            let started = super::super::start(
                &servercore,
                &argv(args),
                &input.as_bytes().into(),
                &nothing.view(),
            );
            ended(started)
        };
        for args in [
            &["powershell", "-NoProfile", "-Command", "-"][..],
            &["powershell", "-"],
        ] {
            let ran = typed(args, "Write-Output a\r\nhostname\nexit 3\n");
            assert_eq!(
                (ran.stdout.as_slice(), ran.code),
                (&b"a\r\nprober\r\n"[..], 3)
            );
        }
        // Through a pipe each letter is shown where it is read
        let ran = typed(&["powershell"], "hostname\nnonesuch\n");
        let shown = String::from_utf8(ran.stdout).expect("text");
        let banner = "Windows PowerShell\r\nCopyright (C) Microsoft Corporation. All rights reserved.\r\n\r\n";
        assert_eq!(
            shown,
            format!("{banner}PS C:\\> hostname\nprober\r\nPS C:\\> nonesuch\nPS C:\\> ")
        );
        assert_eq!(ran.code, 1, "the last command failed");
        let ran = typed(&["powershell", "-NoLogo"], "exit 5\n");
        assert_eq!(
            (ran.stdout.as_slice(), ran.code),
            (&b"PS C:\\> exit 5\n"[..], 5)
        );
        let nano = place(Os::Windows, Family::Nanoserver);
        assert!(matches!(
            start(&nano, &["powershell"]),
            Started::Refused(Refusal::Missing(_))
        ));
    }
}
