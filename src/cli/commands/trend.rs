//! `winconform trend`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use winconform_core::report::diff::Trend;

use super::diff::{file_of, lacks_run, report};
use crate::cli::args::{TrendArgs, TrendFormat};
use crate::cli::error::CliError;
use crate::cli::out;
use crate::cli::screen::Screen;
use crate::cli::settings::unread;

pub(crate) fn run(args: &TrendArgs, screen: &Screen) -> Result<u8, CliError> {
    let mut runs = Vec::new();
    for path in &args.runs {
        match path.is_dir() && file_of(path).is_none() {
            true => runs.extend(folders(path)?),
            false => runs.push(path.clone()),
        }
    }
    let mut seen = BTreeSet::new();
    runs.retain(|path| seen.insert(folder_of(path)));
    let (mut reports, mut unread) = (Vec::new(), Vec::new());
    for path in &runs {
        match report(path) {
            Ok(report) => reports.push(report),
            Err(error) => unread.push(error),
        }
    }
    match unread.pop() {
        Some(error) if reports.is_empty() => return Err(error),
        last => unread.extend(last),
    }
    for error in unread {
        screen.complain(&format!("left out: {}", error.render()));
    }
    let trend = Trend::new(reports);
    screen.say(&match args.format {
        TrendFormat::Markdown => trend.markdown(),
        TrendFormat::Html => trend.html(),
    });
    Ok(0)
}

/// Where a run is: the folder of its record and reports, or another file. Ids do not tell runs apart: each demo has the
/// same.
fn folder_of(path: &Path) -> PathBuf {
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let name = path.file_name().and_then(|name| name.to_str());
    match (name, path.parent()) {
        (Some(out::RECORD | out::REPORT), Some(folder)) => folder.to_owned(),
        _ => path,
    }
}

/// The folders in a folder, of which some have a run: a night without one is not to go unseen.
fn folders(path: &Path) -> Result<Vec<PathBuf>, CliError> {
    let entries = std::fs::read_dir(path).map_err(unread(path))?;
    let entries: Vec<_> = entries.collect::<Result<_, _>>().map_err(unread(path))?;
    let folders = entries.into_iter().map(|entry| entry.path());
    let mut folders: Vec<_> = folders.filter(|folder| folder.is_dir()).collect();
    // Of runs that began at the same time the names tell which is first
    folders.sort();
    match folders.iter().any(|folder| file_of(folder).is_some()) {
        true => Ok(folders),
        false => Err(lacks_run(path, ", nor a folder with one")),
    }
}
