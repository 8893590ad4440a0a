//! Which images a run pulls, for people and for programs.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::json;

use super::json::pretty;
use crate::facts::PoolName;
use crate::plan::{Offer, Pulls};
use crate::text::{counted, printable};

/// The version of the document's schema; a field may be added within a version, not changed.
pub const SCHEMA: u32 = 1;

/// What registries say of images in pools, for the images that were looked up.
pub type Offers = BTreeMap<(PoolName, String), Offer>;

/// The images by pool, with what runs them and whether there is one for the pool's nodes.
pub fn text(pulls: &BTreeMap<PoolName, Pulls>, offers: &Offers) -> String {
    let mut text = String::new();
    for (name, pool) in pulls {
        let nodes = counted(pool.nodes.len(), "node");
        let _ = writeln!(text, "{} ({nodes})", printable(name.as_str()));
        for (image, fixtures) in &pool.images {
            let fixtures: Vec<_> = fixtures.iter().map(|name| name.as_str()).collect();
            let _ = writeln!(text, "  {}", printable(image));
            let _ = writeln!(text, "    {}", fixtures.join(", "));
            if let Some(offer) = offers.get(&(name.clone(), image.clone())) {
                let _ = writeln!(text, "    {}", printable(&offer.to_string()));
            }
        }
    }
    if pulls.is_empty() {
        text.push_str("Nothing is pulled.\n");
    }
    text
}

/// The same as JSON, ending in a newline.
pub fn json(pulls: &BTreeMap<PoolName, Pulls>, offers: &Offers) -> String {
    let pools = pulls.iter().map(|(name, pool)| {
        let images = pool.images.iter().map(|(image, fixtures)| {
            let fixtures: Vec<_> = fixtures.iter().map(|name| name.as_str()).collect();
            let offer = offers.get(&(name.clone(), image.clone()));
            // `fits`, `lacks` or `unknown`
            let says = |offer: &Offer| json!({"offer": offer.as_str(), "says": offer.to_string()});
            json!({"image": image, "fixtures": fixtures, "registry": offer.map(says)})
        });
        json!({"name": name, "nodes": pool.nodes, "images": images.collect::<Vec<_>>()})
    });
    pretty(&json!({"schema": SCHEMA, "pools": pools.collect::<Vec<_>>()}))
}
