//! How an observation compares with its expectation.

use serde::{Deserialize, Serialize};

/// What should be seen beside what was.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Difference {
    /// What should be seen.
    pub expected: String,
    /// What was seen.
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
    /// Whether it is as expected.
    pub fn holds(&self) -> bool {
        matches!(self, Self::Holds(_))
    }
}
