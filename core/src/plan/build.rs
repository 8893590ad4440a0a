//! From cases and facts to checks.

use std::collections::BTreeMap;

use super::check::{Check, CheckId, Plan, PlannedLook, Point};
use crate::config::{Image, Images};
use crate::facts::{Facts, Known, Os, Pool, PoolName};
use crate::suite::{Case, Suites};
use crate::verdict::{Fate, Scope, SkipReason};
use crate::way::{
    FixtureKey, FixtureName, Need, SourceKind, Test, Trouble, TroubleKind, VantageKey,
};

/// Plans every case of the suites on a cluster: one check per point, each to be looked at or with
/// its reason why not. No case vanishes: one without any point is a skipped check.
pub fn plan(suites: &Suites, facts: &Facts, images: &Images) -> Plan {
    let surroundings = Surroundings {
        suites,
        facts,
        images,
        pools: facts.pools(),
    };
    let checks = suites
        .cases
        .iter()
        .flat_map(|case| surroundings.checks(case))
        .collect();
    Plan { checks }
}

struct Surroundings<'p> {
    suites: &'p Suites,
    facts: &'p Facts,
    images: &'p Images,
    pools: BTreeMap<PoolName, Pool>,
}

impl Surroundings<'_> {
    fn checks(&self, case: &Case) -> Vec<Check> {
        let windows = self.pools.iter().filter(|(_, pool)| pool.os == Os::Windows);
        let pools: Vec<_> = if case.over.windows_pools {
            windows.map(|(name, _)| Some(name.clone())).collect()
        } else {
            vec![None]
        };
        if pools.is_empty() {
            let point = Point::default();
            let fate = match &self.facts.nodes {
                Known::Unknown { because } => Fate::Broken(unknown("nodes", because)),
                Known::Fact { .. } => Fate::Skip(SkipReason::NoUsableNode {
                    of: "windows".to_owned(),
                }),
            };
            return vec![self.check(case, point, Scope::Within, fate, Vec::new())];
        }
        let sources: Vec<_> = match case.over.sources.as_slice() {
            [] => vec![None],
            sources => sources.iter().copied().map(Some).collect(),
        };
        let points = pools.into_iter().flat_map(|pool| {
            sources.clone().into_iter().map(move |source| Point {
                pool: pool.clone(),
                source,
            })
        });
        points.map(|point| self.check_at(case, point)).collect()
    }

    fn check_at(&self, case: &Case, point: Point) -> Check {
        let build = point
            .pool
            .as_ref()
            .and_then(|pool| self.pools.get(pool)?.build);
        if point.pool.is_some() && build.is_none() {
            let because = "status.nodeInfo.kernelVersion is not one of Windows";
            let fate = Fate::Broken(unknown("the build of the pool's nodes", because));
            return self.check(case, point, Scope::Within, fate, Vec::new());
        }
        let entry = self.suites.ledger.get(&case.claim);
        let scope = match entry {
            None => Scope::Within,
            Some(entry) => match entry.scope(build, self.facts) {
                Ok(scope) => scope,
                Err(fate) => return self.check(case, point, Scope::Within, fate, Vec::new()),
            },
        };
        // A known limitation's own look expects its signature; its controls what should work
        let own = match (&scope, entry) {
            (Scope::Within, Some(entry)) => case.test.expecting(&entry.signature),
            (Scope::Within | Scope::AsCapability, _) => None,
        };
        let mut looks = vec![Self::look(
            "look",
            point.source,
            own.unwrap_or_else(|| case.test.clone()),
            &point,
        )];
        for control in &case.controls {
            let test = control.test.clone().unwrap_or_else(|| case.test.clone());
            let source = control
                .source
                .or(point.source)
                .filter(|_| test.needs_source());
            looks.push(Self::look(&control.name, source, test, &point));
        }
        match looks.iter().find_map(|look| self.hindrance(look)) {
            Some(reason) => self.check(case, point, scope, Fate::Skip(reason), Vec::new()),
            None => self.check(case, point, scope, Fate::Look, looks),
        }
    }

    fn look(name: &str, source: Option<SourceKind>, test: Test, point: &Point) -> PlannedLook {
        let key = |(name, need): (FixtureName, Need)| {
            let pool = point.pool.clone().filter(|_| name.per_pool());
            (FixtureKey { name, pool }, need)
        };
        let from = source.map(|kind| VantageKey {
            kind,
            pool: match (kind, &point.pool) {
                (SourceKind::WindowsPod | SourceKind::WindowsNode, Some(pool)) => pool.clone(),
                (SourceKind::LinuxPod | SourceKind::WindowsPod | SourceKind::WindowsNode, _) => {
                    PoolName::linux()
                }
            },
        });
        PlannedLook {
            name: name.to_owned(),
            from,
            needs: test.needs().into_iter().map(key).collect(),
            test,
        }
    }

    /// Why a look cannot be: what it needs has no place to stand, or no image.
    fn hindrance(&self, look: &PlannedLook) -> Option<SkipReason> {
        let prober = look.from.as_ref().map(VantageKey::prober);
        let fixtures = look.needs.iter().map(|(key, _)| key.clone()).chain(prober);
        fixtures
            .filter_map(|key| Some((key.name, key.pool?)))
            .find_map(|(fixture, name)| {
                let pool = self.pools.get(&name).filter(|pool| !pool.nodes.is_empty());
                let Some(pool) = pool else {
                    return Some(SkipReason::NoUsableNode {
                        of: name.to_string(),
                    });
                };
                let image = self.images.of(image_role(fixture)?, pool.build);
                image.is_none().then(|| SkipReason::NoImage {
                    pool: name.to_string(),
                })
            })
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
            image: self.images.of(Image::ServerCore, build),
            build,
            point,
            scope,
            fate,
            looks,
        }
    }
}

/// The role of the image a fixture's pods run, for those that have pods.
pub fn image_role(fixture: FixtureName) -> Option<Image> {
    match fixture {
        FixtureName::Namespaces => None,
        FixtureName::WinWebserver => Some(Image::ServerCore),
        FixtureName::LinuxPodProber => Some(Image::AgnhostLinux),
        FixtureName::WindowsPodProber => Some(Image::AgnhostWindows),
        FixtureName::WindowsNodeProber => Some(Image::HostProcess),
    }
}

fn unknown(what: &str, because: &str) -> Trouble {
    Trouble::new(TroubleKind::FactUnknown, format!("{what}: {because}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::{NodeDetails, NodeFact, WindowsBuild};
    use crate::suite::SuiteFile;
    use crate::way::{HttpExpect, Test};

    fn suites() -> Suites {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../suites/");
        let paths = [
            "claims.yaml",
            "limitations.yaml",
            "env/nodes.yaml",
            "reject/pod.yaml",
            "sample/win-webserver.yaml",
            "net/service.yaml",
        ];
        let file = |path: &str| SuiteFile {
            path: path.to_owned(),
            shown: path.to_owned(),
            text: std::fs::read_to_string(format!("{root}{path}")).expect("a suite"),
        };
        Suites::read(paths.map(file).into()).expect("valid")
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

    fn fates(facts: &Facts) -> Vec<(String, Fate)> {
        let plan = plan(&suites(), facts, &Images::default());
        plan.checks
            .into_iter()
            .map(|check| (check.id.to_string(), check.fate))
            .collect()
    }

    #[test]
    fn no_case_vanishes_without_windows_nodes() {
        let facts = facts("v1.37.0", vec![node("lin", Os::Linux, None, true)]);
        let fates = fates(&facts);
        assert_eq!(fates.len(), suites().cases.len());
        for (id, fate) in fates {
            let skipped = matches!(fate, Fate::Skip(SkipReason::NoUsableNode { .. }));
            assert_eq!(skipped, id != "reject.hostPID", "{id}: {fate:?}");
        }
    }

    #[test]
    fn a_pool_without_usable_nodes_is_still_asked_about_its_labels() {
        for (id, fate) in fates(&facts("v1.37.0", hybrid(false))) {
            let asks = id.starts_with("env.") || id.starts_with("reject.");
            assert_eq!(fate == Fate::Look, asks, "{id}: {fate:?}");
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
            assert_eq!(broken, id != "reject.hostPID", "{id}: {fate:?}");
        }
    }

    #[test]
    fn ids_hold_no_node_names() {
        for (id, _) in fates(&facts("v1.37.0", hybrid(true))) {
            assert!(!id.contains("lin,") && !id.ends_with("win]"), "{id}");
        }
    }

    fn limitation(facts: &Facts) -> Check {
        let plan = plan(&suites(), facts, &Images::default());
        let found = plan
            .checks
            .into_iter()
            .find(|check| check.kind == crate::claims::Kind::Limitation);
        found.expect("the suites have a limitation")
    }

    fn expects_failure(look: &PlannedLook) -> bool {
        matches!(&look.test, Test::Http(look) if matches!(look.expect, HttpExpect::Fails { .. }))
    }

    #[test]
    fn a_limitation_expects_its_signature_and_its_control_the_answer() {
        let check = limitation(&facts("v1.37.0", hybrid(true)));
        assert_eq!(check.scope, Scope::Within);
        assert!(expects_failure(&check.looks[0]) && !expects_failure(&check.looks[1]));
        assert_ne!(check.looks[0].from, check.looks[1].from);
    }

    #[test]
    fn out_of_scope_a_limitation_is_looked_at_as_a_capability() {
        let mut nodes = hybrid(true);
        nodes[1].build = WindowsBuild::parse_label("10.0.25398");
        let facts = facts("v1.37.0", nodes);
        // The image table has none for that build: ask the scope alone
        let suites = suites();
        let entry = suites.ledger.values().next().expect("an entry");
        let build = WindowsBuild::parse_label("10.0.25398");
        assert_eq!(entry.scope(build, &facts), Ok(Scope::AsCapability));
        assert!(
            fates(&facts)
                .iter()
                .any(|(_, fate)| { matches!(fate, Fate::Skip(SkipReason::NoImage { .. })) })
        );
    }

    #[test]
    fn nodes_of_an_unreadable_build_are_not_told_of() {
        let mut nodes = hybrid(true);
        nodes[1].build = None;
        for (id, fate) in fates(&facts("v1.37.0", nodes)) {
            let broken = matches!(fate, Fate::Broken(_));
            assert_eq!(broken, id != "reject.hostPID", "{id}: {fate:?}");
        }
    }

    #[test]
    fn an_unknown_server_version_covers_nothing() {
        let check = limitation(&facts("main", hybrid(true)));
        assert!(matches!(check.fate, Fate::Broken(_)));
    }
}
