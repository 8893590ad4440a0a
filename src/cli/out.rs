//! The folder of a run's reports.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use winconform_core::record::RunView;
use winconform_core::report::{json, junit};

use super::error::CliError;

/// What is made of a record.
const REPORTS: [&str; 2] = ["junit.xml", "report.json"];

/// Makes the folder and tells whether files can be made in it, before anything is begun.
pub(super) fn prepare(folder: &Path) -> Result<PathBuf, CliError> {
    let refuse = |error: std::io::Error| {
        CliError::Usage(format!(
            "cannot write into `--out {}`: {error}",
            folder.display()
        ))
    };
    if folder.exists() && !folder.is_dir() {
        let shown = folder.display();
        return Err(CliError::Usage(format!(
            "cannot write into `--out {shown}`: it is no folder"
        )));
    }
    std::fs::create_dir_all(folder).map_err(refuse)?;
    // New, and of no name that anyone else has prepared
    let probe = folder.join(format!(".winconform-{:016x}", rand::random::<u64>()));
    std::fs::File::create_new(&probe).map_err(refuse)?;
    std::fs::remove_file(&probe).map_err(refuse)?;
    Ok(folder.join("record.jsonl"))
}

/// The reports of an earlier run: whoever picks them up must never take them for this run's.
pub(super) fn reports(folder: &Path) -> Vec<PathBuf> {
    REPORTS.map(|name| folder.join(name)).into()
}

/// Removes the reports of an earlier run, whose record stays, from the folder of a run that came to
/// nothing; whether there were any.
pub(super) fn withdraw(folder: &Path) -> bool {
    let removed = reports(folder).into_iter().map(std::fs::remove_file);
    removed.flatten().count() > 0
}

/// Writes every report that is a file.
pub(super) fn write(folder: &Path, view: &RunView) -> Result<(), CliError> {
    write_whole(
        &folder.join("junit.xml"),
        &junit::render(view).map_err(CliError::Report)?,
    )?;
    write_whole(&folder.join("report.json"), &json::render(view))
}

/// Writes a file whole or not at all: a reader never sees half of it.
fn write_whole(path: &Path, text: &str) -> Result<(), CliError> {
    let part = path.with_extension("part");
    let written = std::fs::File::create(&part).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&part, path)
    });
    written.map_err(|source| {
        let _ = std::fs::remove_file(&part);
        CliError::Write {
            path: path.to_owned(),
            source,
        }
    })
}
