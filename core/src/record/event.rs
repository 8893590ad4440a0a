//! What happens in a run, as recorded.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};

use super::diagnosis::Diagnosis;
use super::outcome::Exit;
use super::span::Span;
use crate::claims::{ClaimId, ClaimType};
use crate::config::{Profile, Waiver};
use crate::facts::Facts;
use crate::fixture::FixtureKey;
use crate::method::{Comparison, ObservationError, ReadyFixture, Reply, VantageKey};
use crate::plan::{CheckId, Disposition, Point, Unoffered};
use crate::suite::{Condition, When};
use crate::verdict::{Conclusion, Documented, Role, Verdict};

/// The version of the record's schema; a reader accepts this version only.
pub const SCHEMA: u32 = 1;

/// What [`Event::Interrupted`] names when the user interrupted the run.
pub const SIGNAL: &str = "a signal";

/// One line of a record.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Line {
    /// Counts from 0 without gaps.
    pub seq: u64,
    /// When it was written.
    pub at: Timestamp,
    /// What happened.
    pub event: Event,
}

/// What happened.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum Event {
    /// The first line of every record.
    RunStarted(Started),
    /// The facts of the cluster.
    Facts(Box<Facts>),
    /// How many checks the selection leaves out, by area.
    LeftOut(BTreeMap<String, usize>),
    /// The checks of this run.
    Plan(Vec<PlannedCheck>),
    /// A registry does not have an image for the nodes that are to run it.
    Unoffered(Unoffered),
    /// The run is about to create an object. It writes this before, so that a killed run's record names it.
    Intent(ObjectName),
    /// Another run holds the Lease: this run waits to find out whether that run is dead.
    Waits {
        /// Who holds it.
        holder: String,
    },
    /// A fixture became ready or failed.
    Fixture {
        /// The fixture.
        key: FixtureKey,
        /// Its outcome.
        outcome: FixtureOutcome,
        /// How long it took, in milliseconds.
        took_ms: u64,
    },
    /// The first exec session from a vantage point found which curl that has.
    Curl(FoundCurl),
    /// Something that took time is over. The record has spans of the first repetition only.
    Span(Span),
    /// The run resumes an earlier run's record: the attempts and verdicts that it keeps follow.
    Resumed {
        /// The earlier run.
        run: String,
        /// How many of its checks are settled, and kept.
        checks: usize,
    },
    /// Another repetition begins: the run observes everything again.
    Repetition {
        /// From 2.
        number: u32,
    },
    /// The run leaves everything that it created, as the user asked.
    Kept,
    /// An attempt at a check ended. Of later repetitions the record has only attempts that differ from the
    /// repetition before, or that are not as expected.
    Attempt(Attempted),
    /// A check is concluded.
    Verdict {
        /// The check.
        check: CheckId,
        /// Its conclusion.
        conclusion: Conclusion,
    },
    /// The evidence about something that failed, read before tear-down.
    Diagnosis(Diagnosis),
    /// A signal, or something that keeps the run from going on, ends it early.
    Interrupted {
        /// What interrupted it: [`SIGNAL`], or a reason in words.
        by: String,
    },
    /// The run's deadline passed: the run begins nothing after it.
    Deadline {
        /// The deadline, in milliseconds from the run's start.
        after_ms: u64,
    },
    /// Tear-down ended.
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
    /// The profile, which says what counts against the cluster.
    #[serde(default)]
    pub profile: Profile,
    /// SHA-256 of the config file, when there was one.
    pub config: Option<String>,
    /// The selection, as the user wrote it; empty for everything.
    #[serde(default)]
    pub selection: Vec<String>,
    /// The checks of an earlier run that are selected, if that is how they are.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub again: BTreeSet<CheckId>,
    /// The selected claims that no case checks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unchecked: Vec<ClaimId>,
    /// The waivers: failures that the user accepts.
    #[serde(default)]
    pub waivers: Vec<Waiver>,
    /// The node that the run may have boot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boots: Option<String>,
}

/// The beginning of the context of a simulated cluster in memory.
pub const SIMULATED: &str = "a simulation, no cluster";

impl Started {
    /// Whether its cluster was simulated in memory, and so ended with the run.
    pub fn is_simulated(&self) -> bool {
        self.context.starts_with(SIMULATED)
    }
}

/// A check as planned.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct PlannedCheck {
    /// Its id.
    pub id: CheckId,
    /// The claim that it checks.
    pub claim: ClaimId,
    /// The claim type that it is judged as: mostly that of its claim.
    #[serde(rename = "type")]
    pub claim_type: ClaimType,
    /// What is observed, in words.
    pub title: String,
    /// What the user should examine when it fails; empty where all of it is in `when`.
    pub hint: String,
    /// What the user should examine besides, each under a condition that the run may know.
    #[serde(
        default,
        deserialize_with = "known",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub when: Vec<When>,
    /// Its point.
    pub point: Point,
    /// Whether it is observed, or what its plan concludes without observing it.
    pub disposition: Disposition,
    /// What is documented of it, where that is a known limitation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limitation: Option<Documented>,
}

/// Reads the conditions that this version knows: a newer one may write others, and no verdict depends on them.
fn known<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<When>, D::Error> {
    let written = Vec::<serde_json::Value>::deserialize(deserializer)?;
    let is_known = |when: &serde_json::Value| Condition::deserialize(&when["condition"]).is_ok();
    let known = written.into_iter().filter(is_known);
    let known = known.map(|when| serde_json::from_value(when).map_err(D::Error::custom));
    known.collect()
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

/// The outcome of bringing up a fixture.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FixtureOutcome {
    /// It is ready.
    Ready(Box<ReadyFixture>),
    /// It is not ready, for this reason.
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
    /// The verdict of this attempt alone.
    pub verdict: Verdict,
    /// The check's assertion and its controls, as of the last round.
    pub assertions: Vec<AssertionRecord>,
    /// The same of the first round that failed after a round that held, if there was one: the check is then
    /// flaky.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub came_apart: Vec<AssertionRecord>,
    /// When it was tried; earlier records do not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tried: Option<Tried>,
}

/// When a check was tried: without the wait for its fixtures.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Tried {
    /// When its first round began.
    pub began: Timestamp,
    /// How long it took, in milliseconds.
    pub took_ms: u64,
}

/// One assertion as recorded.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct AssertionRecord {
    /// `test`, or the control's name.
    pub name: String,
    /// What it means that the control does not hold.
    #[serde(default, skip_serializing_if = "Role::is_same_path")]
    pub role: Role,
    /// The bounded raw reply, when there was one.
    pub reply: Option<Reply>,
    /// The observation read from the reply.
    pub observation: Option<serde_json::Value>,
    /// How the observation compares with the expectation.
    pub comparison: Option<Comparison>,
    /// The observation error, where there is no observation.
    pub error: Option<ObservationError>,
}

/// The curl of a vantage point.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct FoundCurl {
    /// The vantage point.
    pub from: VantageKey,
    /// Its path, or its name where a search path has it.
    pub program: String,
    /// Its version; `None` where it said none.
    pub version: Option<String>,
}

/// What tear-down did.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct TornDown {
    /// Objects removed.
    pub removed: Vec<ObjectName>,
    /// Objects that are still there.
    pub left: Vec<ObjectName>,
    /// Whether some could not even be listed: announced objects that were not removed may be left.
    #[serde(default)]
    pub unlisted: bool,
    /// The errors that occurred.
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
    /// How long the run took, by a monotonic clock; earlier records do not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub took_ms: Option<u64>,
}
