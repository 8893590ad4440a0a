//! What is known of a check's verdict before anything is looked at.

use serde::{Deserialize, Serialize};

use super::judge::SkipReason;
use crate::method::Trouble;

/// What is known of a check's verdict before anything is looked at.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fate {
    Observe,
    Skip(SkipReason),
    /// It cannot be told.
    Broken(Trouble),
}
