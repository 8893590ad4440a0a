//! Pipes: a program reads what the one before it prints. What works line by line tells each line
//! when it comes; everything else waits for the end.

use super::{Command, Machine, What};
use crate::log::Stream;
use crate::program::input::Input;
use crate::program::ran::End;
use crate::program::windows::words;
use crate::program::{NOT_SIMULATED, Ran, Refusal, Rest, Sight, Started};

/// Runs the commands of a pipe.
pub(super) fn line(machine: &Machine, commands: &[Command], view: &Sight<'_>) -> Started {
    let mut commands = commands.iter();
    let Some(first) = commands.next() else {
        return Started::Ended(Ran::default());
    };
    let mut source = machine.with(first, machine.input.clone()).run(view);
    for command in commands {
        let machine = machine.with(command, Input::default());
        source = match by_lines(command) {
            true => filtered(source, machine, Begun::default(), view),
            false => collected(source, &machine, command, view),
        };
    }
    source
}

/// Whether a command tells a line of its output as soon as it has one of its input.
fn by_lines(command: &Command) -> bool {
    let What::Simple(text) = &command.what else {
        return false;
    };
    let words = words(&text.replace('\'', "\""));
    let Some((name, args)) = words.split_first() else {
        return false;
    };
    let name = name.to_ascii_lowercase();
    let name = name.strip_suffix(".exe").unwrap_or(&name);
    let (flags, operands): (Vec<&String>, Vec<&String>) = args
        .iter()
        .partition(|arg| arg.starts_with(['-', '/']) && arg.len() > 1);
    // What is counted or numbered is so over all lines
    let by_line = |flag: &&String| {
        let flag = flag.to_ascii_lowercase();
        matches!(flag.as_str(), "-e" | "-f" | "-i" | "-v" | "/i" | "/v") || flag.starts_with("/c:")
    };
    let by_line = command.redirects.is_empty() && flags.iter().all(by_line);
    by_line
        && match name {
            "cat" | "more" => args.is_empty(),
            "grep" | "find" | "findstr" => operands.len() <= 1,
            _ => false,
        }
}

fn collected(source: Started, machine: &Machine, command: &Command, view: &Sight<'_>) -> Started {
    let source = match source {
        // A loop that does not wait is over before anything else happens
        Started::GoesOn { .. } => {
            let followed = source.clone().follow_at(view);
            match (followed.end, followed.ran.lasted().is_zero()) {
                (End::Ended, true) => Started::Ended(followed.ran),
                _ => source,
            }
        }
        source => source,
    };
    match source {
        Started::Ended(ran) if ran.code == NOT_SIMULATED => Started::Ended(ran),
        Started::Ended(mut ran) => {
            let given = std::mem::take(&mut ran.stdout).as_slice().into();
            let view = view.later(ran.lasted());
            machine.with(command, given).run(&view).after(ran)
        }
        Started::GoesOn { .. } => {
            Refusal::not_simulated("a pipe from what goes on into what reads to the end")
        }
        // Its input never ends
        Started::Serves { .. } | Started::Stays { .. } => Started::stays(),
        refused @ Started::Refused(_) => refused,
    }
}

/// What a filter has so far.
#[derive(Clone, Default)]
struct Begun {
    /// Whether any part before gave success, which is then that of the whole.
    matched: bool,
    /// The line that is not whole yet.
    line: Vec<u8>,
}

fn filtered(source: Started, machine: Machine, begun: Begun, view: &Sight<'_>) -> Started {
    match source {
        // What comes of the rest nobody knows
        Started::Ended(ran) if ran.code == NOT_SIMULATED => Started::Ended(ran),
        Started::Ended(ran) => {
            let (ran, begun) = lines(ran, &machine, begun, true, view);
            match begun.matched && ran.code != NOT_SIMULATED {
                true => Started::Ended(ran.ending(0)),
                false => Started::Ended(ran),
            }
        }
        Started::GoesOn { ran, rest } => {
            let (ran, begun) = lines(ran, &machine, begun, false, view);
            if ran.code == NOT_SIMULATED {
                return Started::Ended(ran);
            }
            Started::GoesOn {
                ran,
                rest: Rest::new(move |view| {
                    filtered(rest.at(view), machine.clone(), begun.clone(), view)
                }),
            }
        }
        Started::Serves { prints, .. } | Started::Stays { prints } => {
            let (ran, _) = lines(Ran::prints(prints), &machine, begun, false, view);
            Started::stays().after(ran)
        }
        refused @ Started::Refused(_) => refused,
    }
}

/// What comes of the whole lines, and of what is left at the `last` of them.
fn lines(ran: Ran, machine: &Machine, begun: Begun, last: bool, view: &Sight<'_>) -> (Ran, Begun) {
    let (mut code, mut error, mut line) = (None, Vec::new(), begun.line);
    let mut pass = |bytes: Vec<u8>| {
        let mut inner = machine.clone();
        inner.input = bytes.as_slice().into();
        let Started::Ended(ran) = inner.run(view) else {
            return Vec::new();
        };
        code = Some(match code {
            Some(NOT_SIMULATED) => NOT_SIMULATED,
            Some(known) if ran.code != NOT_SIMULATED => known.min(ran.code),
            _ => ran.code,
        });
        if error.is_empty() {
            error = ran.stderr;
        }
        ran.stdout
    };
    let mut out = ran.retold(|stream, bytes| match stream {
        Stream::Error => (stream, bytes),
        Stream::Out => {
            line.extend(bytes);
            let whole = line.iter().rposition(|byte| *byte == b'\n');
            let rest = line.split_off(whole.map_or(0, |at| at + 1));
            let whole = std::mem::replace(&mut line, rest);
            let told = if whole.is_empty() { whole } else { pass(whole) };
            (Stream::Out, told)
        }
    });
    if last {
        out.say(pass(std::mem::take(&mut line)));
    }
    out.stderr.extend(error);
    out.code = code.unwrap_or_default();
    let matched = begun.matched || code == Some(0);
    (out, Begun { matched, line })
}
