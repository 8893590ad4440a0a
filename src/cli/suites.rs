//! Reads the suites: the built-in ones, or those of a folder.

use std::path::Path;

use include_dir::{Dir, include_dir};
use winconform_core::suite::{SuiteFile, Suites};

use super::error::CliError;
use super::settings::{read_bounded, unread};

/// The suites built into the binary.
static BUILT_IN: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/suites");

/// The largest suite file read, in bytes.
const LARGEST: u64 = 4 << 20;

/// Reads the suites of a folder, or the built-in ones.
pub(crate) fn load(folder: Option<&Path>) -> Result<Suites, CliError> {
    let files = match folder {
        None => built_in(&BUILT_IN),
        Some(folder) => {
            let mut files = Vec::new();
            of_folder(folder, folder, &mut files)?;
            files
        }
    };
    let invalid = |problems| CliError::Invalid("the suites are not valid", problems);
    Suites::read(files).map_err(invalid)
}

fn built_in(dir: &Dir<'_>) -> Vec<SuiteFile> {
    let here = dir.files().filter_map(|file| {
        let path = file.path().to_str()?.to_owned();
        let text = file.contents_utf8()?.to_owned();
        Some(SuiteFile {
            shown: format!("suites/{path}"),
            path,
            text,
        })
    });
    here.chain(dir.dirs().flat_map(built_in)).collect()
}

fn of_folder(root: &Path, folder: &Path, files: &mut Vec<SuiteFile>) -> Result<(), CliError> {
    let entries = std::fs::read_dir(folder).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let mut entries = entries.map_err(unread(folder))?;
    entries.sort_by_key(std::fs::DirEntry::path);
    for entry in entries {
        let path = entry.path();
        let ending = path.extension().unwrap_or_default();
        let metadata = std::fs::metadata(&path).map_err(unread(&path))?;
        if metadata.is_dir() {
            of_folder(root, &path, files)?;
        } else if ending == "yml" {
            // A file that was silently skipped would hide its cases
            let shown = path.display();
            return Err(CliError::Usage(format!(
                "suites end in .yaml: rename `{shown}`"
            )));
        } else if ending == "yaml" {
            let below = path.strip_prefix(root).unwrap_or(&path).iter();
            let below: Vec<_> = below.map(|part| part.to_string_lossy()).collect();
            files.push(SuiteFile {
                path: below.join("/"),
                shown: path.display().to_string(),
                text: read_bounded(&path, "suite", LARGEST)?,
            });
        }
    }
    Ok(())
}
