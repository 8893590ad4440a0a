//! The project's own suites.

use std::path::Path;

use winconform_core::suite::{SuiteFile, Suites};

/// The suites with the cases of these areas alone.
pub(crate) fn of_areas(areas: &[&str]) -> Suites {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("suites");
    let mut files = Vec::new();
    read(&root, &root, &mut files);
    let mut suites = Suites::read(files).expect("the suites are valid");
    suites
        .cases
        .retain(|case| areas.contains(&case.claim.area()));
    suites
}

fn read(root: &Path, folder: &Path, files: &mut Vec<SuiteFile>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            read(root, &path, files);
            continue;
        }
        let below = path.strip_prefix(root).expect("below").to_string_lossy();
        files.push(SuiteFile {
            shown: below.to_string(),
            path: below.to_string(),
            text: std::fs::read_to_string(&path).expect("text"),
        });
    }
}
