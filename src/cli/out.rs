//! The folder of a run's reports.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use winconform_core::record::RunView;
use winconform_core::report::ci::metrics;
use winconform_core::report::{html, json, junit as junit_report};

use super::error::CliError;

/// The reports made from a record.
pub(super) const REPORT: &str = "report.json";
pub(super) const JUNIT: &str = "junit.xml";
/// The name from which `TestGrid` reads a context (testgrid, `util/gcs/read.go`).
pub(super) const JUNIT_OF_PROW: &str = "junit_winconform.xml";
pub(super) const PAGE: &str = "report.html";
const METRICS: &str = "metrics.prom";
pub(super) const SUMMARY: &str = "winconform-summary.md";
pub(super) const ANNOTATIONS: &str = "winconform-annotations.json";
/// The file with which Prow's columns are made (kubernetes-sigs/prow, `pkg/sidecar/run.go`); others may write it, too.
pub(super) const METADATA: &str = "metadata.json";
const REPORTS: [&str; 8] = [
    JUNIT,
    JUNIT_OF_PROW,
    REPORT,
    PAGE,
    METRICS,
    SUMMARY,
    ANNOTATIONS,
    METADATA,
];
/// Where in a report it says that it is one, in bytes.
const BEGINS: usize = 4096;
pub(super) const RECORD: &str = "record.jsonl";

/// The record at a path: a run's folder holds it.
pub(crate) fn record_at(path: &Path) -> PathBuf {
    match path.is_dir() {
        true => path.join(RECORD),
        false => path.to_owned(),
    }
}

/// Creates the folder and checks that files can be created in it, before a run begins.
pub(crate) fn prepare(folder: &Path) -> Result<PathBuf, CliError> {
    let refused = |why: &str| {
        let shown = folder.display();
        CliError::Usage(format!("cannot write reports into `{shown}`: {why}"))
    };
    let refuse = |error: io::Error| refused(&error.to_string());
    if folder.exists() && !folder.is_dir() {
        return Err(refused("it is no folder"));
    }
    let mut builder = std::fs::DirBuilder::new();
    // A record holds names, addresses and logs, so a new folder is its owner's alone
    builder
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .map_err(refuse)?;
    // A new file, under a name that nothing else can have prepared
    let probe = folder.join(format!(".winconform-{:016x}", rand::random::<u64>()));
    File::create_new(&probe).map_err(refuse)?;
    std::fs::remove_file(&probe).map_err(refuse)?;
    for name in REPORTS.into_iter().chain([RECORD]) {
        let kind = std::fs::symlink_metadata(folder.join(name)).map(|it| it.file_type());
        let what = match kind {
            Ok(kind) if kind.is_dir() => "a folder",
            Ok(kind) if kind.is_symlink() && name == RECORD => {
                "a symbolic link, which is not followed"
            }
            Ok(_) | Err(_) => continue,
        };
        return Err(refused(&format!("its `{name}` is {what}")));
    }
    Ok(folder.join(RECORD))
}

/// The paths of the reports that an earlier run may have left: they must never pass for this run's.
pub(crate) fn reports(folder: &Path) -> Vec<PathBuf> {
    let paths = REPORTS.iter().map(|name| folder.join(name));
    paths.filter(|path| is_ours(path)).collect()
}

/// Whether a file is named as one of our reports and says so itself; others have files of such names, too.
pub(super) fn is_ours(path: &Path) -> bool {
    use io::ErrorKind::{NotADirectory, NotFound};
    let name = path.file_name().and_then(|name| name.to_str());
    let text = match std::fs::read(path) {
        Ok(text) => String::from_utf8_lossy(&text).into_owned(),
        Err(error) if matches!(error.kind(), NotFound | NotADirectory) => return false,
        Err(_) => return name != Some(METADATA),
    };
    let json = |key: &str| {
        let value: Option<serde_json::Value> = serde_json::from_str(&text).ok();
        value.is_some_and(|value| !value[key].is_null())
    };
    let begins = |ours: &str| text[..text.floor_char_boundary(BEGINS)].contains(ours);
    match name {
        Some(JUNIT | JUNIT_OF_PROW) => begins("<testsuites name=\"winconform\""),
        Some(REPORT) => json("observed-from"),
        Some(PAGE) => begins("<!DOCTYPE html>") && text.contains("<p>winconform "),
        Some(METRICS) => begins("winconform_"),
        Some(METADATA) => json("winconform"),
        Some(SUMMARY | ANNOTATIONS) => true,
        _ => false,
    }
}

/// Removes an earlier run's reports, but not its record, from the folder of a run that has none; returns each
/// with the result.
pub(crate) fn withdraw(folder: &Path) -> Vec<(PathBuf, io::Result<()>)> {
    let remove = |report: PathBuf| {
        let removed = std::fs::remove_file(&report);
        (report, removed)
    };
    reports(folder).into_iter().map(remove).collect()
}

/// Whether a record is in the folder.
pub(crate) fn holds(folder: &Path, record: &Path) -> bool {
    let there = folder.join(RECORD).canonicalize();
    there.is_ok_and(|there| record.canonicalize().is_ok_and(|record| record == there))
}

/// Writes every report that is a file; `JUnit` under this name.
pub(crate) fn write(folder: &Path, view: &RunView, junit: &str) -> Result<(), CliError> {
    let xml = junit_report::render(view).map_err(CliError::Report)?;
    write_text(&folder.join(junit), &xml)?;
    write_text(&folder.join(REPORT), &json::render(view))?;
    write_text(&folder.join(PAGE), &html::render(view))?;
    write_text(&folder.join(METRICS), &metrics(view))
}

pub(super) fn write_text(path: &Path, text: &str) -> Result<(), CliError> {
    write_whole(path, |file| file.write_all(text.as_bytes()))
}

/// Writes a file whole or not at all: a reader never sees half of it.
pub(super) fn write_whole(
    path: &Path,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> Result<(), CliError> {
    let part = path.with_extension("part");
    // This removes an existing link; `create_new` follows none
    let _ = std::fs::remove_file(&part);
    let written = File::create_new(&part).and_then(|mut file| {
        write(&mut file)?;
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

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn reports_that_cannot_be_removed_are_told_of() {
        let folder = tempfile::tempdir().expect("a folder");
        assert!(withdraw(folder.path()).is_empty());
        let junit = folder.path().join("junit.xml");
        std::fs::create_dir(&junit).expect("made");
        let ours = r#"{"observed-from": []}"#;
        std::fs::write(folder.path().join(REPORT), ours).expect("written");
        for name in [PAGE, METADATA, METRICS] {
            std::fs::write(folder.path().join(name), "somebody's").expect("written");
        }
        let withdrawn = withdraw(folder.path()).into_iter();
        let withdrawn: Vec<_> = withdrawn.map(|(path, it)| (path, it.is_ok())).collect();
        let report = folder.path().join(REPORT);
        assert_eq!(withdrawn, [(junit, false), (report, true)]);
        let stays = [PAGE, METADATA, METRICS].map(|name| folder.path().join(name).exists());
        assert_eq!(stays, [true; 3]);
    }

    #[test]
    fn links_in_the_folder_are_not_followed() {
        let folder = tempfile::tempdir().expect("a folder");
        let out = folder.path().join("new/out");
        prepare(&out).expect("prepared");
        let mode = std::fs::metadata(&out).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        let victim = folder.path().join("victim");
        std::fs::write(&victim, "precious").expect("written");
        for name in ["junit.part", "record.jsonl"] {
            std::os::unix::fs::symlink(&victim, out.join(name)).expect("linked");
        }
        write_text(&out.join("junit.xml"), "new").expect("written");
        let refused = prepare(&out).expect_err("refused").to_string();
        assert!(refused.contains("symbolic link"), "{refused}");
        assert_eq!(std::fs::read_to_string(&victim).expect("there"), "precious");
    }

    #[test]
    fn a_folder_holds_its_record_and_no_other() {
        let folder = tempfile::tempdir().expect("a folder");
        let record = folder.path().join("record.jsonl");
        assert!(!holds(folder.path(), &record));
        let other = folder.path().join("other.jsonl");
        for path in [&record, &other] {
            std::fs::write(path, "").expect("written");
        }
        assert!(holds(&folder.path().join("."), &record));
        assert!(!holds(folder.path(), &other));
    }
}
