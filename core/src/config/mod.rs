//! What a user or a profile may set: profile, images, nodes, fixtures, the outside, durations, limits, selection
//! and waivers.
//!
//! A file is read `as written` first, from which its schema is generated, and is then validated as a whole.
//! The suites, which are read later, know which claims and axes exist.

// Users read and write these settings
#![warn(missing_docs)]

mod allowed;
mod duration;
mod durations;
mod images;
mod limits;
mod nodes;
mod outside;
mod profile;
mod read;
mod waiver;
mod written;

pub use allowed::Allowed;
pub use duration::{parse_duration, shown};
pub use durations::Durations;
pub use images::{Image, Images, PullPolicy, PullSecret};
pub use limits::Limits;
pub use nodes::{NodeSelector, Nodes};
pub use outside::{Outside, Share, Target};
pub use profile::Profile;
pub use read::read;
pub use waiver::Waiver;

use std::collections::BTreeSet;

use crate::document::{Diagnostic, Placed};

/// Everything a config file may set.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Config {
    /// What counts against the cluster.
    pub profile: Profile,
    /// The image table.
    pub images: Images,
    /// Which nodes a run keeps off.
    pub nodes: Nodes,
    /// The RuntimeClass of the cluster that Windows pods run under.
    pub runtime_class: Option<Placed<String>>,
    /// What lies outside the cluster.
    pub outside: Outside,
    /// What it allows although it costs money, takes processors or ends what others run.
    pub allow: BTreeSet<Allowed>,
    /// The node that a run may boot, which the command line alone names.
    pub disrupt: Option<Placed<String>>,
    /// Time limits.
    pub durations: Durations,
    /// Other limits.
    pub limits: Limits,
    /// Contexts and clusters, by their names in the kubeconfig, on which nothing may be created.
    pub protected: Vec<String>,
    /// What to check.
    pub select: Vec<Placed<String>>,
    /// Accepted failures.
    pub waivers: Vec<Placed<Waiver>>,
    /// Why a run must not pull: the profile allows no public registry, and some images come from one.
    pub public: Option<Diagnostic>,
    /// SHA-256 of the file; `None` without one.
    pub digest: Option<String>,
}

impl Config {
    /// The name of the node that a run may boot.
    pub fn may_boot(&self) -> Option<String> {
        self.disrupt.as_ref().map(|node| node.value.clone())
    }
}

/// A config file that sets everything to its default and explains it.
pub const EXAMPLE: &str = include_str!("example.yaml");

/// The JSON Schema of a config file, ending in a newline.
pub fn schema() -> String {
    let schema = schemars::schema_for!(written::Written);
    let mut text =
        serde_json::to_string_pretty(&schema).expect("a schema is JSON with text for keys");
    text.push('\n');
    text
}
