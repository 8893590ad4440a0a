//! The project's own suites, for tests that run them.

use std::path::Path;

use winconform_core::suite::{SuiteFile, Suites};

/// The project's suites with the cases of these areas.
pub(crate) fn of_areas(areas: &[&str]) -> Suites {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("suites");
    let mut suites = Suites::read(files(&root, Path::new(""))).expect("valid suites");
    suites
        .cases
        .retain(|case| areas.contains(&case.claim.area()));
    suites
}

/// Every file below a folder.
fn files(root: &Path, below: &Path) -> Vec<SuiteFile> {
    let entries = std::fs::read_dir(root.join(below)).expect("the suites");
    let read = |entry: std::io::Result<std::fs::DirEntry>| {
        let below = below.join(entry.expect("an entry").file_name());
        if root.join(&below).is_dir() {
            return files(root, &below);
        }
        let path = below.to_string_lossy().into_owned();
        let text = std::fs::read_to_string(root.join(&below)).expect("a suite");
        vec![SuiteFile {
            shown: path.clone(),
            path,
            text,
        }]
    };
    entries.flat_map(read).collect()
}
