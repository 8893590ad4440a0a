//! The user's settings: the config file and the selection, both valid for the suites in use.

use std::path::Path;

use winconform_core::config::{self, Config};
use winconform_core::document::{Diagnostic, Diagnostics, Placed};
use winconform_core::plan::{Selection, check_waivers};
use winconform_core::suite::Suites;

use super::args::ChecksArgs;
use super::error::CliError;
use super::suites;

/// The largest file of settings, or of a topology, in bytes.
pub(crate) const LARGEST: u64 = 1 << 20;

/// The settings of a user.
pub(crate) struct Settings {
    /// The config file, or the defaults without one.
    pub(crate) config: Config,
    pub(crate) selection: Selection,
}

/// Reads the suites, and the config file and the arguments, and reports all problems of these together.
pub(crate) fn read(args: &ChecksArgs) -> Result<(Suites, Settings), CliError> {
    let mut problems = Vec::new();
    let read = collect(args, &mut problems)?;
    check(problems)?;
    Ok(read)
}

/// Reports the problems of settings and arguments, if there are any.
pub(crate) fn check(problems: Vec<Diagnostic>) -> Result<(), CliError> {
    let what = "the configuration or the arguments are not valid";
    Diagnostics::check(problems).map_err(|problems| CliError::Invalid(what, problems))
}

/// Like [`read`], but adds the problems to others.
pub(crate) fn collect(
    args: &ChecksArgs,
    problems: &mut Vec<Diagnostic>,
) -> Result<(Suites, Settings), CliError> {
    let suites = suites::load(args.suites.suites.as_deref())?;
    let mut config = match &args.config {
        None => Config::default(),
        Some(path) => {
            let text = read_bounded(path, "configuration", LARGEST)?;
            let file = path.display().to_string();
            let config = config::read(&file, &text, problems);
            check_waivers(&config.waivers, &suites, problems);
            config
        }
    };
    let node = args.yes_disrupt.clone();
    config.disrupt = node.map(|node| Placed::by_argument(node, "--yes-disrupt"));
    let before = problems.len();
    let mut selection = Selection::read(&config.select, &suites, problems);
    if !args.select.select.is_empty() {
        let given = args.select.select.iter().cloned();
        let given = given.map(|expression| Placed::by_argument(expression, "--select"));
        selection = Selection::read(&given.collect::<Vec<_>>(), &suites, problems);
    }
    // What a selection with mistakes would pull is unknown
    if let Some(problem) = &config.public
        && problems.len() == before
        && selection.may_pull(&suites)
    {
        problems.push(problem.clone());
    }
    Ok((suites, Settings { config, selection }))
}

/// The text of a file of at most `most` bytes.
pub(crate) fn read_bounded(path: &Path, what: &str, most: u64) -> Result<String, CliError> {
    let (bytes, shown) = (length(path)?, path.display());
    if bytes > most {
        return Err(CliError::Usage(format!(
            "`{shown}` has {bytes} bytes; a {what} may have {most}"
        )));
    }
    std::fs::read_to_string(path).map_err(unread(path))
}

/// The length of a regular file in bytes; refuses others, such as a device or pipe, which may never end.
pub(crate) fn length(path: &Path) -> Result<u64, CliError> {
    let metadata = std::fs::metadata(path).map_err(unread(path))?;
    let shown = path.display();
    match metadata.is_file() {
        true => Ok(metadata.len()),
        false => Err(CliError::Usage(format!("`{shown}` is not a regular file"))),
    }
}

/// The error for a file that cannot be read.
pub(crate) fn unread(path: &Path) -> impl Fn(std::io::Error) -> CliError {
    let path = path.to_owned();
    move |source| CliError::Read {
        path: path.clone(),
        source,
    }
}
