//! The terminal: standard output for results, standard error for everything else.

use std::io::{IsTerminal, Write};

use winconform_core::record::RunView;
use winconform_core::report::terminal::{Colour, render};
use winconform_core::report::{json, junit};

use super::args::ReportFormat;
use super::error::CliError;

/// Writes to the terminal. A reader that has gone (`| head`) is no reason to fail: the verdict
/// is in the exit code.
#[derive(Clone, Copy, Debug)]
pub(super) struct Screen {
    /// Whether standard output takes colours.
    colour: Colour,
    /// Its width in columns.
    width: usize,
}

impl Screen {
    pub(super) fn new() -> Self {
        // https://no-color.org
        let wanted = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        let colour = wanted && std::io::stdout().is_terminal();
        let columns = std::env::var("COLUMNS")
            .ok()
            .and_then(|text| text.parse().ok());
        Self {
            colour: if colour {
                Colour::Always
            } else {
                Colour::Never
            },
            width: columns.unwrap_or(100).clamp(60, 200),
        }
    }

    /// The report of a run; for people as wide and as coloured as standard output takes it.
    pub(super) fn report(&self, view: &RunView, format: ReportFormat) -> Result<(), CliError> {
        let text = match format {
            ReportFormat::Text => render(view, self.width, self.colour),
            ReportFormat::Json => json::render(view),
            ReportFormat::Junit => junit::render(view).map_err(CliError::Report)?,
        };
        self.say(&text);
        Ok(())
    }

    /// How many columns a report takes.
    pub(super) fn width(&self) -> usize {
        self.width
    }

    /// A result.
    #[expect(
        clippy::unused_self,
        reason = "only whoever was given the screen prints"
    )]
    pub(super) fn say(&self, text: &str) {
        let mut out = std::io::stdout().lock();
        let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    }

    /// Progress, warnings, errors.
    #[expect(
        clippy::unused_self,
        reason = "only whoever was given the screen prints"
    )]
    pub(super) fn complain(&self, text: &str) {
        let mut err = std::io::stderr().lock();
        let _ = err.write_all(text.as_bytes()).and_then(|()| err.flush());
    }
}
