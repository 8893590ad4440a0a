//! What a waiver does: it takes the weight off what speaks against a cluster, and nothing else.
//!
//! The verdict stays as it is. A check that weighs nothing, such as for an error of our own, is never waived.

use jiff::civil::Date;
use strum::IntoStaticStr;

use super::weight::Weight;
use crate::config::Waiver;

/// One check of a run as waivers see it.
#[derive(Clone, Copy, Debug)]
pub struct Concluded<'c> {
    /// The check's id.
    pub id: &'c str,
    /// What its conclusion weighs; `None` without one.
    pub weight: Option<Weight>,
}

/// What became of a waiver in a run.
#[derive(Clone, Copy, Debug, Eq, IntoStaticStr, PartialEq)]
#[strum(serialize_all = "kebab-case")]
pub enum WaiverState {
    /// It applied to at least one check.
    Applied,
    /// It had expired when the run began: it applies no more.
    Expired,
    /// It covers no check of the run.
    #[strum(serialize = "met-nothing")]
    NoCheck,
    /// Every check that it covers speaks for the cluster.
    #[strum(serialize = "met-nothing")]
    NothingToWaive,
    /// No check that it covers speaks against the cluster, and some have no conclusion.
    Untold,
}

/// Whether a waiver has expired on a day; it still applies on its last day.
pub fn has_expired(waiver: &Waiver, on: Date) -> bool {
    on > waiver.expires
}

/// The waiver that takes the weight off a check on a day: the first that covers it.
pub fn waiver_of<'w>(waivers: &'w [Waiver], check: Concluded<'_>, on: Date) -> Option<&'w Waiver> {
    match check.weight {
        Some(Weight::Against) => waivers
            .iter()
            .find(|waiver| waiver.check.covers(check.id) && !has_expired(waiver, on)),
        Some(Weight::For | Weight::Nothing) | None => None,
    }
}

/// What became of a waiver in a run that began on a day.
pub fn waiver_state<'c>(
    waiver: &Waiver,
    checks: impl IntoIterator<Item = Concluded<'c>>,
    on: Date,
) -> WaiverState {
    if has_expired(waiver, on) {
        return WaiverState::Expired;
    }
    let mut state = WaiverState::NoCheck;
    for check in checks {
        if !waiver.check.covers(check.id) {
            continue;
        }
        state = match (check.weight, state) {
            (Some(Weight::Against), _) => return WaiverState::Applied,
            (Some(Weight::Nothing) | None, _) | (_, WaiverState::Untold) => WaiverState::Untold,
            (Some(Weight::For), _) => WaiverState::NothingToWaive,
        };
    }
    state
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claims::Pattern;

    fn waiver(check: &str, expires: &str) -> Waiver {
        Waiver {
            check: Pattern::parse(check).expect("a pattern"),
            reason: "known".to_owned(),
            owner: "me".to_owned(),
            expires: expires.parse().expect("a date"),
        }
    }

    fn day(text: &str) -> Date {
        text.parse().expect("a date")
    }

    fn concluded(id: &str, weight: Option<Weight>) -> Concluded<'_> {
        Concluded { id, weight }
    }

    #[test]
    fn only_what_speaks_against_the_cluster_is_waived() {
        let waivers = [waiver("net.*", "2026-03-01")];
        let on = day("2026-03-01");
        for (weight, waived) in [
            (Some(Weight::Against), true),
            (Some(Weight::For), false),
            (Some(Weight::Nothing), false),
            (None, false),
        ] {
            let found = waiver_of(&waivers, concluded("net.a[pool=x]", weight), on);
            assert_eq!(found.is_some(), waived, "{weight:?}");
        }
        let other = concluded("env.a", Some(Weight::Against));
        assert_eq!(waiver_of(&waivers, other, on), None);
    }

    #[test]
    fn a_waiver_applies_on_its_last_day_and_not_after() {
        let waivers = [waiver("net.a", "2026-02-28"), waiver("net.*", "2026-03-01")];
        let check = concluded("net.a[pool=x]", Some(Weight::Against));
        let of = |on| waiver_of(&waivers, check, day(on)).map(|waiver| waiver.check.as_str());
        assert_eq!(of("2026-02-28"), Some("net.a"));
        assert_eq!(of("2026-03-01"), Some("net.*"));
        assert_eq!(of("2026-03-02"), None);
    }

    #[test]
    fn what_became_of_a_waiver() {
        use WaiverState::{Applied, Expired, NoCheck, NothingToWaive, Untold};
        use Weight::{Against, For, Nothing};
        let on = day("2026-03-01");
        for (weights, expected) in [
            (vec![], NoCheck),
            (vec![Some(For)], NothingToWaive),
            (vec![Some(For), Some(Against)], Applied),
            (vec![Some(Nothing), Some(Against)], Applied),
            (vec![Some(Nothing), Some(For)], Untold),
            (vec![Some(For), Some(Nothing)], Untold),
            (vec![None], Untold),
        ] {
            let checks = weights.iter().map(|weight| concluded("net.a", *weight));
            let other = concluded("env.a", Some(Against));
            let checks: Vec<_> = checks.chain([other]).collect();
            let state = |waiver| waiver_state(&waiver, checks.iter().copied(), on);
            assert_eq!(
                state(waiver("net.a", "2026-03-01")),
                expected,
                "{weights:?}"
            );
            assert_eq!(state(waiver("net.a", "2026-02-28")), Expired);
        }
    }
}
