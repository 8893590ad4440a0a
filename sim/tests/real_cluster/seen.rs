//! Records of two sides that should be alike: texts by their subject, and the differences.

use std::collections::{BTreeMap, BTreeSet};

use regex::Regex;
use serde::{Deserialize, Serialize};

/// What was observed, by subject.
pub(crate) type Record = BTreeMap<String, String>;

/// Patterns of texts that differ between servers and between runs, and their replacements.
const OWN: [(&str, &str); 4] = [
    (r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "UID"),
    (r"\b[0-9a-f]{64}\b", "ID"),
    (r"\bkube-api-access-[a-z0-9]{5}\b", "kube-api-access"),
    (r"\b[0-9]{1,3}(\.[0-9]{1,3}){3}\b", "ADDRESS"),
];

/// Patterns and their replacements; `$1` is the first group.
pub(crate) type Rules = Vec<(Regex, &'static str)>;

/// The rules for texts that differ everywhere, and more after them.
pub(crate) fn rules(more: &[(&str, &'static str)]) -> Rules {
    let rule = |(pattern, by): &(&str, _)| (Regex::new(pattern).expect("a pattern"), *by);
    OWN.iter().chain(more).map(rule).collect()
}

pub(crate) fn normal(rules: &Rules, text: &str) -> String {
    let each = rules.iter();
    each.fold(text.to_owned(), |text, (pattern, by)| {
        pattern.replace_all(&text, *by).into_owned()
    })
}

/// A difference.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(deny_unknown_fields)]
pub(crate) struct Difference {
    /// The case, or the scenario with the number of the step; in a list of known differences `*` means any.
    pub(crate) case: String,
    /// The subject.
    pub(crate) at: String,
    /// The real text, if there is one.
    pub(crate) real: Option<String>,
    /// The simulated text, if there is one.
    pub(crate) simulated: Option<String>,
}

/// The differences between two records.
pub(crate) fn between(case: &str, real: &Record, simulated: &Record) -> Vec<Difference> {
    let subjects: BTreeSet<&String> = real.keys().chain(simulated.keys()).collect();
    let both = subjects.into_iter().map(|at| Difference {
        case: case.to_owned(),
        at: at.clone(),
        real: real.get(at).cloned(),
        simulated: simulated.get(at).cloned(),
    });
    both.filter(|one| one.real != one.simulated).collect()
}
