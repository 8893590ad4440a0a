//! `winconform report`.

use std::fs::File;
use std::io::{BufReader, BufWriter};
use std::path::Path;

use winconform_core::record::{RunView, anonymize, exit, read};
use winconform_core::text::printable;

use super::diff::baseline;
use crate::cli::args::ReportArgs;
use crate::cli::error::CliError;
use crate::cli::out;
use crate::cli::screen::Screen;
use crate::cli::settings::{length, unread};

pub(crate) fn run(args: &ReportArgs, screen: &Screen) -> Result<u8, CliError> {
    let (path, ci) = (&out::record_at(&args.record), args.shown.ci.system());
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
    read(open(path)?).map_err(|source| CliError::Record {
        path: path.to_owned(),
        source,
    })
}

fn open(path: &Path) -> Result<BufReader<File>, CliError> {
    length(path)?;
    let file = File::open(path).map_err(unread(path))?;
    Ok(BufReader::new(file))
}

/// Reads a record, and writes it into a folder under other names, which is what the reports are made of.
fn anonymous(path: &Path, folder: &Path) -> Result<RunView, CliError> {
    let written = folder.join(out::RECORD);
    // Errors name what is in the record as it is
    load(path)?;
    let record = open(path)?;
    out::write_whole(&written, |file| anonymize(record, BufWriter::new(file)))?;
    load(&written)
}
