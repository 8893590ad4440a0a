//! `sh -c`, small: commands joined by `;`, `&&`, `||` and new lines, and the few built-ins that
//! workloads use.
//!
//! No variables, pipes, redirections or functions; a script with them is refused by name. Texts are
//! busybox ash's.

use std::time::Duration;

use super::{Place, Ran, Refusal, Started, View, launch};

/// Runs a script.
pub(super) fn run(place: &Place, script: &str, view: &View<'_>) -> Started {
    if ["while true", "while :", "sleep infinity", "tail -f"]
        .iter()
        .any(|ever| script.contains(ever))
    {
        return Started::stays();
    }
    if script.contains(['|', '>', '<', '`', '$', '(']) && !script.contains("||") {
        return Refusal::not_simulated(script);
    }
    sequence(&commands(script), |command| {
        let words: Vec<String> = command.split_whitespace().map(unquoted).collect();
        match words.first().map(String::as_str) {
            None | Some(":") => Step::Next(Started::Ended(Ran::code(0))),
            Some("exit") => Step::Last(Ran::code(number(words.get(1)).unwrap_or(0) & 0xff)),
            Some(name) => Step::Next(match launch(place, &words, b"", view) {
                Started::Refused(Refusal::Missing(_)) => {
                    Started::Ended(Ran::complains(format!("sh: {name}: not found\n"), 127))
                }
                other => other,
            }),
        }
    })
}

/// `sleep N`: the time passes as it does on the wall.
pub(super) fn sleep(args: &[String]) -> Started {
    let seconds = args
        .first()
        .and_then(|text| text.trim_end_matches('s').parse().ok());
    match seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()) {
        Some(slept) => Started::Ended(Ran {
            slept,
            ..Ran::default()
        }),
        None if args.first().is_some_and(|arg| arg == "infinity") => Started::stays(),
        None => Started::Ended(Ran::complains("sleep: invalid number\n", 1)),
    }
}

pub(super) fn number(text: Option<&String>) -> Option<u32> {
    let number: i64 = text?.trim().parse().ok()?;
    // Exit codes are 32 bits wide and may be written with a sign
    u32::try_from(number & 0xffff_ffff).ok()
}

pub(super) fn unquoted(word: &str) -> String {
    word.trim_matches(['"', '\'']).to_owned()
}

/// How a command follows the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Joint {
    Always,
    AfterSuccess,
    AfterFailure,
}

/// What running one command of a script gave.
pub(super) enum Step {
    Next(Started),
    /// `exit`: nothing of the script runs after it.
    Last(Ran),
}

/// Runs the commands of a script one after the other.
pub(super) fn sequence(commands: &[(Joint, String)], mut run: impl FnMut(&str) -> Step) -> Started {
    let mut so_far = Ran::default();
    for (joint, command) in commands {
        let runs = match joint {
            Joint::Always => true,
            Joint::AfterSuccess => so_far.code == 0,
            Joint::AfterFailure => so_far.code != 0,
        };
        if !runs {
            continue;
        }
        match run(command) {
            Step::Next(Started::Ended(ran)) => so_far = so_far.then(ran),
            Step::Next(other) => return other,
            Step::Last(ran) => return Started::Ended(so_far.then(ran)),
        }
    }
    Started::Ended(so_far)
}

fn commands(script: &str) -> Vec<(Joint, String)> {
    let mut commands = Vec::new();
    let mut joint = Joint::Always;
    let mut rest = script;
    loop {
        let ends = [
            ("&&", Joint::AfterSuccess),
            ("||", Joint::AfterFailure),
            (";", Joint::Always),
            ("\n", Joint::Always),
        ]
        .into_iter()
        .filter_map(|(mark, next)| Some((rest.find(mark)?, mark.len(), next)))
        .min_by_key(|(at, _, _)| *at);
        let (command, next) = match ends {
            Some((at, length, next)) => (&rest[..at], Some((&rest[at + length..], next))),
            None => (rest, None),
        };
        commands.push((joint, command.trim().to_owned()));
        match next {
            Some((after, next_joint)) => (rest, joint) = (after, next_joint),
            None => return commands,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{place, run as start};
    use super::*;
    use crate::image::Family;
    use crate::topology::Os;

    fn sh(script: &str) -> Started {
        start(&place(Os::Linux, Family::Agnhost), &["sh", "-c", script])
    }

    #[test]
    fn commands_follow_their_joints() {
        assert_eq!(
            sh("true && echo yes || echo no"),
            Started::Ended(Ran::prints("yes\n"))
        );
        let Started::Ended(ran) = sh("echo a; exit 3; echo b") else {
            panic!("it ends")
        };
        assert_eq!((ran.stdout, ran.code), (b"a\n".to_vec(), 3));
        let Started::Ended(ran) = sh("nonesuch") else {
            panic!("it ends")
        };
        assert_eq!(
            (ran.stderr, ran.code),
            (b"sh: nonesuch: not found\n".to_vec(), 127)
        );
    }

    #[test]
    fn endless_scripts_stay_and_sleeps_take_real_time() {
        assert_eq!(sh("while true; do sleep 1; done"), Started::stays());
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
        assert!(matches!(
            sh("ls | wc -l"),
            Started::Refused(Refusal::NotSimulated(_))
        ));
    }
}
