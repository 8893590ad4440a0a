//! Whether targets answer, which is all that test methods without pages observe.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::method::compare::Each;
use crate::method::failure::{FailureClass, Signature, one_of};
use crate::method::{Comparison, Difference};
use crate::text::printable;

/// How many targets that are not as expected are named.
const NAMED: usize = 4;

/// The expectation of every target.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ReachExpectation {
    Answers,
    /// It fails in one of these ways; an answer would mean that the limitation is lifted.
    Fails(BTreeSet<FailureClass>),
}

impl ReachExpectation {
    /// The expectation of the failure that a known limitation shows, instead of an answer.
    pub(crate) fn failing(&self, signature: &Signature) -> Option<Self> {
        match (self, signature) {
            (Self::Answers, Signature::Failure(classes)) => Some(Self::Fails(classes.clone())),
            _ => None,
        }
    }
}

impl fmt::Display for ReachExpectation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Answers => f.write_str("an answer"),
            Self::Fails(classes) => write!(f, "failure by {}", one_of(classes)),
        }
    }
}

#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct ReachObservation {
    pub targets: Vec<ReachedTarget>,
    pub absent: Option<String>,
}

#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct ReachedTarget {
    pub target: String,
    pub answer: ReachAnswer,
}

/// The result of one request.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReachAnswer {
    /// It answered with this text, which is bounded.
    Answered(String),
    Failed {
        class: FailureClass,
        /// The tool's words, bounded.
        text: String,
    },
}

/// Compares all targets together.
pub(crate) fn compare(expectation: &ReachExpectation, seen: &ReachObservation) -> Comparison {
    if let Some(absent) = &seen.absent {
        return Comparison::NotApplicable(absent.clone());
    }
    let of = |target: &ReachedTarget| match (expectation, &target.answer) {
        (ReachExpectation::Answers, ReachAnswer::Answered(_)) => Each::Met,
        (ReachExpectation::Answers, ReachAnswer::Failed { class, .. }) => match class {
            FailureClass::WrongAnswer => Each::Unexpected,
            _ => Each::NotMet,
        },
        (ReachExpectation::Fails(_), ReachAnswer::Answered(_)) => Each::NotMet,
        (ReachExpectation::Fails(classes), ReachAnswer::Failed { class, .. }) => {
            match classes.contains(class) {
                true => Each::Met,
                false => Each::Unexpected,
            }
        }
    };
    let each: Vec<_> = seen.targets.iter().map(of).collect();
    let difference = Difference {
        expected: match seen.targets.len() {
            0 | 1 => expectation.to_string(),
            many => format!("{expectation} from each of {many}"),
        },
        seen: describe(seen, &each),
    };
    let is_limitation = matches!(expectation, ReachExpectation::Fails(_));
    Each::together(&each, is_limitation, difference)
}

fn describe(seen: &ReachObservation, each: &[Each]) -> String {
    let line = |one: &ReachedTarget| {
        let said = match &one.answer {
            ReachAnswer::Answered(text) => format!("`{}`", printable(text)),
            ReachAnswer::Failed { class, text } => {
                format!("{}: `{}`", class.as_str(), printable(text))
            }
        };
        format!("{}: {said}", printable(&one.target))
    };
    let amiss = seen.targets.iter().zip(each);
    let amiss = amiss.filter(|(_, one)| **one != Each::Met);
    let amiss: Vec<_> = amiss.map(|(target, _)| line(target)).collect();
    match (seen.targets.as_slice(), amiss.len()) {
        ([target], _) => line(target),
        (targets, 0) => format!("so it was, {0} of {0}", targets.len()),
        (targets, count) => {
            let mut parts = vec![format!("{count} of {} otherwise", targets.len())];
            parts.extend(amiss.into_iter().take(NAMED));
            if count > NAMED {
                parts.push(format!("and {} more", count - NAMED));
            }
            parts.join("; ")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(answers: &[Option<FailureClass>]) -> ReachObservation {
        let target = |answer: &Option<FailureClass>| ReachedTarget {
            target: "a".to_owned(),
            answer: match answer {
                None => ReachAnswer::Answered("here".to_owned()),
                Some(class) => ReachAnswer::Failed {
                    class: *class,
                    text: "lost".to_owned(),
                },
            },
        };
        ReachObservation {
            targets: answers.iter().map(target).collect(),
            absent: None,
        }
    }

    #[test]
    fn all_targets_count() {
        use FailureClass::{NoRoute, Timeout, WrongAnswer};
        let answers = &ReachExpectation::Answers;
        let fails = &ReachExpectation::Fails([Timeout].into());
        for (expectation, given, word) in [
            (answers, &[None, None][..], "met"),
            (answers, &[None, Some(Timeout)], "not-met"),
            (answers, &[Some(WrongAnswer), Some(Timeout)], "not-met"),
            (answers, &[None, Some(WrongAnswer)], "unexpected"),
            (fails, &[Some(Timeout), Some(Timeout)], "met"),
            (fails, &[None, None], "not-met"),
            (fails, &[None, Some(Timeout)], "unexpected"),
            (fails, &[Some(NoRoute)], "unexpected"),
        ] {
            let word_of = match compare(expectation, &seen(given)) {
                Comparison::Met(_) => "met",
                Comparison::NotMet(_) => "not-met",
                Comparison::Unexpected(_) => "unexpected",
                Comparison::NotApplicable(_) => "not-applicable",
            };
            assert_eq!(word_of, word, "{expectation}: {given:?}");
        }
    }

    #[test]
    fn many_are_told_of_in_few_words() {
        let given = vec![Some(FailureClass::Timeout); 6];
        let Comparison::NotMet(difference) = compare(&ReachExpectation::Answers, &seen(&given))
        else {
            panic!("not-met")
        };
        assert_eq!(difference.expected, "an answer from each of 6");
        assert!(
            difference
                .seen
                .starts_with("6 of 6 otherwise; a: timeout: `lost`")
        );
        assert!(
            difference.seen.ends_with("and 2 more"),
            "{}",
            difference.seen
        );
    }

    #[test]
    fn as_many_as_are_named_leave_none_out() {
        let given = vec![Some(FailureClass::Timeout); NAMED];
        let Comparison::NotMet(difference) = compare(&ReachExpectation::Answers, &seen(&given))
        else {
            panic!("not-met")
        };
        assert!(!difference.seen.contains("more"), "{}", difference.seen);
    }
}
