//! How an observation compares with its expectation.

use serde::{Deserialize, Serialize};

/// The expectation beside the observation, in words.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Difference {
    pub expected: String,
    pub seen: String,
}

impl Difference {
    pub(crate) fn between(expected: &impl ToString, seen: String) -> Self {
        let expected = expected.to_string();
        Self { expected, seen }
    }
}

/// How an observation compares with its expectation; not yet a verdict.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Comparison {
    /// As expected.
    Met(Difference),
    /// The opposite of the expectation.
    NotMet(Difference),
    /// Neither: another result.
    Unexpected(Difference),
    /// The question does not arise here, for this reason.
    NotApplicable(String),
}

impl Comparison {
    pub fn holds(&self) -> bool {
        matches!(self, Self::Met(_))
    }
}

/// How one target of many compares.
#[derive(Clone, Copy, Eq, PartialEq)]
pub(crate) enum Each {
    Met,
    NotMet,
    Unexpected,
}

impl Each {
    /// Combines the targets' comparisons; without a target nothing was observed, which is unexpected. The
    /// expectation is met where every target meets it. One failing target refutes a capability; a limitation
    /// is refuted only where all targets answer, and a mix is unexpected.
    pub(crate) fn together(
        targets: &[Self],
        is_limitation: bool,
        difference: Difference,
    ) -> Comparison {
        let every = |wanted| targets.iter().all(|one| *one == wanted);
        let refuted = match is_limitation {
            true => every(Self::NotMet),
            false => targets.contains(&Self::NotMet),
        };
        if targets.is_empty() {
            Comparison::Unexpected(difference)
        } else if every(Self::Met) {
            Comparison::Met(difference)
        } else if refuted {
            Comparison::NotMet(difference)
        } else {
            Comparison::Unexpected(difference)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Each::{Met, NotMet, Unexpected};
    use super::*;

    #[test]
    fn of_no_target_nothing_holds_and_nothing_is_refuted() {
        let difference = || Difference {
            expected: "an answer".to_owned(),
            seen: String::new(),
        };
        for is_limitation in [false, true] {
            let of = |all: &[Each]| Each::together(all, is_limitation, difference());
            assert_eq!(of(&[]), Comparison::Unexpected(difference()));
            assert_eq!(of(&[Met, Met]), Comparison::Met(difference()));
            assert_eq!(of(&[NotMet]), Comparison::NotMet(difference()));
            assert_eq!(of(&[Met, Unexpected]), Comparison::Unexpected(difference()));
            let one_of_two = match is_limitation {
                true => Comparison::Unexpected(difference()),
                false => Comparison::NotMet(difference()),
            };
            assert_eq!(of(&[Met, NotMet]), one_of_two);
        }
    }
}
