//! A fact, or the reason why it is not known.

use serde::{Deserialize, Serialize};

/// A fact with its source, or why it is unknown; an unknown fact justifies no assumption.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Known<T> {
    /// Read at `source`, a path of the API.
    Fact {
        value: T,
        source: String,
    },
    Unknown {
        reason: String,
    },
}

impl<T> Default for Known<T> {
    fn default() -> Self {
        Self::Unknown {
            reason: "not asked".to_owned(),
        }
    }
}

impl<T> Known<T> {
    pub fn value(&self) -> Option<&T> {
        self.known().ok()
    }

    /// The fact, or why it is not known.
    pub(crate) fn known(&self) -> Result<&T, &str> {
        match self {
            Self::Fact { value, .. } => Ok(value),
            Self::Unknown { reason } => Err(reason),
        }
    }
}
