//! Which images a run pulls, for people and for programs.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Serialize;

use super::json::pretty;
use crate::facts::PoolName;
use crate::plan::{Offer, Pulls};
use crate::text::{counted, printable};

/// The version of the document's schema; a field may be added within a version, not changed.
pub const SCHEMA: u32 = 1;

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Document<'p> {
    schema: u32,
    pools: Vec<Pool<'p>>,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Pool<'p> {
    name: &'p str,
    nodes: &'p [String],
    images: Vec<Image<'p>>,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Image<'p> {
    #[serde(rename = "image")]
    name: &'p str,
    fixtures: Vec<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    registry: Option<Registry>,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Registry {
    /// `fits`, `lacks` or `unknown`.
    offer: &'static str,
    says: String,
}

/// What registries say of images in pools, as far as they were asked.
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
    let pools = pulls.iter().map(|(name, pool)| Pool {
        name: name.as_str(),
        nodes: &pool.nodes,
        images: pool
            .images
            .iter()
            .map(|(image, fixtures)| Image {
                name: image,
                fixtures: fixtures.iter().map(|name| name.as_str()).collect(),
                registry: offers
                    .get(&(name.clone(), image.clone()))
                    .map(|offer| Registry {
                        offer: offer.as_str(),
                        says: offer.to_string(),
                    }),
            })
            .collect(),
    });
    pretty(&Document {
        schema: SCHEMA,
        pools: pools.collect(),
    })
}
