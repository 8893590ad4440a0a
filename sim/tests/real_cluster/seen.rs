//! What is seen in two places that are to be alike: lines of text by what they are of, and where they differ.

use std::collections::{BTreeMap, BTreeSet};

use regex::Regex;
use serde::{Deserialize, Serialize};

/// By what is seen: what it was.
pub(crate) type Record = BTreeMap<String, String>;

/// What differs from one server to the next and from one run to the next.
const OWN: [(&str, &str); 4] = [
    (r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "UID"),
    (r"\b[0-9a-f]{64}\b", "ID"),
    (r"\bkube-api-access-[a-z0-9]{5}\b", "kube-api-access"),
    (r"\b[0-9]{1,3}(\.[0-9]{1,3}){3}\b", "ADDRESS"),
];

/// Patterns, and what is written for what they match; `$1` is their first group.
pub(crate) type Rules = Vec<(Regex, &'static str)>;

/// The rules for what is everybody's own, and more after them.
pub(crate) fn rules(more: &[(&str, &'static str)]) -> Rules {
    let rule = |(pattern, by): &(&str, _)| (Regex::new(pattern).expect("a pattern"), *by);
    OWN.iter().chain(more).map(rule).collect()
}

pub(crate) fn normal(rules: &Rules, text: &str) -> String {
    let all = rules.iter();
    all.fold(text.to_owned(), |text, (pattern, by)| {
        pattern.replace_all(&text, *by).into_owned()
    })
}

/// One thing that differs.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(deny_unknown_fields)]
pub(crate) struct Difference {
    /// The case, or the scenario with its step's number; `*` in a list of known ones for any.
    pub(crate) case: String,
    /// What is seen.
    pub(crate) at: String,
    /// What it really is, if it is there.
    pub(crate) real: Option<String>,
    /// What it is where it is simulated, if it is there.
    pub(crate) simulated: Option<String>,
}

/// All that differs.
pub(crate) fn between(case: &str, real: &Record, simulated: &Record) -> Vec<Difference> {
    let all: BTreeSet<&String> = real.keys().chain(simulated.keys()).collect();
    let both = all.into_iter().map(|at| Difference {
        case: case.to_owned(),
        at: at.clone(),
        real: real.get(at).cloned(),
        simulated: simulated.get(at).cloned(),
    });
    both.filter(|one| one.real != one.simulated).collect()
}
