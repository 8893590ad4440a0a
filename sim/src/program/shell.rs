//! `sh`: commands, variables, loops, conditions, pipes, redirections and substitutions, as busybox'
//! shell has them (shell/ash.c, shell/math.c); no functions, no `case`, no here-documents, for which
//! a script is refused by name.

mod applets;
mod expand;
mod syntax;
mod text;

use super::input::Input;
use super::script::{Machine, Phrase, Step, Tongue, not_understood, number, path};
use super::{Place, Ran, Refusal, Sight, Started, launch};
pub(in crate::program) use applets::applet;

/// Runs a script.
pub(super) fn run(place: &Place, script: &str, input: &Input, view: &Sight<'_>) -> Started {
    match syntax::parse(script) {
        Ok(list) => Machine::new(&Sh, place, list, input.clone(), view).run(view),
        Err(why) => not_understood(script, why),
    }
}

/// Reads its script from its input; at a terminal it says when it does.
pub(super) fn reading(place: &Place, input: &Input, view: &Sight<'_>) -> Started {
    Machine::reading(&Sh, place, input.is_terminal(), input, view).run(view)
}

struct Sh;

impl Tongue for Sh {
    fn step(&self, machine: &mut Machine, text: &str, input: &Input, view: &Sight<'_>) -> Step {
        let mut words = match expand::words(machine, text, view) {
            Ok(words) => words,
            Err(ran) => return Step::Next(Started::Ended(ran)),
        };
        let assigned = words.iter().take_while(|word| assigns(word)).count();
        let before: Vec<String> = words.drain(..assigned).collect();
        let pairs = before.iter().filter_map(|word| word.split_once('='));
        if words.is_empty() {
            for (name, value) in pairs {
                self.set(machine, name, value.to_owned());
            }
            return Step::Next(Started::Ended(Ran::default()));
        }
        let mut place = machine.place.clone();
        if assigned > 0 {
            let mut env = (*place.env).clone();
            env.extend(pairs.map(|(name, value)| (name.to_owned(), value.to_owned())));
            place.env = env.into();
        }
        command(machine, &place, &words, input, view)
    }

    fn words(&self, machine: &Machine, text: &str, view: &Sight<'_>) -> Result<Vec<String>, Ran> {
        expand::words(machine, text, view)
    }

    fn set(&self, machine: &mut Machine, name: &str, value: String) {
        if machine.place.env.contains_key(name) {
            export(machine, name, value);
        } else {
            machine.own.insert(name.to_owned(), value);
        }
    }

    /// shell/ash.c, `init`: `\w \$ `, where the home directory, /root, is `~` (libbb/lineedit.c).
    fn prompt(&self, machine: &Machine, more: bool) -> String {
        if more {
            return "> ".to_owned();
        }
        let directory = match machine.place.directory.as_str() {
            "" => "/",
            "/root" => "~",
            directory => directory,
        };
        let sign = match machine.place.user.as_deref() {
            None | Some("0") => '#',
            Some(_) => '$',
        };
        format!("{directory} {sign} ")
    }

    fn shown(&self, _: &str) -> String {
        String::new()
    }

    fn phrase(&self, _: &mut Machine, lines: &str) -> Phrase {
        if syntax::is_open(lines) {
            return Phrase::Unfinished;
        }
        match syntax::parse(lines) {
            Ok(list) => Phrase::Commands(list),
            Err(Phrase::UNFINISHED) => Phrase::Unfinished,
            Err(why) => {
                let text = format!("{why} in `{}`", lines.trim_end());
                Phrase::NotUnderstood(Refusal::instead_of(&text))
            }
        }
    }

    /// shell/ash.c, `cmdloop`: at a terminal a new line is begun.
    fn end(&self, machine: &Machine, terminal: bool) -> Option<Ran> {
        let shown = if terminal { "\n" } else { "" };
        Some(Ran::prints(shown).ending(machine.code))
    }
}

/// Whether a word gives a variable its value.
fn assigns(word: &str) -> bool {
    let name = |name: &str| {
        name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
            && name
                .chars()
                .all(|each| each.is_ascii_alphanumeric() || each == '_')
    };
    word.split_once('=').is_some_and(|(before, _)| name(before))
}

fn export(machine: &mut Machine, name: &str, value: String) {
    let mut env = (*machine.place.env).clone();
    env.insert(name.to_owned(), value);
    machine.place.env = env.into();
}

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
        // What a trap would do is done by who ends the container
        ":" | "trap" | "set" => done(),
        "exit" => {
            let code = number(words.get(1)).unwrap_or(machine.code);
            Step::Last(Ran::code(code & 0xff))
        }
        "break" => Step::Leave,
        "continue" => Step::Again,
        "wait" => match machine.jobs.pop() {
            Some(job) => Step::Next(job),
            None => done(),
        },
        "cd" => {
            let to = words.get(1).map(|to| path(place, to)).unwrap_or_default();
            machine.place.directory = to;
            done()
        }
        "export" => {
            for word in &words[1..] {
                let own = || machine.own.get(word).cloned();
                let (name, value) = match word.split_once('=') {
                    Some((name, value)) => (name, Some(value.to_owned())),
                    None => (word.as_str(), own()),
                };
                if let Some(value) = value {
                    export(machine, name, value);
                }
            }
            done()
        }
        "unset" => {
            let mut env = (*machine.place.env).clone();
            for name in &words[1..] {
                env.remove(name);
                machine.own.remove(name);
            }
            machine.place.env = env.into();
            done()
        }
        "exec" if words.len() > 1 => match launch(place, &words[1..], input, view) {
            Started::Ended(ran) => Step::Last(ran),
            Started::Refused(Refusal::Missing(_)) => missing(),
            // It never comes back
            other => Step::Next(other.followed_by(view, |ran, _| Started::Ended(ran))),
        },
        "case" | "eval" | "read" | "." | "source" => {
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

    #[test]
    fn loops_and_conditions_come_to_their_ends() {
        let all = |script: &str| {
            let followed = sh(script).follow(&Empty::default().view());
            assert_eq!(followed.end, End::Ended, "{script}");
            let text = String::from_utf8(followed.ran.stdout).expect("text");
            (text.replace('\n', " "), followed.ran.code)
        };
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
            ("(echo a; exit 1) || echo c", "a ", 1),
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
        assert!(matches!(
            sh("sleep -1"),
            Started::Ended(Ran { code: 1, .. })
        ));
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
    fn odd_scripts_do_no_harm() {
        for script in [
            "", "'", "\"", "$", "${", ">", "<", "|", "||", "&&", "2>", "2>&", ">&", "\\", "é>é",
            "|a|", "a 2>&1|b",
        ] {
            let _ = sh(script);
        }
    }
}
