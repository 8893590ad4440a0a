//! The scripts that both shells run: a few kinds, each of a fixed form.
//!
//! | script | used by |
//! |---|---|
//! | `PART && echo WORDS \|\| echo WORDS`, several in a row | sessions of curl and ping |
//! | steps: `echo`, `sleep`, `exit`, `ping` | entry points, probes, hooks, streams |
//! | variables | `env` and `set` |
//! | one command on a file | `file.rs` |
//! | a line of a named pipe, as a variable | `pipe.rs` |
//! | a line to a file on a share, and the file's end | `share.rs` |
//! | `if defined NAME (PROGRAM\| PROGRAM) else exit CODE` | what `findstr` finds in an output |
//! | `if defined NAME (PROGRAM) else exit CODE` | the API server, by the variables of its Service |
//! | `type FILE\|\| (STEPS)` | an entry point that fails until a file is there |

use std::time::Duration;

use super::forms::{self, Call};
use super::{ADMINISTRATOR, NOT_SIMULATED, Place, Ran, Refusal, Started, file};
use crate::base::log::Stream;
use crate::program::windows::system::end_of_line;
use crate::program::windows::{host, pipe, share};
use crate::topology::Os;

/// `sh -c SCRIPT`.
pub(crate) fn linux(call: &Call<'_>) -> Option<Started> {
    let ["-c", script] = call.words()? else {
        return None;
    };
    run(call, script)
}

/// `cmd /c SCRIPT`, where the script is one argument or several.
pub(crate) fn windows(call: &Call<'_>) -> Option<Started> {
    let (flag, script) = call.args.split_first()?;
    let is_that = flag.eq_ignore_ascii_case("/c") && !script.is_empty();
    is_that.then(|| run(call, &script.join(" ")))?
}

fn run(call: &Call<'_>, script: &str) -> Option<Started> {
    session(call, script)
        .or_else(|| environment(call.place(), script))
        .or_else(|| file::command(call, script))
        .or_else(|| pipe::read(call, script))
        .or_else(|| share::write(call, script))
        .or_else(|| piped(call, script))
        .map(Started::Ended)
        .or_else(|| BUSY.contains(&script).then(Started::stays))
        .or_else(|| instead(call, script))
        .or_else(|| steps(call, script))
}

/// What a shell of each system does for ever, with all the processor time that it gets.
pub(crate) const BUSY: [&str; 2] = ["for /l %i in (1,0,2) do @rem", "while :; do :; done"];

/// The shell's message for a missing program (busybox 1.37, `shell/ash.c`, `shellexec`; Microsoft, "'x' is
/// not recognized as an internal or external command").
pub(crate) fn not_found(os: Os, file: &str) -> Ran {
    match os {
        Os::Linux => Ran::complains(format!("sh: {file}: not found\n"), 127),
        Os::Windows => Ran::complains(
            format!(
                "'{file}' is not recognized as an internal or external command,\r\n\
                 operable program or batch file.\r\n"
            ),
            1,
        ),
    }
}

/// Runs parts in a row; a line after each reports whether it succeeded.
fn session(call: &Call<'_>, script: &str) -> Option<Ran> {
    let (end, space) = match call.place().os {
        Os::Linux => ("; ", " "),
        Os::Windows => ("& ", ""),
    };
    let otherwise = format!("{space}|| echo ");
    if script.is_empty() {
        return None;
    }
    let (mut ran, mut rest) = (Ran::default(), script);
    while !rest.is_empty() {
        let (part, after) = rest.split_once(" && echo ")?;
        let (good, after) = after.split_once(&otherwise)?;
        let (bad, after) = after.split_once(end).unwrap_or((after, ""));
        rest = after;
        let one = run_part(call, part)?;
        if one.code == NOT_SIMULATED {
            return Some(one);
        }
        let said = if one.code == 0 { good } else { bad };
        let line = format!("{said}{}", end_of_line(call.place().os));
        ran = ran.then(one).then(Ran::prints(line));
    }
    Some(ran)
}

/// A text without its end, and whether it had that end.
fn cut<'a>(text: &'a str, end: &str) -> (&'a str, bool) {
    let before = text.strip_suffix(end);
    (before.unwrap_or(text), before.is_some())
}

/// Runs a program with plain arguments, and with `2>&1` or without.
fn run_part(call: &Call<'_>, part: &str) -> Option<Ran> {
    let (part, joined) = cut(part, " 2>&1");
    if part.contains(['"', '\'', '&', '|', ';', '<', '>', '$', '%', '^', '`']) {
        return None;
    }
    let argv: Vec<String> = part.split(' ').map(str::to_owned).collect();
    let mut ran = match forms::run(call.seat, &argv, call.input) {
        Started::Ended(ran) => ran,
        Started::Refused(Refusal::Missing(file)) => not_found(call.place().os, &file),
        _ => return None,
    };
    for piece in ran.pieces.iter_mut().filter(|_| joined) {
        piece.stream = Stream::Out;
    }
    Some(ran)
}

/// `if defined NAME ((PROGRAM >NUL|| exit CODE)& PROGRAM| PROGRAM) else exit CODE`, or with one program, the last with
/// variables.
fn piped(call: &Call<'_>, script: &str) -> Option<Ran> {
    let (variable, rest) = script.strip_prefix("if defined ")?.split_once(" (")?;
    let (programs, code) = rest.split_once(") else exit ")?;
    let known = variables(call.place());
    if !known.iter().any(|(name, _)| name == variable) {
        return Some(Ran::code(code.parse().ok()?));
    }
    // The simulated program does not fail
    let programs = programs
        .rsplit_once(")& ")
        .map_or(programs, |(_, last)| last);
    let Some((first, second)) = programs.split_once("| ") else {
        return run_part(call, &expanded(call.place(), programs));
    };
    let ran = run_part(call, first)?;
    let input = ran
        .pieces
        .iter()
        .filter(|piece| piece.stream == Stream::Out);
    let input: Vec<u8> = input.flat_map(|piece| piece.bytes.clone()).collect();
    let reader = Call {
        input: &input,
        ..*call
    };
    run_part(&reader, &expanded(call.place(), second))
}

/// `env | grep -E '^(A|B)='`; or `set A& set B`, which shows all variables whose names begin with these.
fn environment(place: &Place, script: &str) -> Option<Ran> {
    let name = |name: &str| {
        let plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        !name.is_empty() && name.chars().all(plain)
    };
    if place.os == Os::Linux {
        let names = script
            .strip_prefix("env | grep -E '^(")?
            .strip_suffix(")='")?;
        let names: Vec<&str> = names.split('|').collect();
        let shown = place.env.iter();
        let shown = shown.filter(|(name, _)| names.contains(&name.as_str()));
        let lines = shown.map(|(name, value)| format!("{name}={value}\n"));
        let lines = lines.collect::<Vec<_>>().concat();
        let code = u32::from(lines.is_empty());
        return names
            .iter()
            .all(|one| name(one))
            .then(|| Ran::prints(lines).ending(code));
    }
    let mut ran = Ran::default();
    for part in script.split("& ") {
        let prefix = part.strip_prefix("set ").filter(|prefix| name(prefix))?;
        let prefix = prefix.to_ascii_lowercase();
        let known = variables(place).into_iter();
        let shown = known.filter(|(name, _)| name.to_ascii_lowercase().starts_with(&prefix));
        let lines = shown.map(|(name, value)| format!("{name}={value}\r\n"));
        let lines = lines.collect::<Vec<_>>().concat();
        ran = ran.then(match lines.is_empty() {
            true => Ran::complains(
                format!("Environment variable {} not defined\r\n", &part[4..]),
                1,
            ),
            false => Ran::prints(lines),
        });
    }
    Some(ran)
}

/// The variables of a Windows process, as far as something here reads them; the container's override the
/// system's.
fn variables(place: &Place) -> Vec<(String, String)> {
    let user = place.user.as_deref().unwrap_or(ADMINISTRATOR);
    let user = user.rsplit('\\').next().unwrap_or(user).to_owned();
    // A NetBIOS name has at most 15 letters (Microsoft, "Naming conventions in Active Directory")
    let computer = place.hostname.to_uppercase().chars().take(15).collect();
    let mut system = vec![("COMPUTERNAME", computer), ("USERNAME", user)];
    if place.host_process {
        // Under bindflt a HostProcess container's files also appear at this mount point
        system.push(("CONTAINER_SANDBOX_MOUNT_POINT", "C:\\hpc".to_owned()));
    }
    let is_set = |name: &str| place.env.keys().any(|key| key.eq_ignore_ascii_case(name));
    let system = system.into_iter().filter(|(name, _)| !is_set(name));
    let env = place.env.iter();
    env.map(|(name, value)| (name.clone(), value.clone()))
        .chain(system.map(|(name, value)| (name.to_owned(), value)))
        .collect()
}

/// A text with its `%NAME%`s replaced; `cmd` leaves those of unknown variables unchanged.
pub(crate) fn expanded(place: &Place, text: &str) -> String {
    let mut text = text.to_owned();
    for (name, value) in variables(place) {
        text = text.replace(&format!("%{name}%"), &value);
    }
    text
}

/// Runs the steps of a script one after the other.
fn steps(call: &Call<'_>, script: &str) -> Option<Started> {
    let os = call.place().os;
    // A text ends where the redirection begins, and Windows prints the blank before that
    let marked = match os {
        Os::Linux => script.replace(" 1>&2", ERROR).replace(" >&2", ERROR),
        Os::Windows => script.replace("1>&2", ERROR),
    };
    let mut ran = Ran::default();
    for step in marked.split(if os == Os::Linux { ';' } else { '&' }) {
        let step = step.trim_start();
        let (word, rest) = step.split_once(' ').unwrap_or((step, ""));
        let next = match (word, os) {
            ("exit", _) => return Some(Started::Ended(ran.then(Ran::code(exit(os, rest)?)))),
            ("true" | ":", Os::Linux) if rest.is_empty() => Ran::default(),
            ("echo", _) => match rest.split_once(" > ").filter(|_| os == Os::Linux) {
                Some((text, path)) => file::write(call.place(), path, plain(text)?),
                None => echo(call.place(), rest)?,
            },
            (file, Os::Windows) if file.starts_with('>') => {
                let text = plain(rest.strip_prefix("echo ")?)?;
                file::write(call.place(), &file[1..], text)
            }
            // A folder is there once a file is in it
            ("mkdir", Os::Windows) => Ran::default(),
            ("type" | "del" | "mklink", Os::Windows) => file::command(call, step.trim_end())?,
            ("dir", Os::Windows) if rest.trim_end() == MOUNT_POINT => mount_point(call.place()),
            ("ver", Os::Windows) if rest.is_empty() => Ran::prints("\r\nMicrosoft Windows\r\n"),
            ("dir", Os::Windows) => host::pipes(call, rest)?,
            (program, Os::Windows) if program.starts_with("C:\\") => run_part(call, step)?,
            ("sleep", Os::Linux) => Ran::sleeps(seconds(rest)?),
            ("ping", Os::Windows) => match ping(call, rest) {
                Started::Ended(next) => next,
                stays => return Some(stays.after(ran)),
            },
            _ => return None,
        };
        ran = ran.then(next);
    }
    Some(Started::Ended(ran))
}

/// `type FILE|| (STEPS)`: the steps where the file cannot be read.
fn instead(call: &Call<'_>, script: &str) -> Option<Started> {
    let (first, otherwise) = script.split_once("|| (")?;
    let ran = file::command(call, first)?;
    if ran.code == 0 {
        return Some(Started::Ended(ran));
    }
    let started = steps(call, otherwise.strip_suffix(')')?)?;
    Some(started.after(ran))
}

/// The folder of a `HostProcess` container's image and volumes.
const MOUNT_POINT: &str = "%CONTAINER_SANDBOX_MOUNT_POINT%";

/// Lists the folder, where the variable is set.
fn mount_point(place: &Place) -> Ran {
    match expanded(place, MOUNT_POINT) {
        unset if unset == MOUNT_POINT => Ran::complains("File Not Found\r\n", 1),
        folder => Ran::prints(format!(" Directory of {folder}\r\n")),
    }
}

/// Marks a step that prints to the error stream.
const ERROR: &str = "\u{1}";

fn echo(place: &Place, text: &str) -> Option<Ran> {
    let (text, is_error) = cut(text, ERROR);
    let text = match place.os {
        Os::Linux => plain(text)?.to_owned(),
        Os::Windows => {
            plain(&text.replace('%', ""))?;
            expanded(place, text)
        }
    };
    let line = text + end_of_line(place.os);
    Some(match is_error {
        true => Ran::complains(line, 0),
        false => Ran::prints(line),
    })
}

/// The text, unless a shell would interpret a character of it.
fn plain(text: &str) -> Option<&str> {
    let read = |letter: char| "\"'`$\\%^<>|&()*?[]{}~#!\u{1}".contains(letter);
    (!text.contains(read)).then_some(text)
}

/// Windows keeps 32 bits of an exit code, Linux eight.
fn exit(os: Os, code: &str) -> Option<u32> {
    if code.is_empty() {
        return Some(0);
    }
    let code: i64 = code.trim().parse().ok()?;
    let mask = if os == Os::Linux { 0xff } else { 0xffff_ffff };
    u32::try_from(code & mask).ok()
}

pub(crate) fn seconds(text: &str) -> Option<Duration> {
    Duration::try_from_secs_f64(text.parse().ok()?).ok()
}

/// `ping ARGS`, with `> NUL` or without.
fn ping(call: &Call<'_>, rest: &str) -> Started {
    let (arguments, silent) = cut(rest, " > NUL");
    let line = format!("ping {arguments}");
    let argv: Vec<String> = line.split(' ').map(str::to_owned).collect();
    let started = forms::run(call.seat, &argv, b"");
    match (started, silent) {
        (Started::Ended(ran), true) => {
            let ((took, slept), code) = (ran.lasted(), ran.code);
            let pieces = Vec::new();
            Started::Ended(Ran {
                pieces,
                code,
                took,
                slept,
            })
        }
        (Started::Stays { .. }, true) => Started::stays(),
        (started, _) => started,
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{place, run};
    use super::*;
    use crate::nodes::image::Family;

    fn ended(os: Os, script: &str) -> (u32, String, String) {
        let argv = match os {
            Os::Linux => ["sh", "-c", script],
            Os::Windows => ["cmd", "/c", script],
        };
        match run(&place(os, Family::Agnhost), &argv) {
            Started::Ended(ran) => {
                let text = |of| String::from_utf8(ran.all(of)).expect("text");
                (ran.code, text(Stream::Out), text(Stream::Error))
            }
            other => panic!("{script}: {other:?}"),
        }
    }

    #[test]
    fn steps_follow_one_another() {
        let is = |code, out: &str, error: &str| (code, out.to_owned(), error.to_owned());
        let linux = |script| ended(Os::Linux, script);
        assert_eq!(linux("echo a; echo b 1>&2; exit 7"), is(7, "a\n", "b\n"));
        assert_eq!(linux("exit 256"), is(0, "", ""));
        let windows = |script| ended(Os::Windows, script);
        assert_eq!(
            windows("echo a& echo b 1>&2& exit 7"),
            is(7, "a\r\n", "b \r\n")
        );
        assert_eq!(windows("exit -1").0, u32::MAX);
        assert_eq!(windows("exit 256").0, 256);
        assert_eq!(windows("ping -n 3 127.0.0.1 > NUL"), is(0, "", ""));
    }

    #[test]
    fn a_program_runs_where_its_variable_is_set() {
        let code = |script| ended(Os::Windows, script).0;
        assert_eq!(code("if defined COMPUTERNAME (hostname) else exit 64"), 0);
        assert_eq!(code("if defined W_A (hostname) else exit 64"), 64);
        let unset = "if defined COMPUTERNAME (ping -n 1 %W_A%) else exit 64";
        assert_eq!(code(unset), NOT_SIMULATED);
    }

    #[test]
    fn what_stands_behind_a_failure_runs_until_the_file_is_there() {
        let place = place(Os::Windows, Family::Servercore);
        let argv = [
            "cmd",
            "/c",
            r"type C:\tried|| (>C:\tried echo tried& exit 3)",
        ];
        let codes = [(); 2].map(|()| match run(&place, &argv) {
            Started::Ended(ran) => ran.code,
            other => panic!("{other:?}"),
        });
        assert_eq!(codes, [3, 0]);
    }

    #[test]
    fn what_is_of_no_form_is_refused() {
        for script in [
            "",
            "echo $A",
            "echo a | cat",
            "sleep x",
            "for i in 1; do :; done",
        ] {
            assert_eq!(ended(Os::Linux, script).0, NOT_SIMULATED, "{script}");
        }
        for script in ["echo ^A", "dir", "echo a && echo b", "vol"] {
            assert_eq!(ended(Os::Windows, script).0, NOT_SIMULATED, "{script}");
        }
    }

    #[test]
    fn each_part_of_a_session_has_its_line() {
        let (code, out, error) = ended(
            Os::Linux,
            "nonesuch && echo @@t 0 0 || echo @@t 0 1; ping -c 1 -W 3 10.0.0.9 2>&1 && echo @@t 1 0 || echo @@t 1 1",
        );
        assert_eq!((code, &*error), (0, "sh: nonesuch: not found\n"));
        assert!(out.starts_with("@@t 0 1\nPING 10.0.0.9"), "{out}");
        assert!(out.ends_with("100% packet loss\n@@t 1 1\n"), "{out}");
        let (code, out, _) = ended(
            Os::Windows,
            "nonesuch && echo @@t 0 0|| echo @@t 0 1& ping -n 1 -w 3000 127.0.0.1 && echo @@t 1 0|| echo @@t 1 1",
        );
        assert_eq!(code, 0);
        assert!(
            out.starts_with("@@t 0 1\r\n") && out.ends_with("@@t 1 0\r\n"),
            "{out}"
        );
        // The refusal of an unsimulated part replaces the whole output
        let (code, out, _) = ended(Os::Linux, "curl -v && echo a || echo b");
        assert_eq!((code, &*out), (NOT_SIMULATED, ""));
    }
}
