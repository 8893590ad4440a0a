//! `powershell -command`, in its least: the web server of the user guide, waiting, printing, files,
//! variables, names and single requests.
//!
//! Whatever else a script does is refused by name. Texts are those of PowerShell 5.1.

use std::time::Duration;

use super::input::Input;
use super::script::{Machine, Step, Tongue, not_understood, number, path, too_long};
use super::seat::Seat;
use super::windows::launch;
use super::{Place, Ran, Refusal, Sight, Started, nslookup, system};
use crate::image::Family;
use crate::topology::{Build, Os, Pool};

mod arguments;
mod listener;
mod requests;
mod statements;

/// Runs `powershell ARGS`.
pub(super) fn run(place: &Place, args: &[String], input: &Input, view: &Sight<'_>) -> Started {
    // about_PowerShell_exe: the value `-` of -Command stands for the input
    let Some(script) = script(args).filter(|script| !matches!(&**script, "" | "-")) else {
        return Refusal::not_simulated(&format!("powershell {}", args.join(" ")));
    };
    if let Some(refused) = too_long(&script) {
        return refused;
    }
    if script.contains("HttpListener") {
        return listener::http_listener(&script);
    }
    match statements::parse(&script) {
        Ok(list) => Machine::new(&PowerShell, place, list, input.clone(), view).run(view),
        Err(why) => not_understood(&script, why),
    }
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

struct PowerShell;

impl Tongue for PowerShell {
    fn step(&self, machine: &mut Machine, text: &str, input: &Input, view: &Sight<'_>) -> Step {
        step(machine, text, input, view)
    }

    /// `about_PowerShell_exe`: where no `exit` says it, the exit code is whether the last command
    /// succeeded, and codes other than 0 and 1 are converted to 1.
    fn last(&self, code: u32) -> u32 {
        code.min(1)
    }

    fn words(&self, _: &mut Machine, _: &str, _: &Sight<'_>) -> Result<Vec<String>, Ran> {
        Ok(Vec::new())
    }

    fn set(&self, _: &mut Machine, _: &str, _: String) -> Result<(), Ran> {
        Ok(())
    }
}

fn step(machine: &mut Machine, statement: &str, input: &Input, view: &Sight<'_>) -> Step {
    let Machine { place, level, .. } = machine;
    let place = &*place;
    let seat = Seat { place, view: *view };
    let Some(words) = arguments::arguments(place, statement) else {
        return Step::Next(Refusal::not_simulated(statement));
    };
    let Some(first) = words.first().map(|word| word.to_ascii_lowercase()) else {
        return Step::Next(Started::Ended(Ran::default()));
    };
    let args = &words[1..];
    let line = |text: String| Ran::prints(format!("{text}\r\n"));
    if statements::is_more(statement) {
        return Step::Next(Refusal::not_simulated(statement));
    }
    Step::Next(Started::Ended(match first.as_str() {
        "exit" => {
            let code = match words.get(1) {
                None => Some(0),
                Some(code) if code.eq_ignore_ascii_case("$LASTEXITCODE") => Some(*level),
                code => number(code),
            };
            return match code {
                Some(code) => Step::Last(Ran::code(code)),
                None => Step::Next(Refusal::not_simulated(statement)),
            };
        }
        "start-sleep" | "sleep" => wait(args),
        "write-host" | "write-output" | "echo"
            if statement.contains([',', '-', '@']) && !statements::is_plain(statement) =>
        {
            return Step::Next(Refusal::not_simulated(statement));
        }
        "write-host" => line(args.join(" ")),
        // Each of its arguments is an object of its own
        "write-output" | "echo" => line(args.join("\r\n")),
        "hostname" => line(place.hostname.clone()),
        "break" => return Step::Leave(1),
        "continue" => return Step::Again(1),
        "get-date" => match date(args, &seat) {
            Some(ran) => ran,
            None => return Step::Next(Refusal::not_simulated(statement)),
        },
        "get-content" | "gc" | "cat" | "type" => content(place, args),
        "set-content" | "sc" => put(place, args),
        "test-path" => {
            let at = path(place, value(args, "-path").as_deref().unwrap_or_default());
            match system::exists(place, &at) {
                Ok(there) => line(if there { "True" } else { "False" }.to_owned()),
                Err(refused) => refused,
            }
        }
        "resolve-dnsname" if place.family != Family::Agnhost => {
            nslookup::resolve_dns_name(args, &seat)
        }
        "test-netconnection" | "tnc" if place.family != Family::Agnhost => {
            requests::probe(args, &seat)
        }
        "invoke-webrequest" | "iwr" | "curl" | "wget" => {
            return Step::Next(Refusal::not_simulated(
                "Invoke-WebRequest but for its .Content and .StatusCode",
            ));
        }
        "[system.environment]::osversion.version" => version(&seat),
        _ if first.starts_with("(invoke-webrequest") || first.starts_with("(iwr") => {
            return Step::Next(requests::fetch(statement, &words, &seat));
        }
        // An expression that is more than this is not a command's name
        _ if statement.starts_with(['"', '\'']) && words.len() == 1 => line(words.concat()),
        _ if arguments::is_variable(statement) => match words.concat() {
            value if value.is_empty() => Ran::default(),
            value => line(value),
        },
        _ if !statement.starts_with(|c: char| c.is_alphabetic() || "_.\\/".contains(c)) => {
            return Step::Next(Refusal::not_simulated(statement));
        }
        name if ALIASES.contains(&name) => {
            return Step::Next(Refusal::not_simulated(statement));
        }
        name if arguments::is_cmdlet(name) => {
            return Step::Next(Refusal::not_simulated(statement));
        }
        _ => {
            return Step::Next(match launch(place, &words[0], &words, input, view) {
                Started::Ended(ran) => {
                    *level = ran.code;
                    Started::Ended(ran)
                }
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
        Err(_) if system::is_unknown(place, &at) => {
            Refusal::instead_of(&format!("the content of {file}"))
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

#[cfg(test)]
mod tests {
    use super::super::NOT_SIMULATED;
    use super::super::tests::{Empty, place, run as start};
    use super::*;
    use crate::world::Page;

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
    fn a_connection_is_tested_with_a_port_and_quietly_alone() {
        let servercore = place(Os::Windows, Family::Servercore);
        let script = "Test-NetConnection nowhere -Port 80";
        let ran = ended(start(&servercore, &["powershell", "-Command", script]));
        let said = "hybrid-sim does not simulate `Test-NetConnection but with -Port and \
                    -InformationLevel Quiet`\n";
        assert_eq!(String::from_utf8_lossy(&ran.stderr), said);
        assert_eq!(ran.code, NOT_SIMULATED);
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
        use super::super::net::Link;
        use super::super::table::Table;
        let net = Table::new(Os::Windows)
            .link([10, 0, 0, 2], 80, Link::TimedOut)
            .link([10, 0, 0, 3], 80, Link::NoRoute);
        for (host, seconds) in [("10.0.0.1", 2), ("10.0.0.2", 21), ("10.0.0.3", 0)] {
            let statement = format!("(Invoke-WebRequest http://{host}/).Content");
            let ran = ended(requests::fetch(
                &statement,
                &super::super::windows::words(&statement),
                &net,
            ));
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
            ("cmd /c exit 3", 1),
            ("cmd /c exit 3; exit $LASTEXITCODE", 3),
            ("cmd /c exit 3; Write-Output a", 0),
            ("cmd /c exit 3; exit", 0),
            ("exit 3", 3),
            ("nonesuch", 1),
            ("exit $x", NOT_SIMULATED),
            ("Write-Output hi > C:\\f", NOT_SIMULATED),
            ("Write-Output \"a\" | Out-Null", NOT_SIMULATED),
            ("Write-Output $(hostname)", NOT_SIMULATED),
            ("Write-Output \"$x $(hostname)\"", NOT_SIMULATED),
            ("Write-Output a,b", NOT_SIMULATED),
            ("Write-Host -NoNewline a", NOT_SIMULATED),
            ("Write-Host `\"a`\"", NOT_SIMULATED),
            ("Write-Output (hostname)", NOT_SIMULATED),
            ("Write-Output 'a | b > $(c)' \"-a, > b\"; exit 2", 2),
        ] {
            let ran = ended(start(&servercore, &["powershell", "-Command", script]));
            assert_eq!(ran.code, code, "{script}");
        }
        for (args, code) in [
            (
                &[
                    "powershell",
                    "-NoLogo",
                    "-ExecutionPolicy",
                    "Bypass",
                    "hostname",
                ][..],
                0,
            ),
            (&["powershell", "-File", "a.ps1"], NOT_SIMULATED),
            (&["powershell", "-EncodedCommand", "aAA="], NOT_SIMULATED),
            (&["powershell", "-Command", "-"], NOT_SIMULATED),
            (&["powershell"], NOT_SIMULATED),
        ] {
            assert_eq!(ended(start(&servercore, args)).code, code, "{args:?}");
        }
        let ran = ended(start(&servercore, &["powershell", "Write-Output a 'b c'"]));
        assert_eq!(ran.stdout, b"a\r\nb c\r\n");
        let nano = place(Os::Windows, Family::Nanoserver);
        assert!(matches!(
            start(&nano, &["powershell"]),
            Started::Refused(Refusal::Missing(_))
        ));
    }
}
