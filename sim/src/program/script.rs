//! What the shells have in common: commands, how they follow each other, and where their streams go.

mod machine;
mod pipe;

use std::sync::Arc;

use super::input::Input;
use super::{Place, Ran, Refusal, Started};
use crate::log::Stream;
use crate::topology::Os;
pub(super) use machine::{Machine, Step, Tongue};

/// How a command follows the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Joint {
    Always,
    AfterSuccess,
    AfterFailure,
}

/// Commands that follow each other.
pub(super) type List = Arc<[Element]>;

/// One command, or some of which each reads what the one before it prints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Element {
    pub(super) joint: Joint,
    pub(super) commands: Vec<Command>,
    /// `!`: its success is a failure.
    pub(super) negated: bool,
    /// `&`: it is not waited for.
    pub(super) behind: bool,
}

impl Element {
    pub(super) fn new(joint: Joint, commands: Vec<Command>) -> Self {
        Self {
            joint,
            commands,
            negated: false,
            behind: false,
        }
    }
}

/// One command of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Command {
    pub(super) what: What,
    pub(super) redirects: Vec<Redirect>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// Its text without redirections; quotes are in it still.
    Simple(String),
    Group(List),
    /// In a shell of their own.
    Own(List),
    /// Without a condition it goes on for ever.
    Loop {
        until: bool,
        condition: List,
        body: List,
    },
    /// Once for each word; the words are not expanded yet.
    Over {
        name: String,
        words: String,
        body: List,
    },
    /// `for /l`: a number of it in each turn.
    Count {
        name: String,
        from: i64,
        step: i64,
        to: i64,
        body: List,
    },
    If {
        arms: Vec<(List, List)>,
        otherwise: List,
    },
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

impl Redirect {
    /// The same to whatever directory the commands go.
    fn located(&self, place: &Place) -> Self {
        match self.clone() {
            Self::Output { to, append, error } if !is_null(&to, place.os) => Self::Output {
                to: path(place, &to),
                append,
                error,
            },
            other => other,
        }
    }
}

/// Reads a redirection at its angle bracket, behind the text of its command; gives the place behind
/// it.
pub(super) fn redirect(
    letters: &[char],
    start: usize,
    text: &mut String,
    os: Os,
) -> Result<(Redirect, usize), &'static str> {
    let mut at = start + 1;
    // A digit right before it says which stream
    let error = text.ends_with('2')
        && !text
            .trim_end_matches('2')
            .ends_with(|c: char| !c.is_whitespace());
    if error || text.ends_with(" 1") {
        text.pop();
    }
    let append = letters[start] == '>' && letters.get(at) == Some(&'>');
    at += usize::from(append);
    if letters.get(at) == Some(&'&') {
        let redirect = match (error, letters.get(at + 1)) {
            (true, Some('1')) => Redirect::ErrorToOutput,
            (false, Some('2')) => Redirect::OutputToError,
            _ => return Err("a redirection of this kind"),
        };
        return Ok((redirect, at + 2));
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
            '\'' if os == Os::Linux => quoted = !quoted,
            ' ' | '\t' | '\n' | '&' | '|' | ';' | '<' | '>' | ')' if !quoted => break,
            '$' | '`' if os == Os::Linux => return Err("a file whose name is expanded"),
            _ => file.push(letter),
        }
        at += 1;
    }
    let redirect = if letters[start] == '<' {
        Redirect::Input(file)
    } else {
        Redirect::Output {
            to: file,
            append,
            error,
        }
    };
    Ok((redirect, at))
}

/// Whether what is written to a file is gone.
pub(super) fn is_null(file: &str, os: Os) -> bool {
    match os {
        Os::Linux => file == "/dev/null",
        Os::Windows => file.eq_ignore_ascii_case("nul"),
    }
}

/// What a command reads, and its files made ready; or why it does not run.
fn redirected_input(place: &Place, redirects: &[Redirect], input: &Input) -> Result<Input, Ran> {
    let mut input = input.clone();
    for redirect in redirects {
        match redirect {
            Redirect::Input(file) if is_null(file, place.os) => input = Input::default(),
            Redirect::Input(file) => {
                let read = place.files.read(&path(place, file));
                input =
                    read.map(|bytes| bytes.as_slice().into())
                        .map_err(|error| match place.os {
                            Os::Linux => {
                                Ran::complains(format!("sh: can't open {file}: no such file\n"), 2)
                            }
                            Os::Windows => {
                                Ran::complains(format!("{}\r\n", error.text(place.os)), 1)
                            }
                        })?;
            }
            Redirect::Output { to, append, .. } if !is_null(to, place.os) => {
                // Emptied once, then written to as the output comes
                let made = place.files.write(&path(place, to), b"", *append);
                made.map_err(|error| {
                    let why = error.text(place.os);
                    match place.os {
                        Os::Linux => Ran::complains(format!("sh: can't create {to}: {why}\n"), 1),
                        Os::Windows => Ran::complains(format!("{why}\r\n"), 1),
                    }
                })?;
            }
            _ => {}
        }
    }
    Ok(input)
}

/// Where a stream goes.
#[derive(Clone, PartialEq, Eq)]
enum Sink {
    Stream(Stream),
    File(String),
}

/// Redirections count in the order in which they stand: `2>&1 >file` sends errors where the output went
/// before.
fn redirected_output(place: &Place, redirects: &[Redirect], ran: Ran) -> Ran {
    let (mut out, mut error) = (Sink::Stream(Stream::Out), Sink::Stream(Stream::Error));
    for redirect in redirects {
        match redirect {
            Redirect::Input(_) => {}
            Redirect::ErrorToOutput => error = out.clone(),
            Redirect::OutputToError => out = error.clone(),
            Redirect::Output {
                to, error: true, ..
            } => error = Sink::File(to.clone()),
            Redirect::Output { to, .. } => out = Sink::File(to.clone()),
        }
    }
    let mut written: Vec<(&String, Vec<u8>)> = Vec::new();
    let told = ran.retold(|stream, bytes| {
        let sink = match stream {
            Stream::Out => &out,
            Stream::Error => &error,
        };
        match sink {
            Sink::Stream(stream) => (*stream, bytes),
            Sink::File(to) => {
                match written.iter_mut().find(|(file, _)| *file == to) {
                    Some((_, all)) => all.extend(bytes),
                    None => written.push((to, bytes)),
                }
                (stream, Vec::new())
            }
        }
    });
    for (to, bytes) in written {
        if is_null(to, place.os) {
            continue;
        }
        if let Err(failed) = place.files.write(&path(place, to), &bytes, true) {
            let why = failed.text(place.os);
            return match place.os {
                Os::Linux => Ran::complains(format!("sh: write error: {why}\n"), 1),
                Os::Windows => Ran::complains(format!("{why}\r\n"), 1),
            };
        }
    }
    told
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

/// A number as exit codes are written: 32 bits, perhaps with a sign.
pub(super) fn number(text: Option<&String>) -> Option<u32> {
    let number: i64 = text?.trim().parse().ok()?;
    u32::try_from(number & 0xffff_ffff).ok()
}

/// How much text one command is expanded to, or reads of files, in bytes: four files of the largest
/// size.
pub(super) const MOST_TEXT: usize = 64 << 20;

/// How long a script may be, in bytes: twice what Linux passes on as one argument (execve(2)).
const MOST_SCRIPT: usize = 256 << 10;

/// A script that is too long to be taken apart.
pub(super) fn too_long(script: impl AsRef<[u8]>) -> Option<Started> {
    let too_long = script.as_ref().len() > MOST_SCRIPT;
    too_long.then(|| Refusal::not_simulated("a script of more than 256 KiB"))
}

/// A script that is not understood.
pub(super) fn not_understood(script: &str, why: &str) -> Started {
    Refusal::not_simulated(&format!("{why} in `{script}`"))
}
