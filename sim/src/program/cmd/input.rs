//! `cmd` without `/c`, which reads its commands from its input.
//!
//! It shows the banner and the prompt of a console, and of a pipe also each line that it has read,
//! behind the prompt (mbrg/power-pwn, README.md: `echo "hello word"` through a pipe into
//! cmd of Windows 10.0.22000; the banner of 2019, in the output of another pipe, has the year).
//! Without input it ends at once (microsoft/Windows-Containers issue 332).

use super::super::input::Input;
use super::super::script::{List, Machine, Phrase};
use super::super::{Place, Ran, Refusal, Sight, Started};
use super::{Cmd, expanded, syntax, version};

/// Runs the lines of the input.
pub(in crate::program) fn reading(place: &Place, input: &Input, view: &Sight<'_>) -> Started {
    let version = version(place, view);
    let year = if version.contains(".17763.") {
        "2018 "
    } else {
        ""
    };
    let banner = format!(
        "Microsoft Windows [Version {version}]\r\n\
         (c) {year}Microsoft Corporation. All rights reserved.\r\n"
    );
    let machine = Machine::reading(&Cmd, place, true, input, view);
    machine.run(view).after(Ran::prints(banner))
}

/// The commands of a line.
pub(super) fn phrase(machine: &Machine, line: &str) -> Phrase {
    let line = line.trim_end_matches(['\r', '\n']);
    if line.trim().is_empty() {
        return Phrase::Commands(List::default());
    }
    match expanded(machine, line).and_then(|line| syntax::parse(&line)) {
        Ok(list) => Phrase::Commands(list),
        Err(why) => Phrase::NotUnderstood(Refusal::instead_of(&format!("{why} in `{line}`"))),
    }
}
