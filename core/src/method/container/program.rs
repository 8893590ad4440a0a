//! The test method `program`: a command of the closed set in a container of a fixture, judged by its exit code
//! and by words of ours, never by words that Windows says in its own language.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::ContainerOf;
use super::ending::Ending;
use super::told::told;
use crate::command::{Command, NO, UNSET};
use crate::fixture::{FixtureName, Need};
use crate::method::compare::{Comparison, Difference};
use crate::method::error::{ErrorKind, Result};
use crate::method::exchange::{ExecReply, ExitStatus, Reply, Request, another_kind};
use crate::method::fact::FactExpectation;
use crate::method::failure::Signature;
use crate::method::place::Bound;
use crate::method::prepared::Prepared;
use crate::method::{Assertion, Method, Test, Traits};
use crate::text::{bound, bounded, exit_code, printable};

/// How many bytes of each stream an observation keeps.
const KEPT: usize = 1 << 10;

#[derive(Clone, Debug)]
pub struct ProgramQuery {
    pub within: ContainerOf,
    pub run: Command,
}

impl ProgramQuery {
    /// The command line, as a person would type it.
    pub fn line(&self) -> String {
        let request = self.run.on(self.within.pod.of.os());
        request.map_or_else(|none| none.to_string(), |request| request.line())
    }
}

/// How the program ends, or `None` where that is only recorded; where a known limitation holds, also how it would
/// end without that.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ProgramExpectation {
    pub ends: Option<Ending>,
    pub lifted: Option<Box<Ending>>,
}

#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct ProgramObservation {
    pub code: i64,
    pub output: String,
    pub errors: String,
    /// What the output tells of the node, for a command that is sent to learn that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told: Option<String>,
    /// What its exit code says, for a command that is sent to learn that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub means: Option<String>,
}

/// The test method `program`.
#[derive(Clone, Debug)]
pub enum Program {}

impl Method for Program {
    type Query = ProgramQuery;
    type Expectation = ProgramExpectation;
    type Observation = ProgramObservation;

    const TEST: fn(Assertion<Self>) -> Test = Test::Program;

    fn prepare<'a>(
        query: &'a ProgramQuery,
        at: &Bound<'a>,
    ) -> Result<Prepared<'a, ProgramObservation>> {
        let request = query.run.on(query.within.pod.of.os())?;
        let request = Request::Exec(query.within.place(at), request);
        Ok(Prepared::new(request, move |reply| match reply {
            Reply::Exec(reply) => read(reply, &query.run),
            _ => Err(another_kind()),
        }))
    }

    fn needs(query: &ProgramQuery) -> Vec<(FixtureName, Need)> {
        super::needs(query.within.pod.of)
    }

    fn traits(_: &ProgramQuery, _: &ProgramExpectation) -> Traits {
        super::traits()
    }

    fn kept(mut seen: ProgramObservation) -> ProgramObservation {
        for text in [&mut seen.output, &mut seen.errors] {
            bound(text, KEPT);
        }
        seen
    }

    fn failing(
        expectation: &ProgramExpectation,
        signature: &Signature,
    ) -> Option<ProgramExpectation> {
        let Signature::Ends(ends) = signature else {
            return None;
        };
        Some(ProgramExpectation {
            ends: Some(ends.clone()),
            lifted: expectation.ends.clone().map(Box::new),
        })
    }

    fn compare(expectation: &ProgramExpectation, seen: &ProgramObservation) -> Result<Comparison> {
        let difference = Difference::between(expectation, seen.to_string());
        let is_met = |ends: &Ending| ends.is_met(seen);
        Ok(match &expectation.lifted {
            _ if expectation.ends.as_ref().is_none_or(is_met) => Comparison::Met(difference),
            Some(lifted) if !lifted.is_met(seen) => Comparison::Unexpected(difference),
            _ => Comparison::NotMet(difference),
        })
    }
}

fn read(reply: &ExecReply, run: &Command) -> Result<ProgramObservation> {
    let is_silent = reply.stdout.is_empty() && reply.stderr.is_empty();
    match &reply.exit {
        ExitStatus::Code(0) if run.always_prints() && is_silent => {
            Err(reply.unrecognised("exit code 0 without any output"))
        }
        ExitStatus::Code(code) if let Some(why) = undecided(run, *code) => {
            Err(reply.unrecognised(&why))
        }
        ExitStatus::Code(code) => Ok(ProgramObservation {
            code: *code,
            output: reply.stdout.clone(),
            errors: reply.stderr.clone(),
            told: told(run, reply)?,
            means: meaning(run, *code).map(str::to_owned),
        }),
        ExitStatus::NotStarted(words) => Err(ErrorKind::ToolMissing.error(printable(words))),
    }
}

/// Why an exit code is no answer to what a command asks.
fn undecided(run: &Command, code: i64) -> Option<String> {
    let why = match (run, code) {
        _ if is_crash(code) => return Some(format!("the program crashed: {}", exit_code(code))),
        (Command::HasAddress(_), UNSET) => {
            "the container lacks the variable, or ipconfig fails there"
        }
        (Command::ReachApiServer, UNSET) => {
            "the container has no variable with the address of Service kubernetes"
        }
        (
            Command::FindProcess(_)
            | Command::CpuLimited
            | Command::MemoryLimited(_)
            | Command::ReadVolume(_),
            code,
        ) if ![0, NO].contains(&code) => "the script failed",
        (Command::WriteToShare(_), NO) => {
            "the account may not delete the file that it wrote to the share"
        }
        _ => return None,
    };
    Some(why.to_owned())
}

/// What an exit code says where the answer to a command is no.
fn meaning(run: &Command, code: i64) -> Option<&'static str> {
    Some(match (run, code) {
        (Command::Exists(_), 1) => "no such file",
        (Command::FindProcess(_), NO) => "no such process",
        (Command::CpuLimited, NO) => "it got at least three quarters of a processor",
        (Command::MemoryLimited(_), NO) => "it got the memory",
        (Command::ReadPipe, 1) => "no line of the pipe",
        (Command::WriteToShare(_), 1) => "no file on the share",
        (Command::ReadVolume(_), NO) => "no such file in a volume",
        (Command::FindUser(_), NO) => "net finds no such account",
        (Command::HasAddress(_), 1) => "no adapter has it",
        _ => return None,
    })
}

/// Whether an exit code is an NTSTATUS of severity error, which Windows gives a process that it cannot start or
/// that it ends ([MS-ERREF] 2.3). Exit codes of Linux have eight bits.
fn is_crash(code: i64) -> bool {
    (code & 0xF000_0000) == 0xC000_0000
}

impl fmt::Display for ProgramExpectation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.ends {
            Some(ends) => ends.fmt(f),
            None => FactExpectation::Told.fmt(f),
        }
    }
}

impl Ending {
    fn is_met(&self, seen: &ProgramObservation) -> bool {
        let prints = |text: &String| seen.output.contains(text);
        let complains = |text: &String| seen.errors.contains(text);
        self.code.map_or(seen.code != 0, |code| seen.code == code)
            && self.prints.iter().all(prints)
            && self.complains.iter().all(complains)
            && !self
                .lacks
                .iter()
                .any(|text| prints(text) || complains(text))
    }
}

impl fmt::Display for ProgramObservation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(told) = &self.told {
            return f.write_str(told);
        }
        write!(f, "exit code {}", self.code)?;
        if let Some(means) = &self.means {
            write!(f, " ({means})")?;
        }
        for (stream, text) in [("output", &self.output), ("errors", &self.errors)] {
            let text = bounded(printable(text.trim()), KEPT);
            if !text.is_empty() {
                write!(f, ", {stream} `{text}`")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::FilePath;
    use crate::facts::Os;

    fn seen(code: i64, output: &str) -> ProgramObservation {
        ProgramObservation {
            code,
            output: output.to_owned(),
            errors: String::new(),
            told: None,
            means: None,
        }
    }

    fn ending(code: Option<i64>, prints: &[&str], lacks: &[&str]) -> Ending {
        let words = |words: &[&str]| words.iter().map(ToString::to_string).collect();
        Ending {
            code,
            prints: words(prints),
            complains: Vec::new(),
            lacks: words(lacks),
        }
    }

    #[test]
    fn a_capability_ends_as_expected_or_is_not_met() {
        let expectation = ProgramExpectation {
            ends: Some(ending(Some(0), &["nonce"], &["other"])),
            lifted: None,
        };
        let compared = |seen| Program::compare(&expectation, &seen).expect("it compares");
        assert!(compared(seen(0, "the nonce\r\n")).holds());
        for refuted in [seen(1, "nonce"), seen(0, ""), seen(0, "nonce other")] {
            let compared = compared(refuted);
            assert!(matches!(compared, Comparison::NotMet(_)), "{compared:?}");
        }
    }

    #[test]
    fn a_limitation_is_known_lifted_or_neither() {
        let works = ProgramExpectation {
            ends: Some(ending(None, &[], &[])),
            lifted: None,
        };
        let signature = Signature::Ends(ending(Some(0), &["w"], &[]));
        let limited = Program::failing(&works, &signature).expect("it has a signature");
        let compared = |seen| Program::compare(&limited, &seen).expect("it compares");
        assert!(compared(seen(0, "w")).holds());
        assert!(matches!(compared(seen(1, "")), Comparison::NotMet(_)));
        assert!(matches!(compared(seen(0, "")), Comparison::Unexpected(_)));
    }

    #[test]
    fn a_program_that_does_not_start_refutes_nothing() {
        let reply = ExecReply {
            stdout: String::new(),
            stderr: String::new(),
            exit: ExitStatus::NotStarted("no such file".to_owned()),
        };
        let error = read(&reply, &Command::WhoAmI).expect_err("no program");
        assert_eq!(error.kind, ErrorKind::ToolMissing);
        let silent = ExecReply {
            exit: ExitStatus::Code(0),
            ..reply
        };
        let error = read(&silent, &Command::WhoAmI).expect_err("its output is lost");
        assert_eq!(error.kind, ErrorKind::UnrecognisedOutput);
        let path = FilePath::parse(Os::Windows, r"C:\a").expect("a path");
        let exists = Command::Exists(path);
        assert!(read(&silent, &exists).is_ok());
        // containerd says 32 unsigned bits, and others a signed integer
        for code in [0xC000_0142, -1_073_741_502] {
            let crashed = ExecReply {
                exit: ExitStatus::Code(code),
                ..silent.clone()
            };
            let error = read(&crashed, &exists).expect_err("the program crashed");
            assert_eq!(error.kind, ErrorKind::UnrecognisedOutput);
            assert!(error.detail.contains("STATUS_DLL_INIT_FAILED"), "{error:?}");
        }
    }

    #[test]
    fn an_exit_code_has_words_where_it_answers_the_command() {
        let pipe = |code| meaning(&Command::ReadPipe, code);
        assert_eq!(pipe(1), Some("no line of the pipe"));
        assert_eq!([pipe(0), pipe(9009)], [None, None]);
    }
}
