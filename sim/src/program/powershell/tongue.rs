//! PowerShell as a shell: how it reads its commands, and what it shows of that.

use super::super::input::Input;
use super::super::script::{Machine, Phrase, Step, Tongue};
use super::super::{Place, Ran, Refusal, Sight, Started, cmd};
use super::{PowerShell, statements, step};
use crate::image::Family;

/// Reads its commands from its input, and says so.
pub(super) fn prompting(
    place: &Place,
    args: &[String],
    input: &Input,
    view: &Sight<'_>,
) -> Started {
    if place.family == Family::Agnhost {
        // Its banner names its version, which nobody here knows
        return Refusal::not_simulated("pwsh with its prompt");
    }
    let quiet = args.iter().any(|arg| arg.eq_ignore_ascii_case("-nologo"));
    let banner = if quiet { "" } else { BANNER };
    let machine = Machine::reading(&PowerShell, place, true, input, view);
    machine.run(view).after(Ran::prints(banner))
}

const BANNER: &str =
    "Windows PowerShell\r\nCopyright (C) Microsoft Corporation. All rights reserved.\r\n\r\n";

impl Tongue for PowerShell {
    fn step(&self, machine: &mut Machine, text: &str, input: &Input, view: &Sight<'_>) -> Step {
        step(machine, text, input, view)
    }

    /// `about_PowerShell_exe`: where no `exit` says it, the exit code is whether the last command
    /// succeeded, and codes other than 0 and 1 are converted to 1.
    fn last(&self, code: u32) -> u32 {
        code.min(1)
    }

    fn words(&self, _: &mut Machine, _: &str, _: &Sight<'_>) -> Result<Vec<String>, Ran> {
        Ok(Vec::new())
    }

    fn set(&self, _: &mut Machine, _: &str, _: String) -> Result<(), Ran> {
        Ok(())
    }

    fn prompt(&self, machine: &Machine, more: bool) -> String {
        match more {
            true => ">> ".to_owned(),
            false => format!("PS {}> ", cmd::standing(&machine.place)),
        }
    }

    /// PowerShell, `ConsoleHostUserInterface.ReadLineFromFile`: letter by letter, as it stands.
    fn shown(&self, line: &str) -> String {
        line.to_owned()
    }

    fn phrase(&self, _: &mut Machine, lines: &str) -> Phrase {
        if statements::is_open(lines) {
            return Phrase::Unfinished;
        }
        match statements::parse(lines) {
            Ok(list) => Phrase::Commands(list),
            Err(why) => {
                let text = format!("{why} in `{}`", lines.trim_end());
                Phrase::NotUnderstood(Refusal::instead_of(&text))
            }
        }
    }

    /// PowerShell, `ConsoleHost.DoRunspaceLoop`: whether the last command was a success. At a console
    /// no key stands for the end.
    fn end(&self, machine: &Machine, terminal: bool) -> Option<Ran> {
        (!terminal).then(|| Ran::code(u32::from(machine.code != 0)))
    }
}
