//! The few lines of a diagnosis that a report shows; the record has all of it.

use crate::fixture::FixtureKey;
use crate::method::Moment;
use crate::plan::CheckId;
use crate::record::{Diagnosis, Evidence, EvidenceKind, FixtureOutcome, RunView};
use crate::text::printable;

/// Lines shown of what a failed check depends on.
const SHOWN: usize = 4;

/// A few printable lines, with what each is.
pub(crate) type Excerpt = Vec<(&'static str, String)>;

/// The excerpt from the diagnosis of a failed fixture.
pub(crate) fn of_fixture(view: &RunView, key: &FixtureKey) -> Excerpt {
    view.diagnoses.get(key).map(excerpt).unwrap_or_default()
}

/// The excerpt from the diagnoses of the fixtures that a failed check depends on, with what the run did to their pods.
pub(crate) fn of_check(view: &RunView, check: &CheckId) -> Excerpt {
    let diagnoses = view
        .diagnoses
        .values()
        .filter(|diagnosis| diagnosis.checks.contains(check));
    let shown = diagnoses.flat_map(|diagnosis| {
        let steps = steps(view, &diagnosis.fixture).map(|steps| ("steps", steps));
        steps.into_iter().chain(excerpt(diagnosis))
    });
    shown.take(SHOWN).collect()
}

/// What the run did to the pods of a fixture before a check observed them, or how that failed.
fn steps(view: &RunView, key: &FixtureKey) -> Option<String> {
    if key.name.changes().is_empty() {
        return None;
    }
    match &view.fixtures.get(key)?.0 {
        FixtureOutcome::Failed(error) => Some(printable(&error.detail)),
        FixtureOutcome::Ready(ready) => {
            let changes: Vec<_> = ready.changes.iter().map(Moment::to_string).collect();
            (!changes.is_empty()).then(|| changes.join("; "))
        }
    }
}

/// The last line of the most telling log, and the last event.
fn excerpt(diagnosis: &Diagnosis) -> Excerpt {
    let last = |kinds: &[EvidenceKind]| {
        kinds.iter().find_map(|kind| {
            let mut evidence = diagnosis.evidence.iter().filter(|one| one.kind == *kind);
            evidence.find_map(|one| Some((one, one.lines.last()?)))
        })
    };
    let shown = |word: &'static str, seen: Option<(&Evidence, &String)>| {
        seen.map(|(evidence, line)| {
            let (of, line) = (printable(&evidence.of), printable(line));
            (word, format!("{of}: {line}"))
        })
    };
    // The log before a restart says why the container ended
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
