//! Pipes: a program reads what the one before it prints. What works line by line tells each line
//! when it comes; everything else waits for the end.

use super::{Command, Machine, What};
use crate::log::Stream;
use crate::program::input::{Ear, Input};
use crate::program::{Ran, Refusal, Rest, Sight, Started};

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
            true => filtered(source, machine, false, view),
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
    let name = text.split_whitespace().next().unwrap_or_default();
    let name = name.to_ascii_lowercase();
    let name = name.strip_suffix(".exe").unwrap_or(&name);
    command.redirects.is_empty() && matches!(name, "cat" | "grep" | "find" | "findstr" | "more")
}

fn collected(source: Started, machine: &Machine, command: &Command, view: &Sight<'_>) -> Started {
    match source {
        Started::Ended(mut ran) => {
            let given = std::mem::take(&mut ran.stdout).as_slice().into();
            let view = view.later(ran.lasted());
            machine.with(command, given).run(&view).after(ran)
        }
        // What it prints by then goes where the rest will
        Started::Reads { ran, wants, ear } => {
            let (machine, command) = (machine.clone(), command.clone());
            Started::Reads {
                ran: Ran::default(),
                wants,
                ear: Ear::new(move |heard, view| {
                    let source = ear.at(heard, view).after(ran.clone());
                    collected(source, &machine, &command, view)
                }),
            }
        }
        Started::GoesOn { .. } => {
            Refusal::not_simulated("a pipe from what goes on into what reads to the end")
        }
        // Its input never ends
        Started::Serves { .. } | Started::Stays { .. } => Started::stays(),
        refused @ Started::Refused(_) => refused,
    }
}

/// `matched`: whether any part before gave success, which is then that of the whole.
fn filtered(source: Started, machine: Machine, matched: bool, view: &Sight<'_>) -> Started {
    match source {
        Started::Ended(ran) => {
            let ran = lines(ran, &machine, view);
            let code = if matched { 0 } else { ran.code };
            Started::Ended(Ran { code, ..ran })
        }
        Started::GoesOn { ran, rest } => {
            let ran = lines(ran, &machine, view);
            let matched = matched || ran.code == 0;
            Started::GoesOn {
                ran,
                rest: Rest::new(move |view| {
                    filtered(rest.at(view), machine.clone(), matched, view)
                }),
            }
        }
        Started::Reads { ran, wants, ear } => {
            let ran = lines(ran, &machine, view);
            let matched = matched || ran.code == 0;
            Started::Reads {
                ran,
                wants,
                ear: Ear::new(move |heard, view| {
                    filtered(ear.at(heard, view), machine.clone(), matched, view)
                }),
            }
        }
        Started::Serves { prints, .. } | Started::Stays { prints } => {
            Started::stays().after(lines(Ran::prints(prints), &machine, view))
        }
        refused @ Started::Refused(_) => refused,
    }
}

fn lines(ran: Ran, machine: &Machine, view: &Sight<'_>) -> Ran {
    let (mut code, mut error, mut line) = (None, Vec::new(), Vec::new());
    let mut pass = |bytes: Vec<u8>| {
        let mut inner = machine.clone();
        inner.input = bytes.as_slice().into();
        let Started::Ended(ran) = inner.run(view) else {
            return Vec::new();
        };
        code = Some(code.map_or(ran.code, |known: u32| known.min(ran.code)));
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
    let last = pass(line);
    out.say(last);
    out.stderr.extend(error);
    out.code = code.unwrap_or_default();
    out
}
