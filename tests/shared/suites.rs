//! Reads the project's suites.

#![allow(dead_code, reason = "not every binary makes whole runs")]

use std::path::Path;

use winconform_core::suite::{SuiteFile, Suites};

/// The suites, with only the cases of these areas.
pub(crate) fn of_areas(areas: &[&str]) -> Suites {
    let mut suites = whole();
    suites
        .cases
        .retain(|case| areas.contains(&case.claim.area()));
    suites
}

/// The suites with only the cases of these areas that run no program in a pod.
pub(crate) fn without_programs(areas: &[&str]) -> Suites {
    let mut suites = of_areas(areas);
    suites
        .cases
        .retain(|case| case.claim.as_str() != "env.node-services");
    suites
}

/// All suites.
pub(crate) fn whole() -> Suites {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("suites");
    let mut files = Vec::new();
    read(&root, &root, &mut files);
    Suites::read(files).expect("the suites are valid")
}

/// Claims about the pods and images on the nodes at the moment, which concurrent runs change.
const OF_THE_MOMENT: [&str; 3] = [
    "env.image-pull",
    "env.requests-set",
    "env.workloads-declare-os",
];

/// The suites without the claims above, and with only one of the rejections, which have tests of their own.
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
