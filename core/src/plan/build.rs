//! From cases and facts to checks.

use std::collections::BTreeMap;

use super::check::{Check, CheckId, Fate, Plan, PlannedLook, Point};
use crate::config::{Image, Images};
use crate::facts::{Facts, Known, Os, Pool, PoolName};
use crate::suite::{Case, Suites};
use crate::verdict::{Scope, SkipReason};
use crate::way::{
    FixtureKey, FixtureName, Need, SourceKind, Test, Trouble, TroubleKind, VantageKey,
};

/// Plans every case of the suites on a cluster: one check per point, each to be looked at or with
/// its reason why not. No case vanishes: one without any point is a skipped check.
pub fn plan(suites: &Suites, facts: &Facts, images: &Images) -> Plan {
    let surroundings = Surroundings { suites, facts, images, pools: facts.pools() };
    let checks = suites.cases.iter().flat_map(|case| surroundings.checks(case)).collect();
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
        let pools: Vec<_> = match case.over.windows_pools {
            true => windows.map(|(name, _)| Some(name.clone())).collect(),
            false => vec![None],
        };
        if pools.is_empty() {
            let point = Point::default();
            let fate = match &self.facts.nodes {
                Known::Unknown { because } => Fate::Broken(unknown("nodes", because)),
                Known::Fact { .. } => {
                    Fate::Skip(SkipReason::NoUsableNode { of: "windows".to_owned() })
                }
            };
            return vec![self.check(case, point, Scope::Within, fate, Vec::new())];
        }
        let sources: Vec<_> = match case.over.sources.as_slice() {
            [] => vec![None],
            sources => sources.iter().copied().map(Some).collect(),
        };
        let points = pools.into_iter().flat_map(|pool| {
            sources.clone().into_iter().map(move |source| Point { pool: pool.clone(), source })
        });
        points.map(|point| self.check_at(case, point)).collect()
    }

    fn check_at(&self, case: &Case, point: Point) -> Check {
        let build = point.pool.as_ref().and_then(|pool| self.pools.get(pool)?.build);
        let entry = self.suites.ledger.get(&case.claim);
        let scope = match entry {
            None => Scope::Within,
            Some(entry) => match entry.scope(build, self.facts) {
                Ok(scope) => scope,
                Err(reason) => {
                    return self.check(case, point, Scope::Within, Fate::Skip(reason), Vec::new());
                }
            },
        };
        // A known limitation's own look expects its signature; its controls what should work
        let own = match (&scope, entry) {
            (Scope::Within, Some(entry)) => case.test.expecting(&entry.signature),
            (Scope::Within | Scope::AsCapability, _) => None,
        };
        let mut looks = vec![self.look(
            "look",
            point.source,
            own.unwrap_or_else(|| case.test.clone()),
            &point,
        )];
        for control in &case.controls {
            let test = control.test.clone().unwrap_or_else(|| case.test.clone());
            let source = control.source.or(point.source).filter(|_| test.needs_source());
            looks.push(self.look(&control.name, source, test, &point));
        }
        match looks.iter().find_map(|look| self.hindrance(look)) {
            Some(reason) => self.check(case, point, scope, Fate::Skip(reason), Vec::new()),
            None => self.check(case, point, scope, Fate::Look, looks),
        }
    }

    fn look(
        &self,
        name: &str,
        source: Option<SourceKind>,
        test: Test,
        point: &Point,
    ) -> PlannedLook {
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
        fixtures.filter_map(|key| Some((key.name, key.pool?))).find_map(|(fixture, name)| {
            let pool = self.pools.get(&name).filter(|pool| !pool.nodes.is_empty());
            let Some(pool) = pool else {
                return Some(SkipReason::NoUsableNode { of: name.to_string() });
            };
            let image = self.images.of(image_role(fixture)?, pool.build);
            image.is_none().then(|| SkipReason::NoImage { pool: name.to_string() })
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
        let build = point.pool.as_ref().and_then(|pool| self.pools.get(pool)?.build);
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
