//! What `sh -c` and `cmd /c` have in common: commands, how they follow each other, and where their
//! streams go.

use std::time::Duration;

use super::{Place, Ran, Refusal, Started};
use crate::topology::Os;

/// How a command follows the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Joint {
    Always,
    AfterSuccess,
    AfterFailure,
    /// It reads what the one before it prints.
    Pipe,
}

/// One command of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Command {
    pub(super) joint: Joint,
    /// Its text without redirections; quotes are in it still.
    pub(super) text: String,
    pub(super) redirects: Vec<Redirect>,
}

/// Where a stream of a command goes, or comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Redirect {
    Input(String),
    Output {
        to: String,
        append: bool,
        error: bool,
    },
    /// `2>&1`
    ErrorToOutput,
    /// `1>&2`
    OutputToError,
}

/// Takes a script apart; the reason where that cannot be done.
pub(super) fn parse(script: &str, os: Os) -> Result<Vec<Command>, &'static str> {
    let mut parser = Parser {
        os,
        commands: Vec::new(),
        joint: Joint::Always,
        text: String::new(),
        redirects: Vec::new(),
    };
    let letters: Vec<char> = script.chars().collect();
    let mut at = 0;
    let mut quote = None;
    while let Some(&letter) = letters.get(at) {
        let next = letters.get(at + 1).copied();
        at += 1;
        if let Some(open) = quote {
            parser.text.push(letter);
            if letter == open {
                quote = None;
            } else if letter == '\\' && open == '"' && os == Os::Linux {
                parser.text.extend(next);
                at += 1;
            }
            continue;
        }
        match (letter, os) {
            ('"', _) | ('\'', Os::Linux) => {
                quote = Some(letter);
                parser.text.push(letter);
            }
            ('^', Os::Windows) => {
                // What follows is an ordinary letter
                parser.text.extend(next);
                at += 1;
            }
            ('\\', Os::Linux) => {
                parser.text.push(letter);
                parser.text.extend(next);
                at += 1;
            }
            ('`' | '(' | ')' | '{' | '}', Os::Linux)
                if !parser.text.ends_with('$') && letter != '}' || letter == '`' =>
            {
                return Err("a substitution or a group");
            }
            ('&' | '|', _) if next == Some(letter) => {
                at += 1;
                parser.end(if letter == '&' {
                    Joint::AfterSuccess
                } else {
                    Joint::AfterFailure
                });
            }
            ('&', Os::Windows) | (';' | '\n', Os::Linux) => parser.end(Joint::Always),
            ('&', Os::Linux) => return Err("a job in the background"),
            ('|', _) => parser.end(Joint::Pipe),
            ('<' | '>', _) => at = parser.redirect(&letters, at - 1)?,
            _ => parser.text.push(letter),
        }
    }
    parser.end(Joint::Always);
    Ok(parser.commands)
}

struct Parser {
    os: Os,
    commands: Vec<Command>,
    joint: Joint,
    text: String,
    redirects: Vec<Redirect>,
}

impl Parser {
    fn end(&mut self, next: Joint) {
        let text = std::mem::take(&mut self.text).trim().to_owned();
        self.commands.push(Command {
            joint: self.joint,
            text,
            redirects: std::mem::take(&mut self.redirects),
        });
        self.joint = next;
    }

    /// Reads a redirection at its angle bracket; gives the place behind it.
    fn redirect(&mut self, letters: &[char], start: usize) -> Result<usize, &'static str> {
        let mut at = start + 1;
        // A digit right before it says which stream
        let error = self.text.ends_with('2')
            && !self
                .text
                .trim_end_matches('2')
                .ends_with(|c: char| !c.is_whitespace());
        if error || self.text.ends_with(" 1") {
            self.text.pop();
        }
        let append = letters[start] == '>' && letters.get(at) == Some(&'>');
        at += usize::from(append);
        if letters.get(at) == Some(&'&') {
            let stream = letters.get(at + 1);
            self.redirects.push(match (error, stream) {
                (true, Some('1')) => Redirect::ErrorToOutput,
                (false, Some('2')) => Redirect::OutputToError,
                _ => return Err("a redirection of this kind"),
            });
            return Ok(at + 2);
        }
        while letters
            .get(at)
            .is_some_and(|letter| matches!(letter, ' ' | '\t'))
        {
            at += 1;
        }
        let mut file = String::new();
        let mut quoted = false;
        while let Some(&letter) = letters.get(at) {
            match letter {
                '"' => quoted = !quoted,
                '\'' if self.os == Os::Linux => quoted = !quoted,
                ' ' | '\t' | '\n' | '&' | '|' | ';' | '<' | '>' if !quoted => break,
                _ => file.push(letter),
            }
            at += 1;
        }
        self.redirects.push(if letters[start] == '<' {
            Redirect::Input(file)
        } else {
            Redirect::Output {
                to: file,
                append,
                error,
            }
        });
        Ok(at)
    }
}

/// What running one command of a script gave.
pub(super) enum Step {
    Next(Started),
    /// `exit`: nothing of the script runs after it.
    Last(Ran),
}

/// Runs the commands of a script; `run` gets a command and its input.
pub(super) fn sequence(
    place: &Place,
    commands: &[Command],
    input: &[u8],
    mut run: impl FnMut(&Command, &[u8]) -> Step,
) -> Started {
    let mut so_far = Ran::default();
    let mut at = 0;
    while let Some(command) = commands.get(at) {
        at += 1;
        let runs = match command.joint {
            Joint::Always | Joint::Pipe => true,
            Joint::AfterSuccess => so_far.code == 0,
            Joint::AfterFailure => so_far.code != 0,
        };
        let piped = |at: usize| {
            commands
                .get(at)
                .is_some_and(|next| next.joint == Joint::Pipe)
        };
        if !runs {
            while piped(at) {
                at += 1;
            }
            continue;
        }
        let mut command = command;
        let mut given = input.to_vec();
        let mut last = false;
        loop {
            let stepped = match redirected_input(place, command, given) {
                Ok(input) => run(command, &input),
                Err(ran) => Step::Next(Started::Ended(ran)),
            };
            let ran = match stepped {
                Step::Next(Started::Ended(ran)) => ran,
                Step::Next(other) => return other,
                Step::Last(ran) => {
                    last = !piped(at);
                    ran
                }
            };
            let mut ran = redirected_output(place, command, ran);
            if !piped(at) {
                so_far = so_far.then(ran);
                break;
            }
            // The next command's code counts
            given = std::mem::take(&mut ran.stdout);
            so_far = so_far.then(ran);
            command = &commands[at];
            at += 1;
        }
        if last {
            break;
        }
    }
    Started::Ended(so_far)
}

fn is_null(file: &str, os: Os) -> bool {
    match os {
        Os::Linux => file == "/dev/null",
        Os::Windows => file.eq_ignore_ascii_case("nul"),
    }
}

fn redirected_input(place: &Place, command: &Command, input: Vec<u8>) -> Result<Vec<u8>, Ran> {
    let mut input = input;
    for redirect in &command.redirects {
        if let Redirect::Input(file) = redirect {
            input = if is_null(file, place.os) {
                Vec::new()
            } else {
                place.files.read(&path(place, file)).map_err(|error| {
                    let why = error.text(place.os);
                    match place.os {
                        Os::Linux => {
                            Ran::complains(format!("sh: can't open {file}: no such file\n"), 2)
                        }
                        Os::Windows => Ran::complains(format!("{why}\r\n"), 1),
                    }
                })?
            };
        }
    }
    Ok(input)
}

fn redirected_output(place: &Place, command: &Command, mut ran: Ran) -> Ran {
    for redirect in &command.redirects {
        match redirect {
            Redirect::Input(_) => {}
            Redirect::ErrorToOutput => {
                let error = std::mem::take(&mut ran.stderr);
                // `>file 2>&1`: the output is in the file by now, and so is this
                let file = command
                    .redirects
                    .iter()
                    .find_map(|redirect| match redirect {
                        Redirect::Output {
                            to, error: false, ..
                        } => Some(to),
                        _ => None,
                    });
                match file {
                    Some(file) if is_null(file, place.os) => {}
                    Some(file) => {
                        let _ = place.files.write(&path(place, file), &error, true);
                    }
                    None => ran.stdout.extend(error),
                }
            }
            Redirect::OutputToError => {
                let output = std::mem::take(&mut ran.stdout);
                ran.stderr.extend(output);
            }
            Redirect::Output { to, append, error } => {
                let stream = if *error {
                    &mut ran.stderr
                } else {
                    &mut ran.stdout
                };
                let bytes = std::mem::take(stream);
                if is_null(to, place.os) {
                    continue;
                }
                if let Err(failed) = place.files.write(&path(place, to), &bytes, *append) {
                    let why = failed.text(place.os);
                    ran = match place.os {
                        Os::Linux => Ran::complains(format!("sh: can't create {to}: {why}\n"), 1),
                        Os::Windows => Ran::complains(format!("{why}\r\n"), 1),
                    };
                }
            }
        }
    }
    ran
}

/// A file's path from the root.
pub(super) fn path(place: &Place, file: &str) -> String {
    let file = file.trim_matches(['"', '\'']);
    let absolute = match place.os {
        Os::Linux => file.starts_with('/'),
        Os::Windows => file.contains(':') || file.starts_with(['\\', '/']),
    };
    if absolute {
        file.to_owned()
    } else {
        format!("{}/{file}", place.directory)
    }
}

/// A script that never ends by itself.
pub(super) fn stays(script: &str, marks: &[&str]) -> bool {
    let lower = script.to_ascii_lowercase();
    marks.iter().any(|mark| lower.contains(mark))
}

/// A number as exit codes are written: 32 bits, perhaps with a sign.
pub(super) fn number(text: Option<&String>) -> Option<u32> {
    let number: i64 = text?.trim().parse().ok()?;
    u32::try_from(number & 0xffff_ffff).ok()
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

/// A script that is not understood.
pub(super) fn not_understood(script: &str, why: &str) -> Started {
    Refusal::not_simulated(&format!("{why} in `{script}`"))
}
