//! `winconform diff`.

use std::path::{Path, PathBuf};

use winconform_core::report::diff::{Diff, Gate, Report, render};
use winconform_core::report::json;
use winconform_core::report::terminal::Detail;

use super::report::load;
use crate::cli::args::{DiffArgs, DiffGate, ReportFormArgs};
use crate::cli::error::CliError;
use crate::cli::out;
use crate::cli::screen::Screen;
use crate::cli::settings::{length, unread};

/// The exit code where the gate does not hold.
const GATED: u8 = 10;

pub(crate) fn run(args: &DiffArgs, screen: &Screen) -> Result<u8, CliError> {
    let diff = Diff::new(report(&args.before)?, report(&args.after)?);
    let gate = match args.gate {
        DiffGate::NewFailures => Gate::NewFailures,
        DiffGate::AnyFailure => Gate::AnyFailure,
        DiffGate::LostCoverage => Gate::LostCoverage,
    };
    let detail = match args.details {
        true => Detail::Full,
        false => Detail::Short,
    };
    screen.say(&render(&diff, screen.width(), detail));
    Ok(if diff.passes(gate) { 0 } else { GATED })
}

/// The record of the run in a folder, or else its report.
pub(super) fn file_of(folder: &Path) -> Option<PathBuf> {
    let files = [out::RECORD, out::REPORT].map(|name| folder.join(name));
    files.into_iter().find(|file| file.is_file())
}

/// The error for a folder without a run; `nor` goes on with what else it lacks.
pub(super) fn lacks_run(folder: &Path, nor: &str) -> CliError {
    let shown = winconform_core::text::printable(&folder.display().to_string());
    let message = format!("`{shown}` has no run: neither a record.jsonl nor a report.json{nor}");
    CliError::Usage(message)
}

/// The `report.json` of the run that another one is to be compared with, if it is with one.
pub(crate) fn baseline(shown: &ReportFormArgs) -> Result<Option<String>, CliError> {
    let baseline = shown.baseline.as_deref().map(read).transpose()?;
    Ok(baseline.map(|(text, _)| text))
}

/// The report of a run.
pub(super) fn report(path: &Path) -> Result<Report, CliError> {
    read(path).map(|(_, report)| report)
}

/// The report of a run and its text, from its record where that is there.
fn read(path: &Path) -> Result<(String, Report), CliError> {
    let there = file_of(path);
    if there.is_none() && path.is_dir() {
        return Err(lacks_run(path, ""));
    }
    let path = there.as_deref().unwrap_or(path);
    let text = match path.extension().is_some_and(|ending| ending == "json") {
        true => {
            length(path)?;
            std::fs::read_to_string(path).map_err(unread(path))?
        }
        false => json::render(&load(path)?),
    };
    let report = Report::read(&text).map_err(|error| {
        let path = winconform_core::text::printable(&path.display().to_string());
        CliError::Usage(format!("`{path}` cannot be compared: {error}"))
    })?;
    Ok((text, report))
}
