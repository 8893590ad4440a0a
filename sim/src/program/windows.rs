//! Which programs a Windows container has, and the least of them.
//!
//! Texts are those of an English Windows Server 2022, from public transcripts; output lines end in
//! CR LF.

use std::collections::BTreeMap;
use std::time::Duration;

use super::input::Input;
use super::seat::Seat;
use super::{
    Place, Ran, Refusal, Sight, Started, agnhost, cmd, curl, ipconfig, nslookup, ping, powershell,
    system,
};
use crate::image::Family;
use crate::topology::{Build, Pool};
use crate::world::Page;

/// Exit code of a process that Ctrl-C ended: 0xC000013A, `STATUS_CONTROL_C_EXIT`.
pub(crate) const CONTROL_C: u32 = 0xC000_013A;

const SYSTEM32: &str = "c:\\windows\\system32\\";

/// Finds a program and runs it.
pub(super) fn launch(
    place: &Place,
    file: &str,
    argv: &[String],
    input: &Input,
    view: &Sight<'_>,
) -> Started {
    let view = &match view.deeper() {
        Ok(view) => view,
        Err(refused) => return Started::Ended(refused),
    };
    let path = file.replace('/', "\\").to_ascii_lowercase();
    let (folder, name) = path
        .rsplit_once('\\')
        .map_or(("", path.as_str()), |(folder, name)| (folder, name));
    let name = name.strip_suffix(".exe").unwrap_or(name);
    let rest = argv.get(1..).unwrap_or_default();
    let full = matches!(place.family, Family::Servercore | Family::Iis) || place.host_process;
    let in_system = folder.is_empty() || format!("{folder}\\").starts_with(SYSTEM32);
    let missing = || Started::Refused(Refusal::Missing(file.to_owned()));
    let seat = Seat { place, view: *view };
    match name {
        "agnhost" if place.family == Family::Agnhost => agnhost::run(place, rest, &seat),
        // Dockerfile_windows of agnhost: its own curl stands in C:\curl\AMD64, while PATH has
        // C:\curl
        "curl" if folder == "c:\\curl\\amd64" && place.family == Family::Agnhost => Started::Ended(
            curl::run(&curl::Build::AGNHOST_WINDOWS, rest, input.bytes(), &seat),
        ),
        "pause" if place.family == Family::Pause => Started::stays(),
        "servicemonitor" if place.family == Family::Iis => iis(),
        // Dockerfile_windows of agnhost: C:\dig and busybox in C:\bin are on its PATH
        "dig" | "nc" | "sh" | "wget" | "ls" | "busybox"
            if place.family == Family::Agnhost && !place.host_process && folder.is_empty() =>
        {
            Refusal::not_simulated(name)
        }
        _ if !in_system => missing(),
        "curl" => Started::Ended(curl::run(system_curl(&seat), rest, input.bytes(), &seat)),
        "cmd" => match rest.split_first() {
            Some((flag, inner)) if flag.eq_ignore_ascii_case("/c") => {
                cmd::run(place, &inner.join(" "), input, view)
            }
            _ => Refusal::not_simulated(&argv.join(" ")),
        },
        "powershell" if full => powershell::run(rest, &seat),
        "pwsh" if place.family == Family::Agnhost => Refusal::not_simulated(name),
        "hostname" => Started::Ended(Ran::prints(format!("{}\r\n", place.hostname))),
        // Microsoft's pause image of Nano Server stays by it (microsoft/SDN,
        // Kubernetes/windows/Dockerfile: `cmd /c ping -t localhost`), and agnhost's is built on that
        "ping" => ping::windows(rest, &seat, seat.language()),
        "ipconfig" => Started::Ended(ipconfig::run(place, rest, &seat)),
        // PATH of agnhost's Windows image has C:\dig before System32
        "nslookup"
            if place.family == Family::Agnhost && !place.host_process && folder.is_empty() =>
        {
            nslookup::bind(rest, &seat)
        }
        "nslookup" if full => nslookup::windows(rest, &seat),
        "whoami" if full => Started::Ended(Ran::prints(format!("{}\r\n", user(place)))),
        // Nobody here knows whether Nano Server has them
        "nslookup" | "whoami" => Refusal::not_simulated(name),
        "findstr" | "find" => Started::Ended(find(place, name, rest, input.bytes())),
        "more" => Started::Ended(more(place, rest, input.bytes())),
        "where" => Started::Ended(whereabouts(rest, full)),
        // It reads the console, which an exec has not
        "timeout" => Started::Ended(Ran::complains(
            "ERROR: Input redirection is not supported, exiting the process immediately.\r\n",
            1,
        )),
        _ if LACKING.contains(&name) => Refusal::not_simulated(name),
        _ => missing(),
    }
}

/// What stands in System32 and is not simulated: the command-line tools of Microsoft's reference of
/// Windows commands. Which of them Nano Server lacks nobody here knows, so it refuses them alike.
const LACKING: &[&str] = &[
    "arp",
    "at",
    "attrib",
    "auditpol",
    "bcdedit",
    "bitsadmin",
    "cacls",
    "certreq",
    "certutil",
    "chkdsk",
    "choice",
    "cipher",
    "clip",
    "cmdkey",
    "comp",
    "compact",
    "cscript",
    "diskpart",
    "dism",
    "doskey",
    "driverquery",
    "eventcreate",
    "expand",
    "extrac32",
    "fc",
    "forfiles",
    "format",
    "fsutil",
    "ftp",
    "getmac",
    "gpresult",
    "gpupdate",
    "icacls",
    "klist",
    "label",
    "logman",
    "logoff",
    "makecab",
    "mountvol",
    "mode",
    "msiexec",
    "nbtstat",
    "net",
    "net1",
    "netsh",
    "netstat",
    "nltest",
    "openfiles",
    "pathping",
    "pnputil",
    "powercfg",
    "query",
    "quser",
    "qwinsta",
    "reg",
    "regsvr32",
    "replace",
    "robocopy",
    "route",
    "rundll32",
    "runas",
    "sc",
    "schtasks",
    "setx",
    "sfc",
    "shutdown",
    "sort",
    "subst",
    "systeminfo",
    "takeown",
    "tar",
    "taskkill",
    "tasklist",
    "tracert",
    "tree",
    "typeperf",
    "tzutil",
    "vssadmin",
    "w32tm",
    "waitfor",
    "wevtutil",
    "winrm",
    "winrs",
    "wmic",
    "wscript",
    "xcopy",
];

/// What stands in System32 and is simulated, on every image and on those of a whole system.
const OURS: &[&str] = &[
    "cmd", "curl", "find", "findstr", "hostname", "ipconfig", "more", "ping", "timeout", "where",
];
const FULL: &[&str] = &["nslookup", "whoami"];

/// Whether a path from the root is that of a program in System32.
pub(super) fn is_program(place: &Place, path: &str) -> bool {
    let full = matches!(place.family, Family::Servercore | Family::Iis) || place.host_process;
    let lower = path.to_ascii_lowercase();
    let name = lower.strip_prefix("/windows/system32/");
    name.and_then(|name| name.strip_suffix(".exe"))
        .is_some_and(|name| {
            OURS.contains(&name) || full && (FULL.contains(&name) || LACKING.contains(&name))
        })
}

/// `where NAME…`: Microsoft's page of it; what it does not find, it says once for each.
fn whereabouts(args: &[String], full: bool) -> Ran {
    let mut ran = Ran::default();
    for arg in args.iter().filter(|arg| !arg.starts_with('/')) {
        let lower = arg.to_ascii_lowercase();
        let name = lower.strip_suffix(".exe").unwrap_or(&lower);
        let there = OURS.contains(&name) || LACKING.contains(&name) || full && FULL.contains(&name);
        let one = match there {
            true => Ran::prints(format!("C:\\Windows\\System32\\{name}.exe\r\n")),
            false if full && name == "powershell" => {
                Ran::prints("C:\\Windows\\System32\\WindowsPowerShell\\v1.0\\powershell.exe\r\n")
            }
            false => Ran::complains(
                "INFO: Could not find files for the given pattern(s).\r\n",
                1,
            ),
        };
        let code = ran.code.max(one.code);
        ran = ran.then(one).ending(code);
    }
    ran
}

/// `more` of files, or of its input: without a console nothing is stopped for.
fn more(place: &Place, files: &[String], input: &[u8]) -> Ran {
    if files.is_empty() {
        return Ran::prints(input);
    }
    let mut ran = Ran::default();
    for file in files {
        if ran.stdout.len() > super::script::MOST_TEXT {
            return Refusal::instead_of("files of so much text");
        }
        match place.files.read(&super::script::path(place, file)) {
            Ok(bytes) => ran.say(bytes),
            Err(_) if system::is_unknown(place, &super::script::path(place, file)) => {
                return Refusal::instead_of(&format!("the content of {file}"));
            }
            Err(_) => return Ran::complains(format!("Cannot access file {file}\r\n"), 1),
        }
    }
    ran
}

/// Who runs the container: `runAsUserName`, or the image's user (kubernetes/website,
/// configure-runasusername.md: `ContainerUser` is nanoserver's).
fn user(place: &Place) -> String {
    let image = match place.family {
        Family::Nanoserver => "ContainerUser",
        _ => "ContainerAdministrator",
    };
    let user = place.user.as_deref().unwrap_or(if place.host_process {
        "NT AUTHORITY\\SYSTEM"
    } else {
        image
    });
    match user.split_once('\\') {
        Some(_) => user.to_lowercase(),
        None => format!("user manager\\{}", user.to_lowercase()),
    }
}

/// `find [/v] [/c] [/i] "WORD" [FILE]` and `findstr [/v] [/i] [/n] [/x] [/l] WORD… [FILE]`, of a file or of
/// the input (Microsoft's pages of them). Of findstr's words any one is enough; what is a pattern is not
/// simulated.
fn find(place: &Place, name: &str, args: &[String], input: &[u8]) -> Ran {
    let refused = || Refusal::instead_of(&format!("{name} {}", args.join(" ")));
    let (mut fold, mut inverted, mut count, mut numbered) = (false, false, false, false);
    let (mut whole, mut literal) = (false, false);
    let (mut wanted, mut operands) = (Vec::new(), Vec::new());
    for arg in args {
        match (name, arg.to_ascii_lowercase().as_str()) {
            (_, "/i") => fold = true,
            (_, "/v") => inverted = true,
            ("find", "/c") => count = true,
            ("findstr", "/n") => numbered = true,
            ("findstr", "/x") => whole = true,
            ("findstr", "/l") => literal = true,
            ("findstr", flag) if flag.starts_with("/c:") => {
                wanted.push((arg[3..].to_owned(), false));
            }
            (_, flag) if flag.starts_with('/') => return refused(),
            _ => operands.push(arg),
        }
    }
    if wanted.is_empty() {
        if operands.is_empty() {
            return refused();
        }
        let word = operands.remove(0);
        match name {
            "find" => wanted.push((word.clone(), false)),
            _ => wanted.extend(word.split(' ').map(|word| (word.to_owned(), !literal))),
        }
    }
    // A backslash takes the meaning from a letter even of a word that is none
    let pattern = |(word, pattern): &(String, bool)| {
        word.contains('\\') || *pattern && word.contains(['*', '[', ']', '^', '$'])
    };
    if name == "findstr" && wanted.iter().any(pattern) {
        return refused();
    }
    let bytes = match operands[..] {
        [] => input.to_vec(),
        // find puts the file's name over its lines
        [file] if name == "findstr" && !file.contains(['*', '?']) => {
            match place.files.read(&super::script::path(place, file)) {
                Ok(bytes) => bytes,
                Err(_) => return Ran::complains(format!("FINDSTR: Cannot open {file}\r\n"), 1),
            }
        }
        _ => return refused(),
    };
    let text = String::from_utf8_lossy(&bytes);
    let fits = |line: &str, (word, pattern): &(String, bool)| match fold {
        true => holds(&line.to_lowercase(), &word.to_lowercase(), *pattern, whole),
        false => holds(line, word, *pattern, whole),
    };
    let found: Vec<_> = text
        .lines()
        .enumerate()
        .filter(|(_, line)| wanted.iter().any(|word| fits(line, word)) != inverted)
        .collect();
    let code = u32::from(found.is_empty());
    if count {
        return Ran::prints(format!("{}\r\n", found.len())).ending(code);
    }
    let shown = found.iter().map(|(at, line)| match numbered {
        true => format!("{}:{line}\r\n", at + 1),
        false => format!("{line}\r\n"),
    });
    Ran::prints(shown.collect::<String>()).ending(code)
}

/// Whether a word stands in a line, or is all of it; in a `pattern` a dot is any letter.
fn holds(line: &str, word: &str, pattern: bool, whole: bool) -> bool {
    let line: Vec<char> = line.chars().collect();
    let word: Vec<char> = word.chars().collect();
    let same = |here: &[char]| {
        let pairs = here.iter().zip(&word);
        pairs
            .into_iter()
            .all(|(one, other)| one == other || pattern && *other == '.')
    };
    match (whole, word.len()) {
        (true, length) => line.len() == length && same(&line),
        (false, 0) => true,
        (false, length) => line.windows(length).any(same),
    }
}

/// Windows Server 2019 came with 7.55; an update of April 2023 (17763.4252) brought curl 8 to it, as
/// later ones to its successors. What was made in 2021 has 7.55 too; a `HostProcess` container has its
/// host's.
fn system_curl(seat: &Seat<'_>) -> &'static curl::Build {
    if seat.place.of_2021 && !seat.place.host_process {
        return &curl::Build::SYSTEM32_2019;
    }
    let first_shipped =
        |pool: Pool, revision| pool == Pool::Windows(Build::Ws2019) && revision < 4252;
    match seat.node() {
        Some(node) if first_shipped(node.pool, node.network.revision) => {
            &curl::Build::SYSTEM32_2019
        }
        _ => &curl::Build::SYSTEM32,
    }
}

fn iis() -> Started {
    Started::Serves {
        listening: BTreeMap::from([(80, Page::Iis)]),
        listening_udp: BTreeMap::new(),
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
    fn findstr_and_find_look_at_their_flags() {
        let run = |line: &str| {
            let place = place(Os::Windows, Family::Servercore);
            let ran = ended(run(&place, &["cmd", "/c", line]));
            (String::from_utf8(ran.stdout).expect("text"), ran.code)
        };
        let lines = "(echo a b& echo c d& echo A.b)> f & ";
        for (line, text, code) in [
            ("findstr b f", "a b\r\nA.b\r\n", 0),
            ("findstr /c:\"a b\" f", "a b\r\n", 0),
            ("findstr \"d .b\" f", "a b\r\nc d\r\nA.b\r\n", 0),
            ("findstr /l \"d .b\" f", "c d\r\nA.b\r\n", 0),
            ("findstr /v b f", "c d\r\n", 0),
            ("findstr /i /n a f", "1:a b\r\n3:A.b\r\n", 0),
            ("findstr /x A.b f", "A.b\r\n", 0),
            ("findstr z f", "", 1),
            ("type f | find /c \"b\"", "2\r\n", 0),
            ("type f | find /v \"b\"", "c d\r\n", 0),
        ] {
            assert_eq!(
                run(&format!("{lines}{line}")),
                (text.to_owned(), code),
                "{line}"
            );
        }
        for line in [
            "findstr /r b f",
            "findstr \"^a\" f",
            "find \"b\" f",
            "findstr /s b *.*",
            "find /n \"b\"",
        ] {
            assert_eq!(run(line).1, super::super::NOT_SIMULATED, "{line}");
        }
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
