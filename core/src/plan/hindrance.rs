//! Why an assertion is not observed: what it needs does not exist, or the configuration does not ask for it.

use std::collections::BTreeSet;

use super::build::{Surroundings, unknown};
use super::check::PlannedAssertion;
use crate::config::{Allowed, Image};
use crate::facts::{NodeFact, Os, PoolName};
use crate::fixture::{FixtureKey, FixtureName};
use crate::method::{SourceKind, VantageKey};
use crate::verdict::{Disposition, SkipReason};

/// How many unusable nodes of a pool a skip names.
const NAMED: usize = 3;

/// Providers whose clusters have a load balancer without any sign of it.
const CLOUDS: [&str; 3] = ["aks", "eks", "gke"];

/// The skip of checks without a usable node, with the first of these reasons.
pub(super) fn no_usable(of: &str, mut why: Vec<String>) -> SkipReason {
    let more = why.len().saturating_sub(NAMED);
    why.truncate(NAMED);
    why.extend((more > 0).then(|| format!("and {more} more")));
    SkipReason::NoUsableNode {
        of: of.to_owned(),
        why,
    }
}

impl Surroundings<'_> {
    /// Why an assertion is not observed: the configuration does not ask for it, no node can run what it
    /// needs, or the pool's build has no image of it.
    pub(super) fn hindrance(&self, assertion: &PlannedAssertion) -> Option<SkipReason> {
        if let Some(reason) = self.not_asked(assertion) {
            let reason = reason.to_owned();
            return Some(SkipReason::NotAsked { reason });
        }
        assertion
            .depends_on()
            .filter_map(|(key, _)| Some((key.name, key.pool?)))
            .find_map(|(fixture, name)| {
                let pool = self.pools.get(&name).filter(|pool| !pool.nodes.is_empty());
                let Some(pool) = pool else {
                    return Some(self.no_usable(&name));
                };
                let linux = self.pools.get(&PoolName::linux());
                if fixture.needs_linux() && linux.is_none_or(|linux| linux.nodes.is_empty()) {
                    return Some(self.no_usable(&PoolName::linux()));
                }
                if let (true, Some(handlers)) =
                    (fixture.object("RuntimeClass").is_some(), &pool.handlers)
                    && pool.handler().is_none()
                {
                    return Some(SkipReason::NoHandler {
                        pool: name.to_string(),
                        has: handlers.iter().cloned().collect(),
                    });
                }
                let image = self.config.images.for_role(fixture.image()?, pool.build);
                image.is_none().then(|| SkipReason::NoImage {
                    pool: name.to_string(),
                })
            })
            .or_else(|| self.lacks_agnhost(assertion))
    }

    /// The skip of a pool without usable nodes, with the reasons of its first nodes.
    fn no_usable(&self, pool: &PoolName) -> SkipReason {
        let unused = self.pools.get(pool);
        let unused = unused
            .into_iter()
            .flat_map(|pool| [&pool.unusable, &pool.excluded]);
        let unused: BTreeSet<_> = unused.flatten().collect();
        let nodes = self.facts.nodes.value().into_iter().flatten();
        let nodes = nodes.filter(|node| unused.contains(&node.name));
        let why = nodes.map(NodeFact::unusable_for);
        let os = if *pool == PoolName::linux() {
            Os::Linux
        } else {
            Os::Windows
        };
        no_usable(pool.as_str(), why.chain(self.virtual_nodes(os)).collect())
    }

    /// Why the nodes of an operating system that are virtual are not usable.
    pub(super) fn virtual_nodes(&self, os: Os) -> impl Iterator<Item = String> {
        let nodes = self.facts.virtual_nodes.value().into_iter().flatten();
        let nodes = nodes.filter(move |node| node.os == Some(os));
        nodes.map(|node| format!("{} is virtual ({})", node.name, node.by))
    }

    /// The skip of an assertion that needs agnhost to send or serve in a pool without an image of it.
    fn lacks_agnhost(&self, assertion: &PlannedAssertion) -> Option<SkipReason> {
        let traits = assertion.test.traits();
        let sends =
            |from: &&VantageKey| traits.agnhost_sends && from.kind == SourceKind::WindowsPod;
        let from = assertion.from.as_ref().filter(sends);
        let mut needs = assertion.needs.iter().map(|(key, _)| key);
        // Fixtures of agnhost alone serve in every test, unless their pods are only placed
        let serves = |name: FixtureName| match name.image() {
            Some(Image::AgnhostWindows) => !name.is_aimed(),
            _ => name.is_pod_prober() && traits.agnhost_serves,
        };
        let of = needs.find(|key| serves(key.name));
        let pools = from.and_then(|from| from.pool.as_ref()).into_iter();
        let mut pools = pools.chain(of.and_then(|key| key.pool.as_ref()));
        let lacks = |name: &&PoolName| {
            let pool = self.pools.get(*name);
            pool.is_some_and(|pool| !self.config.images.has_agnhost(pool.build))
        };
        let pool = pools.find(lacks)?.to_string();
        Some(SkipReason::NoAgnhost { pool })
    }

    /// The disposition of an assertion that needs a load balancer where there is none or this is not known.
    pub(super) fn lacks_balancer(&self, assertion: &PlannedAssertion) -> Option<Disposition> {
        let mut needs = assertion.needs.iter().map(|(key, _)| key.name);
        needs.find(|name| *name == FixtureName::LOAD_BALANCER)?;
        let unknown_for = |reason| {
            let error = unknown("the cluster's load balancer", reason);
            Some(Disposition::Inconclusive(error))
        };
        let known = match self.facts.load_balancer.known() {
            Ok(known) => known,
            Err(reason) => return unknown_for(reason),
        };
        let cloud = self.facts.provider.value().and_then(Option::as_deref);
        let there = known.with_address > 0
            || !known.products.is_empty()
            || cloud.is_some_and(|cloud| CLOUDS.contains(&cloud));
        match known.unread.first() {
            _ if there => None,
            Some(unread) => unknown_for(unread),
            None => {
                let reason =
                    "there is no sign of a load balancer: none that is known, no cloud's, \
                               and no Service that has an address of one"
                        .to_owned();
                Some(Disposition::Skip(SkipReason::NotApplicable { reason }))
            }
        }
    }

    /// Why the configuration does not ask for an assertion that involves the outside.
    fn not_asked(&self, assertion: &PlannedAssertion) -> Option<&'static str> {
        let outside = &self.config.outside;
        let way_out = !self.config.profile.is_air_gapped();
        let from_outside =
            assertion.from.as_ref().map(|from| from.kind) == Some(SourceKind::Outside);
        let needs =
            |is_it: &dyn Fn(&FixtureKey) -> bool| assertion.needs.iter().any(|(key, _)| is_it(key));
        if needs(&|key| key.name == FixtureName::LOAD_BALANCER) && !outside.load_balancers {
            return Some(
                "the configuration does not say that Services of type LoadBalancer are made \
                 (`outside: {load-balancers: true}`), whose addresses may be public",
            );
        }
        let keys = assertion.needs.iter();
        let mut allowed = keys.filter_map(|(key, _)| key.name.allowed_by());
        if let Some(missing) = allowed.find(|allowed| !self.config.allow.contains(allowed)) {
            return Some(match missing {
                Allowed::Storage => {
                    "it makes volumes, which may cost money \
                     (allowed by `allow: [storage]` in the configuration)"
                }
                Allowed::Disruption => {
                    "it has a node boot (allowed by `allow: [disruption]` in the configuration, and by \
                     `--yes-disrupt NODE`)"
                }
                Allowed::Load => {
                    "it has pods take a tenth of a processor each, or six start at once on a node \
                     (allowed by `allow: [load]` in the configuration)"
                }
            });
        }
        if needs(&|key| key.name.disrupts() && !self.may_disrupt(key)) {
            return Some("it has a node boot, and `--yes-disrupt` names none of this pool");
        }
        if needs(&|key| key.name.uses_share()) {
            return match &outside.share {
                None => Some(
                    "the configuration names no share that pods write to as the account of a credential spec \
                     (`outside: {share: …}`)",
                ),
                Some(_) if !way_out => Some(NO_WAY_OUT),
                Some(_) => None,
            };
        }
        if assertion.test.asks_metadata() && !outside.metadata {
            return Some(
                "the configuration does not say that a cloud's metadata is requested \
                 (`outside: {metadata: true}`), which security tools may report",
            );
        }
        if from_outside && !outside.reaches_nodes {
            return Some(
                "the configuration does not say that nodes are reached from where this runs \
                 (`outside: {reaches-nodes: true}`)",
            );
        }
        let target = assertion.test.traits().outside?;
        if !way_out {
            return Some(NO_WAY_OUT);
        }
        let none = target.set(outside).is_empty();
        none.then_some("the configuration names nothing outside the cluster (`outside`)")
    }
}

const NO_WAY_OUT: &str = "with this profile nothing outside the cluster is observed";
