//! What of a run took time, and what it had to wait for.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::fixture::FixtureKey;
use crate::method::VantageKey;

/// Something that took time.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Span {
    /// Its number, greater than those of all it waited for.
    pub id: u32,
    /// What it was.
    pub what: Activity,
    /// When it began, in milliseconds since the run did.
    pub began_ms: u64,
    /// How long it took, in milliseconds.
    pub took_ms: u64,
    /// What had to be over before it could begin.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<After>,
}

/// That something could not begin before something else was over.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct After {
    /// The number of what had to be over.
    pub id: u32,
    /// How long it had to be over, in milliseconds: the pause between two assertions of one check.
    #[serde(default, skip_serializing_if = "is_none")]
    pub pause_ms: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_none(pause_ms: &u64) -> bool {
    *pause_ms == 0
}

/// What takes time in a run.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Activity {
    /// Asking what the cluster says of itself, and planning.
    Plan,
    /// Taking the Lease.
    Lease,
    /// A fixture, from its applying to its standing or failing.
    Fixture(FixtureKey),
    /// One API request.
    Request,
    /// Many assertions from one place in one session.
    ExecSession(VantageKey),
    /// Tear-down: it waits for everything else.
    TearDown,
}

impl fmt::Display for Activity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plan => f.write_str("plan"),
            Self::Lease => f.write_str("Lease"),
            Self::Fixture(key) => key.fmt(f),
            Self::Request => f.write_str("API request"),
            Self::ExecSession(from) => write!(f, "exec session from {from}"),
            Self::TearDown => f.write_str("tear-down"),
        }
    }
}
