//! Verdicts as single letters, for maps and strips, and which of many counts most.

use std::collections::BTreeMap;

use crate::verdict::Verdict;

/// The letter and the class of a verdict; `None` is a check that did not end.
pub(crate) fn sign(verdict: Option<Verdict>) -> (&'static str, &'static str) {
    match verdict {
        Some(Verdict::Fail) => ("F", "fail"),
        None => ("U", "doubt"),
        Some(Verdict::Inconclusive) => ("?", "doubt"),
        Some(Verdict::Warn) => ("W", "warn"),
        Some(Verdict::LimitationLifted) => ("L", "warn"),
        Some(Verdict::KnownLimitation) => ("K", "known"),
        Some(Verdict::Informational) => ("i", "quiet"),
        Some(Verdict::Pass) => ("P", "pass"),
        Some(Verdict::Skip) => ("\u{2013}", "quiet"),
    }
}

/// How much a verdict matters where one stands for many: what speaks against the cluster comes first.
pub(crate) fn rank(verdict: Option<Verdict>) -> u8 {
    match verdict {
        Some(Verdict::Fail) => 0,
        None => 1,
        Some(Verdict::Inconclusive) => 2,
        Some(Verdict::LimitationLifted) => 3,
        Some(Verdict::Warn) => 4,
        Some(Verdict::Pass) => 5,
        Some(Verdict::KnownLimitation) => 6,
        Some(Verdict::Informational) => 7,
        Some(Verdict::Skip) => 8,
    }
}

/// How many of these came to which verdict, what counts most first.
pub(crate) fn by_rank(
    verdicts: impl Iterator<Item = Option<Verdict>>,
) -> Vec<(Option<Verdict>, usize)> {
    let mut counts = BTreeMap::new();
    for verdict in verdicts {
        counts.entry(rank(verdict)).or_insert((verdict, 0)).1 += 1;
    }
    counts.into_values().collect()
}
