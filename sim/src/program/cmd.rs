//! `cmd /c`: joints, pipes and redirections, variables, and the built-in commands that suites need.
//!
//! Texts are those of an English Windows Server 2022, from public transcripts; lines end in CR LF.
//! `& && ||` join commands, `|` pipes, `^` escapes, `%NAME%` expands; quotes protect all but `%`.

use super::script::{self, Command, Step, number, parse, path, sequence};
use super::windows::{launch, words};
use super::{Place, Ran, Refusal, Sight, Started};
use crate::topology::{Build, Os};

/// Runs a line.
pub(super) fn run(place: &Place, line: &str, input: &[u8], view: &Sight<'_>) -> Started {
    if script::stays(line, &["ping -t", "for /l %"]) {
        return Started::stays();
    }
    let line = expanded(place, line);
    let commands = match parse(&line, Os::Windows) {
        Ok(commands) => commands,
        Err(why) => return script::not_understood(&line, why),
    };
    let (mut place, mut level) = (place.clone(), 0);
    let alone = commands.len() == 1;
    sequence(&place.clone(), &commands, input, |command, input| {
        if command.text.is_empty() && !alone {
            return Step::Next(Started::Ended(Ran::complains(
                "The syntax of the command is incorrect.\r\n",
                1,
            )));
        }
        step(&mut place, command, input, view, &mut level)
    })
}

/// Runs one command; `level` is `ERRORLEVEL`, which `echo`, `rem` and `if` leave as it is.
fn step(
    place: &mut Place,
    command: &Command,
    input: &[u8],
    view: &Sight<'_>,
    level: &mut u32,
) -> Step {
    // `@` keeps a line from being shown, which none is here
    let text = command.text.trim_start_matches('@');
    let words = words(text);
    let Some(first) = words.first() else {
        return Step::Next(Started::Ended(Ran::default()));
    };
    let lower = first.to_ascii_lowercase();
    // `echo.` and `echo:` print an empty line; what follows the name is printed as it stands
    if let Some(said) = lower
        .strip_prefix("echo")
        .filter(|rest| rest.is_empty() || rest.starts_with(['.', ':']))
    {
        let said = text
            .get(4 + usize::from(!said.is_empty())..)
            .unwrap_or_default();
        let said = said.strip_prefix(' ').unwrap_or(said);
        let printed = if said.is_empty() && lower == "echo" {
            "ECHO is on."
        } else {
            said
        };
        return Step::Next(Started::Ended(Ran::prints(format!("{printed}\r\n"))));
    }
    let ran = match lower.as_str() {
        "exit" => {
            let code = words
                .iter()
                .skip(1)
                .find(|word| !word.eq_ignore_ascii_case("/b"));
            return Step::Last(Ran::code(match code {
                None => *level,
                code => number(code).unwrap_or(0),
            }));
        }
        "rem" => return Step::Next(Started::Ended(Ran::default())),
        // A directory is there as soon as something is in it
        "setlocal" | "chcp" | "mkdir" | "md" => Ran::default(),
        "type" => type_files(place, &words[1..]),
        "dir" => directory(place, &words[1..]),
        "del" | "erase" => match words
            .last()
            .map(|file| (file, place.files.remove(&path(place, file))))
        {
            Some((file, Err(_))) => {
                Ran::complains(format!("Could Not Find {}\r\n", shown(place, file)), 0)
            }
            _ => Ran::default(),
        },
        "cd" | "chdir" => {
            match words
                .iter()
                .skip(1)
                .find(|word| !word.eq_ignore_ascii_case("/d"))
            {
                Some(to) => {
                    place.directory = path(place, to);
                    Ran::default()
                }
                None => Ran::prints(format!("{}\r\n", shown(place, ""))),
            }
        }
        "set" => set(place, text.get(3..).unwrap_or_default().trim()),
        "ver" => Ran::prints(format!(
            "\r\nMicrosoft Windows [Version {}]\r\n",
            version(place, view)
        )),
        "if" => return condition(place, text, command, input, view, level),
        "for" | "call" | "goto" | "start" | "pushd" | "copy" | "move" => {
            return Step::Next(Refusal::not_simulated(&command.text));
        }
        _ => match launch(place, first, &words, input, view) {
            Started::Ended(ran) => ran,
            Started::Refused(Refusal::Missing(file)) => Ran::complains(
                format!(
                    "'{file}' is not recognized as an internal or external command,\r\n\
                     operable program or batch file.\r\n"
                ),
                1,
            ),
            other => return Step::Next(other),
        },
    };
    *level = ran.code;
    Step::Next(Started::Ended(ran))
}

/// `if [not] exist FILE COMMAND`.
fn condition(
    place: &mut Place,
    text: &str,
    command: &Command,
    input: &[u8],
    view: &Sight<'_>,
    level: &mut u32,
) -> Step {
    let view = &match view.deeper() {
        Ok(view) => view,
        Err(refusal) => return Step::Next(Started::Refused(refusal)),
    };
    let rest = text.get(2..).unwrap_or_default().trim_start();
    let (negated, rest) = match rest.get(..4) {
        Some(not) if not.eq_ignore_ascii_case("not ") => (true, rest[4..].trim_start()),
        _ => (false, rest),
    };
    let Some(rest) = rest
        .get(..6)
        .filter(|exist| exist.eq_ignore_ascii_case("exist "))
        .map(|_| rest[6..].trim_start())
    else {
        return Step::Next(Refusal::not_simulated(&command.text));
    };
    let end = if let Some(quoted) = rest.strip_prefix('"') {
        quoted.find('"').map_or(rest.len(), |at| at + 2)
    } else {
        rest.find(' ').unwrap_or(rest.len())
    };
    let (file, then) = rest.split_at(end);
    let at = path(place, file);
    let exists = place.files.read(&at).is_ok() || place.files.list(&at).is_some();
    if exists == negated {
        return Step::Next(Started::Ended(Ran::default()));
    }
    let command = Command {
        text: then.trim().to_owned(),
        ..command.clone()
    };
    step(place, &command, input, view, level)
}

fn type_files(place: &Place, files: &[String]) -> Ran {
    let mut all = Ran::default();
    for file in files {
        all = all.then(match place.files.read(&path(place, file)) {
            Ok(stdout) => Ran {
                stdout,
                ..Ran::default()
            },
            Err(error) => Ran::complains(format!("{}\r\n", error.text(Os::Windows)), 1),
        });
    }
    all
}

fn directory(place: &Place, args: &[String]) -> Ran {
    let bare = args.iter().any(|arg| arg.eq_ignore_ascii_case("/b"));
    let of = args
        .iter()
        .find(|arg| !arg.starts_with('/'))
        .map_or("", String::as_str);
    let at = path(place, of);
    let names = match place.files.list(&at) {
        Some(names) => names,
        None if place.files.read(&at).is_ok() => {
            vec![of.rsplit(['\\', '/']).next().unwrap_or_default().to_owned()]
        }
        None => return Ran::complains("File Not Found\r\n", 1),
    };
    if bare {
        return Ran::prints(
            names
                .iter()
                .map(|name| format!("{name}\r\n"))
                .collect::<Vec<_>>()
                .concat(),
        );
    }
    let mut out = format!(
        " Volume in drive C has no label.\r\n Volume Serial Number is 0000-0000\r\n\r\n Directory of {}\r\n\r\n",
        shown(place, of)
    );
    for name in &names {
        out.push_str(&format!(
            "01/01/2026  12:00 AM                 0 {name}\r\n"
        ));
    }
    out.push_str(&format!(
        "{:>16} File(s)              0 bytes\r\n",
        names.len()
    ));
    Ran::prints(out)
}

/// A path as Windows shows it.
fn shown(place: &Place, file: &str) -> String {
    let at = path(place, file).replace('/', "\\");
    let at = at.trim_end_matches('\\').trim_start_matches('\\');
    if at.contains(':') {
        at.to_owned()
    } else {
        format!("C:\\{at}")
    }
}

/// What `ver` says: the build of the image, which is the node's under process isolation but for 2022
/// images on 2025.
fn version(place: &Place, view: &Sight<'_>) -> String {
    let seat = super::seat::Seat { place, view: *view };
    let build = seat
        .pool()
        .and_then(crate::topology::Pool::build)
        .unwrap_or(Build::Ws2022);
    build.kernel_version().to_owned()
}

/// The variables of a process: the container's own over the system's.
fn variables(place: &Place) -> Vec<(String, String)> {
    let user = place.user.as_deref().unwrap_or("ContainerAdministrator");
    let user = user.rsplit('\\').next().unwrap_or(user);
    let system = [
        ("COMPUTERNAME", place.hostname.to_uppercase()),
        // Under bindflt a HostProcess container's files also stand at this mount point
        ("CONTAINER_SANDBOX_MOUNT_POINT", "C:\\hpc".to_owned()),
        ("ComSpec", "C:\\Windows\\system32\\cmd.exe".to_owned()),
        ("OS", "Windows_NT".to_owned()),
        ("Path", "C:\\Windows\\system32;C:\\Windows;".to_owned()),
        ("PROCESSOR_ARCHITECTURE", "AMD64".to_owned()),
        ("ProgramData", "C:\\ProgramData".to_owned()),
        ("SystemDrive", "C:".to_owned()),
        ("SystemRoot", "C:\\Windows".to_owned()),
        ("TEMP", format!("C:\\Users\\{user}\\AppData\\Local\\Temp")),
        ("USERNAME", user.to_owned()),
        ("USERPROFILE", format!("C:\\Users\\{user}")),
        ("windir", "C:\\Windows".to_owned()),
    ];
    let own = |name: &str| place.env.keys().any(|key| key.eq_ignore_ascii_case(name));
    let mut all: Vec<(String, String)> = system
        .into_iter()
        .filter(|(name, _)| {
            !own(name) && (place.host_process || *name != "CONTAINER_SANDBOX_MOUNT_POINT")
        })
        .map(|(name, value)| (name.to_owned(), value))
        .chain(
            place
                .env
                .iter()
                .map(|(name, value)| (name.clone(), value.clone())),
        )
        .collect();
    all.sort_by_key(|(name, _)| name.to_ascii_lowercase());
    all
}

/// A variable's value; names have no case.
pub(super) fn variable(place: &Place, name: &str) -> Option<String> {
    let mut all = variables(place).into_iter();
    Some(all.find(|(key, _)| key.eq_ignore_ascii_case(name))?.1)
}

fn set(place: &mut Place, rest: &str) -> Ran {
    if let Some((name, value)) = rest.trim_matches('"').split_once('=') {
        let mut env = (*place.env).clone();
        env.insert(name.to_owned(), value.to_owned());
        place.env = env.into();
        return Ran::default();
    }
    // A prefix shows all that begin with it
    let begins = |name: &str| {
        name.to_ascii_lowercase()
            .starts_with(&rest.to_ascii_lowercase())
    };
    let shown = variables(place)
        .iter()
        .filter(|(name, _)| begins(name))
        .map(|(name, value)| format!("{name}={value}\r\n"))
        .collect::<Vec<_>>()
        .concat();
    if shown.is_empty() {
        return Ran::complains(format!("Environment variable {rest} not defined\r\n"), 1);
    }
    Ran::prints(shown)
}

/// Puts values for `%NAME%`, before anything else is looked at; unknown names stay as they are.
fn expanded(place: &Place, line: &str) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some((before, after)) = rest.split_once('%') {
        out.push_str(before);
        let known = after
            .split_once('%')
            .and_then(|(name, behind)| Some((variable(place, name)?, behind)));
        match known {
            Some((value, behind)) => {
                out.push_str(&value);
                rest = behind;
            }
            None => {
                out.push('%');
                rest = after;
            }
        }
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::super::tests::{place, run as start};
    use super::*;
    use crate::image::Family;

    fn cmd(line: &str) -> (String, String, u32) {
        let mut place = place(Os::Windows, Family::Servercore);
        place.env = std::sync::Arc::new([("ANSWER".to_owned(), "42".to_owned())].into());
        match start(&place, &["cmd", "/c", line]) {
            Started::Ended(ran) => (
                String::from_utf8(ran.stdout).expect("text"),
                String::from_utf8(ran.stderr).expect("text"),
                ran.code,
            ),
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn variables_joints_and_pipes() {
        assert_eq!(
            cmd("echo %ANSWER% %answer% %NONESUCH%").0,
            "42 42 %NONESUCH%\r\n"
        );
        assert_eq!(cmd("set ANSWER").0, "ANSWER=42\r\n");
        assert_eq!(
            cmd("set NONESUCH"),
            (
                String::new(),
                "Environment variable NONESUCH not defined\r\n".to_owned(),
                1
            )
        );
        assert_eq!(cmd("exit /b 3").2, 3);
        assert_eq!(cmd("nonesuch || echo no&& exit 5").2, 5);
        assert_eq!(cmd("exit").2, 0);
        assert_eq!(cmd("cmd /c exit 3& exit").2, 3);
        assert_eq!(cmd("cmd /c exit 3& echo x& exit /b").2, 3);
        assert_eq!(cmd("cmd /c exit 3& if exist x ver& exit").2, 3);
        assert_eq!(cmd("cmd /c exit 3& ver& exit").2, 0);
        assert_eq!(cmd("echo one two| findstr two").0, "one two\r\n");
        assert_eq!(cmd("echo one | findstr two").2, 1);
        assert_eq!(cmd("echo.").0, "\r\n");
        assert!(
            cmd("ver")
                .0
                .contains("Microsoft Windows [Version 10.0.20348.")
        );
        assert_eq!(cmd("whoami").0, "user manager\\containeradministrator\r\n");
    }

    #[test]
    fn files() {
        assert_eq!(
            cmd("echo hi> C:\\data\\f.txt & type c:/data/F.TXT").0,
            "hi\r\n"
        );
        assert_eq!(cmd("echo a>f&& echo b>>f&& type f").0, "a\r\nb\r\n");
        assert_eq!(
            cmd("type C:\\none"),
            (
                String::new(),
                "The system cannot find the file specified.\r\n".to_owned(),
                1
            )
        );
        assert_eq!(cmd("type C:\\none 2>nul || echo gone").0, "gone\r\n");
        assert_eq!(
            cmd("echo x>C:\\d\\a & echo y>C:\\d\\b & dir /b C:\\d").0,
            "a\r\nb\r\n"
        );
        assert_eq!(cmd("if exist C:\\none echo yes").0, "");
        assert_eq!(cmd("echo x>C:\\e & if exist C:\\e echo yes").0, "yes\r\n");
        assert_eq!(cmd("if not exist C:\\none echo no").0, "no\r\n");
        assert_eq!(cmd("dir C:\\none").1, "File Not Found\r\n");
        assert_eq!(
            cmd("type C:\\none > C:\\all 2>&1 & type C:\\all").0,
            cmd("type C:\\none").1
        );
    }
}
