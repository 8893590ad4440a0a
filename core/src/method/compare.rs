//! How an observation compares with its expectation.

use serde::{Deserialize, Serialize};

/// What should be seen beside what was.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Difference {
    pub expected: String,
    pub seen: String,
}

/// How an observation compares with its expectation; not yet a verdict.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Comparison {
    /// As expected.
    Holds(Difference),
    /// The opposite of what was expected.
    Refuted(Difference),
    /// Neither: it went another way.
    Otherwise(Difference),
    /// The question does not arise here, because.
    Inapplicable(String),
}

impl Comparison {
    pub fn holds(&self) -> bool {
        matches!(self, Self::Holds(_))
    }
}

/// How one target of many compares.
#[derive(Clone, Copy, Eq, PartialEq)]
pub(super) enum Each {
    Holds,
    Refuted,
    Otherwise,
}

impl Each {
    /// All targets together, of which there is at least one: of none nothing was seen. It holds when all do. A capability is refuted by any that fails; a
    /// limitation is only by all that answer: some that do and some that do not are another way to
    /// fail.
    pub(super) fn together(
        all: &[Self],
        is_limitation: bool,
        difference: Difference,
    ) -> Comparison {
        let every = |wanted| all.iter().all(|one| *one == wanted);
        let refuted = match is_limitation {
            true => every(Self::Refuted),
            false => all.contains(&Self::Refuted),
        };
        if all.is_empty() {
            Comparison::Otherwise(difference)
        } else if every(Self::Holds) {
            Comparison::Holds(difference)
        } else if refuted {
            Comparison::Refuted(difference)
        } else {
            Comparison::Otherwise(difference)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Each::{Holds, Otherwise, Refuted};
    use super::*;

    #[test]
    fn of_no_target_nothing_holds_and_nothing_is_refuted() {
        let difference = || Difference {
            expected: "an answer".to_owned(),
            seen: String::new(),
        };
        for is_limitation in [false, true] {
            let of = |all: &[Each]| Each::together(all, is_limitation, difference());
            assert_eq!(of(&[]), Comparison::Otherwise(difference()));
            assert_eq!(of(&[Holds, Holds]), Comparison::Holds(difference()));
            assert_eq!(of(&[Refuted]), Comparison::Refuted(difference()));
            assert_eq!(of(&[Holds, Otherwise]), Comparison::Otherwise(difference()));
            let one_of_two = match is_limitation {
                true => Comparison::Otherwise(difference()),
                false => Comparison::Refuted(difference()),
            };
            assert_eq!(of(&[Holds, Refuted]), one_of_two);
        }
    }
}
