//! Waivers in words: those that apply, and those that did nothing.

use crate::config::Waiver;
use crate::record::{CheckView, RunView};
use crate::text::printable;
use crate::verdict::{Verdict, WaiverState, Weight};

/// A waiver that did nothing, which is to be told: it would be relied on, or forgotten.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Idle<'v> {
    /// What became of it.
    pub(crate) word: &'static str,
    pub(crate) waiver: &'v Waiver,
    pub(crate) sentence: String,
}

/// The waivers of a run that did nothing, in the order written.
pub(crate) fn idle(view: &RunView) -> Vec<Idle<'_>> {
    let told = |(waiver, state): (&'_ Waiver, WaiverState)| {
        let why = match state {
            WaiverState::Applied | WaiverState::Untold => return None,
            WaiverState::Expired => format!("expired on {}: it does not apply", waiver.expires),
            WaiverState::NoCheck => "met nothing: no check of this run is meant by it".to_owned(),
            WaiverState::NothingToWaive => {
                "met nothing: there is no failure in what it is for; remove it".to_owned()
            }
        };
        let check = printable(waiver.check.as_str());
        let owner = printable(&waiver.owner);
        Some(format!("the waiver of {check} by {owner} {why}"))
    };
    let waivers = view.waivers().into_iter();
    waivers
        .filter_map(|(waiver, state)| {
            Some(Idle {
                word: state.into(),
                waiver,
                sentence: told((waiver, state))?,
            })
        })
        .collect()
}

/// A waiver that applies, on one printable line.
pub(crate) fn waived(waiver: &Waiver) -> String {
    printable(&format!("waived {waiver}"))
}

/// Whether a check speaks against the cluster only because the run's profile says so.
pub(crate) fn raised(view: &RunView, check: &CheckView) -> bool {
    view.weight(check) == Some(Weight::Against) && check.verdict() != Some(Verdict::Fail)
}
