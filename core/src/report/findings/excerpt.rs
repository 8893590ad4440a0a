//! The little of a diagnosis that a report shows; all of it is in the record.

use crate::fixture::FixtureKey;
use crate::plan::CheckId;
use crate::record::{Diagnosis, Evidence, EvidenceKind, RunView};
use crate::text::printable;

/// Lines shown of what a failed check depends on.
const SHOWN: usize = 4;

/// A few printable lines, with what each is.
pub(crate) type Excerpt = Vec<(&'static str, String)>;

/// What was to be seen of a fixture that failed.
pub(crate) fn of_fixture(view: &RunView, key: &FixtureKey) -> Excerpt {
    view.diagnoses.get(key).map(excerpt).unwrap_or_default()
}

/// What was to be seen of the fixtures that a failed check depends on.
pub(crate) fn of_check(view: &RunView, check: &CheckId) -> Excerpt {
    let own = view
        .diagnoses
        .values()
        .filter(|diagnosis| diagnosis.checks.contains(check));
    own.flat_map(excerpt).take(SHOWN).collect()
}

/// The last line of the log that tells most, and the last event.
fn excerpt(diagnosis: &Diagnosis) -> Excerpt {
    let last = |kinds: &[EvidenceKind]| {
        kinds.iter().find_map(|kind| {
            let mut told = diagnosis.evidence.iter().filter(|one| one.kind == *kind);
            told.find_map(|one| Some((one, one.lines.last()?)))
        })
    };
    let shown = |word: &'static str, told: Option<(&Evidence, &String)>| {
        told.map(|(evidence, line)| {
            let (of, line) = (printable(&evidence.of), printable(line));
            (word, format!("{of}: {line}"))
        })
    };
    // Why a container ended is said before it was started again
    let log = last(&[EvidenceKind::PreviousLog, EvidenceKind::Log]);
    [
        shown("last log", log),
        shown("last event", last(&[EvidenceKind::Events])),
    ]
    .into_iter()
    .flatten()
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::PoolName;
    use crate::fixture::FixtureName;

    #[test]
    fn the_last_line_before_the_restart_is_shown_and_is_printable() {
        let of = || "Pod a/b, container c".to_owned();
        let diagnosis = Diagnosis {
            fixture: FixtureName::LINUX_SERVER.in_pool(Some(&PoolName::linux())),
            checks: Vec::new(),
            evidence: vec![
                Evidence::from_text(EvidenceKind::Log, of(), "starting"),
                Evidence::from_text(EvidenceKind::PreviousLog, of(), "one\n\u{1b}[2Jfatal"),
                Evidence::from_text(EvidenceKind::Status, of(), "CrashLoopBackOff"),
            ],
        };
        assert_eq!(
            excerpt(&diagnosis),
            [(
                "last log",
                "Pod a/b, container c: \\u{1b}[2Jfatal".to_owned()
            )]
        );
    }
}
