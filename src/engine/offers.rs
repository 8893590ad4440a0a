//! Whether registries have the images of a run for the builds of its nodes.

use std::collections::{BTreeMap, BTreeSet};

use winconform_core::config::Image;
use winconform_core::facts::{Pool, PoolName};
use winconform_core::plan::{Offer, Pulls, image_role};

use crate::transport::platforms;

/// What registries say of each image in each pool that pulls it. As seen from here: nodes may have
/// an image already, or another way to it.
pub async fn offers(
    pulls: &BTreeMap<PoolName, Pulls>,
    pools: &BTreeMap<PoolName, Pool>,
) -> BTreeMap<(PoolName, String), Offer> {
    let images: BTreeSet<_> = pulls.values().flat_map(|pull| pull.images.keys()).collect();
    let images: Vec<_> = images.into_iter().cloned().collect();
    let told = platforms(&images).await;
    let told: BTreeMap<_, _> = images.into_iter().zip(told).collect();
    let mut offers = BTreeMap::new();
    for (name, pulled) in pulls {
        let Some(pool) = pools.get(name) else {
            continue;
        };
        for (image, fixtures) in &pulled.images {
            // Their files are the host's
            let host = |fixture| image_role(fixture) == Some(Image::HostProcess);
            let any_build = fixtures.iter().copied().all(host);
            let offer = match &told[image] {
                Ok(platforms) => Offer::of(platforms, pool, any_build),
                Err(why) => Offer::Unknown(why.clone()),
            };
            offers.insert((name.clone(), image.clone()), offer);
        }
    }
    offers
}
