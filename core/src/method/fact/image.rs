//! Images that nodes list.

use super::seen::{Observed, ObservedPulls};
use crate::facts::{Facts, Known, NodeFact};

/// The images of these names that a node lists, and how long their pulls took.
pub(super) fn images(names: &[String], node: &NodeFact, facts: &Facts) -> Observed {
    let wanted = |image: &str| names.iter().any(|name| is_of(image, name));
    let listed = &node.details.images;
    let matching = listed.iter().filter(|image| wanted(image));
    let pulls = match &facts.pulls {
        Known::Unknown { reason } => ObservedPulls::Untold(reason.clone()),
        Known::Fact { value, .. } => {
            let here = value.iter().filter(|pull| pull.node == node.name);
            let here = here.filter(|pull| wanted(&pull.image));
            ObservedPulls::Took(here.map(|pull| (pull.image.clone(), pull.took)).collect())
        }
    };
    Observed::Images {
        build: node.build,
        found: matching.cloned().collect(),
        listed: listed.len(),
        pulls,
    }
}

/// Whether an image's path holds these segments, one after the other, whatever its registry.
fn is_of(image: &str, name: &str) -> bool {
    let path = image.split_once('@').map_or(image, |(path, _)| path);
    let (folder, last) = path.rsplit_once('/').unwrap_or(("", path));
    let last = last.split_once(':').map_or(last, |(last, _)| last);
    format!("/{folder}/{last}/").contains(&format!("/{name}/"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::rows;

    const TABLES: &str = include_str!("image.yaml");

    #[test]
    fn images_are_known_by_whole_segments_of_their_path() {
        for (image, name, is) in rows::<(String, String, bool)>(TABLES, "images") {
            assert_eq!(is_of(&image, &name), is, "{image}");
        }
    }
}
