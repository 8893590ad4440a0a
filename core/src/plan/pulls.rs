//! Which images a run pulls where.

use std::collections::{BTreeMap, BTreeSet};

use super::check::Plan;
use crate::config::{Image, Images};
use crate::facts::{Facts, PoolName, WindowsBuild};
use crate::fixture::FixtureName;

/// What a run pulls in one pool.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Pulls {
    /// The nodes it may be pulled on: the pool's usable ones.
    pub nodes: Vec<String>,
    /// The images, each with the fixtures whose pods run it.
    pub images: BTreeMap<String, BTreeSet<FixtureName>>,
}

/// What a run of a plan pulls, by pool; pools in which it pulls nothing are left out.
pub fn pulls(plan: &Plan, facts: &Facts, images: &Images) -> BTreeMap<PoolName, Pulls> {
    let pools = facts.pools();
    let mut by_pool = BTreeMap::<PoolName, Pulls>::new();
    for key in plan.fixtures() {
        let Some((name, pool)) = key.pool.and_then(|name| pools.get_key_value(&name)) else {
            continue;
        };
        // Pods that are only placed do not need an image that their build does not have
        let role = key
            .name
            .image()
            .filter(|role| *role != Image::AgnhostWindows || images.has_agnhost(pool.build));
        let build = match key.name {
            // A node refuses an image of the wrong build before it pulls it
            FixtureName::SCHED_BUILDS => pool.build.map(WindowsBuild::fitting),
            _ => pool.build,
        };
        let Some(image) = role.and_then(|role| images.for_role(role, build)) else {
            continue;
        };
        let of_pool = by_pool.entry(name.clone()).or_default();
        of_pool.nodes.clone_from(&pool.nodes);
        of_pool.images.entry(image).or_default().insert(key.name);
    }
    by_pool
}
