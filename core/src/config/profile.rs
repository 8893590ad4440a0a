//! The profiles: named rules for what counts against a cluster.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};

/// A set of rules for what counts against a cluster, by name.
#[derive(
    Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, Ord, PartialEq, PartialOrd, Serialize,
)]
#[serde(rename_all = "kebab-case")]
#[derive(IntoStaticStr, VariantArray)]
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

/// What a profile changes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Rules {
    /// What counts against the cluster beside what is not as documented.
    pub counts: &'static [Counts],
    /// Whether images may come from public registries.
    pub public_images: bool,
    /// Whether pods are to reach anything outside the cluster.
    pub way_out: bool,
}

/// What a profile may count against a cluster.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Counts {
    /// Advice that is not followed.
    Warnings,
    /// A check whose attempts disagreed.
    Flaky,
}

impl Profile {
    /// Every profile.
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// Everything that the profile changes, in this one place.
    pub const fn rules(self) -> Rules {
        match self {
            Self::Default => Rules {
                counts: &[],
                public_images: true,
                way_out: true,
            },
            Self::AirGapped => Rules {
                counts: &[],
                public_images: false,
                way_out: false,
            },
            Self::Strict => Rules {
                counts: &[Counts::Warnings, Counts::Flaky],
                public_images: true,
                way_out: true,
            },
        }
    }

    /// The profile's word.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
