//! `sh`: commands, variables, loops, conditions, pipes, redirections and substitutions, as busybox'
//! shell has them (shell/ash.c, shell/math.c); no functions, no `case`, no here-documents, for which
//! a script is refused by name.

mod applets;
mod expand;
mod files;
mod grep;
mod syntax;
mod test;
mod text;

use std::time::Duration;

use super::input::Input;
use super::script::{Machine, Step, Tongue, not_understood, path, too_long};
use super::{Place, Ran, Refusal, Sight, Started, launch, system};
use crate::image::Family;
pub(in crate::program) use applets::applet;

/// Runs a script.
pub(super) fn run(place: &Place, script: &str, input: &Input, view: &Sight<'_>) -> Started {
    with(place, script, &[], input, view)
}

/// Runs a script with its name and its arguments, `$0` and those behind it.
pub(super) fn with(
    place: &Place,
    script: &str,
    args: &[String],
    input: &Input,
    view: &Sight<'_>,
) -> Started {
    if let Some(refused) = too_long(script) {
        return refused;
    }
    match syntax::parse(script) {
        Ok(list) => {
            let mut machine = Machine::new(&Sh, place, list, input.clone(), view);
            let count = args.len().saturating_sub(1).to_string();
            let name = args.first().map_or("sh", String::as_str);
            machine.own.insert("0".to_owned(), name.to_owned());
            machine.own.insert("#".to_owned(), count);
            for (at, arg) in args.iter().enumerate().skip(1) {
                machine.own.insert(at.to_string(), arg.clone());
            }
            machine.run(view)
        }
        Err(why) => not_understood(script, why),
    }
}

struct Sh;

impl Tongue for Sh {
    fn step(&self, machine: &mut Machine, text: &str, input: &Input, view: &Sight<'_>) -> Step {
        let expand::Simple {
            assigned,
            words,
            aside,
        } = match expand::simple(machine, text, view) {
            Ok(simple) => simple,
            Err(ran) => return Step::Next(Started::Ended(ran)),
        };
        if words.is_empty() {
            for (name, value) in assigned {
                if let Err(ran) = self.set(machine, &name, value) {
                    return Step::Next(Started::Ended(ran));
                }
            }
            return Step::Next(Started::Ended(aside));
        }
        let view = &view.later(aside.lasted());
        machine.aside = aside.ending(0);
        let mut place = machine.place.clone();
        if !assigned.is_empty() {
            let mut env = (*place.env).clone();
            env.extend(assigned);
            place.env = env.into();
        }
        command(machine, &place, &words, input, view)
    }

    fn words(
        &self,
        machine: &mut Machine,
        text: &str,
        view: &Sight<'_>,
    ) -> Result<Vec<String>, Ran> {
        let (words, aside) = expand::words(machine, text, view)?;
        machine.aside = aside;
        Ok(words)
    }

    fn set(&self, machine: &mut Machine, name: &str, value: String) -> Result<(), Ran> {
        let exported = machine.place.env.contains_key(name);
        machine.assign(name, value, exported)
    }
}

/// What the shell does itself and is not simulated (busybox, shell/ash.c, `builtintab`).
const LACKING: &[&str] = &[
    ".", "alias", "bg", "chdir", "eval", "fg", "getopts", "hash", "help", "history", "jobs",
    "kill", "let", "local", "read", "readonly", "return", "set", "shift", "source", "times",
    "type", "ulimit", "umask", "unalias",
];

/// What the shell does itself.
const OWN: &[&str] = &[
    ":", "[", "break", "cd", "command", "continue", "echo", "exec", "exit", "export", "false",
    "printf", "pwd", "test", "trap", "true", "unset", "wait",
];

/// What Alpine has in `/bin` of what is simulated; of the rest nobody here knows where it is.
const ALPINE: &[&str] = &[
    "ash", "cat", "date", "grep", "hostname", "ls", "mkdir", "ping", "printenv", "rm", "sh",
    "sleep", "touch", "uname",
];

/// `command -v NAME`.
fn whereabouts(place: &Place, name: &str, view: &Sight<'_>) -> Started {
    if OWN.contains(&name) || LACKING.contains(&name) {
        return Started::Ended(Ran::prints(format!("{name}\n")));
    }
    if name.contains('/') {
        return Refusal::not_simulated("`command -v` of a path");
    }
    let agnhost = place.family == Family::Agnhost;
    let shell = matches!(name, "sh" | "ash") || name == "bash" && agnhost;
    let known = shell || applet(place, name, &[], &Input::default(), view).is_some();
    let at = match name {
        "curl" if agnhost => Some("/usr/bin"),
        "agnhost" if agnhost => None,
        _ if !known => return Started::Ended(Ran::code(127)),
        // Where the official image has everything
        _ if place.family == Family::Busybox => Some("/bin"),
        _ => ALPINE.contains(&name).then_some("/bin"),
    };
    match at {
        Some(at) => Started::Ended(Ran::prints(format!("{at}/{name}\n"))),
        None => Refusal::not_simulated(&format!("command -v {name}")),
    }
}

/// `wait`: for all that runs behind the script.
fn wait(machine: &mut Machine, words: &[String], view: &Sight<'_>) -> Started {
    if words.len() > 1 {
        return Refusal::not_simulated("`wait` for one job");
    }
    let mut longest = Duration::ZERO;
    for (begun, job) in std::mem::take(&mut machine.jobs) {
        match job {
            Started::Ended(ran) => {
                let passed = view.now.duration_since(begun).unsigned_abs();
                longest = longest.max(ran.lasted().saturating_sub(passed));
            }
            other => return other,
        }
    }
    Started::Ended(Ran::sleeps(longest))
}

/// `cd [DIRECTORY]`.
fn change(machine: &mut Machine, words: &[String]) -> Started {
    let to = match words {
        [_] => "/root",
        [_, to] if !to.starts_with('-') => to,
        _ => return Refusal::not_simulated("`cd` of this kind"),
    };
    let at = machine.place.files.normal(&path(&machine.place, to));
    if machine.place.files.list(&at).is_none() {
        if system::is_unknown(&machine.place, &at) {
            return Refusal::not_simulated(&format!("cd {to}"));
        }
        let why = match machine.place.files.read(&at) {
            Ok(_) => "Not a directory",
            Err(_) => "No such file or directory",
        };
        let text = format!("sh: cd: line 0: can't cd to {to}: {why}\n");
        return Started::Ended(Ran::complains(text, 2));
    }
    machine.place.directory = if at == "/" { String::new() } else { at };
    Started::Ended(Ran::default())
}

/// A number that a word of the shell takes, 1 where there is none.
fn times(words: &[String]) -> Option<u32> {
    match words {
        [_] => Some(1),
        [_, times] => times.parse().ok().filter(|times| *times > 0),
        _ => None,
    }
}

/// Those at which a container is ended, and which nothing else sends.
const SIGNALS: &[&str] = &[
    "HUP", "INT", "QUIT", "SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM", "TERM", "1", "2", "3", "15",
];

fn command(
    machine: &mut Machine,
    place: &Place,
    words: &[String],
    input: &Input,
    view: &Sight<'_>,
) -> Step {
    let done = || Step::Next(Started::Ended(Ran::default()));
    let name = words[0].as_str();
    let missing = || {
        let text = format!("sh: {name}: not found\n");
        Step::Next(Started::Ended(Ran::complains(text, 127)))
    };
    match name {
        ":" => done(),
        // What a trap of a signal would do is done by who ends the container
        "trap" => match words
            .iter()
            .skip(2)
            .all(|signal| SIGNALS.contains(&signal.as_str()))
        {
            true => done(),
            false => Step::Next(Refusal::not_simulated(&words.join(" "))),
        },
        "exit" => match words.get(1).map(|code| code.parse::<u32>()) {
            None => Step::Last(Ran::code(machine.code & 0xff)),
            Some(Ok(code)) => Step::Last(Ran::code(code & 0xff)),
            Some(Err(_)) => {
                let text = format!("sh: exit: line 0: Illegal number: {}\n", words[1]);
                Step::Last(Ran::complains(text, 2))
            }
        },
        "break" | "continue" => match (times(words), name) {
            (Some(times), "break") => Step::Leave(times),
            (Some(times), _) => Step::Again(times),
            (None, _) => Step::Next(Refusal::not_simulated(&words.join(" "))),
        },
        "wait" => Step::Next(wait(machine, words, view)),
        "cd" => Step::Next(change(machine, words)),
        "command" => match words.get(1).map(String::as_str) {
            Some("-v") if words.len() == 3 => Step::Next(whereabouts(place, &words[2], view)),
            Some(of) if !of.starts_with('-') => command(machine, place, &words[1..], input, view),
            _ => Step::Next(Refusal::not_simulated(&words.join(" "))),
        },
        "export" | "unset" if words.get(1).is_none_or(|word| word.starts_with('-')) => {
            Step::Next(Refusal::not_simulated(&words.join(" ")))
        }
        "export" => {
            for word in &words[1..] {
                let own = || machine.own.get(word).cloned();
                let (name, value) = match word.split_once('=') {
                    Some((name, value)) => (name, Some(value.to_owned())),
                    None => (word.as_str(), own()),
                };
                if let Some(value) = value {
                    machine.forget(name, false);
                    if let Err(ran) = machine.assign(name, value, true) {
                        return Step::Next(Started::Ended(ran));
                    }
                }
            }
            done()
        }
        "unset" => {
            for name in &words[1..] {
                machine.forget(name, true);
                machine.forget(name, false);
            }
            done()
        }
        "exec" if words.len() > 1 => match launch(place, &words[1..], input, view) {
            Started::Ended(ran) => Step::Last(ran),
            Started::Refused(Refusal::Missing(_)) => {
                let text = format!("sh: exec: line 0: {}: not found\n", words[1]);
                Step::Last(Ran::complains(text, 127))
            }
            // It never comes back
            other => Step::Next(other.followed_by(view, |ran, _| Started::Ended(ran))),
        },
        "exec" => Step::Next(Refusal::not_simulated("`exec` without a command")),
        _ if LACKING.contains(&name) => {
            Step::Next(Refusal::not_simulated(&format!("`{name}` of a shell")))
        }
        _ => match launch(place, words, input, view) {
            Started::Refused(Refusal::Missing(_)) => missing(),
            other => Step::Next(other),
        },
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::tests::{Empty, place, run as start};
    use super::super::{End, NOT_SIMULATED};
    use super::*;
    use crate::image::Family;
    use crate::topology::Os;

    fn sh(script: &str) -> Started {
        start(&place(Os::Linux, Family::Agnhost), &["sh", "-c", script])
    }

    fn ended(script: &str) -> (String, String, u32) {
        match sh(script) {
            Started::Ended(ran) => (
                String::from_utf8(ran.stdout).expect("text"),
                String::from_utf8(ran.stderr).expect("text"),
                ran.code,
            ),
            other => panic!("{script}: {other:?}"),
        }
    }

    #[test]
    fn commands_follow_their_joints() {
        assert_eq!(ended("true && echo yes || echo no").0, "yes\n");
        assert_eq!(
            ended("echo a; exit 3; echo b"),
            ("a\n".to_owned(), String::new(), 3)
        );
        assert_eq!(
            ended("nonesuch"),
            (String::new(), "sh: nonesuch: not found\n".to_owned(), 127)
        );
        assert_eq!(ended("false; echo $?").0, "1\n");
        assert_eq!(ended("false || exit 4").2, 4);
    }

    #[test]
    fn the_system_has_its_files() {
        assert!(ended("ls /").0.contains("bin\ndev\netc\n"));
        assert_eq!(ended("ls /etc").0, "hostname\nhosts\nresolv.conf\n");
        assert!(ended("cat /etc/hosts").0.ends_with("\tprober\n"));
        assert_eq!(
            ended("cat /etc/hostname; uname -n; uname -sr").0,
            "prober\nprober\nLinux 6.12.48+deb13-amd64\n"
        );
        assert_eq!(ended("date").0, "Thu Jan  1 00:00:00 UTC 2026\n");
        assert_eq!(
            ended("test -d /tmp && echo 1.2.3.4 x >> /etc/hosts; tail -n1 /etc/hosts").0,
            "1.2.3.4 x\n"
        );
        assert_eq!(ended("netstat -an").2, NOT_SIMULATED);
        assert_eq!(ended("powershell").2, 127);
    }

    #[test]
    fn files_variables_and_pipes() {
        assert_eq!(
            ended("echo one > /tmp/f && echo two >> /tmp/f; cat /tmp/f").0,
            "one\ntwo\n"
        );
        assert_eq!(
            ended("export A='x y'; echo \"$A\" ${A}z '$A'").0,
            "x y x yz $A\n"
        );
        assert_eq!(ended("echo found | grep -q found && echo yes").0, "yes\n");
        assert_eq!(
            ended("cat /nonesuch").1,
            "cat: can't open '/nonesuch': No such file or directory\n"
        );
        assert_eq!(ended("cat /nonesuch 2>/dev/null; echo $?").0, "1\n");
        assert_eq!(
            ended("cat /nonesuch > /tmp/all 2>&1; cat /tmp/all").0,
            ended("cat /nonesuch").1
        );
        assert_eq!(
            ended("touch /a/b; ls /a; test -f /a/b && [ -d /a ] && echo both").0,
            "b\nboth\n"
        );
        assert_eq!(ended("cat < /none").2, 2);
    }

    #[test]
    fn grep_reads_files_and_its_flags() {
        let lines = "printf 'search a\\nnameserver 1.2.3.4\\noptions x\\nNameserver y\\n' >/rc; ";
        let grep = |args: &str| ended(&format!("{lines} grep {args}"));
        for (args, out, code) in [
            ("nameserver /rc", "nameserver 1.2.3.4\n", 0),
            ("-v e /rc", "options x\n", 0),
            ("-c name /rc", "1\n", 0),
            ("-ic names /rc", "2\n", 0),
            ("-n name /rc", "2:nameserver 1.2.3.4\n", 0),
            ("x /rc /none", "/rc:options x\n", 2),
            ("-s x /none", "", 2),
            ("-h x /rc /rc", "options x\noptions x\n", 0),
            ("-l x /rc", "/rc\n", 0),
            ("-E 'h a|y$' /rc", "search a\nNameserver y\n", 0),
            ("^o /rc", "options x\n", 0),
            ("-F . /rc", "nameserver 1.2.3.4\n", 0),
            ("-e x -e 'h a' /rc", "search a\noptions x\n", 0),
            ("-x 'options .' /rc", "options x\n", 0),
            ("'s.*r 1' /rc", "nameserver 1.2.3.4\n", 0),
            ("'a|y' /rc", "", 1),
            ("-q x /rc", "", 0),
        ] {
            let (stdout, _, ended) = grep(args);
            assert_eq!((stdout.as_str(), ended), (out, code), "{args}");
        }
        assert_eq!(
            grep("x /none").1,
            "grep: /none: No such file or directory\n"
        );
        assert_eq!(
            ended("echo a | grep -n a -; echo a | grep -H a").0,
            "1:a\n(standard input):a\n"
        );
        for args in [
            "-r x /",
            "-w x /rc",
            "'\\(a\\)' /rc",
            "'[[:alpha:]]' /rc",
            "-A1 x /rc",
        ] {
            assert_eq!(grep(args).2, NOT_SIMULATED, "{args}");
        }
    }

    /// What a script prints, by the second, of the first turns of its loops.
    fn told(script: &str, turns: usize) -> Vec<(u64, String)> {
        let nothing = Empty::default();
        let (mut started, mut told, mut passed) = (sh(script), Vec::new(), Duration::ZERO);
        for _ in 0..turns {
            let (ran, rest) = match started {
                Started::GoesOn { ran, rest } => (ran, Some(rest)),
                Started::Ended(ran) => (ran, None),
                other => panic!("{script}: {other:?}"),
            };
            let (pieces, took, slept) = ran.pieces();
            for piece in pieces {
                passed += piece.took + piece.slept;
                let text = String::from_utf8(piece.bytes).expect("text");
                told.push((passed.as_secs(), text));
            }
            passed += took + slept;
            let Some(rest) = rest else {
                break;
            };
            started = rest.start(&nothing.view());
        }
        told
    }

    fn lines(told: &[(u64, String)]) -> Vec<(u64, &str)> {
        told.iter().map(|(at, text)| (*at, text.as_str())).collect()
    }

    #[test]
    fn loops_tell_each_line_when_it_comes() {
        let counter = "echo begun; i=0; while true; do echo \"$i\"; i=$((i+1)); sleep 2; done";
        assert_eq!(
            lines(&told(counter, 3)),
            [(0, "begun\n"), (0, "0\n"), (2, "1\n"), (4, "2\n")]
        );
        let filtered = "while :; do echo yes; echo no; sleep 1; done | grep yes";
        assert_eq!(lines(&told(filtered, 2)), [(0, "yes\n"), (1, "yes\n")]);
        let nested = "sh -c 'while true; do echo in; sleep 1; done' > /tmp/f";
        assert_eq!(told(nested, 3), []);
        let waits = "sleep 1000 & echo a; wait; echo b";
        assert_eq!(lines(&told(waits, 1)), [(0, "a\n"), (1000, "b\n")]);
        let trapped = "trap 'exit 3' TERM; echo up; while true; do sleep 1; done";
        assert_eq!(lines(&told(trapped, 5)), [(0, "up\n")]);
    }

    /// What a script prints, its lines in one, and its exit code.
    fn all(script: &str) -> (String, u32) {
        let followed = sh(script).follow(&Empty::default().view());
        assert_eq!(followed.end, End::Ended, "{script}");
        let text = String::from_utf8(followed.ran.stdout).expect("text");
        (text.replace('\n', " "), followed.ran.code)
    }

    #[test]
    fn loops_and_conditions_come_to_their_ends() {
        for (script, text, code) in [
            ("for i in 1 2 3; do echo $i; done", "1 2 3 ", 0),
            (
                "for i in $(seq 2); do for j in a b; do echo $i$j; done; done",
                "1a 1b 2a 2b ",
                0,
            ),
            (
                "i=0; while [ $i != 3 ]; do i=$((i+1)); done; echo $i",
                "3 ",
                0,
            ),
            (
                "i=0; until [ $i = 2 ]; do i=$((i + 1)); echo x; done",
                "x x ",
                0,
            ),
            (
                "while true; do echo a; break; echo b; done; echo c",
                "a c ",
                0,
            ),
            (
                "for i in 1 2; do if [ $i = 1 ]; then continue; fi; echo $i; done",
                "2 ",
                0,
            ),
            ("while true; do exit 4; done; echo no", "", 4),
            (
                "if false; then echo a; elif true; then echo b; else echo c; fi",
                "b ",
                0,
            ),
            ("if false; then echo a; else echo c; fi", "c ", 0),
            ("if ! true; then echo a; fi; echo $?", "0 ", 0),
            ("{ echo a; echo b; } > /tmp/x; cat /tmp/x", "a b ", 0),
            ("(echo a; exit 1) || echo c", "a c ", 0),
            (
                "(exit 3); echo $?; f=1; (f=2; cd /tmp; echo $f); echo $f; pwd",
                "3 2 1 / ",
                0,
            ),
            ("for i in 1 2; do x=$i; done >/dev/null; echo $x", "2 ", 0),
            ("{ exit 3; } >/dev/null; echo after", "", 3),
            (
                "{ echo a; cd /tmp; echo b; } >f; echo c; cat /f",
                "c a b ",
                0,
            ),
            ("while :; do { break; } >/dev/null; done; echo a", "a ", 0),
            ("! { x=1; false; } && echo $x", "1 ", 0),
            ("! (exit 3); echo $?", "0 ", 0),
            (
                "for i in 1 2; do for j in 1 2; do break 2; done; echo no; done; echo end",
                "end ",
                0,
            ),
            (
                "for i in 1 2; do for j in 1 2; do continue 2; done; echo no; done; echo $i",
                "2 ",
                0,
            ),
            (
                "command -v curl && command -v cd && command -v ls",
                "/usr/bin/curl cd /bin/ls ",
                0,
            ),
            (
                "command -v nonesuch; echo $?; command echo hi",
                "127 hi ",
                0,
            ),
            ("sleep 1 & sleep 3 & sleep 2; wait; date +%S", "03 ", 0),
            ("exec nonesuch; echo no", "", 127),
            (
                "cd /nonesuch; echo $?; mkdir /a; cd /a && pwd; cd ..; pwd",
                "2 /a / ",
                0,
            ),
            (
                "seq 5 | tail -n +4; for i in 1 2 3; do echo $i; done | wc -l",
                "4 5 3 ",
                0,
            ),
            (
                "echo x | cat /etc/hostname; echo x | cat - /etc/hostname",
                "prober x prober ",
                0,
            ),
            (
                "cat /nonesuch 2>&1 >/dev/null",
                "cat: can't open '/nonesuch': No such file or directory ",
                1,
            ),
            ("cat /nonesuch >/dev/null 2>&1; echo a 1>&2", "", 0),
            ("exec echo a >/f; echo b", "", 0),
        ] {
            assert_eq!(all(script), (text.to_owned(), code), "{script}");
        }
    }

    /// Each as busybox 1.35 has it.
    #[test]
    fn assignments_tests_and_small_programs() {
        for (script, text, code) in [
            // Assignments
            ("now=$(date); echo $now", "Thu Jan 1 00:00:00 UTC 2026 ", 0),
            ("x='a b'; y=$x; echo \"$y\"; A=1 B=$A; echo $B", "a b 1 ", 0),
            (
                "a=$(false); echo $?; A=1 printenv A; echo [$A]",
                "1 1 [] ",
                0,
            ),
            (
                "a=$(sleep 2); date +%S; echo $(sleep 3) >/f; date +%S",
                "02 05 ",
                0,
            ),
            ("e='A=1'; $e; echo $?; \"A=1\"; echo $?", "127 127 ", 0),
            (
                "x=~; echo $x ~/a a~ \"~\" $HOME; echo $# \"$1\"",
                "/root /root/a a~ ~ /root 0  ",
                0,
            ),
            ("echo /none/* what? 'a*'", "/none/* what? a* ", 0),
            // Tests
            (
                "test; echo $?; test a; echo $?; test ! a; echo $?; [ a = a ] && echo y",
                "1 0 1 y ",
                0,
            ),
            (
                "for o in -eq -ne -lt -le -gt -ge; do [ 10 $o 9 ]; echo $?; done",
                "1 0 1 1 0 0 ",
                0,
            ),
            (
                "test -q a 2>/none/e; echo $?; test 1 -eq a; echo $?; [ a; echo $?",
                "2 2 2 ",
                0,
            ),
            (
                "test a b; echo $?; test a -foo b; echo $?; test a -a b && echo y",
                "2 2 y ",
                0,
            ),
            (
                "test ! a = b && test a == a && test -n a && test -d /tmp; echo $?",
                "0 ",
                0,
            ),
            // The small programs
            (
                "echo -e 'a\\tb'; echo -ne 'a\\n'; echo -x; echo 'a\\nb'",
                "a\tb a -x a\\nb ",
                0,
            ),
            (
                "hostname -s; id -g; env A=1 printenv A; printenv HOME; env nonesuch; echo $?",
                "prober 0 1 /root 127 ",
                0,
            ),
            ("sh -c 'echo $1 $0 $#' S x y", "x S 2 ", 0),
            (
                "rm /none; echo $?; rm -f /none; echo $?; mkdir /tmp; mkdir -p /tmp/x; test -d /tmp/x; echo $?",
                "1 0 0 ",
                0,
            ),
            ("for i in 1 2 3; do echo $i; done | grep 2", "2 ", 0),
            ("for i in 1 2 3; do echo $i; done | grep 9", "", 1),
            (
                "for i in 1 2; do echo $i >> /tmp/y; done; cat /tmp/y | wc -l",
                "2 ",
                0,
            ),
            ("A='x  y'; echo $A \"$A\" ${B:-none}", "x y x  y none ", 0),
            ("A=1 printenv A; echo $((7*3%4-1))", "1 0 ", 0),
            (
                "date -u +%Y-%m-%dT%H:%M:%S; sleep 5; date +%S",
                "2026-01-01T00:00:00 05 ",
                0,
            ),
            ("echo 'a; b' # c", "a; b ", 0),
            ("exec echo a; echo b", "a ", 0),
            ("sleep 0 & wait; echo $?", "0 ", 0),
            ("seq 12 | tail -n 2", "11 12 ", 0),
            ("seq 12 | head -n 2", "1 2 ", 0),
            ("! false && echo a", "a ", 0),
        ] {
            assert_eq!(all(script), (text.to_owned(), code), "{script}");
        }
    }

    #[test]
    fn a_file_is_followed_as_it_grows() {
        let place = place(Os::Linux, Family::Busybox);
        let nothing = Empty::default();
        place
            .files
            .write("/log", b"one\ntwo\n", false)
            .expect("written");
        let mut started = start(&place, &["tail", "-n1", "-f", "/log"]);
        let mut told = Vec::new();
        for new in ["three\n", "", "four\n", ""] {
            let Started::GoesOn { ran, rest } = started else {
                panic!("{started:?}")
            };
            told.extend(ran.stdout);
            place
                .files
                .write("/log", new.as_bytes(), true)
                .expect("written");
            started = rest.start(&nothing.view());
        }
        assert_eq!(String::from_utf8_lossy(&told), "two\nthree\nfour\n");
        assert!(matches!(started, Started::GoesOn { .. }));
        assert_eq!(
            start(&place, &["tail", "-f", "/dev/null"]),
            Started::stays()
        );
        assert!(matches!(
            start(&place, &["tail", "-f", "/none"]),
            Started::Ended(Ran { code: 1, .. })
        ));
    }

    #[test]
    fn endless_scripts_stay_and_sleeps_take_real_time() {
        let Started::Ended(ran) = sh("sleep 5") else {
            panic!("it ends")
        };
        assert_eq!(
            (ran.slept, ran.took),
            (Duration::from_secs(5), Duration::ZERO)
        );
        for wrong in ["sleep 1x", "sleep 1e19 1e19"] {
            let ended = sh(wrong);
            assert!(
                matches!(ended, Started::Ended(Ran { code: 1, .. })),
                "{wrong}"
            );
        }
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        for script in [
            "echo `date`",
            "case a in a) true;; esac",
            "echo 1 &",
            "echo $((1 << 2))",
            "echo ${A%b}",
            "echo $(while true; do sleep 1; done)",
            "set -e; false",
            "local x",
            "trap 'echo bye' EXIT",
            "wait 1",
            "echo $!",
            "exec >/f",
            "echo a > $F",
            "ls /etc/*",
            "test -f /bin/sh",
            "cat /proc/cpuinfo",
            "test a = b -a c = d",
            "ls -l",
            "cat -n /etc/hosts",
            "env -i",
            "grep -r x /etc",
            "tail +2",
            "command -v seq",
            "awk 1 | cat",
            "! awk 1",
        ] {
            let (out, error, code) = ended(script);
            assert_eq!((out.as_str(), code), ("", NOT_SIMULATED), "{script}");
            assert!(
                error.starts_with("hybrid-sim does not simulate `"),
                "{error}"
            );
        }
        // What stands before it has run; what comes of the rest nobody knows
        let (out, _, code) = ended("echo before; awk 1 || echo after");
        assert_eq!((out.as_str(), code), ("before\n", NOT_SIMULATED));
    }

    #[test]
    fn what_takes_too_much_is_refused() {
        let nested = "a=$(for i in $(seq 9999); do b=$(for j in $(seq 9999); do :; done); done)";
        let doubled = "A=0123456789; while :; do A=\"$A$A\"; done";
        let many = "A=0123456789; i=0; while :; do i=$((i+1)); export A$i=\"$A\"; A=\"${A}0123456789\"; done";
        let branching = "export A='sh -c \"$A\" | cat; sh -c \"$A\" | cat'; sh -c \"$A\"";
        for script in [nested, doubled, many, branching] {
            let followed = sh(script).follow(&Empty::default().view());
            assert_eq!(
                (followed.end, followed.ran.code),
                (End::Ended, NOT_SIMULATED),
                "{script}"
            );
        }
        let most = "head -c 1; ".repeat(30_000);
        assert_eq!(ended(&most).2, NOT_SIMULATED);
    }

    #[test]
    fn odd_scripts_do_no_harm() {
        for script in [
            "", "'", "\"", "$", "${", ">", "<", "|", "||", "&&", "2>", "2>&", ">&", "\\", "é>é",
            "|a|", "a 2>&1|b",
        ] {
            let _ = sh(script);
        }
    }
}
