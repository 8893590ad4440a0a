//! One case at one point.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::claims::{ClaimId, Kind};
use crate::facts::{PoolName, WindowsBuild};
use crate::verdict::{Fate, Scope};
use crate::way::{ContainerKind, FixtureKey, Need, SourceKind, Test, VantageKey, Workload};

/// The name of a check, stable from night to night: `net.service-ip-from-pod[pool=windows-2022]`.
#[derive(Clone, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(transparent)]
pub struct CheckId(String);

impl CheckId {
    /// The id of a claim's case at a point.
    pub fn new(claim: &ClaimId, case: Option<&str>, point: &Point) -> Self {
        let case = case.map(|name| format!("/{name}")).unwrap_or_default();
        let point = point.to_string();
        if point.is_empty() {
            Self(format!("{claim}{case}"))
        } else {
            Self(format!("{claim}{case}[{point}]"))
        }
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for CheckId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One value on each axis of a case.
#[derive(Clone, Debug, Default, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct Point {
    /// The Windows pool.
    pub pool: Option<PoolName>,
    /// The kind of source.
    pub source: Option<SourceKind>,
    /// The kind of object that is sent.
    pub workload: Option<Workload>,
    /// The list of containers.
    pub container: Option<ContainerKind>,
    /// The name of the field's value.
    pub value: Option<String>,
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pool = self.pool.as_ref().map(|pool| format!("pool={pool}"));
        let source = self
            .source
            .map(|source| format!("source={}", source.as_str()));
        let workload = self
            .workload
            .map(|kind| format!("workload={}", kind.as_str()));
        let container = self
            .container
            .map(|kind| format!("container={}", kind.as_str()));
        let value = self.value.as_ref().map(|name| format!("value={name}"));
        let axes = [pool, source, workload, container, value];
        let parts: Vec<_> = axes.into_iter().flatten().collect();
        f.write_str(&parts.join(","))
    }
}

/// One look of a check: its own or a control's.
#[derive(Clone, Debug)]
pub struct PlannedLook {
    /// `look`, or the control's name.
    pub name: String,
    /// Where it looks from, when from somewhere.
    pub from: Option<VantageKey>,
    /// What must have happened to which fixtures before.
    pub needs: Vec<(FixtureKey, Need)>,
    /// What is looked at.
    pub test: Test,
    /// What the expectation rests on and the server did not say; where it is not met, nothing
    /// is told.
    pub presumed: Option<String>,
}

/// One case at one point, with its controls: the unit of judging and of resuming.
#[derive(Clone, Debug)]
pub struct Check {
    /// Its name.
    pub id: CheckId,
    /// The claim.
    pub claim: ClaimId,
    /// What kind of claim it is.
    pub kind: Kind,
    /// What is looked at, in words.
    pub title: String,
    /// What to look at when it fails.
    pub hint: String,
    /// Its point.
    pub point: Point,
    /// The build of the point's pool.
    pub build: Option<WindowsBuild>,
    /// The image that pool's sample should run.
    pub image: Option<String>,
    /// Whether the ledger's entry covers it.
    pub scope: Scope,
    /// What is known beforehand.
    pub fate: Fate,
    /// Its own look, then those of its controls; empty unless it is to be looked at.
    pub looks: Vec<PlannedLook>,
}

/// The checks of a run in their order.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The checks.
    pub checks: Vec<Check>,
}

impl Plan {
    /// The fixtures its looks need, the vantages' probers included.
    pub fn fixtures(&self) -> BTreeSet<FixtureKey> {
        let looks = self.checks.iter().flat_map(|check| &check.looks);
        looks
            .flat_map(|look| {
                let needs = look.needs.iter().map(|(key, _)| key.clone());
                needs.chain(look.from.as_ref().map(VantageKey::prober))
            })
            .collect()
    }
}
