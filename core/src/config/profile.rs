//! The profiles: named rules for what counts against a cluster.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};

/// A set of rules for what counts against a cluster, by name.
#[derive(
    Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, Ord, PartialEq, PartialOrd, Serialize,
)]
#[serde(rename_all = "kebab-case")]
#[derive(strum::Display, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum Profile {
    /// Only what is not as documented counts against a cluster.
    #[default]
    Default,
    /// For a cluster without a way out: as `default`, but no image may come from a public registry, and nothing outside the cluster is observed.
    AirGapped,
    /// As `default`, but advice that warns and checks whose attempts disagreed count against the cluster, too.
    Strict,
}

crate::text::words!(Profile);

impl Profile {
    /// Whether no image may come from a public registry, and nothing outside the cluster is observed.
    pub fn is_air_gapped(self) -> bool {
        self == Self::AirGapped
    }

    /// Whether advice that warns and checks whose attempts disagreed count against the cluster, too.
    pub fn is_strict(self) -> bool {
        self == Self::Strict
    }
}
