//! What reports say of the run itself rather than of one of its checks.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::claims::ClaimId;
use crate::config::shown;
use crate::record::{Exit, ObjectName, RunView, Tally, exit};
use crate::report::findings::finding::times;
use crate::text::{counted, printable};

/// How many of several checks are named.
const NAMED: usize = 3;

const KILLED: &str = "the run was killed";
/// Nothing that a verdict could still say is missing.
const CUT_OFF: &str = "the run was cut off after its last verdict";

/// Something that leaves the run's outcome in doubt, beside verdicts.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Reservation {
    pub(crate) word: &'static str,
    pub(crate) sentence: String,
}

/// What a command needs that is to reach the cluster of a run: the record does not have the kubeconfig's path.
pub(crate) const SAME_CLUSTER: &str =
    "with the --kubeconfig and --context of the run, if it had them";

/// The word of claims that were not tested.
pub(crate) const NOT_TESTED: &str = "not-tested";

/// Everything that leaves the run's outcome in doubt, beside verdicts.
pub(crate) fn reservations(view: &RunView) -> Vec<Reservation> {
    let mut doubts = Vec::new();
    let mut say = |word, sentence| doubts.push(Reservation { word, sentence });
    if let Some(by) = &view.interrupted {
        say(
            "interrupted",
            format!("the run was interrupted by {}", printable(by)),
        );
    }
    if let Some(after_ms) = view.deadline {
        let after = shown(Duration::from_millis(after_ms));
        say(
            "deadline",
            format!("the run's deadline, {after}, came before its end"),
        );
    }
    if killed(view) == Some(KILLED) {
        let cut = if view.cut {
            ", its last line cut off"
        } else {
            ""
        };
        say(
            "killed",
            format!("the record ends before the run did{cut}: {KILLED}"),
        );
    }
    if view.checks.is_empty() {
        let (word, sentence) = match exit(view) {
            Exit::NothingSelected => (
                "nothing-selected",
                nothing_selected(&view.started.unchecked, &view.left_out),
            ),
            _ => (
                "nothing-planned",
                "the run ended before it had a plan".to_owned(),
            ),
        };
        say(word, sentence);
    }
    for ((reason, place), untested) in Tally::from_view(view).untested_where {
        let place = place.map_or(String::new(), |place| format!(" on {}", printable(&place)));
        let named: Vec<_> = untested.iter().map(ToString::to_string).collect();
        let (count, named) = (counted(untested.len(), "claim"), named.join(", "));
        let reason = printable(&reason);
        say(
            NOT_TESTED,
            format!("{count} not tested{place} ({reason}): {named}"),
        );
    }
    let partly = partly_told(view);
    if !partly.is_empty() {
        let count = counted(partly.len(), "check");
        let named: Vec<_> = partly.into_iter().take(NAMED).collect();
        say(
            "partly-told",
            format!(
                "{count} gave no verdict about the cluster in some of the {} repetitions, among them {}",
                view.repetitions,
                named.join("; ")
            ),
        );
    }
    match &view.torn_down {
        None if view.intents.is_empty() => {}
        None => say("not-torn-down", {
            let left = counted(view.intents.len(), "object");
            format!("nothing was torn down: up to {left} may be left in the cluster")
        }),
        Some(torn) if torn.unlisted => say("left-behind", {
            let left = counted(view.left().len(), "object");
            format!(
                "tear-down could not list every kind of object: up to {left} may be left in the cluster"
            )
        }),
        Some(torn) if !(view.kept || torn.left.is_empty()) => {
            say(
                "left-behind",
                format!("{} left in the cluster", counted(torn.left.len(), "object")),
            );
        }
        Some(torn) if !torn.errors.is_empty() => {
            let errors: Vec<_> = torn.errors.iter().map(|error| printable(error)).collect();
            say(
                "tear-down-errors",
                format!("tear-down met errors: {}", errors.join("; ")),
            );
        }
        Some(_) => {}
    }
    doubts
}

/// The checks that were conclusive in some repetitions but not in all, each with the count of each verdict.
fn partly_told(view: &RunView) -> Vec<String> {
    // The last repetition may have been broken off
    let broken_off = view.interrupted.is_some() || view.deadline.is_some();
    let whole = view.repetitions.saturating_sub(broken_off.into());
    let checks = view.checks.values();
    let repeated = checks.filter_map(|check| {
        let repeated = &check.conclusion.as_ref()?.repeated;
        let conclusive = repeated
            .iter()
            .filter(|(verdict, _)| verdict.is_conclusive());
        let conclusive: u32 = conclusive.map(|(_, times)| times).sum();
        let id = printable(check.planned.id.as_str());
        (0 < conclusive && conclusive < whole).then(|| format!("{id} ({})", times(repeated)))
    });
    repeated.collect()
}

/// That the run was killed, if it was.
pub(crate) fn killed(view: &RunView) -> Option<&'static str> {
    let mut checks = view.checks.values();
    let told = !view.checks.is_empty() && checks.all(|check| check.conclusion.is_some());
    let how = if told { CUT_OFF } else { KILLED };
    view.ended.is_none().then_some(how)
}

/// What was unusual and leaves nothing in doubt, in printable sentences.
pub(crate) fn notices(view: &RunView) -> Vec<String> {
    let mut sentences = Vec::new();
    if killed(view) == Some(CUT_OFF) {
        sentences.push(CUT_OFF.to_owned());
    }
    if let Some((run, checks)) = &view.resumed {
        sentences.push(format!(
            "the verdicts of {} come from run {}, which this run resumed",
            counted(*checks, "check"),
            printable(run)
        ));
    }
    if view.repetitions > 1 {
        sentences.push(format!(
            "the run performed every check {} times; the worst verdict of each check counts",
            view.repetitions
        ));
    }
    if view.kept {
        sentences.push("what the run created stays in the cluster, as was asked for".to_owned());
    }
    sentences
}

/// An object in words, printable: `Deployment winconform-1/win-webserver`.
pub(crate) fn object(name: &ObjectName) -> String {
    let kind = printable(&name.kind);
    match &name.namespace {
        Some(namespace) => format!("{kind} {}/{}", printable(namespace), printable(&name.name)),
        None => format!("{kind} {}", printable(&name.name)),
    }
}

/// Why there is no check, and what there is instead: `unchecked` are the selected claims without checks,
/// `left_out` counts the checks that are not selected, by area.
pub fn nothing_selected(unchecked: &[ClaimId], left_out: &BTreeMap<String, usize>) -> String {
    let mut sentence = match (unchecked, left_out.is_empty()) {
        ([], true) => return "there was nothing to check".to_owned(),
        ([], false) => "nothing is selected".to_owned(),
        ([one], _) => format!("nothing is selected: {one} has no checks yet"),
        (many, _) => {
            let claims = counted(many.len(), "claim");
            format!("nothing is selected: none of the {claims} it names has checks yet")
        }
    };
    if !left_out.is_empty() {
        let areas = left_out.iter().map(|(area, count)| {
            let count = counted(*count, "check");
            format!("{} ({count})", printable(area))
        });
        let areas: Vec<_> = areas.collect();
        sentence.push_str(&format!("; there is {}", areas.join(", ")));
    }
    sentence
}
