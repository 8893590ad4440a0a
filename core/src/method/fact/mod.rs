//! The test method `fact`: compares what the cluster reports of itself with an expectation.
//!
//! A run collects facts once at its start; a second attempt asks for fresh ones. No assertion observes
//! anything more. An unknown fact is an error: nothing is assumed of it.

mod csi;
mod expectation;
mod image;
mod quantity;
mod read;
mod seen;
mod topic;
mod version;

pub use expectation::{
    FactExpectation, ImageRule, RuntimeRule, SkewRule, SupportRule, TaintRule, UpdateRule,
};
pub use quantity::Quantity;
pub use seen::{
    FactObservation, NodeLabel, Observed, ObservedEndpoint, ObservedLabel, ObservedPulls,
    ObservedResource, Subject,
};
pub use topic::Topic;
pub(crate) use version::numbers;

use super::error::Result;
use super::exchange::{Reply, Request, another_kind};
use super::place::Bound;
use super::{Assertion, Comparison, Difference, Method, Prepared, Test, Traits};
use crate::fixture::{FixtureName, Need};
use crate::text::printable;
use expectation::Judged;

/// The test method `fact`.
#[derive(Clone, Debug)]
pub enum Fact {}

impl Method for Fact {
    type Query = Topic;
    type Expectation = FactExpectation;
    type Observation = FactObservation;

    const TEST: fn(Assertion<Self>) -> Test = Test::Fact;

    fn prepare<'a>(topic: &'a Topic, at: &Bound<'a>) -> Result<Prepared<'a, FactObservation>> {
        let at = *at;
        Ok(Prepared::new(Request::Facts, move |reply| {
            let Reply::Facts(facts) = reply else {
                return Err(another_kind());
            };
            read::read(topic, &at, facts)
        }))
    }

    fn needs(_: &Topic) -> Vec<(FixtureName, Need)> {
        Vec::new()
    }

    fn traits(topic: &Topic, _: &FactExpectation) -> Traits {
        Traits {
            facts: topic.facts(),
            ..Traits::default()
        }
    }

    fn compare(expectation: &FactExpectation, seen: &FactObservation) -> Result<Comparison> {
        let subjects = match seen {
            FactObservation::NotApplicable(reason) => {
                return Ok(Comparison::NotApplicable(reason.clone()));
            }
            FactObservation::Subjects(subjects) if subjects.is_empty() => {
                let reason = "nothing was there to observe".to_owned();
                return Ok(Comparison::NotApplicable(reason));
            }
            FactObservation::Subjects(subjects) => subjects,
        };
        let mut unmet = Vec::new();
        let (mut untold, mut open) = (None, None);
        for subject in subjects {
            match expectation.judge(&subject.saw) {
                Judged::Met => {}
                Judged::Unmet => unmet.push(subject),
                Judged::Open(reason) => {
                    let shown = shown(expectation, &[subject]);
                    open.get_or_insert_with(|| format!("{shown}: {}", printable(&reason)));
                }
                Judged::Untold(reason) => {
                    untold.get_or_insert_with(|| match subject.name.as_str() {
                        "" => printable(&reason),
                        name => format!("{}: {}", printable(name), printable(&reason)),
                    });
                }
            }
        }
        let difference = |subjects: &[&Subject]| Difference {
            expected: printable(&expectation.to_string()),
            seen: shown(expectation, subjects),
        };
        // One unmet subject is enough, whatever is unknown of the others
        Ok(match (unmet.is_empty(), untold, open) {
            (false, _, _) => Comparison::NotMet(difference(&unmet)),
            (true, Some(reason), _) => {
                return Err(read::lacks(reason));
            }
            (true, None, Some(reason)) => Comparison::NotApplicable(reason),
            (true, None, None) => Comparison::Met(difference(&subjects.iter().collect::<Vec<_>>())),
        })
    }
}

/// What subjects showed, in words: equal ones form a group that names its first few.
fn shown(expectation: &FactExpectation, subjects: &[&Subject]) -> String {
    let mut alike: Vec<(String, Vec<String>)> = Vec::new();
    for subject in subjects {
        let words = printable(&expectation.words(&subject.saw));
        let name = printable(&subject.name);
        match alike.iter_mut().find(|(other, _)| *other == words) {
            Some((_, names)) => names.push(name),
            None => alike.push((words, vec![name])),
        }
    }
    let group = |(words, names): &(String, Vec<String>)| {
        let named = names[..names.len().min(NAMED)].join(", ");
        match (named.as_str(), names.len().saturating_sub(NAMED)) {
            ("", _) => words.clone(),
            (named, 0) => format!("{named}: {words}"),
            (named, more) => format!("{named} and {more} more: {words}"),
        }
    };
    let mut groups: Vec<_> = alike.iter().take(GROUPS).map(group).collect();
    if alike.len() > GROUPS {
        groups.push(format!("and {} other forms", alike.len() - GROUPS));
    }
    groups.join("; ")
}

/// How many subjects of a group are named.
const NAMED: usize = 3;
/// How many groups are shown.
const GROUPS: usize = 6;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::WindowsBuild;

    #[test]
    fn nothing_that_was_seen_fulfils_nothing() {
        for expectation in [
            FactExpectation::Told,
            FactExpectation::Ready,
            FactExpectation::None,
        ] {
            let comparison = Fact::compare(&expectation, &FactObservation::Subjects(Vec::new()));
            assert!(
                matches!(comparison, Ok(Comparison::NotApplicable(_))),
                "{expectation}"
            );
        }
    }

    #[test]
    fn images_that_are_not_listed_or_of_an_unknown_build_prove_nothing() {
        let rule = ImageRule {
            build: WindowsBuild::SERVER_2025,
            version: ">=3.10.2".parse().expect("a range"),
        };
        let expectation = FactExpectation::RunsOnBuild(vec![rule]);
        let compared = |build, found: &[&str]| {
            let saw = Observed::Images {
                build: Some(build),
                found: found.iter().map(ToString::to_string).collect(),
                listed: 1,
                pulls: ObservedPulls::Took(Vec::new()),
            };
            let name = "n".to_owned();
            let seen = FactObservation::Subjects(vec![Subject { name, saw }]);
            Fact::compare(&expectation, &seen).expect("told")
        };
        let open = |comparison| matches!(comparison, Comparison::NotApplicable(_));
        assert!(open(compared(WindowsBuild::SERVER_2025, &[])));
        assert!(open(compared(WindowsBuild::SERVER_2025, &["pause:latest"])));
        assert!(open(compared(WindowsBuild::SERVER_2022, &["pause:3.10.2"])));
        let known = |found: &str| compared(WindowsBuild::SERVER_2025, &[found]);
        assert!(matches!(known("pause:3.10.2"), Comparison::Met(_)));
        assert!(matches!(known("pause:3.10"), Comparison::NotMet(_)));
    }

    #[test]
    fn those_alike_are_told_together_and_the_first_few_named() {
        let told = |seen: &[(&str, &str)]| {
            let subject = |(name, said): &(&str, &str)| Subject {
                name: (*name).to_owned(),
                saw: Observed::Families((*said).to_owned()),
            };
            let seen = FactObservation::Subjects(seen.iter().map(subject).collect());
            match Fact::compare(&FactExpectation::Family("ipv9".to_owned()), &seen) {
                Ok(Comparison::NotMet(difference)) => difference.seen,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(told(&[("", "ipv4")]), "ipv4");
        assert_eq!(
            told(&[("a", "ipv4"), ("b", "ipv6"), ("c", "ipv4"), ("d", "ipv4")]),
            "a, c, d: ipv4; b: ipv6"
        );
        assert_eq!(
            told(&[("a", "x"), ("b", "x"), ("c", "x"), ("d", "x")]),
            "a, b, c and 1 more: x"
        );
        let six = ["1", "2", "3", "4", "5", "6"].map(|said| ("n", said));
        let words = "n: 1; n: 2; n: 3; n: 4; n: 5; n: 6";
        assert_eq!(told(&six), words);
        let seven = [&six[..], &[("n", "7")]].concat();
        assert_eq!(told(&seven), format!("{words}; and 1 other forms"));
    }
}
