//! `cmd /c`: joints, pipes and redirections, variables, and the built-in commands that suites need.
//!
//! Texts are those of an English Windows Server 2022, from public transcripts; lines end in CR LF.
//! `& && ||` join commands, `|` pipes, `^` escapes, `%NAME%` expands; quotes protect all but `%`.

mod files;
mod syntax;
mod variables;

use super::input::Input;
use super::script::{List, Machine, Step, Tongue, not_understood, number, path};
use super::windows::{launch, words};
use super::{NOT_SIMULATED, Place, Ran, Refusal, Sight, Started, system};
use crate::topology::Build;
use files::{directory, type_files};
use variables::{expanded, set};

/// Runs a line.
pub(super) fn run(place: &Place, line: &str, input: &Input, view: &Sight<'_>) -> Started {
    let empty = List::default();
    let machine = Machine::new(&Cmd, place, empty, input.clone(), view);
    match expanded(&machine, line).and_then(|line| syntax::parse(&line)) {
        Ok(list) => machine.inner(list, input.clone()).run(view),
        Err(why @ (TOO_LONG | TOO_DEEP)) => Refusal::not_simulated(why),
        Err(why) => not_understood(line, why),
    }
}

/// learn.microsoft.com, "Command prompt line string limitation": 8191 letters.
const MOST_LETTERS: usize = 8191;
const TOO_LONG: &str = "a line of more than 8191 letters";

const TOO_DEEP: &str = "commands nested so deep";

struct Cmd;

impl Tongue for Cmd {
    fn step(&self, machine: &mut Machine, text: &str, input: &Input, view: &Sight<'_>) -> Step {
        match valued(machine, text) {
            Ok(text) => step(machine, &text, input, view),
            Err(ran) => Step::Next(Started::Ended(ran)),
        }
    }

    fn words(&self, machine: &mut Machine, text: &str, _: &Sight<'_>) -> Result<Vec<String>, Ran> {
        let text = valued(machine, text)?;
        let words = words(&text.replace([',', ';'], " "));
        match words.iter().any(|word| word.contains(['*', '?'])) {
            // It would go over the files of that name
            true => Err(Ran::complains(
                "hybrid-sim does not simulate `for` over files\n",
                NOT_SIMULATED,
            )),
            false => Ok(words),
        }
    }

    fn set(&self, machine: &mut Machine, name: &str, value: String) -> Result<(), Ran> {
        machine.assign(name, value, false)
    }
}

/// A text with the variables of the loops around it.
fn valued(machine: &Machine, text: &str) -> Result<String, Ran> {
    let mut text = text.to_owned();
    for (name, value) in &machine.own {
        if text.len() + text.matches(name).count() * value.len() > MOST_LETTERS {
            return Err(Refusal::instead_of(TOO_LONG));
        }
        text = text.replace(name, value);
    }
    Ok(text)
}

/// Runs one command. `echo`, `rem` and `if` leave `ERRORLEVEL` as it is.
fn step(machine: &mut Machine, text: &str, input: &Input, view: &Sight<'_>) -> Step {
    if text.is_empty() && !machine.is_alone() {
        return Step::Next(Started::Ended(Ran::complains(
            "The syntax of the command is incorrect.\r\n",
            1,
        )));
    }
    // `@` keeps a line from being shown, which none is here
    let text = text.trim_start_matches('@');
    let place = &mut machine.place;
    let words = words(text);
    let Some(first) = words.first() else {
        return Step::Next(Started::Ended(Ran::default()));
    };
    let lower = first.to_ascii_lowercase();
    if let Some(ran) = echo(text, &lower) {
        return Step::Next(Started::Ended(ran));
    }
    let ran = match lower.as_str() {
        "exit" => {
            let code = words
                .iter()
                .skip(1)
                .find(|word| !word.eq_ignore_ascii_case("/b"));
            return Step::Last(Ran::code(match code {
                None => machine.level,
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
        "set" => set(machine, text.get(3..).unwrap_or_default().trim()),
        "ver" => Ran::prints(format!(
            "\r\nMicrosoft Windows [Version {}]\r\n",
            version(place, view)
        )),
        "if" => return Step::Next(Started::Ended(condition(place, text))),
        "date" | "time"
            if words
                .get(1)
                .is_some_and(|flag| flag.eq_ignore_ascii_case("/t")) =>
        {
            let seat = super::seat::Seat { place, view: *view };
            let format = if lower == "date" {
                "%a %m/%d/%Y "
            } else {
                "%I:%M %p"
            };
            Ran::prints(format!("{}\r\n", seat.now().strftime(format)))
        }
        "assoc" | "call" | "cls" | "color" | "copy" | "date" | "endlocal" | "for" | "ftype"
        | "goto" | "mklink" | "move" | "path" | "pause" | "popd" | "prompt" | "pushd" | "rd"
        | "ren" | "rename" | "rmdir" | "shift" | "start" | "time" | "title" | "verify" | "vol" => {
            return Step::Next(Refusal::not_simulated(text));
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
    machine.level = ran.code;
    Step::Next(Started::Ended(ran))
}

/// `echo.` and `echo:` print an empty line; what follows the name is printed as it stands.
fn echo(text: &str, first: &str) -> Option<Ran> {
    let behind = first
        .strip_prefix("echo")
        .filter(|rest| rest.is_empty() || rest.starts_with(['.', ':']))?;
    let said = text
        .get(4 + usize::from(!behind.is_empty())..)
        .unwrap_or_default();
    let said = said.strip_prefix(' ').unwrap_or(said);
    let printed = if said.is_empty() && first == "echo" {
        "ECHO is on."
    } else {
        said
    };
    Some(Ran::prints(format!("{printed}\r\n")))
}

/// `if [not] exist FILE`: whether what stands behind it runs.
fn condition(place: &Place, text: &str) -> Ran {
    let words = words(text);
    let (negated, file) = match words.as_slice() {
        [_, not, _, file] if not.eq_ignore_ascii_case("not") => (true, file),
        [_, _, file] => (false, file),
        _ => return Refusal::instead_of(text),
    };
    if file.contains(['*', '?']) {
        return Refusal::instead_of(text);
    }
    let at = path(place, file);
    match system::exists(place, &at) {
        Ok(exists) => Ran::code(u32::from(exists == negated)),
        Err(refused) => refused,
    }
}

/// A path as Windows shows it.
fn shown(place: &Place, file: &str) -> String {
    let at = path(place, file).replace('/', "\\");
    let at = at.trim_end_matches('\\').trim_start_matches('\\');
    match at.split_once(':') {
        // A root keeps its backslash
        Some((_, "")) => format!("{at}\\"),
        Some(_) => at.to_owned(),
        None => format!("C:\\{at}"),
    }
}

/// Where a shell stands.
pub(super) fn standing(place: &Place) -> String {
    shown(place, "")
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

#[cfg(test)]
mod tests {
    use super::super::End;
    use super::super::tests::{place, run as start};
    use super::*;
    use crate::image::Family;
    use crate::topology::Os;

    #[test]
    fn a_computers_name_has_fifteen_letters() {
        let named = |name: &str| {
            let mut place = place(Os::Windows, Family::Servercore);
            name.clone_into(&mut place.hostname);
            start(&place, &["cmd", "/c", "echo %COMPUTERNAME%"])
        };
        let prints = |text: &str| Started::Ended(Ran::prints(text));
        assert_eq!(named("web-0"), prints("WEB-0\r\n"));
        assert_eq!(named("a-web-server-7f4d"), prints("A-WEB-SERVER-7F\r\n"));
    }

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
    fn what_the_shell_computes_is_expanded_or_refused() {
        assert_eq!(cmd("echo %CD% %errorlevel%").0, "C:\\ 0\r\n");
        assert_eq!(cmd("echo %NONESUCH:~0,5% 5%").0, "%NONESUCH:~0,5% 5%\r\n");
        for line in [
            "echo %DATE%",
            "echo %TIME%",
            "echo %random%",
            "echo %PATH:~0,5%",
            "echo %CD:~0,1%",
            "echo %ANSWER:4=5%",
            "set /a 1+2",
            "set /p A=?",
        ] {
            let (out, error, code) = cmd(line);
            assert_eq!((out.as_str(), code), ("", NOT_SIMULATED), "{line}");
            assert!(
                error.starts_with("hybrid-sim does not simulate `"),
                "{error}"
            );
        }
        let mut place = place(Os::Windows, Family::Servercore);
        place.env = std::sync::Arc::new([("Date".to_owned(), "mine".to_owned())].into());
        let own = start(&place, &["cmd", "/c", "echo %DATE%"]);
        assert_eq!(own, Started::Ended(Ran::prints("mine\r\n")));
    }

    #[test]
    fn a_root_keeps_its_backslash() {
        for line in ["dir C:\\", "dir", "dir \\", "dir c:/"] {
            let (out, ..) = cmd(line);
            assert!(
                out.to_lowercase().contains(" directory of c:\\\r\n"),
                "{line}: {out}"
            );
        }
        assert!(
            cmd("dir C:\\Users\\")
                .0
                .contains(" Directory of C:\\Users\r\n")
        );
        assert_eq!(cmd("cd C:\\& cd").0, "C:\\\r\n");
    }

    #[test]
    fn files_of_the_system_are_known_or_refused() {
        let there = |path| cmd(&format!("if exist {path} echo yes"));
        for path in [
            "C:\\Windows\\System32\\cmd.exe",
            "C:\\windows\\system32\\DRIVERS\\etc\\hosts",
            "C:\\Windows",
        ] {
            assert_eq!(there(path).0, "yes\r\n", "{path}");
        }
        assert_eq!(there("C:\\none"), (String::new(), String::new(), 0));
        assert_eq!(there("C:\\Windows\\win.ini").2, NOT_SIMULATED);
        assert_eq!(cmd("type C:\\Windows\\win.ini").2, NOT_SIMULATED);
        assert_eq!(cmd("dir C:\\Windows").2, NOT_SIMULATED);
        assert_eq!(
            cmd("echo a> C:\\Windows\\Temp\\B& dir /b C:\\windows\\temp").0,
            "B\r\n"
        );
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
        assert_eq!(cmd("cmd /c exit 3& (if exist x ver)& exit").2, 3);
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
    fn loops_count_and_go_on() {
        let all = |line: &str| {
            let place = place(Os::Windows, Family::Servercore);
            let nothing = super::super::tests::Empty::default();
            let followed = start(&place, &["cmd", "/c", line]).follow(&nothing.view());
            let text = String::from_utf8(followed.ran.stdout).expect("text");
            (text.replace("\r\n", " "), followed.end)
        };
        assert_eq!(
            all("for /L %i in (1,1,3) do @echo n%i & echo x").0,
            "n1 x n2 x n3 x "
        );
        assert_eq!(
            all("for %a in (x y) do echo %a"),
            ("x y ".to_owned(), End::Ended)
        );
        for (line, text) in [
            ("(echo a & echo b)", "a b "),
            ("(echo a& echo b) > f & type f & echo c", "a b c "),
            ("(echo a& echo b) | findstr b", "b "),
            ("for %i in (1 2) do (echo %i)", "1 2 "),
            (
                "for %i in (1 2) do @for %j in (%i x) do @echo %j",
                "1 x 2 x ",
            ),
            ("(for %i in (1 2) do echo %i) & echo done", "1 2 done "),
            ("if exist C:\\none echo yes & echo b", ""),
            ("(if exist C:\\none echo yes & echo b) & echo c", "c "),
            ("if not exist C:\\none (echo a& echo b)", "a b "),
            (
                "if not exist C:\\none (if exist C:\\Windows (echo a))",
                "a ",
            ),
            ("echo (a)& echo \"(b\"", "(a) \"(b\" "),
        ] {
            assert_eq!(all(line), (text.to_owned(), End::Ended), "{line}");
        }
        let (text, end) =
            all("echo first & for /l %i in (1,0,2) do (echo on & ping -n 2 127.0.0.1 >nul)");
        assert!(text.starts_with("first on on "), "{}", &text[..40]);
        assert_eq!(
            (end, text.matches("on").count() > 1000),
            (End::GoesOn(None), true)
        );
        let (text, end) = all("echo first & ping -t 127.0.0.1 | findstr TTL");
        assert!(
            text.starts_with("first Reply from 127.0.0.1"),
            "{}",
            &text[..40]
        );
        assert_eq!(end, End::GoesOn(None));
        for line in [
            "for /f %i in (a) do echo",
            "for %i in (*.txt) do echo %i",
            "for x",
            "for /l %i in (1) do a",
            "for %i in (1 2) do (echo %i) & echo done",
            "if exist x (echo a) else echo b",
            "if 1==1 echo a",
            "(echo a",
            "(echo a) echo b",
            "for %i in (a) do echo x> %i",
        ] {
            assert_eq!(cmd(line).2, NOT_SIMULATED, "{line}");
        }
    }

    #[test]
    fn files() {
        let root = cmd("dir C:\\").0;
        assert!(root.contains("    <DIR>          Windows\r\n"), "{root}");
        assert!(
            root.contains("               1 File(s)              0 bytes\r\n"),
            "{root}"
        );
        let hosts = cmd("type C:\\Windows\\System32\\drivers\\etc\\hosts").0;
        assert!(
            hosts.contains("\r\n#\t127.0.0.1       localhost\r\n"),
            "{hosts}"
        );
        assert_eq!(
            cmd("date /t & time /t").0,
            "Thu 01/01/2026 \r\n12:00 AM\r\n"
        );
        assert_eq!(cmd("netstat -an").2, NOT_SIMULATED);
        assert_eq!(
            cmd("netstat -an").1,
            "hybrid-sim does not simulate `netstat`\n"
        );
        assert_eq!(cmd("where curl").0, "C:\\Windows\\System32\\curl.exe\r\n");
        assert_eq!(cmd("where nonesuch curl.exe").2, 1);
        assert_eq!(cmd("echo x| more").0, "x\r\n");

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
