//! What happens in a run, as recorded.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::diagnosis::Diagnosis;
use super::outcome::Exit;
use super::span::Span;
use crate::claims::{ClaimId, ClaimType};
use crate::config::{Profile, Waiver};
use crate::facts::Facts;
use crate::fixture::FixtureKey;
use crate::method::{Comparison, ObservationError, ReadyFixture, Reply};
use crate::plan::{CheckId, Disposition, Point, Unoffered};
use crate::verdict::{Conclusion, Role, Verdict};

/// The version of the record's schema, which is all that a reader takes.
pub const SCHEMA: u32 = 1;

/// What a run was interrupted by when its user wanted that.
pub const SIGNAL: &str = "a signal";

/// One line of a record.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Line {
    /// Counts from 0 without gaps.
    pub seq: u64,
    /// When.
    pub at: Timestamp,
    /// What.
    pub event: Event,
}

/// What happened.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum Event {
    /// The first line of every record.
    RunStarted(Started),
    /// What the cluster says of itself.
    Facts(Box<Facts>),
    /// How many checks are not of this run because others were selected, by area.
    LeftOut(BTreeMap<String, usize>),
    /// The checks of this run.
    Plan(Vec<PlannedCheck>),
    /// A registry does not have an image for the nodes that are to run it.
    Unoffered(Unoffered),
    /// An object is about to be created: written before, so that a killed run leaves word of it.
    Intent(ObjectName),
    /// Another run has the Lease: it waits to see whether that one is dead.
    Waits {
        /// Who holds it.
        holder: String,
    },
    /// A fixture is ready or is not.
    Fixture {
        /// Which.
        key: FixtureKey,
        /// How it went.
        outcome: FixtureOutcome,
        /// How long it took, in milliseconds.
        took_ms: u64,
    },
    /// Something that took time is over. Of repetitions those of the first alone are on record.
    Span(Span),
    /// It goes on with an earlier run's record: what is settled there is on record next.
    Resumed {
        /// The earlier run.
        run: String,
        /// How many of its checks are settled.
        checks: usize,
    },
    /// Everything is observed again.
    Repetition {
        /// From 2.
        number: u32,
    },
    /// Everything created stays, as was asked for.
    Kept,
    /// An attempt at a check came to its end. Of repetitions those alone are on record that differ
    /// from the one before, or are not as expected.
    Attempt(Attempted),
    /// A check came to its conclusion.
    Verdict {
        /// Which.
        check: CheckId,
        /// What it came to.
        conclusion: Conclusion,
    },
    /// What was to be seen of something that failed, before everything was removed.
    Diagnosis(Diagnosis),
    /// A signal, or what keeps it from going on, asked the run to end.
    Interrupted {
        /// By what: [`SIGNAL`], or in words.
        by: String,
    },
    /// The run's deadline came: nothing was begun after it.
    Deadline {
        /// How long after its beginning, in milliseconds.
        after_ms: u64,
    },
    /// Everything created was removed, or not.
    TornDown(TornDown),
    /// The last line of a record whose run was not killed.
    RunEnded(Ended),
}

/// How a run began.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Started {
    /// [`SCHEMA`] of the writer.
    pub schema: u32,
    /// The tool's version.
    pub version: String,
    /// The run's id.
    pub run: String,
    /// The kubeconfig context.
    pub context: String,
    /// Whether the server's certificate was not verified.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unverified: bool,
    /// SHA-256 of the suites.
    pub suites: String,
    /// What counts against the cluster.
    #[serde(default)]
    pub profile: Profile,
    /// SHA-256 of the config file, when there was one.
    pub config: Option<String>,
    /// What was selected, as written; empty for everything.
    #[serde(default)]
    pub selection: Vec<String>,
    /// Claims that are selected by it and that no case checks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unchecked: Vec<ClaimId>,
    /// Failures that are accepted.
    #[serde(default)]
    pub waivers: Vec<Waiver>,
}

/// What the context of a simulated cluster in memory begins with.
pub const SIMULATED: &str = "a simulation, no cluster";

impl Started {
    /// Whether its cluster was one in memory, which has ended with the run.
    pub fn is_simulated(&self) -> bool {
        self.context.starts_with(SIMULATED)
    }
}

/// A check as planned.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct PlannedCheck {
    /// Its name.
    pub id: CheckId,
    /// The claim.
    pub claim: ClaimId,
    /// What it is judged as: mostly the kind of its claim.
    #[serde(rename = "type")]
    pub claim_type: ClaimType,
    /// What is observed, in words.
    pub title: String,
    /// What to look at when it fails.
    pub hint: String,
    /// Its point.
    pub point: Point,
    /// What was known beforehand.
    pub disposition: Disposition,
}

/// An object of the cluster.
#[derive(Clone, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct ObjectName {
    /// Its kind, such as `Deployment`.
    pub kind: String,
    /// Its namespace, unless it has none.
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
}

/// How a fixture went.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FixtureOutcome {
    /// It is ready.
    Ready(Box<ReadyFixture>),
    /// It is not.
    Failed(ObservationError),
}

/// The last round of one attempt at a check.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Attempted {
    /// The check.
    pub check: CheckId,
    /// From 1.
    pub number: u32,
    /// How many rounds it took.
    pub rounds: u32,
    /// What this attempt alone came to.
    pub verdict: Verdict,
    /// Its own assertion and its controls, of the last round.
    pub assertions: Vec<AssertionRecord>,
    /// The same of the first round that failed after another had held, where that happened: the check is
    /// flaky.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub came_apart: Vec<AssertionRecord>,
}

/// One assertion as recorded.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct AssertionRecord {
    /// `test`, or the control's name.
    pub name: String,
    /// What the control says where it does not hold.
    #[serde(default, skip_serializing_if = "Role::is_same_path")]
    pub role: Role,
    /// The bounded raw reply, when there was one.
    pub reply: Option<Reply>,
    /// What was read from it.
    pub observation: Option<serde_json::Value>,
    /// How it compared.
    pub comparison: Option<Comparison>,
    /// Why nothing was seen.
    pub error: Option<ObservationError>,
}

/// What tear-down did.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct TornDown {
    /// Objects removed.
    pub removed: Vec<ObjectName>,
    /// Objects that are still there.
    pub left: Vec<ObjectName>,
    /// Whether some could not even be looked for: what was announced and not removed may be left.
    #[serde(default)]
    pub unlisted: bool,
    /// What was in the way.
    pub errors: Vec<String>,
}

/// How a run ended.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Ended {
    /// The exit code's meaning.
    pub exit: Exit,
    /// Requests sent to the API server, by verb and kind.
    pub requests: Vec<(String, u64)>,
    /// How long the run took, by a clock that nobody sets; earlier records do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub took_ms: Option<u64>,
}
