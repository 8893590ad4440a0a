//! Plans checks from cases and facts.

use std::collections::{BTreeMap, BTreeSet};

use super::check::{Check, CheckId, Plan, PlannedAssertion, Point};
use super::hindrance::no_usable;
use super::points::{at_point, points};
use crate::config::Config;
use crate::facts::{Facts, Known, NodeOrdinal, Os, Pool, PoolName, SecondFamily, WindowsBuild};
use crate::fixture::{Change, FixtureName, Need};
use crate::method::{Denied, ErrorKind, ObservationError, SourceKind, Test, VantageKey};
use crate::suite::{Across, Case, Expected, Suites};
use crate::verdict::{Disposition, LedgerEntry, Role, Scope, SkipReason};

/// Plans every case of the suites on a cluster: one check per point, which is to be observed or says why not.
/// No case vanishes: a case without any point becomes one check that says why.
pub fn plan(suites: &Suites, facts: &Facts, config: &Config) -> Plan {
    let surroundings = Surroundings {
        suites,
        facts,
        config,
        pools: facts.pools(),
        second: facts.second_family(),
    };
    let checks = suites.cases.iter();
    let checks = checks.flat_map(|case| surroundings.checks(case)).collect();
    Plan { checks }
}

/// The inputs of a plan.
pub(super) struct Surroundings<'p> {
    suites: &'p Suites,
    pub(super) facts: &'p Facts,
    pub(super) config: &'p Config,
    pub(super) pools: BTreeMap<PoolName, Pool>,
    /// Whether the cluster's pods have addresses of a second family.
    second: SecondFamily,
}

impl Surroundings<'_> {
    fn checks(&self, case: &Case) -> Vec<Check> {
        let windows = self.pools.iter().filter(|(_, pool)| pool.os == Os::Windows);
        let mut pools: Vec<_> = if case.over.windows_pools {
            windows.map(|(name, _)| Some(name.clone())).collect()
        } else {
            vec![None]
        };
        if let (Some(only), false) = (&case.over.only_pool, pools.is_empty()) {
            pools.retain(|pool| pool.as_ref() == Some(only));
            if pools.is_empty() {
                let point = Point {
                    pool: Some(only.clone()),
                    ..Point::default()
                };
                let unread = |pool: &Pool| pool.os == Os::Windows && pool.build.is_none();
                let disposition = if self.pools.values().any(unread) {
                    Disposition::Inconclusive(unreadable_build())
                } else {
                    not_applicable(format!("the cluster has no {only} nodes"))
                };
                return vec![self.check(case, point, Scope::Within, Err(disposition))];
            }
        }
        if pools.is_empty() {
            let disposition = match &self.facts.nodes {
                Known::Unknown { reason } => Disposition::Inconclusive(unknown("nodes", reason)),
                Known::Fact { .. } => {
                    let why = self.virtual_nodes(Os::Windows).collect();
                    Disposition::Skip(no_usable(Os::Windows.as_str(), why))
                }
            };
            return vec![self.check(case, Point::default(), Scope::Within, Err(disposition))];
        }
        let to = match case.over.across {
            Across::Pools => pools.clone(),
            Across::Pool | Across::Nodes => vec![None],
        };
        let ring = |kind, pool: &PoolName| {
            let mut nodes = self.each(kind, pool);
            nodes.extend(self.spared(kind, pool));
            nodes.sort_unstable();
            nodes
        };
        points(&case.over, &pools, &to, self.second.perhaps(), ring)
            .into_iter()
            .map(|point| self.check_at(case, point))
            .collect()
    }

    fn check_at(&self, case: &Case, point: Point) -> Check {
        let (scope, planned) = match self.scope(case, &point) {
            Ok(scope) => (scope.clone(), self.assertions(case, &point, &scope)),
            Err(disposition) => (Scope::Within, Err(disposition)),
        };
        self.check(case, point, scope, planned)
    }

    /// Whether a limitation's entry covers a point, or why no check is observed there, whatever it expects.
    fn scope(&self, case: &Case, point: &Point) -> Result<Scope, Disposition> {
        let unreadable = |pool: &PoolName| self.build(pool).is_none();
        let named = [&point.pool, &point.to];
        if named.into_iter().flatten().any(unreadable) {
            return Err(Disposition::Inconclusive(unreadable_build()));
        }
        if let Some(disposition) = case.over.elsewhere(self.facts) {
            return Err(disposition);
        }
        let family = point.family.filter(|_| point.pool.is_some());
        if let Some(reason) = family.and_then(|family| self.facts.without_family(family)) {
            return Err(not_applicable(reason));
        }
        if let (Some(_), SecondFamily::Unknown { reason, .. }) = (point.family, &self.second) {
            let what = "whether pods have addresses of two families";
            return Err(Disposition::Inconclusive(unknown(what, reason)));
        }
        if let Some(reason) = self.lacks_ring(case, point) {
            return Err(not_applicable(reason));
        }
        if let Some(reason) = self.is_spared(point) {
            return Err(Disposition::Skip(reason));
        }
        let Some(entry) = self.suites.limitation(case) else {
            return Ok(Scope::Within);
        };
        let pool = point.pool.as_ref().and_then(|pool| self.pools.get(pool));
        let scope = entry.scope(pool, self.facts)?;
        match &entry.opt_in {
            Some(asked) if scope == Scope::Within && !self.config.allow.contains(&asked.allow) => {
                let reason = asked.to_string();
                Err(Disposition::Skip(SkipReason::NotAsked { reason }))
            }
            _ => Ok(scope),
        }
    }

    /// The assertions of a case at a point, its own and its controls', or why the check is not observed.
    fn assertions(
        &self,
        case: &Case,
        point: &Point,
        scope: &Scope,
    ) -> Result<Vec<PlannedAssertion>, Disposition> {
        let expected = Expected::on(self.facts, &case.exceptions, point.workload)?;
        let test = at_point(&case.test, &case.over, point, expected.instead.as_ref());
        // A known limitation's own assertion expects the signature; its controls expect what should work
        let signature = match (scope, self.suites.limitation(case)) {
            (Scope::Within, Some(entry)) => test.expecting(&entry.signature),
            (Scope::Within | Scope::AsCapability, _) => None,
        };
        let mut assertions = vec![self.assertion(
            "test",
            point.source,
            signature.clone().unwrap_or_else(|| test.clone()),
            point,
        )];
        assertions[0].presumed = expected.presumed;
        for control in &case.controls {
            let test = match (&control.test, control.without) {
                (Some(written), _) => at_point(written, &case.over, point, None),
                (None, Some(without)) => without.assertion(&test),
                (None, None) => test.clone(),
            };
            let source = control
                .source
                .or(point.source)
                .filter(|_| test.traits().needs_source);
            let assertion = PlannedAssertion {
                role: control.role,
                ..self.assertion(&control.name, source, test, point)
            };
            // Without a usable Linux node an `other-os` control is left out: Windows is judged by itself
            let is_missing = self.hindrance(&assertion).is_some();
            if control.role == Role::SamePath || signature.is_some() || !is_missing {
                assertions.push(assertion);
            }
        }
        let mut planned = assertions.iter();
        if let Some(reason) = planned.find_map(|assertion| self.hindrance(assertion)) {
            return Err(Disposition::Skip(reason));
        }
        let mut planned = assertions.iter();
        let lacks = |assertion| {
            let balancer = self.lacks_balancer(assertion);
            balancer.or_else(|| self.lacks_volume(assertion))
        };
        match planned.find_map(lacks) {
            Some(disposition) => Err(disposition),
            None => Ok(assertions),
        }
    }

    fn build(&self, pool: &PoolName) -> Option<WindowsBuild> {
        self.pools.get(pool)?.build
    }

    /// The nodes of a pool that each have a vantage point of this kind. Windows nodes themselves are vantage
    /// points where the samples' pods are: a node is known not to reach Services with a pod on it, and each
    /// such prober takes a HostProcess container, which runs as SYSTEM there.
    fn each(&self, kind: SourceKind, pool: &PoolName) -> Vec<NodeOrdinal> {
        match kind {
            SourceKind::WindowsNode => self.pools.get(pool).map_or_else(Vec::new, Pool::together),
            _ => self.ring(pool),
        }
    }

    /// The nodes of a pool that have such a vantage point where no others are there; at most as many as are
    /// observed from.
    fn spared(&self, kind: SourceKind, pool: &PoolName) -> Vec<NodeOrdinal> {
        let pool = self
            .pools
            .get(pool)
            .filter(|_| kind != SourceKind::WindowsNode);
        let mut spared = pool.map_or_else(Vec::new, Pool::spared);
        spared.truncate(self.config.limits.nodes_observed_from);
        spared
    }

    /// Why a point's node is not observed from, if a run spares it.
    fn is_spared(&self, point: &Point) -> Option<SkipReason> {
        let name = point.node_name(&self.pools)?;
        let pool = self.pools.get(&point.source_pool()?)?;
        let mut nodes = self.facts.nodes.value()?.iter();
        let node = nodes.find(|node| node.name == name && pool.spared.contains(&name))?;
        Some(SkipReason::Spared {
            by: node.spared.clone()?,
            node: name,
        })
    }

    /// The nodes of a pool from each of which a run observes.
    fn ring(&self, pool: &PoolName) -> Vec<NodeOrdinal> {
        let pool = self.pools.get(pool);
        pool.map_or_else(Vec::new, |pool| {
            pool.ring(self.config.limits.nodes_observed_from)
        })
    }

    /// From how many nodes of a pool a run observes.
    fn observed_from(&self, pool: &PoolName) -> u16 {
        self.ring(pool).len().try_into().unwrap_or(u16::MAX)
    }

    /// Why a case that needs several nodes of a pool is not observed: the pool has one usable node.
    fn lacks_ring(&self, case: &Case, point: &Point) -> Option<String> {
        let mut needs = case.test.needs().into_iter();
        let clause = match (
            case.over.across,
            // A DaemonSet has a pod on a single node, too
            needs.any(|(name, _)| name.is_on_each_node() && name.object("DaemonSet").is_none()),
        ) {
            (Across::Nodes, _) => "which its prober observes from",
            (Across::Pool | Across::Pools, true) => "which all its samples run on",
            (Across::Pool | Across::Pools, false) => return None,
        };
        let pool = match case.over.across {
            Across::Nodes => point.source_pool()?,
            Across::Pool | Across::Pools => point.pool.clone()?,
        };
        let one_alone = self.pools.get(&pool)?.nodes.len() == 1;
        (one_alone && point.node.is_none()).then(|| format!("{pool} has one usable node, {clause}"))
    }

    /// The node that a point's node observes: the next node of the ring, and from the last the first. A
    /// Windows node itself, and each control of it, observes the pod on it.
    fn observed(&self, point: &Point) -> Option<NodeOrdinal> {
        let node = point.node?;
        if point.source == Some(SourceKind::WindowsNode) {
            return Some(node);
        }
        let ring = self.ring(point.pool.as_ref()?);
        let here = ring.iter().position(|other| *other == node)?;
        ring.get((here + 1) % ring.len()).copied()
    }

    fn assertion(
        &self,
        name: &str,
        source: Option<SourceKind>,
        test: Test,
        point: &Point,
    ) -> PlannedAssertion {
        let of = point.to.as_ref().or(point.pool.as_ref());
        let node = self.observed(point);
        let key = |(name, need): (FixtureName, Need)| (name.in_pool(of).on(node), need);
        let from = source.map(|kind| VantageKey {
            kind,
            pool: kind.pool(point.pool.as_ref()),
            // A control that observes from another pool has no node of the check
            node: point.node.filter(|_| {
                kind.has_prober_per_node() && kind.pool(point.pool.as_ref()) == point.source_pool()
            }),
        });
        PlannedAssertion {
            name: name.to_owned(),
            role: Role::SamePath,
            from,
            needs: test.needs().into_iter().map(key).collect(),
            test: test.on_nodes(of.map_or(0, |pool| self.observed_from(pool))),
            presumed: None,
        }
    }

    fn check(
        &self,
        case: &Case,
        point: Point,
        scope: Scope,
        planned: Result<Vec<PlannedAssertion>, Disposition>,
    ) -> Check {
        let (disposition, assertions) = match planned {
            Ok(assertions) => (Disposition::Observe, assertions),
            Err(disposition) => (disposition, Vec::new()),
        };
        let build = point.pool.as_ref().and_then(|pool| self.build(pool));
        Check {
            id: CheckId::new(&case.claim, case.name.as_deref(), &point),
            claim: case.claim.clone(),
            claim_type: case.claim_type,
            title: case.title.clone(),
            hint: case.hint.clone(),
            when: case.when.iter().map(|one| one.value.clone()).collect(),
            image: case
                .test
                .traits()
                .image
                .and_then(|role| self.config.images.for_role(role, build)),
            build,
            limitation: self
                .suites
                .limitation(case)
                .filter(|_| scope == Scope::Within)
                .map(LedgerEntry::documented),
            scope,
            reads: self.reads(case, &point, &disposition),
            represents_all: disposition != Disposition::Observe
                && point == Point::default()
                && case.over.has_axes(),
            point,
            disposition,
            assertions,
        }
    }

    /// The facts that decide where a case is observed and what it expects.
    fn reads(
        &self,
        case: &Case,
        point: &Point,
        disposition: &Disposition,
    ) -> BTreeSet<&'static str> {
        let nodes = (case.over.windows_pools || point.family.is_some()).then_some("nodes");
        let signs: &[_] = match (&self.second, point.family) {
            (SecondFamily::Unknown { .. }, Some(_)) => &["dns", "workloads"],
            _ => &[],
        };
        let entry = self.suites.limitation(case);
        let scoped = entry.is_some() || !case.exceptions.is_empty();
        let network = !case.over.networks.is_empty()
            || point.family.is_some()
            || entry.is_some_and(|entry| entry.holds.network.is_some());
        let needed = case.test.needs();
        let needs = |is_it: fn(FixtureName) -> bool| needed.iter().any(|(name, _)| is_it(*name));
        let balanced = needs(|name| name == FixtureName::LOAD_BALANCER);
        let claims: &[_] = match needs(|name| name.claim().is_some()) {
            true => &["storage-classes", "csi-nodes"],
            false => &[],
        };
        let snapshots = needs(|name| name.changes().contains(&Change::Snapshot));
        // A case that is observed without known gates presumes the defaults of the version
        let forbidden = matches!(disposition, Disposition::Inconclusive(error)
            if error.kind == ErrorKind::Forbidden);
        let gates = forbidden && case.exceptions.iter().any(|one| one.without_gate.is_some());
        nodes
            .into_iter()
            .chain(gates.then_some("gates"))
            .chain(scoped.then_some("server"))
            .chain(network.then_some("cni"))
            .chain(balanced.then_some("load-balancer"))
            .chain(balanced.then_some("provider"))
            .chain(snapshots.then_some("snapshot-classes"))
            .chain(signs.iter().chain(claims).copied())
            .chain(case.test.traits().facts.iter().copied())
            .collect()
    }
}

fn not_applicable(reason: String) -> Disposition {
    Disposition::Skip(SkipReason::NotApplicable { reason })
}

fn unreadable_build() -> ObservationError {
    let reason = "status.nodeInfo.kernelVersion is not one of Windows";
    unknown("the build of the pool's nodes", reason)
}

pub(super) fn unknown(what: &str, reason: &str) -> ObservationError {
    let kind = match Denied::quoted(reason) {
        Some(_) => ErrorKind::Forbidden,
        None => ErrorKind::FactUnknown,
    };
    kind.error(format!("{what}: {reason}"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;
    use std::sync::LazyLock;

    use serde::Deserialize;
    use serde_json::{Map, Value as Json, json};

    use super::*;
    use crate::claims::Pattern;
    use crate::config::Image;
    use crate::facts::{IpFamily, WindowsBuild, values};
    use crate::method::{HttpExpectation, Test, Workload};
    use crate::rows::listed;
    use crate::suite::SuiteFile;
    use crate::verdict::Outside;

    fn files(root: &Path, below: &Path) -> Vec<SuiteFile> {
        let entries = std::fs::read_dir(root.join(below)).expect("the suites");
        let read = |entry: std::io::Result<std::fs::DirEntry>| {
            let below = below.join(entry.expect("an entry").file_name());
            if root.join(&below).is_dir() {
                return files(root, &below);
            }
            let path = below.to_string_lossy().into_owned();
            let text = std::fs::read_to_string(root.join(&below)).expect("a suite");
            vec![SuiteFile {
                shown: path.clone(),
                path,
                text,
            }]
        };
        entries.flat_map(read).collect()
    }

    /// The project's suites, read once: each test needs them, some once per check.
    fn suites() -> &'static Suites {
        static SUITES: LazyLock<Suites> = LazyLock::new(|| {
            let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../suites/");
            Suites::read(files(Path::new(root), Path::new(""))).expect("valid")
        });
        &SUITES
    }

    /// Facts of a server with these nodes and without any pods.
    #[expect(clippy::needless_pass_by_value, reason = "they are made in place")]
    fn facts(server: &str, nodes: Json) -> Facts {
        let all = json!({"server": server, "cluster": "uid", "nodes": nodes, "dns": null,
            "workloads": {}, "gmsa": {"crd": true, "webhooks": [], "everywhere": true}});
        values::facts(all.as_object().expect("values"))
    }

    fn windows(name: &str) -> Json {
        json!({"name": name, "os": "windows", "build": "10.0.20348"})
    }

    /// A Linux node, and a Windows node with these fields.
    fn hybrid(otherwise: &Json) -> Json {
        let mut win = windows("win");
        for (key, value) in otherwise.as_object().into_iter().flatten() {
            win[key] = value.clone();
        }
        json!([{"name": "lin"}, win])
    }

    fn usual() -> Facts {
        facts("v1.37.0", hybrid(&json!({})))
    }

    fn on_flannel(facts: Facts) -> Facts {
        let flannel = json!({"cni": {"product": "flannel"}});
        let cni = values::facts(flannel.as_object().expect("values")).cni;
        Facts { cni, ..facts }
    }

    /// A row of `dispositions.yaml`.
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Row {
        of: String,
        #[serde(default)]
        win: Json,
        #[serde(default)]
        facts: Map<String, Json>,
        config: Option<String>,
        /// How many checks the row is about.
        count: Option<usize>,
        /// A part of the text of each disposition.
        #[serde(default)]
        says: String,
        /// A text that no disposition contains.
        never: Option<String>,
        /// Facts that each check reads.
        #[serde(default)]
        reads: Vec<String>,
    }

    fn said(disposition: &Disposition) -> String {
        match disposition {
            Disposition::Observe => "it is observed".to_owned(),
            Disposition::Skip(reason) => format!("skip: {reason}"),
            Disposition::Inconclusive(error) => format!("inconclusive: {error}"),
        }
    }

    #[test]
    fn each_check_is_said_what_its_row_says() {
        let rows: Vec<Row> = listed(include_str!("dispositions.yaml"));
        let mut wrong = Vec::new();
        for row in rows {
            let mut all = json!(facts("v1.37.0", hybrid(&row.win)));
            for (name, known) in json!(values::facts(&row.facts)).as_object().expect("facts") {
                if row.facts.contains_key(name) {
                    all[name] = known.clone();
                }
            }
            let facts: Facts = serde_json::from_value(all).expect("facts");
            let mut found = Vec::new();
            let config = row.config.as_deref().unwrap_or("{}");
            let config = crate::config::read("config.yaml", config, &mut found);
            assert_eq!(found, Vec::new(), "{}", row.of);
            let of = Pattern::parse(&row.of).expect("a pattern");
            let mut checks = plan(suites(), &facts, &config).checks;
            checks.retain(|check| of.covers(check.id.as_str()));
            assert!(!checks.is_empty(), "{}", row.of);
            assert_eq!(
                row.count.unwrap_or(checks.len()),
                checks.len(),
                "{}",
                row.of
            );
            let is_other = |check: &Check| {
                let said = said(&check.disposition);
                let never = row.never.as_ref().is_some_and(|never| said.contains(never));
                let reads = row.reads.iter().all(|name| check.reads.contains(&**name));
                never || !reads || !said.contains(&row.says)
            };
            let others = checks.iter().filter(|check| is_other(check));
            wrong.extend(others.map(|check| {
                format!("{} {:?}: {}", check.id, row.facts, said(&check.disposition))
            }));
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn samples_are_expected_on_as_many_nodes_as_are_observed_from() {
        let of_nodes = |nodes: usize| {
            let windows = |nth| windows(&format!("win-{nth:02}"));
            let facts = facts("v1.37.0", (0..nodes).map(windows).collect());
            let checks = of_claim(&facts, "sample.win-webserver/each-node");
            let [check] = checks.as_slice() else {
                panic!("{checks:?}")
            };
            match (
                &check.disposition,
                check.assertions.first().map(|assertion| &assertion.test),
            ) {
                (Disposition::Observe, Some(Test::State(assertion))) => {
                    Ok(assertion.expectation.pods())
                }
                (disposition, _) => Err(format!("{disposition:?}")),
            }
        };
        assert_eq!(of_nodes(3), Ok(3));
        let most = Config::default().limits.nodes_observed_from;
        assert_eq!(of_nodes(most + 4).map(usize::from), Ok(most));
        let alone = of_nodes(1).expect_err("nothing to observe");
        assert!(
            alone.contains("one usable node, which all its samples run on"),
            "{alone}"
        );
    }

    #[test]
    fn windows_nodes_observed_from_by_themselves_are_those_that_samples_are_put_on() {
        let of = |nodes: usize, cordoned: &[usize]| {
            let windows = |nth| {
                let mut node = windows(&format!("win-{nth:02}"));
                node["usable"] = json!(!cordoned.contains(&nth));
                node
            };
            let linux = json!({"name": "lin"});
            let nodes = (1..=nodes).map(windows).chain([linux]).collect();
            let facts = on_flannel(facts("v1.37.0", nodes));
            let checks = of_claim(&facts, "net.node-to-service-ip/each-windows-node");
            let observed = checks
                .iter()
                .filter(|check| check.disposition == Disposition::Observe);
            let observed: Vec<_> = observed.filter_map(|check| check.point.node).collect();
            let pools = facts.pools();
            let pool = pools.values().find(|pool| pool.os == Os::Windows);
            let pool = pool.expect("it has nodes");
            let name = |at: &NodeOrdinal| pool.node(*at).expect("a node").clone();
            let first: Vec<_> = pool.nodes.iter().take(Pool::TOGETHER).cloned().collect();
            let observed_from: Vec<_> = observed.iter().map(name).collect();
            assert!(
                observed_from.is_empty() || observed_from == first,
                "{observed_from:?}"
            );
            observed
        };
        assert_eq!(of(1, &[]), Vec::<NodeOrdinal>::new());
        assert_eq!(of(2, &[]), [1, 2]);
        assert_eq!(of(2, &[2]), Vec::<NodeOrdinal>::new());
        assert_eq!(of(40, &[]), [1, 2]);
        assert_eq!(of(40, &[1, 3, 4]), [2, 5]);
    }

    fn base(id: &str) -> String {
        id.split('[').next().unwrap_or_default().to_owned()
    }

    fn dispositions(facts: &Facts) -> Vec<(String, Disposition)> {
        let plan = plan(suites(), facts, &Config::default());
        plan.checks
            .into_iter()
            .map(|check| (check.id.to_string(), check.disposition))
            .collect()
    }

    /// Whether a check is of a case that is repeated over Windows pools.
    fn over_pools(id: &str) -> bool {
        let of = |case: &Case| {
            let own = CheckId::new(&case.claim, case.name.as_deref(), &Point::default());
            case.over.windows_pools && base(id) == own.as_str()
        };
        suites().cases.iter().any(of)
    }

    #[test]
    fn no_case_vanishes_without_windows_nodes() {
        let facts = facts("v1.37.0", json!([{"name": "lin"}]));
        let dispositions = dispositions(&facts);
        let told: BTreeSet<_> = dispositions.iter().map(|(id, _)| base(id)).collect();
        assert_eq!(told.len(), suites().cases.len());
        for (id, disposition) in dispositions {
            let skipped = matches!(
                disposition,
                Disposition::Skip(SkipReason::NoUsableNode { .. })
            );
            assert_eq!(skipped, over_pools(&id), "{id}: {disposition:?}");
        }
    }

    #[test]
    fn a_pool_without_usable_nodes_is_still_asked_about_its_labels() {
        for (id, disposition) in dispositions(&facts("v1.37.0", hybrid(&json!({"usable": false}))))
        {
            let areas = ["env.", "reject.", "storage.csi-drivers", "storage.in-tree"];
            let asks = areas.iter().any(|area| id.starts_with(area));
            // A program tells it
            let asks = asks && !id.starts_with("env.node-services");
            assert_eq!(
                disposition == Disposition::Observe,
                asks || !over_pools(&id),
                "{id}: {disposition:?}"
            );
        }
    }

    #[test]
    fn unknown_nodes_break_what_needs_them_and_nothing_else() {
        let mut facts = facts("v1.37.0", json!([]));
        facts.nodes = Known::Unknown {
            reason: "403".to_owned(),
        };
        for (id, disposition) in dispositions(&facts) {
            let broken = matches!(disposition, Disposition::Inconclusive(_));
            let needs = over_pools(&id) || id.contains("family=");
            assert_eq!(broken, needs, "{id}: {disposition:?}");
        }
    }

    #[test]
    fn ids_hold_no_node_names() {
        for (id, _) in dispositions(&usual()) {
            assert!(!id.contains("lin,") && !id.ends_with("win]"), "{id}");
        }
    }

    fn expects_failure(assertion: &PlannedAssertion) -> bool {
        matches!(&assertion.test, Test::Http(assertion) if matches!(assertion.expectation, HttpExpectation::Fails { .. }))
    }

    #[test]
    fn a_limitation_expects_its_signature_and_its_control_the_answer() {
        let check = of_claim(&on_flannel(usual()), "net.node-to-service-ip").remove(0);
        assert_eq!(check.scope, Scope::Within);
        let (own, controls) = check.assertions.split_first().expect("it has an assertion");
        assert!(expects_failure(own) && !controls.is_empty());
        assert!(!controls.iter().any(expects_failure));
        assert!(controls.iter().any(|control| control.from != own.from));
    }

    #[test]
    fn out_of_scope_a_limitation_is_observed_as_a_capability() {
        let new = facts("v1.37.0", hybrid(&json!({"build": "10.0.25398"})));
        let old = facts("v1.13.12", hybrid(&json!({})));
        // The image table has no image for that build: this asks the scope alone
        let mut entries = suites().ledger.entries();
        let entry = entries
            .find(|entry| entry.outside == Outside::Capability && entry.holds.builds.is_empty());
        let entry = entry.expect("an entry");
        assert_eq!(entry.scope(None, &new), Ok(Scope::Within));
        assert_eq!(entry.scope(None, &old), Ok(Scope::AsCapability));
        assert!(dispositions(&new).iter().any(|(_, disposition)| {
            matches!(disposition, Disposition::Skip(SkipReason::NoImage { .. }))
        }));
    }

    #[test]
    fn nodes_of_an_unreadable_build_are_not_told_of() {
        let unreadable = facts("v1.37.0", hybrid(&json!({"build": null})));
        for (id, disposition) in dispositions(&unreadable) {
            let broken = matches!(disposition, Disposition::Inconclusive(_));
            assert_eq!(broken, over_pools(&id), "{id}: {disposition:?}");
        }
    }

    #[test]
    fn a_second_family_has_checks_of_its_own_and_leaves_the_others_alone() {
        let single = dispositions(&usual());
        assert!(single.iter().all(|(id, _)| !id.contains("family=")));
        let of_families = |(id, _): &&(String, Disposition)| {
            let case = suites().cases.iter().find(|case| {
                CheckId::new(&case.claim, case.name.as_deref(), &Point::default()).as_str()
                    == base(id)
            });
            case.is_some_and(|case| case.over.families)
        };
        let expected = single.iter().filter(of_families).count();
        assert!(expected > 30, "{expected}");
        let ranges = json!({"details": {"pod-cidrs": ["10.0.0.0/24", "fd00::/64"]}});
        let dual = facts("v1.37.0", hybrid(&ranges));
        let reason = "no answer".to_owned();
        let untold = Facts {
            workloads: Known::Unknown { reason },
            ..usual()
        };
        for facts in [&dual, &untold] {
            let (second, first): (Vec<_>, Vec<_>) = dispositions(facts)
                .into_iter()
                .partition(|(id, _)| id.contains("family="));
            assert_eq!(first, single);
            assert_eq!(second.len(), expected);
            let id = "net.service-ip-from-pod[pool=windows-2022,source=windows-pod,family=ipv6]";
            assert!(second.iter().any(|(other, _)| other == id), "{second:?}");
        }
        let plan = plan(suites(), &dual, &Config::default());
        assert_eq!(plan.second_family(), Some(IpFamily::Ipv6));
    }

    #[test]
    fn nothing_that_is_observed_waits_for_pods_that_cannot_be_pulled() {
        let mut found = Vec::new();
        let text = "images: {agnhost-builds: [10.0.17763]}";
        let config = crate::config::read("config.yaml", text, &mut found);
        assert_eq!(found, Vec::new());
        let calico = json!({"cni": {"product": "calico"}});
        let facts = Facts {
            cni: values::facts(calico.as_object().expect("values")).cni,
            ..usual()
        };
        let plan = plan(suites(), &facts, &config);
        for key in plan.fixtures() {
            let is_agnhost = key.name.image() == Some(Image::AgnhostWindows);
            assert!(key.name.serves().is_none() || !is_agnhost, "{key}");
        }
        let pulls = super::super::pulls(&plan, &facts, &config.images);
        let images = &pulls[&PoolName::windows(WindowsBuild::SERVER_2022)].images;
        assert!(
            images.keys().all(|image| !image.contains("agnhost")),
            "{images:?}"
        );
        let core = &images["mcr.microsoft.com/windows/servercore:ltsc2022"];
        assert!(core.contains(&FixtureName::WINDOWS_POD_PROBER));
    }

    fn of_claim(facts: &Facts, id: &str) -> Vec<Check> {
        let id = Pattern::parse(id).expect("a pattern");
        let mut checks = plan(suites(), facts, &Config::default()).checks;
        checks.retain(|check| id.covers(check.id.as_str()));
        checks
    }

    fn gated(version: &str, gate: Option<bool>) -> Facts {
        let mut facts = facts(version, hybrid(&json!({})));
        if let Some(on) = gate {
            facts.gates = Known::Fact {
                value: BTreeMap::from([("UserNamespacesSupport".to_owned(), on)]),
                source: "/metrics".to_owned(),
            };
        }
        facts
    }

    #[test]
    fn what_is_expected_follows_version_and_gates() {
        use crate::method::AdmissionExpectation::{Dropped, Refused};
        let id = "reject.feature-gate/host-users";
        for (version, gate, dropped, presumed) in [
            ("v1.32.2", Some(false), true, false),
            ("v1.32.2", Some(true), false, false),
            ("v1.32.2", None, true, true),
            ("v1.33.0", None, false, true),
            ("v1.35.1", Some(false), true, false),
            ("v1.36.0", None, false, false),
        ] {
            let checks = of_claim(&gated(version, gate), id);
            assert_eq!(checks.len(), 9, "{version}");
            for check in checks {
                let Some(own) = check.assertions.first() else {
                    // No template of a StatefulSet is validated before 1.34
                    let old = !version.starts_with("v1.35") && !version.starts_with("v1.36");
                    assert!(old && check.point.workload == Some(Workload::StatefulSet));
                    continue;
                };
                let Test::Admission(assertion) = &own.test else {
                    panic!("an admission assertion")
                };
                assert_eq!(
                    assertion.expectation == Dropped,
                    dropped,
                    "{version} {gate:?}"
                );
                assert_eq!(matches!(assertion.expectation, Refused { .. }), !dropped);
                assert_eq!(own.presumed.is_some(), presumed, "{version} {gate:?}");
            }
        }
    }

    #[test]
    fn what_is_skipped_by_a_gate_that_may_not_be_read_is_forbidden() {
        let id = "reject.feature-gate/se-linux-change-policy-values";
        let mut facts = gated("v1.36.4", None);
        let why = "User \"a\" cannot get path \"/metrics\"";
        facts.gates = Known::Unknown {
            reason: format!("the server said 403: forbidden: {why}"),
        };
        let checks = of_claim(&facts, id);
        assert!(!checks.is_empty());
        for check in checks {
            let Disposition::Inconclusive(error) = &check.disposition else {
                panic!("{:?}", check.disposition)
            };
            assert_eq!(error.kind, ErrorKind::Forbidden);
            assert!(error.detail.ends_with(why) && check.reads.contains("gates"));
        }
    }

    #[test]
    fn a_field_is_where_the_object_has_it() {
        let facts = usual();
        let expected = [
            ("pod", "spec.initContainers[0].securityContext.privileged"),
            (
                "cron-job",
                "spec.jobTemplate.spec.template.spec.initContainers[0].securityContext.privileged",
            ),
            (
                "pod-template",
                "template.spec.initContainers[0].securityContext.privileged",
            ),
        ];
        for (workload, path) in expected {
            let id = format!(
                "reject.all-container-kinds/privileged[workload={workload},container=init]"
            );
            let checks = of_claim(&facts, "reject.all-container-kinds/privileged");
            let found = checks.iter().find(|check| check.id.as_str() == id);
            let assertions = &found.expect("the check").assertions;
            let Test::Admission(assertion) = &assertions[0].test else {
                panic!("an admission assertion")
            };
            assert_eq!(assertion.query.path(), path);
            let body = assertion.query.body().expect("a body");
            let pointer = format!("/{}", path.replace(['.', '['], "/").replace(']', ""));
            assert_eq!(
                body.pointer(&pointer),
                Some(&serde_json::json!(true)),
                "{body}"
            );
            assert_eq!(assertions.len(), 3);
        }
    }
}
