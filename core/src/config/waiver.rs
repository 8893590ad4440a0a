//! A user's own exceptions.

use std::fmt;

use jiff::civil::Date;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::claims::Pattern;

/// A failure that is known and accepted for a time.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "kebab-case")]
#[schemars(deny_unknown_fields)]
pub struct Waiver {
    /// The checks it is for: a claim's id, a check's id, or a pattern with `*` and `?`.
    #[schemars(with = "String")]
    pub check: Pattern,
    /// Why it is accepted.
    pub reason: String,
    /// Who answers for it.
    pub owner: String,
    /// The last day it applies, in UTC: YYYY-MM-DD.
    #[schemars(with = "String")]
    pub expires: Date,
}

impl fmt::Display for Waiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            reason,
            owner,
            expires,
            ..
        } = self;
        write!(f, "by {owner} until {expires}: {reason}")
    }
}
