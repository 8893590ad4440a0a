//! What changed between two runs, from their reports: records of other versions and suites compare, too.

mod text;
mod trend;

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use strum::{IntoStaticStr, VariantArray};

pub use text::render;
pub(crate) use text::{changes, counts};
pub use trend::Trend;

use super::json::{self, SCHEMA};
use crate::record::RunView;
use crate::text::printable;

/// A run, as far as it is compared: part of `report.json`.
#[derive(Clone, Debug, Deserialize)]
pub struct Report {
    schema: u32,
    run: Run,
    #[serde(default)]
    server: Option<Server>,
    exit: Exit,
    checks: Vec<Checked>,
    #[serde(default)]
    causes: Vec<Cause>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Run {
    id: String,
    began: String,
    #[serde(default)]
    version: String,
    #[serde(default)]
    took_ms: u64,
    ended: Option<bool>,
    /// How many checks of each area were not selected.
    #[serde(default)]
    left_out: BTreeMap<String, usize>,
    /// Checks that were selected, and that the cluster no longer has.
    #[serde(default)]
    gone: BTreeSet<String>,
}

#[derive(Clone, Debug, Deserialize)]
struct Server {
    version: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
struct Exit {
    code: u8,
    meaning: String,
}

#[derive(Clone, Debug, Deserialize)]
struct Checked {
    id: String,
    #[serde(default)]
    claim: String,
    #[serde(default)]
    point: Point,
    verdict: String,
    #[serde(default)]
    flaky: bool,
    #[serde(default)]
    waived: Option<serde_json::Value>,
    /// How long all its attempts took.
    #[serde(default, rename = "took-ms")]
    took_ms: Option<u64>,
    #[serde(default)]
    reason: Why,
}

#[derive(Clone, Debug, Default, Deserialize)]
struct Point {
    pool: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
struct Why {
    seen: Option<String>,
    cause: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
struct Cause {
    component: String,
    says: String,
    checks: BTreeSet<String>,
}

/// The verdict of a check without one.
const UNFINISHED: &str = "unfinished";

/// Why a report cannot be compared.
#[derive(Debug, thiserror::Error)]
pub enum DiffError {
    #[error("it is no report of winconform: {0}")]
    NoReport(#[from] serde_json::Error),
    #[error(
        "its schema is {0}, and this winconform knows {SCHEMA}: use the one that wrote it, or a newer one"
    )]
    Schema(u32),
}

/// What became of a check.
#[derive(Clone, Copy, Debug, Eq, IntoStaticStr, Ord, PartialEq, PartialOrd, VariantArray)]
pub enum Change {
    #[strum(serialize = "new failures")]
    New,
    #[strum(serialize = "newly flaky")]
    Flaky,
    #[strum(serialize = "no longer observed")]
    Lost,
    #[strum(serialize = "not observed before the run was killed")]
    Cut,
    #[strum(serialize = "not selected")]
    Unselected,
    #[strum(serialize = "still failing")]
    Still,
    #[strum(serialize = "fixed")]
    Fixed,
    #[strum(serialize = "newly observed")]
    Gained,
}

/// What of a comparison speaks against the later run.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Gate {
    /// A check fails that did not before.
    NewFailures,
    /// A check fails.
    AnyFailure,
    /// A check fails that did not before, or one that was observed is not.
    LostCoverage,
}

/// Two runs, and what changed from one to the other.
#[derive(Debug)]
pub struct Diff {
    before: Report,
    after: Report,
    changes: BTreeMap<Change, Vec<Checked>>,
}

impl Report {
    /// Reads `report.json`.
    pub fn read(text: &str) -> Result<Self, DiffError> {
        let report: Self = serde_json::from_str(text)?;
        match report.schema > SCHEMA {
            true => Err(DiffError::Schema(report.schema)),
            false => Ok(report),
        }
    }

    /// How many checks of each area the run could have had: those that were selected, and the others.
    fn planned(&self) -> BTreeMap<String, usize> {
        let mut planned = self.run.left_out.clone();
        for check in &self.checks {
            *planned.entry(check.area().to_owned()).or_default() += 1;
        }
        planned
    }

    fn was_killed(&self) -> bool {
        self.run.ended == Some(false)
    }
}

impl Checked {
    fn area(&self) -> &str {
        self.id.split('.').next().unwrap_or_default()
    }

    fn fails(&self) -> bool {
        self.verdict == "fail" && self.waived.is_none()
    }

    /// Whether it says something about the cluster.
    fn is_observed(&self) -> bool {
        !matches!(self.verdict.as_str(), "skip" | "inconclusive" | UNFINISHED)
    }
}

impl Diff {
    pub fn new(before: Report, after: Report) -> Self {
        let earlier: BTreeMap<_, _> = before.checks.iter().map(|it| (&it.id, it)).collect();
        let mut changes = BTreeMap::<_, Vec<_>>::new();
        let lost = |without_verdict| match without_verdict && after.was_killed() {
            true => Change::Cut,
            false => Change::Lost,
        };
        let now: BTreeSet<_> = after.checks.iter().map(|it| &it.id).collect();
        for check in &after.checks {
            if let Some(change) = change(earlier.get(&check.id).copied(), check, lost) {
                changes.entry(change).or_default().push(check.clone());
            }
        }
        // What is gone beside what was not selected cannot be told from it
        let [had, has] = [&before, &after].map(Report::planned);
        let looked_at: BTreeSet<_> = after.checks.iter().map(Checked::area).collect();
        let is_unselected = |check: &Checked| {
            let area = check.area();
            let is_left_out = after.run.left_out.contains_key(area);
            let is_whole = !looked_at.contains(area) || has.get(area) >= had.get(area);
            is_left_out && is_whole && !after.run.gone.contains(&check.id)
        };
        let gone = before.checks.iter();
        let gone = gone.filter(|it| it.is_observed() && !now.contains(&it.id));
        for check in gone {
            let change = match is_unselected(check) {
                true => Change::Unselected,
                // What a plan does not have no kill has cost
                false => lost(now.is_empty()),
            };
            changes.entry(change).or_default().push(Checked {
                verdict: "absent".to_owned(),
                reason: Why::default(),
                ..check.clone()
            });
        }
        Self {
            before,
            after,
            changes,
        }
    }

    /// What changed since the run that a run is compared with, if it is with one.
    pub(crate) fn since_baseline(view: &RunView) -> Option<Self> {
        let before = Report::read(view.baseline.as_deref()?).ok()?;
        let after = Report::read(&json::render(view)).ok()?;
        Some(Self::new(before, after))
    }

    /// The earlier run; printable.
    pub(crate) fn since(&self) -> String {
        let Run { id, began, .. } = &self.before.run;
        printable(&format!("since {id}, began {began}"))
    }

    pub fn count(&self, change: Change) -> usize {
        self.changes.get(&change).map_or(0, Vec::len)
    }

    /// Whether the later run passes.
    pub fn passes(&self, gate: Gate) -> bool {
        let against: &[Change] = match gate {
            Gate::NewFailures => &[Change::New],
            Gate::AnyFailure => &[Change::New, Change::Still],
            Gate::LostCoverage => &[Change::New, Change::Lost, Change::Cut],
        };
        against.iter().all(|change| self.count(*change) == 0)
    }
}

fn change(
    before: Option<&Checked>,
    after: &Checked,
    lost: impl Fn(bool) -> Change,
) -> Option<Change> {
    let failed = before.is_some_and(Checked::fails);
    let was_observed = before.is_some_and(Checked::is_observed);
    match (failed, after.fails()) {
        (false, true) => Some(Change::New),
        (true, true) => Some(Change::Still),
        (_, false) if was_observed && !after.is_observed() => {
            Some(lost(after.verdict == UNFINISHED))
        }
        // A waiver mends nothing
        (true, false) if after.verdict == "fail" => None,
        (true, false) => Some(Change::Fixed),
        (false, false) if after.flaky && !before.is_some_and(|it| it.flaky) => Some(Change::Flaky),
        (false, false) if !was_observed && after.is_observed() => Some(Change::Gained),
        (false, false) => None,
    }
}
