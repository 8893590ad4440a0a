//! What is seen in two places that are to be alike: lines of text by what they are of, and where they differ.

use std::collections::{BTreeMap, BTreeSet};

use regex::Regex;

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

/// Where two records differ, and what each has there.
pub(crate) fn differing<'r>(
    one: &'r Record,
    other: &'r Record,
) -> impl Iterator<Item = (&'r String, [Option<String>; 2])> {
    let all: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
    let both = move |at| (at, [one.get(at).cloned(), other.get(at).cloned()]);
    all.into_iter()
        .map(both)
        .filter(|(_, [one, other])| one != other)
}
