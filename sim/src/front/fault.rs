//! What can be wrong between a client and its API server, and how that is written.
//!
//! Harness faults are written `NAME` or `NAME=SHARE` (`hang=0.2`), admission faults `NAME=FIELD`
//! or `admission-injects=FIELD:VALUE`.

use std::fmt;
use std::str::FromStr;

use super::field::{FieldError, FieldPath};

/// One thing the front does wrong.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum FrontFault {
    /// Trouble between harness and server, which says nothing about the cluster.
    Harness {
        /// What happens.
        trouble: Trouble,
        /// The share of the requests it applies to that it hits, from 0 to 1.
        share: f64,
    },
    /// Validation forgets a field of Windows pods: it is accepted and returned.
    AdmissionAllows {
        /// The field, as seen from a pod.
        field: FieldPath,
    },
    /// A field of Windows pods is dropped without a word: accepted, but not returned.
    AdmissionDrops {
        /// The field, as seen from a pod.
        field: FieldPath,
    },
    /// A mutating webhook sets a field in Windows pods before they are validated.
    AdmissionInjects {
        /// The field, as seen from a pod.
        field: FieldPath,
        /// What it is set to.
        value: serde_json::Value,
    },
}

/// Trouble between a client and its API server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Trouble {
    /// 429 with `Retry-After: 1`, with a Status or with the plain text of API Priority and Fairness.
    TooManyRequests,
    /// 500 with a Status.
    InternalError,
    /// A watch's stream holds only an ERROR event with an `Expired` Status; a list is answered 410.
    Gone,
    /// The request is taken and never answered.
    Hang,
    /// The connection is reset before the answer, before or after the server has acted.
    Reset,
    /// The connection of an exec session ends without a close frame, before or after output.
    CutExec,
    /// An exec session closes normally but never said how its program ended.
    LoseExitFrame,
    /// 502 with a page of HTML, as a load balancer answers.
    Html502,
}

/// A line of [`FrontFault::catalogue`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct FaultEntry {
    /// How it is written.
    pub name: &'static str,
    /// What may follow the name, as in a usage text.
    pub parameter: &'static str,
    /// What it does.
    pub does: &'static str,
}

const SHARE: &str = "[=SHARE]";
const ALLOWS: &str = "admission-allows";
const DROPS: &str = "admission-drops";
const INJECTS: &str = "admission-injects";

const CATALOGUE: &[FaultEntry] = &[
    FaultEntry {
        name: Trouble::TooManyRequests.name(),
        parameter: SHARE,
        does: "answers 429 with Retry-After: 1, with a Status or with plain text",
    },
    FaultEntry {
        name: Trouble::InternalError.name(),
        parameter: SHARE,
        does: "answers 500 with a Status",
    },
    FaultEntry {
        name: Trouble::Gone.name(),
        parameter: SHARE,
        does: "ends a watch with an ERROR event 410 Expired; answers 410 to a list that names a \
               resourceVersion or a continue token",
    },
    FaultEntry {
        name: Trouble::Hang.name(),
        parameter: SHARE,
        does: "takes the request and never answers until the client leaves",
    },
    FaultEntry {
        name: Trouble::Reset.name(),
        parameter: SHARE,
        does: "resets the connection before the answer, before or after the server has acted",
    },
    FaultEntry {
        name: Trouble::CutExec.name(),
        parameter: SHARE,
        does: "ends the connection of an exec session without a close frame, before or after the \
               first output",
    },
    FaultEntry {
        name: Trouble::LoseExitFrame.name(),
        parameter: SHARE,
        does: "loses the exit status of an exec session, then closes it normally",
    },
    FaultEntry {
        name: Trouble::Html502.name(),
        parameter: SHARE,
        does: "answers 502 with a page of HTML",
    },
    FaultEntry {
        name: ALLOWS,
        parameter: "=FIELD",
        does: "accepts a field of Windows pods that the server would refuse, and returns it",
    },
    FaultEntry {
        name: DROPS,
        parameter: "=FIELD",
        does: "accepts a field of Windows pods that the server would refuse, and drops it",
    },
    FaultEntry {
        name: INJECTS,
        parameter: "=FIELD:VALUE",
        does: "sets a field in Windows pods before the server validates them; VALUE is JSON",
    },
];

/// Why a fault cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FaultError {
    /// There is no such fault.
    #[error("unknown fault `{name}`; did you mean `{nearest}`?")]
    Unknown {
        /// What was written.
        name: String,
        /// The known name that looks most like it.
        nearest: &'static str,
    },
    /// The share is not a number from 0 to 1.
    #[error("the share of `{name}` must be a number from 0 to 1, not `{share}`")]
    Share {
        /// The fault.
        name: &'static str,
        /// What was written.
        share: String,
    },
    /// An admission fault without what it needs.
    #[error("`{name}` needs a parameter: `{name}{parameter}`")]
    Missing {
        /// The fault.
        name: &'static str,
        /// What has to follow its name.
        parameter: &'static str,
    },
    /// The field of an admission fault cannot be read.
    #[error("failed to read the field of `{name}`")]
    Field {
        /// The fault.
        name: &'static str,
        /// What is wrong with it.
        #[source]
        source: FieldError,
    },
    /// The value of an admission fault cannot be read.
    #[error("failed to read `{value}`, the value of `{name}`, as JSON")]
    Value {
        /// The fault.
        name: &'static str,
        /// What was written.
        value: String,
        /// What is wrong with it.
        #[source]
        source: serde_json::Error,
    },
}

impl Trouble {
    /// Every trouble there is.
    pub const ALL: [Self; 8] = [
        Self::TooManyRequests,
        Self::InternalError,
        Self::Gone,
        Self::Hang,
        Self::Reset,
        Self::CutExec,
        Self::LoseExitFrame,
        Self::Html502,
    ];

    /// How it is written.
    pub const fn name(self) -> &'static str {
        match self {
            Self::TooManyRequests => "too-many-requests",
            Self::InternalError => "internal-error",
            Self::Gone => "gone",
            Self::Hang => "hang",
            Self::Reset => "reset",
            Self::CutExec => "cut-exec",
            Self::LoseExitFrame => "lose-exit-frame",
            Self::Html502 => "html-502",
        }
    }
}

impl FrontFault {
    /// Every fault there is.
    pub fn catalogue() -> &'static [FaultEntry] {
        CATALOGUE
    }

    /// How it is written, without its parameter.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Harness { trouble, .. } => trouble.name(),
            Self::AdmissionAllows { .. } => ALLOWS,
            Self::AdmissionDrops { .. } => DROPS,
            Self::AdmissionInjects { .. } => INJECTS,
        }
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

impl fmt::Display for FrontFault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())?;
        match self {
            Self::Harness { share, .. } if *share >= 1.0 => Ok(()),
            Self::Harness { share, .. } => write!(out, "={share}"),
            Self::AdmissionAllows { field } | Self::AdmissionDrops { field } => {
                write!(out, "={field}")
            }
            Self::AdmissionInjects { field, value } => write!(out, "={field}:{value}"),
        }
    }
}

impl FromStr for FrontFault {
    type Err = FaultError;

    fn from_str(text: &str) -> Result<Self, FaultError> {
        let (written, parameter) = match text.split_once('=') {
            Some((name, parameter)) => (name, Some(parameter)),
            None => (text, None),
        };
        if let Some(trouble) = Trouble::ALL
            .into_iter()
            .find(|known| known.name() == written)
        {
            return Ok(Self::Harness {
                trouble,
                share: share(trouble, parameter)?,
            });
        }
        let entry = CATALOGUE
            .iter()
            .find(|entry| entry.name == written)
            .ok_or_else(|| FaultError::Unknown {
                name: written.to_owned(),
                nearest: nearest(written),
            })?;
        let name = entry.name;
        let missing = || FaultError::Missing {
            name,
            parameter: entry.parameter,
        };
        let parameter = parameter.ok_or_else(missing)?;
        let field = |text: &str| {
            text.parse::<FieldPath>()
                .map_err(|source| FaultError::Field { name, source })
        };
        if name == ALLOWS {
            return Ok(Self::AdmissionAllows {
                field: field(parameter)?,
            });
        }
        if name == DROPS {
            return Ok(Self::AdmissionDrops {
                field: field(parameter)?,
            });
        }
        let (path, value) = parameter.split_once(':').ok_or_else(missing)?;
        let value = serde_json::from_str(value).map_err(|source| FaultError::Value {
            name,
            value: value.to_owned(),
            source,
        })?;
        Ok(Self::AdmissionInjects {
            field: field(path)?,
            value,
        })
    }
}

/// The share that was written; without one, all.
fn share(trouble: Trouble, parameter: Option<&str>) -> Result<f64, FaultError> {
    let Some(text) = parameter else {
        return Ok(1.0);
    };
    match text.parse::<f64>() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err(FaultError::Share {
            name: trouble.name(),
            share: text.to_owned(),
        }),
    }
}

/// The known name that takes the fewest edits to reach.
fn nearest(written: &str) -> &'static str {
    CATALOGUE
        .iter()
        .map(|entry| entry.name)
        .min_by_key(|name| edits(written, name))
        .expect("the catalogue is not empty")
}

/// The Levenshtein distance of two names.
fn edits(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (line, left) in one.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = line + 1;
        for (column, right) in other.iter().enumerate() {
            let replaced = diagonal + usize::from(left != *right);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[other.len()]
}
