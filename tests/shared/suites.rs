//! The project's own suites.

#![allow(dead_code, reason = "not every binary makes whole runs")]

use std::path::Path;

use winconform_core::suite::{SuiteFile, Suites};

/// The suites with the cases of these areas alone.
pub(crate) fn of_areas(areas: &[&str]) -> Suites {
    let mut suites = whole();
    suites
        .cases
        .retain(|case| areas.contains(&case.claim.area()));
    suites
}

/// All of the suites.
pub(crate) fn whole() -> Suites {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("suites");
    let mut files = Vec::new();
    read(&root, &root, &mut files);
    Suites::read(files).expect("the suites are valid")
}

/// Claims about what runs or lies on the nodes at that moment, which runs side by side change.
const OF_THE_MOMENT: [&str; 3] = [
    "env.image-pull",
    "env.requests-set",
    "env.workloads-declare-os",
];

/// The suites without what depends on the moment, and with one rejection for all, which have
/// their own tests.
pub(crate) fn of_whole_runs() -> Suites {
    let mut suites = whole();
    suites.cases.retain(|case| {
        let claim = case.claim.as_str();
        let one = claim == "reject.hostPID" && case.name.is_none();
        !OF_THE_MOMENT.contains(&claim) && (case.claim.area() != "reject" || one)
    });
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
