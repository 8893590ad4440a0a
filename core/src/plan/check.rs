//! One case at one point.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr, VariantArray};

use crate::claims::{ClaimId, ClaimType};
use crate::facts::{IpFamily, NodeOrdinal, Pool, PoolName, WindowsBuild};
use crate::fixture::{FixtureKey, FixtureName, Need};
use crate::method::{ContainerKind, SourceKind, Test, VantageKey, Workload};
use crate::suite::When;
use crate::verdict::{ControlOutcome, Disposition, Documented, Evaluation, Role, Scope};

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

    /// Its claim and the name of its case, without the point.
    pub fn case(&self) -> &str {
        self.as_str().split('[').next().unwrap_or_default()
    }
}

crate::text::name!(CheckId);

/// One value on each axis of a case.
#[derive(Clone, Debug, Default, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct Point {
    pub pool: Option<PoolName>,
    pub source: Option<SourceKind>,
    /// The Windows pool that is observed, where the case has an axis for it.
    pub to: Option<PoolName>,
    /// The node of the source's pool that the check observes from, where a case observes from each.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<NodeOrdinal>,
    /// The kind of object that is sent.
    pub workload: Option<Workload>,
    pub container: Option<ContainerKind>,
    /// The name of the field's value.
    pub value: Option<String>,
    /// The second family of the cluster's addresses; the first is not named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub family: Option<IpFamily>,
}

/// What a case is repeated over: the fields of a [`Point`], in the order in which ids name them.
#[derive(
    Clone, Copy, Debug, EnumString, Eq, IntoStaticStr, Ord, PartialEq, PartialOrd, VariantArray,
)]
#[strum(serialize_all = "kebab-case")]
pub enum Axis {
    Pool,
    Source,
    /// The Windows pool that is observed.
    To,
    /// The node of the source's pool that is observed from.
    Node,
    /// The kind of object that is sent.
    Workload,
    Container,
    /// The name of the field's value.
    Value,
    /// The second family of addresses.
    Family,
}

crate::text::words!(Axis);

impl Point {
    /// Its value on an axis.
    pub fn on(&self, axis: Axis) -> Option<Cow<'_, str>> {
        let word = match axis {
            Axis::Node => return self.node.map(|node| node.to_string().into()),
            Axis::Pool => self.pool.as_ref().map(PoolName::as_str),
            Axis::Source => self.source.map(SourceKind::as_str),
            Axis::To => self.to.as_ref().map(PoolName::as_str),
            Axis::Workload => self.workload.map(Workload::as_str),
            Axis::Container => self.container.map(ContainerKind::as_str),
            Axis::Value => self.value.as_deref(),
            Axis::Family => self.family.map(IpFamily::as_str),
        };
        word.map(Cow::Borrowed)
    }

    /// The pool of its source; without a source the point's pool.
    pub fn source_pool(&self) -> Option<PoolName> {
        let pool = self.pool.as_ref();
        self.source
            .map_or_else(|| pool.cloned(), |kind| kind.pool(pool))
    }

    /// The name of the node that the check observes from, if the point has one. Foreign text.
    pub fn node_name(&self, pools: &BTreeMap<PoolName, Pool>) -> Option<String> {
        let pool = pools.get(&self.source_pool()?)?;
        pool.node(self.node?).cloned()
    }

    pub fn values(&self) -> impl Iterator<Item = (Axis, Cow<'_, str>)> {
        let of = |axis| Some((axis, self.on(axis)?));
        Axis::ALL.iter().copied().filter_map(of)
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<_> = self
            .values()
            .map(|(axis, value)| format!("{}={value}", axis.as_str()))
            .collect();
        f.write_str(&parts.join(","))
    }
}

/// One assertion of a check: the case's or a control's.
#[derive(Clone, Debug)]
pub struct PlannedAssertion {
    /// `test`, or the control's name.
    pub name: String,
    /// What it means for the check if the control does not hold.
    pub role: Role,
    pub from: Option<VantageKey>,
    /// The fixtures it needs, each with the state it needs them in.
    pub needs: Vec<(FixtureKey, Need)>,
    pub test: Test,
    /// What the expectation presumes since the server did not say; if it is not met, the check is
    /// inconclusive.
    pub presumed: Option<String>,
}

impl PlannedAssertion {
    /// The node whose prober it observes, where a case observes each.
    pub fn at_node(&self) -> Option<NodeOrdinal> {
        self.needs.iter().find_map(|(key, _)| key.node)
    }

    /// Whether a node boots for it.
    pub fn disrupts(&self) -> bool {
        self.needs.iter().any(|(key, _)| key.name.disrupts())
    }

    /// The fixtures it depends on: what it needs, and its prober, which must be ready; and those beside which these are.
    pub fn depends_on(&self) -> impl Iterator<Item = (FixtureKey, Need)> {
        let beside = |prober: &FixtureKey| match prober.name {
            FixtureName::EACH_WINDOWS_NODE => {
                let ring = FixtureName::RING.in_pool(prober.pool.as_ref());
                Some((ring.on(prober.node), Need::Ready))
            }
            name => {
                let other = name.beside()?.in_pool(prober.pool.as_ref());
                // What has the node boot is restarted with it
                let need = match other.name.disrupts() {
                    true => Need::Played,
                    false => Need::Ready,
                };
                Some((other, need))
            }
        };
        let prober = self.from.as_ref().and_then(VantageKey::prober);
        let prober = prober.map(|prober| (prober, Need::Ready));
        let needs = self.needs.iter().cloned().chain(prober);
        let all = needs.flat_map(move |(key, need)| {
            let beside = beside(&key);
            [(key, need)].into_iter().chain(beside)
        });
        let compares = self.role == Role::OtherOs;
        all.map(move |(key, need)| (key, if compares { Need::Compared } else { need }))
    }
}

/// One case at one point, with its controls: the unit of judging and of resuming.
#[derive(Clone, Debug)]
pub struct Check {
    pub id: CheckId,
    pub claim: ClaimId,
    pub claim_type: ClaimType,
    /// What is observed, in words.
    pub title: String,
    /// What to look at when it fails.
    pub hint: String,
    /// What to look at besides, each under a condition.
    pub when: Vec<When>,
    pub point: Point,
    /// Whether it represents all points of its case, which are unknown or do not exist.
    pub represents_all: bool,
    /// The build of the point's pool.
    pub build: Option<WindowsBuild>,
    /// The image that the sample in this pool should run.
    pub image: Option<String>,
    /// Whether the ledger's entry covers it.
    pub scope: Scope,
    /// What is documented of it, where that is a known limitation.
    pub limitation: Option<Documented>,
    /// The facts that its plan or its test reads, by their names in the JSON of `Facts`.
    pub reads: BTreeSet<&'static str>,
    /// Whether it is observed, or why not.
    pub disposition: Disposition,
    /// Its own assertion, then its controls'; empty unless it is to be observed.
    pub assertions: Vec<PlannedAssertion>,
}

impl Check {
    /// The fixtures that its assertions depend on; a fixture of several assertions comes several times.
    pub fn depends_on(&self) -> impl Iterator<Item = (FixtureKey, Need)> {
        let assertions = self.assertions.iter();
        assertions.flat_map(PlannedAssertion::depends_on)
    }

    /// Whether it is observed in each repetition of a run: a run takes one snapshot, of which all would see the same.
    pub fn repeats(&self) -> bool {
        let mut needs = self.depends_on();
        let of_snapshot = needs.any(|(key, _)| key.name.takes_a_snapshot());
        matches!(self.disposition, Disposition::Observe) && !of_snapshot
    }

    /// Its controls with their evaluations; `observed` has one for each assertion, its own first.
    pub fn controls<'l>(&'l self, observed: &[Evaluation<'l>]) -> Vec<ControlOutcome<'l>> {
        let controls = self.assertions.iter().zip(observed).skip(1);
        let control =
            |(assertion, observed): (&'l PlannedAssertion, &Evaluation<'l>)| ControlOutcome {
                name: &assertion.name,
                role: assertion.role,
                observed: *observed,
            };
        controls.map(control).collect()
    }
}

/// The checks of a run in their order.
#[derive(Clone, Debug)]
pub struct Plan {
    pub checks: Vec<Check>,
}

impl Plan {
    /// The second family of addresses, if a check observes in it.
    pub fn second_family(&self) -> Option<IpFamily> {
        let mut observed = self
            .checks
            .iter()
            .filter(|check| check.disposition == Disposition::Observe);
        observed.find_map(|check| check.point.family)
    }

    /// The fixtures its assertions need, the vantage points' probers included.
    pub fn fixtures(&self) -> BTreeSet<FixtureKey> {
        let keys = self.checks.iter().flat_map(Check::depends_on);
        keys.map(|(key, _)| key).collect()
    }
}
