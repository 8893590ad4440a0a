//! The terminal: standard output for results, standard error for everything else.

use std::io::{ErrorKind, IsTerminal, Write};
use std::sync::OnceLock;

use terminal_size::{Width, terminal_size, terminal_size_of};
use winconform_core::record::RunView;
use winconform_core::report::terminal::{Colour, render};
use winconform_core::report::{alone, ci::harmless, json, junit};

use super::args::{Ci, ReportFormArgs, ReportFormat};
use super::error::CliError;

/// Why the first lost result was lost, such as a full disk behind a redirection.
static LOST: OnceLock<String> = OnceLock::new();

/// Writes to the terminal. A closed reader (`| head`) is no failure: the verdict is in the exit code.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Screen {
    /// Whether standard output takes colours.
    colour: Colour,
    width: usize,
    /// Whether standard error takes lines that are drawn again and again.
    draws: bool,
}

#[expect(
    clippy::unused_self,
    reason = "only whoever was given the screen prints"
)]
impl Screen {
    pub(crate) fn new() -> Self {
        let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let able = std::env::var_os("TERM").is_none_or(|value| value != "dumb");
        // https://no-color.org
        let colour = !is_set("NO_COLOR") && able && std::io::stdout().is_terminal();
        let is_log = is_set("CI") || Ci::Auto.system() != Ci::None;
        // A terminal without TERM is taken for one that cannot erase
        let erases = able && is_set("TERM");
        let set = std::env::var("COLUMNS").ok();
        let columns = set.and_then(|text| text.parse().ok()).or_else(|| {
            let (Width(columns), _) = terminal_size()?;
            Some(usize::from(columns))
        });
        Self {
            colour: if colour {
                Colour::Always
            } else {
                Colour::Never
            },
            width: columns.unwrap_or(100).clamp(60, 200),
            draws: erases && !is_log && std::io::stderr().is_terminal(),
        }
    }

    /// Prints the report of a run; as text in the width and the colours of standard output.
    pub(crate) fn report(&self, view: &RunView, shown: &ReportFormArgs) -> Result<(), CliError> {
        let text = match shown.format {
            ReportFormat::Text => harmless(&render(view, self.width, self.colour, shown.detail())),
            // The same values without what build systems take for commands
            ReportFormat::Json => json::render(view).replace("##", "#\\u0023"),
            ReportFormat::Junit => {
                let text = junit::render(view).map_err(CliError::Report)?;
                text.replace("##", "#&#35;")
            }
        };
        self.print(&text);
        Ok(())
    }

    /// One check of a run, if it has it.
    pub(crate) fn alone(&self, view: &RunView, id: &str) -> Option<String> {
        alone::check(view, id, self.width, self.colour)
    }

    /// How many columns a report takes.
    pub(crate) fn width(&self) -> usize {
        self.width
    }

    /// Whether progress is drawn in place.
    pub(crate) fn draws(&self) -> bool {
        self.draws
    }

    /// How many columns that takes now, as a terminal may change its size. The last column stays free: where
    /// it is full some terminals begin another line.
    pub(crate) fn drawn_width() -> usize {
        let columns = terminal_size_of(std::io::stderr());
        let columns = columns.map_or(80, |(Width(columns), _)| usize::from(columns));
        columns.saturating_sub(1).min(200)
    }

    /// Prints a result in which no line is a command of a build system.
    pub(crate) fn say(&self, text: &str) {
        self.print(&harmless(text));
    }

    fn print(&self, text: &str) {
        let mut out = std::io::stdout().lock();
        match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
            Err(error) if error.kind() != ErrorKind::BrokenPipe => {
                LOST.get_or_init(|| error.to_string());
            }
            _ => {}
        }
    }

    /// The exit code of a command that ends with `code`: another one if its output was lost.
    pub(crate) fn ends(&self, code: u8) -> u8 {
        match LOST.get() {
            None => code,
            Some(why) => {
                self.complain(&format!("error: standard output takes no more: {why}\n"));
                1
            }
        }
    }

    /// Prints commands to the system of continuous integration that reads this, a line each.
    pub(crate) fn command(&self, lines: &[String]) {
        let mut err = std::io::stderr().lock();
        for line in lines {
            let _ = writeln!(err, "{line}");
        }
    }

    /// Prints progress, warnings and errors.
    pub(crate) fn complain(&self, text: &str) {
        let (text, mut err) = (harmless(text), std::io::stderr().lock());
        let _ = err.write_all(text.as_bytes()).and_then(|()| err.flush());
    }
}
