//! `winconform report`.

use std::io::ErrorKind;
use std::path::Path;

use winconform_core::record::{RunView, anonymized, exit, read};
use winconform_core::text::printable;

use super::diff::baseline;
use crate::cli::args::ReportArgs;
use crate::cli::error::CliError;
use crate::cli::out;
use crate::cli::screen::Screen;
use crate::cli::settings::{length, unread};

pub(crate) fn run(args: &ReportArgs, screen: &Screen) -> Result<u8, CliError> {
    let (path, ci) = (&args.record, args.shown.ci.system());
    let baseline = baseline(&args.shown)?;
    if let Some(folder) = &args.out {
        let record = out::prepare(folder)?;
        if record.exists() && (args.anonymize || !out::holds(folder, path)) {
            let shown = printable(&folder.display().to_string());
            let message = format!(
                "`--out {shown}` has the record of another run, whose reports these would replace: name another folder"
            );
            return Err(CliError::Usage(message));
        }
    }
    let mut view = match (&args.out, args.anonymize) {
        (Some(folder), true) => anonymous(path, folder)?,
        _ => load(path)?,
    };
    view.baseline = baseline;
    if let Some(folder) = &args.out {
        ci.write(folder, &view)?;
    }
    screen.report(&view, &args.shown)?;
    ci.tell(&view, args.out.as_deref(), screen);
    Ok(exit(&view).code())
}

/// Reads a record.
pub(crate) fn load(path: &Path) -> Result<RunView, CliError> {
    viewed(path, &text_of(path)?)
}

fn text_of(path: &Path) -> Result<String, CliError> {
    length(path)?;
    let text = std::fs::read(path).and_then(as_text);
    text.map_err(unread(path))
}

fn viewed(path: &Path, text: &str) -> Result<RunView, CliError> {
    read(text).map_err(|source| CliError::Record {
        path: path.to_owned(),
        source,
    })
}

/// Reads a record, and writes it into a folder under other names, which is what the reports are made of.
fn anonymous(path: &Path, folder: &Path) -> Result<RunView, CliError> {
    let text = text_of(path)?;
    // Errors name what is in the record as it is
    viewed(path, &text)?;
    let text =
        anonymized(&text).map_err(|line| CliError::Usage(format!("line {line} is not JSON")))?;
    let view = viewed(path, &text)?;
    out::write_whole(&folder.join(out::RECORD), &text)?;
    Ok(view)
}

/// The record's text. A kill may cut its last line within a character.
fn as_text(bytes: Vec<u8>) -> std::io::Result<String> {
    let whole = bytes
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |at| at + 1);
    match String::from_utf8(bytes) {
        Ok(text) => Ok(text),
        Err(error) if whole > 0 && error.utf8_error().valid_up_to() >= whole => {
            Ok(String::from_utf8_lossy(error.as_bytes()).into_owned())
        }
        Err(error) => {
            let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
            let line = valid.split(|byte| *byte == b'\n').count();
            let message = format!("line {line} is not UTF-8");
            Err(std::io::Error::new(ErrorKind::InvalidData, message))
        }
    }
}
