//! A user's own exceptions.

use std::fmt;

use jiff::civil::Date;
use serde::{Deserialize, Serialize};

use crate::claims::Pattern;

/// An exception: a failure that is known to whoever runs the cluster and accepted for a time.
#[derive(Clone, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Waiver {
    /// The checks it is for.
    pub check: Pattern,
    /// Why it is accepted.
    pub reason: String,
    /// Who answers for it.
    pub owner: String,
    /// The last day it applies, in UTC.
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
