//! From cases and facts to checks.

use std::collections::{BTreeMap, BTreeSet};

use super::check::{Check, CheckId, Plan, PlannedLook, Point};
use super::points::{at_point, points};
use crate::config::{Config, Image};
use crate::facts::{Facts, Known, NodeOrdinal, Os, Pool, PoolName, SecondFamily};
use crate::suite::{Across, Case, Expected, Suites};
use crate::verdict::{Fate, Role, Scope, SkipReason};
use crate::way::{Denied, FixtureName, Need, SourceKind, Test, Trouble, TroubleKind, VantageKey};

/// Plans every case of the suites on a cluster: one check per point, each to be looked at or with
/// its reason why not. No case vanishes: one without any point is a skipped check.
pub fn plan(suites: &Suites, facts: &Facts, config: &Config) -> Plan {
    let surroundings = Surroundings {
        suites,
        facts,
        config,
        pools: facts.pools(),
        second: facts.second_family(),
    };
    let checks = suites
        .cases
        .iter()
        .flat_map(|case| surroundings.checks(case))
        .collect();
    Plan { checks }
}

/// What a plan is made of.
pub(super) struct Surroundings<'p> {
    suites: &'p Suites,
    pub(super) facts: &'p Facts,
    pub(super) config: &'p Config,
    pub(super) pools: BTreeMap<PoolName, Pool>,
    /// The family of addresses that the cluster has besides its first.
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
                let fate = if self.pools.values().any(unread) {
                    Fate::Broken(unreadable_build())
                } else {
                    let because = format!("the cluster has no {only} nodes");
                    Fate::Skip(SkipReason::Inapplicable { because })
                };
                return vec![self.check(case, point, Scope::Within, fate, Vec::new())];
            }
        }
        if pools.is_empty() {
            let point = Point::default();
            let fate = match &self.facts.nodes {
                Known::Unknown { because } => Fate::Broken(unknown("nodes", because)),
                Known::Fact { .. } => Fate::Skip(SkipReason::NoUsableNode {
                    of: "windows".to_owned(),
                    why: Vec::new(),
                }),
            };
            return vec![self.check(case, point, Scope::Within, fate, Vec::new())];
        }
        let to = match case.over.across {
            Across::Pools => pools.clone(),
            Across::Pool | Across::Nodes => vec![None],
        };
        let ring = |kind, pool: &PoolName| self.each(kind, pool);
        points(&case.over, &pools, &to, self.second.perhaps(), ring)
            .into_iter()
            .map(|point| self.check_at(case, point))
            .collect()
    }

    fn check_at(&self, case: &Case, point: Point) -> Check {
        let build_of = |pool: &PoolName| self.pools.get(pool)?.build;
        let build = point.pool.as_ref().and_then(build_of);
        let unreadable = |pool: &PoolName| build_of(pool).is_none();
        let named = [&point.pool, &point.to];
        if named.into_iter().flatten().any(unreadable) {
            let fate = Fate::Broken(unreadable_build());
            return self.check(case, point, Scope::Within, fate, Vec::new());
        }
        if let Some(fate) = case.over.elsewhere(self.facts) {
            return self.check(case, point, Scope::Within, fate, Vec::new());
        }
        let family = point.family.filter(|_| point.pool.is_some());
        if let Some(because) = family.and_then(|family| self.facts.without_family(family)) {
            let fate = Fate::Skip(SkipReason::Inapplicable { because });
            return self.check(case, point, Scope::Within, fate, Vec::new());
        }
        if let (Some(_), SecondFamily::Unknown { because, .. }) = (point.family, &self.second) {
            let what = "whether pods have addresses of two families";
            let fate = Fate::Broken(unknown(what, because));
            return self.check(case, point, Scope::Within, fate, Vec::new());
        }
        if let Some(because) = self.lacks_ring(case, &point) {
            let fate = Fate::Skip(SkipReason::Inapplicable { because });
            return self.check(case, point, Scope::Within, fate, Vec::new());
        }
        let entry = self.suites.limitation(case);
        let scope = match entry {
            None => Scope::Within,
            Some(entry) => match entry.scope(build, self.facts) {
                Ok(scope) => scope,
                Err(fate) => return self.check(case, point, Scope::Within, fate, Vec::new()),
            },
        };
        let expected = match Expected::on(self.facts, &case.exceptions, point.workload) {
            Ok(expected) => expected,
            Err(fate) => return self.check(case, point, scope, fate, Vec::new()),
        };
        let test = at_point(&case.test, &case.over, &point, expected.instead.as_ref());
        // A known limitation's own look expects its signature; its controls what should work
        let own = match (&scope, entry) {
            (Scope::Within, Some(entry)) => test.expecting(&entry.signature),
            (Scope::Within | Scope::AsCapability, _) => None,
        };
        let mut looks = vec![self.look(
            "look",
            point.source,
            own.clone().unwrap_or_else(|| test.clone()),
            &point,
        )];
        looks[0].presumed = expected.presumed;
        for control in &case.controls {
            let test = match (&control.test, control.without) {
                (Some(own), _) => at_point(own, &case.over, &point, None),
                (None, Some(without)) => without.look(&test),
                (None, None) => test.clone(),
            };
            let source = control
                .source
                .or(point.source)
                .filter(|_| test.traits().needs_source);
            let look = PlannedLook {
                role: control.role,
                ..self.look(&control.name, source, test, &point)
            };
            // Where Linux has no such nodes, Windows is judged by itself
            let linux = self.pools.get(&PoolName::linux());
            let is_alone = linux.is_none_or(|pool| pool.nodes.len() < 2) && !look.needs.is_empty();
            let is_missing = is_alone || self.hindrance(&look).is_some();
            if control.role == Role::SamePath || own.is_some() || !is_missing {
                looks.push(look);
            }
        }
        if let Some(reason) = looks.iter().find_map(|look| self.hindrance(look)) {
            return self.check(case, point, scope, Fate::Skip(reason), Vec::new());
        }
        match looks.iter().find_map(|look| self.lacks_balancer(look)) {
            Some(fate) => self.check(case, point, scope, fate, Vec::new()),
            None => self.check(case, point, scope, Fate::Look, looks),
        }
    }

    /// The nodes of a pool that are each looked from by such places. Of Windows nodes by themselves it is
    /// those that the samples' pods are put on: what is known not to work from a node is so of Services with
    /// a pod on it, and each takes a HostProcess container, which is SYSTEM there.
    fn each(&self, kind: SourceKind, pool: &PoolName) -> Vec<NodeOrdinal> {
        match kind {
            SourceKind::WindowsNode => self.pools.get(pool).map_or_else(Vec::new, Pool::together),
            SourceKind::WindowsPod
            | SourceKind::LinuxPod
            | SourceKind::LinuxNode
            | SourceKind::Outside => self.ring(pool),
        }
    }

    /// The nodes of a pool that are each looked from.
    fn ring(&self, pool: &PoolName) -> Vec<NodeOrdinal> {
        let pool = self.pools.get(pool);
        pool.map_or_else(Vec::new, |pool| {
            pool.ring(self.config.limits.nodes_looked_from)
        })
    }

    /// How many nodes of a pool are each looked from.
    fn looked_from(&self, pool: &PoolName) -> u16 {
        self.ring(pool).len().try_into().unwrap_or(u16::MAX)
    }

    /// Why a case that looks from each node of a pool does not: there is one alone.
    fn lacks_ring(&self, case: &Case, point: &Point) -> Option<String> {
        let mut needs = case.test.needs().into_iter();
        let stands = match (
            case.over.across,
            needs.any(|(name, _)| name.is_on_each_node()),
        ) {
            (Across::Nodes, _) => "which its prober looks from",
            (Across::Pool | Across::Pools, true) => "which its samples stand on",
            (Across::Pool | Across::Pools, false) => return None,
        };
        let pool = match case.over.across {
            Across::Nodes => point.source_pool()?,
            Across::Pool | Across::Pools => point.pool.clone()?,
        };
        let one_alone = self.pools.get(&pool)?.nodes.len() == 1;
        (one_alone && point.node.is_none()).then(|| format!("{pool} has one usable node, {stands}"))
    }

    /// Of the nodes that are each looked from, the one that a node looks at: a pod at that on the next, from
    /// the last at that on the first, and a Windows node itself at its own.
    fn looked_at(&self, source: Option<SourceKind>, point: &Point) -> Option<NodeOrdinal> {
        let own = point.node?;
        if source == Some(SourceKind::WindowsNode) {
            return Some(own);
        }
        let ring = self.ring(point.pool.as_ref()?);
        let here = ring.iter().position(|node| *node == own)?;
        ring.get((here + 1) % ring.len()).copied()
    }

    fn look(
        &self,
        name: &str,
        source: Option<SourceKind>,
        test: Test,
        point: &Point,
    ) -> PlannedLook {
        let of = point.to.as_ref().or(point.pool.as_ref());
        let node = self.looked_at(source, point);
        let key = |(name, need): (FixtureName, Need)| (name.at(of).on(node), need);
        let from = source.map(|kind| VantageKey {
            kind,
            pool: kind.pool(point.pool.as_ref()),
            // A control that looks from another pool is of no node of the check's
            node: point.node.filter(|_| {
                kind.has_prober_per_node() && kind.pool(point.pool.as_ref()) == point.source_pool()
            }),
        });
        PlannedLook {
            name: name.to_owned(),
            role: Role::SamePath,
            from,
            needs: test.needs().into_iter().map(key).collect(),
            test: test.on_nodes(of.map_or(0, |pool| self.looked_from(pool))),
            presumed: None,
        }
    }

    fn check(
        &self,
        case: &Case,
        point: Point,
        scope: Scope,
        fate: Fate,
        looks: Vec<PlannedLook>,
    ) -> Check {
        let build = point
            .pool
            .as_ref()
            .and_then(|pool| self.pools.get(pool)?.build);
        Check {
            id: CheckId::new(&case.claim, case.name.as_deref(), &point),
            claim: case.claim.clone(),
            kind: case.kind,
            title: case.title.clone(),
            hint: case.hint.clone(),
            image: sample(&case.test).and_then(|role| self.config.images.of(role, build)),
            build,
            scope,
            reads: self.reads(case, &point),
            point,
            fate,
            looks,
        }
    }

    /// The facts that decide where a case is looked at and what of it is expected.
    fn reads(&self, case: &Case, point: &Point) -> BTreeSet<&'static str> {
        let nodes = (case.over.windows_pools || point.family.is_some()).then_some("nodes");
        let signs: &[_] = match (&self.second, point.family) {
            (SecondFamily::Unknown { .. }, Some(_)) => &["dns", "workloads"],
            _ => &[],
        };
        let entry = self.suites.limitation(case);
        let scoped = entry.is_some() || !case.exceptions.is_empty();
        let network = !case.over.networks.is_empty()
            || point.family.is_some()
            || entry.is_some_and(|entry| entry.network.is_some());
        let needed = case.test.needs();
        let balanced = needed
            .iter()
            .any(|(name, _)| *name == FixtureName::LoadBalancer);
        let asked = match &case.test {
            Test::Fact(look) => look.ask.facts(),
            // Nodes are told apart by what is known of them
            Test::Placement(_) => &["nodes"],
            Test::Admission(_)
            | Test::Http(_)
            | Test::Ping(_)
            | Test::Preemption(_)
            | Test::State(_)
            | Test::Udp(_) => &[],
        };
        nodes
            .into_iter()
            .chain(scoped.then_some("server"))
            .chain(network.then_some("cni"))
            .chain(balanced.then_some("load-balancer"))
            .chain(balanced.then_some("provider"))
            .chain(signs.iter().copied())
            .chain(asked.iter().copied())
            .collect()
    }
}

/// The role of the image that the pods a test asks for should run.
fn sample(test: &Test) -> Option<Image> {
    match test {
        Test::State(look) => look.ask.fixture().image(),
        Test::Admission(_)
        | Test::Fact(_)
        | Test::Http(_)
        | Test::Ping(_)
        | Test::Placement(_)
        | Test::Preemption(_)
        | Test::Udp(_) => None,
    }
}

fn unreadable_build() -> Trouble {
    let because = "status.nodeInfo.kernelVersion is not one of Windows";
    unknown("the build of the pool's nodes", because)
}

pub(super) fn unknown(what: &str, because: &str) -> Trouble {
    let kind = match Denied::quoted(because) {
        Some(_) => TroubleKind::Forbidden,
        None => TroubleKind::FactUnknown,
    };
    Trouble::new(kind, format!("{what}: {because}"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;
    use std::sync::LazyLock;

    use super::*;
    use crate::facts::{
        CniMode, ConditionFact, IpFamily, LoadBalancerFact, NodeDetails, NodeFact, WindowsBuild,
        WorkloadsFact,
    };
    use crate::suite::SuiteFile;
    use crate::way::{HttpExpect, Test, Workload};

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

    /// The project's own, read once: each test asks for them, some once per check.
    fn suites() -> &'static Suites {
        static SUITES: LazyLock<Suites> = LazyLock::new(|| {
            let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../suites/");
            Suites::read(files(Path::new(root), Path::new(""))).expect("valid")
        });
        &SUITES
    }

    fn node(name: &str, os: Os, build: Option<WindowsBuild>, usable: bool) -> NodeFact {
        NodeFact {
            name: name.to_owned(),
            os,
            build,
            usable,
            taints: Vec::new(),
            details: NodeDetails::default(),
        }
    }

    fn facts(version: &str, nodes: Vec<NodeFact>) -> Facts {
        let fact = |value: &str| Known::Fact {
            value: value.to_owned(),
            source: "/".to_owned(),
        };
        let source = "/api/v1/nodes".to_owned();
        Facts {
            server: fact(version),
            cluster: fact("uid"),
            nodes: Known::Fact {
                value: nodes,
                source: source.clone(),
            },
            dns: Known::Fact {
                value: None,
                source: source.clone(),
            },
            workloads: Known::Fact {
                value: WorkloadsFact::default(),
                source,
            },
            ..Facts::default()
        }
    }

    fn hybrid(usable: bool) -> Vec<NodeFact> {
        let linux = node("lin", Os::Linux, None, true);
        let windows = node("win", Os::Windows, Some(WindowsBuild::SERVER_2022), usable);
        vec![linux, windows]
    }

    #[test]
    fn samples_are_expected_on_as_many_nodes_as_are_looked_from() {
        let of_nodes = |nodes: usize| {
            let windows = |nth| {
                let name = format!("win-{nth:02}");
                node(&name, Os::Windows, Some(WindowsBuild::SERVER_2022), true)
            };
            let facts = facts("v1.37.0", (0..nodes).map(windows).collect());
            let checks = of_case(&facts, "sample.win-webserver/each-node");
            let [check] = checks.as_slice() else {
                panic!("{checks:?}")
            };
            match (&check.fate, check.looks.first().map(|look| &look.test)) {
                (Fate::Look, Some(Test::State(look))) => Ok(look.expect.pods()),
                (fate, _) => Err(format!("{fate:?}")),
            }
        };
        assert_eq!(of_nodes(3), Ok(3));
        let most = Config::default().limits.nodes_looked_from;
        assert_eq!(of_nodes(most + 4).map(usize::from), Ok(most));
        let alone = of_nodes(1).expect_err("nothing to look at");
        assert!(
            alone.contains("one usable node, which its samples stand on"),
            "{alone}"
        );
    }

    #[test]
    fn windows_nodes_looked_from_by_themselves_are_those_that_samples_are_put_on() {
        let of = |nodes: usize, cordoned: &[usize]| {
            let windows = |nth| {
                let name = format!("win-{nth:02}");
                let usable = !cordoned.contains(&nth);
                node(&name, Os::Windows, Some(WindowsBuild::SERVER_2022), usable)
            };
            let linux = node("lin", Os::Linux, None, true);
            let nodes = (1..=nodes).map(windows).chain([linux]).collect();
            let facts = facts("v1.37.0", nodes);
            let checks = of_case(&facts, "net.node-to-service-ip/each-windows-node");
            let looked_at = checks.iter().filter(|check| check.fate == Fate::Look);
            let looked_at: Vec<_> = looked_at.filter_map(|check| check.point.node).collect();
            let pools = facts.pools();
            let pool = pools.values().find(|pool| pool.os == Os::Windows);
            let pool = pool.expect("it has nodes");
            let name = |at: &NodeOrdinal| pool.node(*at).expect("a node").clone();
            let first: Vec<_> = pool.nodes.iter().take(Pool::TOGETHER).cloned().collect();
            let looked_from: Vec<_> = looked_at.iter().map(name).collect();
            assert!(
                looked_from.is_empty() || looked_from == first,
                "{looked_from:?}"
            );
            looked_at
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

    fn fates(facts: &Facts) -> Vec<(String, Fate)> {
        let plan = plan(suites(), facts, &Config::default());
        plan.checks
            .into_iter()
            .map(|check| (check.id.to_string(), check.fate))
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
        let facts = facts("v1.37.0", vec![node("lin", Os::Linux, None, true)]);
        let fates = fates(&facts);
        let told: BTreeSet<_> = fates.iter().map(|(id, _)| base(id)).collect();
        assert_eq!(told.len(), suites().cases.len());
        for (id, fate) in fates {
            let skipped = matches!(fate, Fate::Skip(SkipReason::NoUsableNode { .. }));
            assert_eq!(skipped, over_pools(&id), "{id}: {fate:?}");
        }
    }

    /// What becomes of the checks of load balancers.
    fn balanced(balancer: Known<LoadBalancerFact>, provider: Option<&str>, asked: bool) -> Fate {
        let facts = Facts {
            load_balancer: balancer,
            provider: Known::Fact {
                value: provider.map(str::to_owned),
                source: "/".to_owned(),
            },
            ..facts("v1.37.0", hybrid(true))
        };
        let mut config = Config::default();
        config.outside.load_balancers = asked;
        let checks = plan(suites(), &facts, &config).checks.into_iter();
        let mut fates: Vec<_> = checks
            .filter(|check| {
                let id = check.id.as_str();
                id.contains("balancer") && !id.contains("source=outside")
            })
            .map(|check| check.fate)
            .collect();
        assert_eq!(fates.len(), 4);
        fates.dedup();
        assert_eq!(fates.len(), 1, "{fates:?}");
        fates.remove(0)
    }

    #[test]
    fn load_balancers_are_looked_at_where_asked_for_and_where_one_is() {
        let known = |with_address, product: Option<&str>, unread: Option<&str>| Known::Fact {
            value: LoadBalancerFact {
                with_address,
                pending: 3,
                products: product.map(str::to_owned).into_iter().collect(),
                unread: unread.map(str::to_owned).into_iter().collect(),
            },
            source: "/".to_owned(),
        };
        let none = || known(0, None, None);
        assert_eq!(balanced(known(1, None, None), None, true), Fate::Look);
        assert_eq!(
            balanced(known(0, Some("metallb"), None), None, true),
            Fate::Look
        );
        assert_eq!(balanced(none(), Some("eks"), true), Fate::Look);
        for provider in [None, Some("kubeadm")] {
            let Fate::Skip(reason) = balanced(none(), provider, true) else {
                panic!("there is no sign of one")
            };
            assert!(
                reason.to_string().contains("no sign of a load balancer"),
                "{reason}"
            );
        }
        let Fate::Skip(SkipReason::NotAsked { because }) =
            balanced(known(1, None, None), None, false)
        else {
            panic!("nobody has asked")
        };
        assert!(because.contains("load-balancers: true"), "{because}");
        let unknown = || Known::Unknown {
            because: "status 403".to_owned(),
        };
        for untold in [unknown(), known(0, None, Some("status 500"))] {
            let fate = balanced(untold, None, true);
            assert!(matches!(fate, Fate::Broken(_)), "{fate:?}");
        }

        assert!(matches!(
            balanced(unknown(), Some("aks"), true),
            Fate::Broken(_)
        ));
    }

    #[test]
    fn a_pool_that_cannot_be_used_says_why() {
        let mut nodes = hybrid(false);
        let ready = |status: &str| ConditionFact {
            kind: "Ready".to_owned(),
            status: status.to_owned(),
            since: None,
            reason: String::new(),
        };
        for (unschedulable, status, why) in [
            (true, "True", "win is cordoned"),
            (true, "False", "win is not Ready"),
            (false, "Unknown", "win is not Ready"),
            (false, "True", "win takes no pods, by its taints"),
        ] {
            nodes[1].details.unschedulable = unschedulable;
            nodes[1].details.conditions = vec![ready(status)];
            let fates = fates(&facts("v1.37.0", nodes.clone()));
            let said = fates.into_iter().find_map(|(id, fate)| match fate {
                Fate::Skip(reason) if id.starts_with("sample.win-webserver[") => {
                    Some(reason.to_string())
                }
                _ => None,
            });
            let said = said.expect("it is skipped");
            let expected = format!("the cluster has no usable windows-2022 node: {why}");
            assert_eq!(said, expected);
        }
    }

    #[test]
    fn a_pool_without_usable_nodes_is_still_asked_about_its_labels() {
        for (id, fate) in fates(&facts("v1.37.0", hybrid(false))) {
            let asks = id.starts_with("env.") || id.starts_with("reject.");
            assert_eq!(
                fate == Fate::Look,
                asks || !over_pools(&id),
                "{id}: {fate:?}"
            );
        }
    }

    #[test]
    fn unknown_nodes_break_what_needs_them_and_nothing_else() {
        let mut facts = facts("v1.37.0", Vec::new());
        facts.nodes = Known::Unknown {
            because: "403".to_owned(),
        };
        for (id, fate) in fates(&facts) {
            let broken = matches!(fate, Fate::Broken(_));
            let needs = over_pools(&id) || id.contains("family=");
            assert_eq!(broken, needs, "{id}: {fate:?}");
        }
    }

    #[test]
    fn ids_hold_no_node_names() {
        for (id, _) in fates(&facts("v1.37.0", hybrid(true))) {
            assert!(!id.contains("lin,") && !id.ends_with("win]"), "{id}");
        }
    }

    fn limitation(facts: &Facts) -> Check {
        let plan = plan(suites(), facts, &Config::default());
        let found = plan
            .checks
            .into_iter()
            .find(|check| check.claim.as_str() == "net.node-to-service-ip");
        found.expect("the suites have this limitation")
    }

    fn expects_failure(look: &PlannedLook) -> bool {
        matches!(&look.test, Test::Http(look) if matches!(look.expect, HttpExpect::Fails { .. }))
    }

    #[test]
    fn a_limitation_expects_its_signature_and_its_control_the_answer() {
        let check = limitation(&facts("v1.37.0", hybrid(true)));
        assert_eq!(check.scope, Scope::Within);
        let (own, controls) = check.looks.split_first().expect("it has a look");
        assert!(expects_failure(own) && !controls.is_empty());
        assert!(!controls.iter().any(expects_failure));
        assert!(controls.iter().any(|control| control.from != own.from));
    }

    #[test]
    fn out_of_scope_a_limitation_is_looked_at_as_a_capability() {
        let mut nodes = hybrid(true);
        nodes[1].build = WindowsBuild::parse_label("10.0.25398");
        let facts = facts("v1.37.0", nodes);
        // The image table has none for that build: ask the scope alone
        let suites = suites();
        let entry = suites.ledger.entries().next().expect("an entry");
        let build = WindowsBuild::parse_label("10.0.25398");
        assert_eq!(entry.scope(build, &facts), Ok(Scope::AsCapability));
        assert!(
            fates(&facts)
                .iter()
                .any(|(_, fate)| { matches!(fate, Fate::Skip(SkipReason::NoImage { .. })) })
        );
    }

    #[test]
    fn a_limitation_of_a_network_plugin_is_told_of_where_it_is() {
        use crate::facts::{Cni, CniMode};
        let fate_with = |cni: Known<Option<Cni>>| {
            let mut facts = facts("v1.37.0", hybrid(true));
            facts.cni = cni;
            let mut checks = of_case(&facts, "net.overlay-node-pod").into_iter();
            let check = checks.next().expect("one pool");
            assert!(check.reads.contains("cni"));
            check.fate
        };
        let fact = |cni: Option<(&str, Option<CniMode>)>| Known::Fact {
            value: cni.map(|(product, mode)| Cni {
                product: product.to_owned(),
                mode,
                vxlan: None,
                signs: Vec::new(),
                unread: Vec::new(),
            }),
            source: "/".to_owned(),
        };
        let overlay = Some(CniMode::Overlay);
        assert_eq!(fate_with(fact(Some(("flannel", overlay)))), Fate::Look);
        for other in [
            None,
            Some(("calico", overlay)),
            Some(("flannel", Some(CniMode::L2bridge))),
        ] {
            let fate = fate_with(fact(other));
            let skipped = matches!(fate, Fate::Skip(SkipReason::OutOfScope { .. }));
            assert!(skipped, "{other:?}: {fate:?}");
        }
        let because = "403".to_owned();
        for unknown in [fact(Some(("flannel", None))), Known::Unknown { because }] {
            let fate = fate_with(unknown.clone());
            assert!(matches!(fate, Fate::Broken(_)), "{unknown:?}: {fate:?}");
        }
    }

    #[test]
    fn nodes_of_an_unreadable_build_are_not_told_of() {
        let mut nodes = hybrid(true);
        nodes[1].build = None;
        for (id, fate) in fates(&facts("v1.37.0", nodes)) {
            let broken = matches!(fate, Fate::Broken(_));
            assert_eq!(broken, over_pools(&id), "{id}: {fate:?}");
        }
    }

    #[test]
    fn a_case_of_one_pool_is_looked_at_there_alone() {
        let of = |claim: &str| {
            let fates = fates(&facts("v1.37.0", hybrid(true))).into_iter();
            let found: Vec<_> = fates.filter(|(id, _)| base(id) == claim).collect();
            found
        };
        let here = "sample.iis-2022[pool=windows-2022]".to_owned();
        assert_eq!(of("sample.iis-2022"), [(here, Fate::Look)]);
        let elsewhere = of("sample.iis-2019");
        let [(id, Fate::Skip(reason))] = elsewhere.as_slice() else {
            panic!("{elsewhere:?}")
        };
        assert_eq!(id, "sample.iis-2019[pool=windows-2019]");
        assert!(reason.is_legitimate());
        let said = "the question does not arise: the cluster has no windows-2019 nodes";
        assert_eq!(reason.to_string(), said);
    }

    /// Facts of nodes whose pods have addresses of both families.
    fn dual() -> Facts {
        let mut nodes = hybrid(true);
        for node in &mut nodes {
            let pod_cidrs = ["10.0.0.0/24", "fd00::/64"];
            node.details.pod_cidrs = pod_cidrs.map(str::to_owned).to_vec();
        }
        facts("v1.37.0", nodes)
    }

    #[test]
    fn a_second_family_has_checks_of_its_own_and_leaves_the_others_alone() {
        let single: BTreeSet<_> = fates(&facts("v1.37.0", hybrid(true)))
            .into_iter()
            .map(|(id, _)| id)
            .collect();
        assert!(single.iter().all(|id| !id.contains("family=")));
        let (second, first): (BTreeSet<_>, BTreeSet<_>) = fates(&dual())
            .into_iter()
            .map(|(id, _)| id)
            .partition(|id| id.contains("family="));
        assert_eq!(first, single);
        let id = "net.service-ip-from-pod[pool=windows-2022,source=windows-pod,family=ipv6]";
        assert!(second.contains(id), "{second:?}");
        let of_families = |id: &String| {
            let case = suites().cases.iter().find(|case| {
                CheckId::new(&case.claim, case.name.as_deref(), &Point::default()).as_str()
                    == base(id)
            });
            case.is_some_and(|case| case.over.families)
        };
        let expected = single.iter().filter(|id| of_families(id)).count();
        assert_eq!(second.len(), expected);
        let plan = plan(suites(), &dual(), &Config::default());
        assert_eq!(plan.second_family(), Some(IpFamily::Ipv6));
    }

    #[test]
    fn where_nobody_can_tell_of_a_second_family_its_checks_are_broken() {
        let first = fates(&facts("v1.37.0", hybrid(true)));
        let mut facts = facts("v1.37.0", hybrid(true));
        facts.workloads = Known::Unknown {
            because: "no answer".to_owned(),
        };
        let (second, others): (Vec<_>, Vec<_>) = plan(suites(), &facts, &Config::default())
            .checks
            .into_iter()
            .partition(|check| check.point.family.is_some());
        let others = others.into_iter();
        let others: Vec<_> = others
            .map(|check| (check.id.to_string(), check.fate))
            .collect();
        assert_eq!(others, first);
        assert!(second.len() > 30, "{}", second.len());
        for check in second {
            assert!(check.id.as_str().ends_with("family=ipv6]"), "{}", check.id);
            let said = "whether pods have addresses of two families: pods: no answer";
            let trouble = Trouble::new(TroubleKind::FactUnknown, said);
            assert_eq!(check.fate, Fate::Broken(trouble), "{}", check.id);
            assert!(check.reads.contains("workloads") && check.reads.contains("dns"));
        }
    }

    #[test]
    fn where_windows_is_documented_to_have_no_ipv6_it_is_not_looked_at() {
        let mut facts = dual();
        let cni = |product: &str, mode| Known::Fact {
            value: Some(crate::facts::Cni {
                product: product.to_owned(),
                mode,
                vxlan: None,
                signs: Vec::new(),
                unread: Vec::new(),
            }),
            source: "/".to_owned(),
        };
        let overlay = "flannel is in mode overlay, in which Windows has no IPv6";
        for (product, mode, because) in [
            ("flannel", Some(CniMode::Overlay), Some(overlay)),
            ("flannel", Some(CniMode::L2bridge), None),
            ("flannel", None, None),
            (
                "calico",
                Some(CniMode::L2bridge),
                Some("calico gives Windows no IPv6"),
            ),
        ] {
            facts.cni = cni(product, mode);
            let plan = plan(suites(), &facts, &Config::default());
            let second = plan
                .checks
                .iter()
                .filter(|check| check.point.family.is_some());
            for check in second.filter(|check| check.point.pool.is_some()) {
                let skipped = match &check.fate {
                    Fate::Skip(SkipReason::Inapplicable { because })
                        if because.ends_with("no IPv6") =>
                    {
                        Some(&**because)
                    }
                    _ => None,
                };
                assert_eq!(skipped, because, "{mode:?} {}", check.id);
                assert!(check.reads.contains("cni") && check.reads.contains("nodes"));
            }
        }
    }

    #[test]
    fn an_unknown_server_version_covers_nothing() {
        let check = limitation(&facts("main", hybrid(true)));
        assert!(matches!(check.fate, Fate::Broken(_)));
    }

    #[test]
    fn where_agnhost_is_not_to_be_had_what_needs_it_is_skipped() {
        let mut found = Vec::new();
        let text = "images: {agnhost-builds: [10.0.17763]}";
        let config = crate::config::read("config.yaml", text, &mut found);
        assert_eq!(found, Vec::new());
        let mut facts = facts("v1.37.0", hybrid(true));
        // One whose policies are looked at
        facts.cni = Known::Fact {
            value: Some(crate::facts::Cni {
                product: "calico".to_owned(),
                mode: None,
                vxlan: None,
                signs: Vec::new(),
                unread: Vec::new(),
            }),
            source: "/".to_owned(),
        };
        let plan = plan(suites(), &facts, &config);
        let mut skipped = BTreeSet::new();
        for check in &plan.checks {
            if let Fate::Skip(SkipReason::NoAgnhost { pool }) = &check.fate {
                assert_eq!(pool, "windows-2022", "{}", check.id);
                skipped.insert(base(check.id.as_str()));
            }
        }
        for needs in [
            "net.pod-to-pod-udp/to-linux",
            "net.pod-to-pod-udp/to-windows",
            "net.pod-to-pod-udp/between-windows",
            "net.long-payload/between-windows",
            "net.no-nat-in-cluster/between-windows",
            "net.no-nat-in-cluster/to-windows",
        ] {
            assert!(skipped.contains(needs), "{needs} not in {skipped:?}");
        }
        for needs in [
            "net.pod-to-self/by-address",
            "net.pod-to-self/by-service",
            "net.network-policy/deny",
            "net.network-policy/allow",
        ] {
            assert!(skipped.contains(needs), "{needs} not in {skipped:?}");
        }
        assert!(
            skipped.iter().any(|id| id.starts_with("net.after-churn")),
            "{skipped:?}"
        );
        // Nothing that is looked at waits for pods that cannot be pulled
        let servers = [
            FixtureName::Churn,
            FixtureName::PolicyDenied,
            FixtureName::PolicyAllowed,
        ];
        for key in plan.fixtures() {
            assert!(!servers.contains(&key.name), "{key}");
        }
        assert!(
            skipped.iter().all(|id| id.starts_with("net.")),
            "{skipped:?}"
        );
        // What curl and ping can tell is looked at all the same
        let looked = |id: &str| {
            let mut checks = plan.checks.iter();
            checks.any(|check| base(check.id.as_str()) == id && check.fate == Fate::Look)
        };
        for other in [
            "net.service-ip-from-pod",
            "net.dns-service",
            "net.long-payload/to-linux",
        ] {
            assert!(looked(other) && !skipped.contains(other), "{other}");
        }
        let pulls = super::super::pulls(&plan, &facts, &config.images);
        let images = &pulls[&PoolName::windows(WindowsBuild::SERVER_2022)].images;
        assert!(
            images.keys().all(|image| !image.contains("agnhost")),
            "{images:?}"
        );
        let core = &images["mcr.microsoft.com/windows/servercore:ltsc2022"];
        assert!(core.contains(&FixtureName::WindowsPodProber));
    }

    fn of_case(facts: &Facts, id: &str) -> Vec<Check> {
        let plan = plan(suites(), facts, &Config::default());
        let checks = plan.checks.into_iter();
        checks
            .filter(|check| base(check.id.as_str()) == id)
            .collect()
    }

    fn gated(version: &str, gate: Option<bool>) -> Facts {
        let mut facts = facts(version, hybrid(true));
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
        use crate::way::AdmissionExpect::{Dropped, Refused};
        let id = "reject.feature-gate/host-users";
        for (version, gate, dropped, presumed) in [
            ("v1.32.2", Some(false), true, false),
            ("v1.32.2", Some(true), false, false),
            ("v1.32.2", None, true, true),
            ("v1.33.0", None, false, true),
            ("v1.35.1", Some(false), true, false),
            ("v1.36.0", None, false, false),
        ] {
            let checks = of_case(&gated(version, gate), id);
            assert_eq!(checks.len(), 9, "{version}");
            for check in checks {
                let Some(own) = check.looks.first() else {
                    // No template of a StatefulSet is validated before 1.34
                    let old = !version.starts_with("v1.35") && !version.starts_with("v1.36");
                    assert!(old && check.point.workload == Some(Workload::StatefulSet));
                    continue;
                };
                let Test::Admission(look) = &own.test else {
                    panic!("an admission look")
                };
                assert_eq!(look.expect == Dropped, dropped, "{version} {gate:?}");
                assert_eq!(matches!(look.expect, Refused { .. }), !dropped);
                assert_eq!(own.presumed.is_some(), presumed, "{version} {gate:?}");
            }
        }
        for (version, id) in [("v1.24.17", id), ("v1.23.17", "reject.hostPID")] {
            for check in of_case(&gated(version, None), id) {
                let skipped = matches!(check.fate, Fate::Skip(SkipReason::Version { .. }));
                assert!(skipped, "{version} {:?}", check.fate);
            }
        }
    }

    #[test]
    fn a_field_is_where_the_object_has_it() {
        let facts = facts("v1.37.0", hybrid(true));
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
            let checks = of_case(&facts, "reject.all-container-kinds/privileged");
            let found = checks.iter().find(|check| check.id.as_str() == id);
            let looks = &found.expect("the check").looks;
            let Test::Admission(look) = &looks[0].test else {
                panic!("an admission look")
            };
            assert_eq!(look.ask.path(), path);
            let body = look.ask.body().expect("a body");
            let pointer = format!("/{}", path.replace(['.', '['], "/").replace(']', ""));
            assert_eq!(
                body.pointer(&pointer),
                Some(&serde_json::json!(true)),
                "{body}"
            );
            assert_eq!(looks.len(), 3);
        }
    }
}
