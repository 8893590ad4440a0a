//! One step of a scenario as it was taken.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::text::printable;

/// One step that was taken.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Moment {
    /// The step in words.
    pub step: String,
    /// When it ended, in milliseconds since the scenario began.
    pub after_ms: u64,
    /// What was seen instead of what it waits for, if it came to something else; then it is the last step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instead: Option<String>,
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.after_ms / 1000;
        match &self.instead {
            None => write!(f, "{} after {seconds} s", self.step),
            Some(instead) => write!(
                f,
                "after {seconds} s not: {}, but {}",
                self.step,
                printable(instead)
            ),
        }
    }
}
