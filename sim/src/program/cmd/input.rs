//! `cmd` without `/c`, which reads its commands from its input.
//!
//! What it shows where its input is a pipe: the banner and the prompt of a console, and each line that
//! it has read behind the prompt (mbrg/power-pwn, README.md: `echo "hello word"` through a pipe into
//! cmd of Windows 10.0.22000; the banner of 2019, in the output of another pipe, has the year).
//! Without input it ends at once (microsoft/Windows-Containers issue 332).

use super::super::script::{Command, Element, Joint, List, Machine, What};
use super::super::{NOT_SIMULATED, Place, Ran, Sight, Started};
use super::{Cmd, expanded, shown, syntax, version};

/// Runs the lines of the input.
pub(in crate::program) fn reading(place: &Place, input: &[u8], view: &Sight<'_>) -> Started {
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
    let typed = String::from_utf8_lossy(input);
    let lines = typed.lines().map(|line| Some(line.to_owned()));
    let element = |line| {
        let command = Command {
            what: What::Line(line),
            redirects: Vec::new(),
        };
        Element::new(Joint::Always, vec![command])
    };
    let list: List = lines.chain([None]).map(element).collect();
    let machine = Machine::new(&Cmd, place, list, b"", view);
    machine.run(view).after(Ran::prints(banner))
}

/// A line with what is shown of it, and its commands.
pub(super) fn line(machine: &mut Machine, line: Option<&str>) -> (Ran, List) {
    // A root keeps its backslash
    let directory = shown(&machine.place, "");
    let directory = match directory.ends_with(':') {
        true => directory + "\\",
        false => directory,
    };
    let prompt = format!("\r\n{directory}>");
    let Some(line) = line else {
        machine.code = machine.level;
        return (Ran::prints(prompt), List::default());
    };
    let list = syntax::parse(&expanded(&machine.place, line)).unwrap_or_else(|why| {
        let text = format!("hybrid-sim does not simulate {why} in `{line}`");
        let command = Command {
            what: What::Simple(format!("{REFUSED}{text}")),
            redirects: Vec::new(),
        };
        [Element::new(Joint::Always, vec![command])].into()
    });
    (Ran::prints(format!("{prompt}{line}\r\n")), list)
}

/// Marks a line that was not understood: no command begins so.
const REFUSED: char = '\0';

/// What a line that was not understood comes to.
pub(super) fn refused(text: &str) -> Option<Ran> {
    let text = text.strip_prefix(REFUSED)?;
    Some(Ran::complains(format!("{text}\n"), NOT_SIMULATED))
}
