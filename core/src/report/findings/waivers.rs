//! Waivers in words: the ones that apply, and the ones that did nothing.

use crate::config::Waiver;
use crate::record::{CheckView, RunView};
use crate::text::printable;
use crate::verdict::{Verdict, WaiverState, Weight};

/// A waiver that did nothing. Reports name it, since its owner may rely on it, or forget it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Idle<'v> {
    /// What became of it.
    pub(crate) word: &'static str,
    pub(crate) waiver: &'v Waiver,
    pub(crate) sentence: String,
}

/// The waivers of a run that did nothing, in the order written.
pub(crate) fn idle(view: &RunView) -> Vec<Idle<'_>> {
    let waivers = view.waivers().into_iter();
    let idle = waivers.filter_map(|(waiver, state)| {
        let why = match state {
            WaiverState::Applied | WaiverState::Untold => return None,
            WaiverState::Expired => format!("expired on {}: it does not apply", waiver.expires),
            WaiverState::NoCheck => "waives nothing: it matches no check of this run".to_owned(),
            WaiverState::NothingToWaive => {
                "waives nothing: no check that it matches failed; remove it".to_owned()
            }
        };
        let check = printable(waiver.check.as_str());
        let owner = printable(&waiver.owner);
        Some(Idle {
            word: state.into(),
            waiver,
            sentence: format!("the waiver of {check} by {owner} {why}"),
        })
    });
    idle.collect()
}

/// A waiver that applies, on one printable line.
pub(crate) fn waived(waiver: &Waiver) -> String {
    printable(&format!("waived {waiver}"))
}

/// Whether a check speaks against the cluster only because the run's profile says so.
pub(crate) fn raised(view: &RunView, check: &CheckView) -> bool {
    view.weight(check) == Some(Weight::Against) && check.verdict() != Some(Verdict::Fail)
}
