//! What is known of a check's verdict before anything is observed.

use serde::{Deserialize, Serialize};

use super::judge::SkipReason;
use crate::method::ObservationError;

/// What is known of a check's verdict before anything is observed.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Disposition {
    Observe,
    Skip(SkipReason),
    /// It is inconclusive.
    Inconclusive(ObservationError),
}
