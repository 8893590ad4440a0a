//! What a run does only where the configuration allows it.

use schemars::JsonSchema;
use strum::{IntoStaticStr, VariantArray};

/// What costs money, takes processors or ends what others run, and so is done only where the configuration allows it.
#[derive(
    Clone, Copy, Debug, Eq, IntoStaticStr, JsonSchema, Ord, PartialEq, PartialOrd, VariantArray,
)]
#[schemars(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Allowed {
    /// Volumes, each of which may be a disk of the cloud.
    Storage,
    /// Pods that are busy, so that they are scaled.
    Load,
    /// Links on nodes, pods that a node keeps, and a boot of the node that `--yes-disrupt` names.
    Disruption,
}

crate::text::words!(Allowed);
