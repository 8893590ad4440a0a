//! `powershell -command`, in its least: the web server of the user guide, waiting, printing, exiting.
//!
//! Whatever else a script does is refused by name. Texts are those of PowerShell 5.1.

use std::collections::BTreeMap;
use std::time::Duration;

use super::serve::Page;
use super::shell::{Joint, Step, number, sequence, unquoted};
use super::windows::{launch, words};
use super::{Place, Ran, Refusal, Started, View};

/// Runs `powershell ARGS`.
pub(super) fn run(place: &Place, args: &[String], view: &View<'_>) -> Started {
    let is_command = |arg: &String| matches!(arg.to_ascii_lowercase().as_str(), "-command" | "-c");
    let script = match args.iter().position(is_command) {
        Some(at) => args[at + 1..].join(" "),
        None => args
            .iter()
            .skip_while(|arg| arg.starts_with('-'))
            .cloned()
            .collect::<Vec<_>>()
            .join(" "),
    };
    if script.contains("HttpListener") {
        return http_listener(&script);
    }
    let lower = script.to_ascii_lowercase();
    if [
        "while ($true)",
        "while($true)",
        "while (1)",
        "while(1)",
        "ping -t",
    ]
    .iter()
    .any(|ever| lower.contains(ever))
    {
        return Started::stays();
    }
    let commands: Vec<(Joint, String)> = script
        .split([';', '\n'])
        .map(str::trim)
        .filter(|command| !command.is_empty())
        .map(|command| (Joint::Always, command.to_owned()))
        .collect();
    sequence(&commands, |command| statement(place, command, view))
}

fn statement(place: &Place, command: &str, view: &View<'_>) -> Step {
    let words = words(command);
    let first = words
        .first()
        .map(|word| word.to_ascii_lowercase())
        .unwrap_or_default();
    let said = || {
        words[1..]
            .iter()
            .map(|word| unquoted(word))
            .collect::<Vec<_>>()
            .join(" ")
    };
    Step::Next(match first.as_str() {
        "exit" => return Step::Last(Ran::code(number(words.get(1)).unwrap_or(0))),
        "start-sleep" | "sleep" => {
            let in_millis = words
                .iter()
                .any(|word| word.to_ascii_lowercase().starts_with("-m"));
            let amount = words
                .iter()
                .skip(1)
                .find_map(|word| word.parse::<f64>().ok())
                .unwrap_or(0.0);
            let seconds = if in_millis { amount / 1000.0 } else { amount };
            let slept = Duration::try_from_secs_f64(seconds).unwrap_or_default();
            Started::Ended(Ran {
                slept,
                ..Ran::default()
            })
        }
        "write-host" | "write-output" | "echo" => {
            Started::Ended(Ran::prints(format!("{}\r\n", said())))
        }
        "$env:computername" => Started::Ended(Ran::prints(format!("{}\r\n", place.hostname))),
        // An alias of Invoke-WebRequest, and more of PowerShell, is not here
        "curl" | "wget" => Refusal::not_simulated("Invoke-WebRequest"),
        name if name.contains('-') || name.starts_with(['$', '[', '(', '&']) => {
            Refusal::not_simulated(command)
        }
        _ => match launch(place, &words[0], &words, b"", view) {
            Started::Refused(Refusal::Missing(file)) => Started::Ended(Ran::complains(
                format!(
                    "{file} : The term '{file}' is not recognized as the name of a cmdlet, function, script \
                     file, or operable program. Check the spelling of the name, or if a path was included, \
                     verify that the path is correct and try again.\r\n"
                ),
                1,
            )),
            other => other,
        },
    })
}

/// The web server of the user guide. Kubernetes un-escapes `$$`, so a script that still has it was
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
            // PowerShell starts for seconds before it listens, and without a probe the pod is Ready
            // by then
            warm_up: Duration::from_secs(4),
            prints: format!("Listening at http://*:{port}/\r\n"),
        },
        None => Refusal::not_simulated("an HttpListener without a prefix"),
    }
}

#[cfg(test)]
mod tests {
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
    fn powershell_waits_and_exits() {
        let servercore = place(Os::Windows, Family::Servercore);
        let ran = ended(start(
            &servercore,
            &["powershell", "-Command", "Start-Sleep -Seconds 5; exit 3"],
        ));
        assert_eq!((ran.code, ran.slept), (3, Duration::from_secs(5)));
        assert_eq!(
            start(&servercore, &["ping", "-t", "localhost"]),
            Started::stays()
        );
        let nano = place(Os::Windows, Family::Nanoserver);
        assert!(matches!(
            start(&nano, &["powershell"]),
            Started::Refused(Refusal::Missing(_))
        ));
    }
}
