//! What a user or a profile may set: profile, images, nodes, fixtures, the outside, durations, limits, selection
//! and waivers.
//!
//! The schema of a file is generated from these types; a section that is kept otherwise is read `as written` first.
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

use schemars::JsonSchema;

use self::written::{WrittenDurations, WrittenFixtures, WrittenImages, WrittenLimits};
use crate::document::{Diagnostic, Placed};

/// What winconform is to do differently: see `winconform config example`.
#[derive(Clone, Debug, Default, JsonSchema, PartialEq)]
#[schemars(title = "winconform", rename_all = "kebab-case", deny_unknown_fields)]
pub struct Config {
    /// What counts against the cluster; `default` unless set.
    #[schemars(with = "Option<Profile>")]
    pub profile: Profile,
    /// The images that nodes pull for a run.
    #[schemars(default, with = "WrittenImages")]
    pub images: Images,
    /// Which nodes a run keeps off.
    #[schemars(default)]
    pub nodes: Nodes,
    /// The pods of a run.
    #[schemars(rename = "fixtures", default, with = "WrittenFixtures")]
    pub runtime_class: Option<Placed<String>>,
    /// What lies outside the cluster.
    #[schemars(default)]
    pub outside: Outside,
    /// What costs money, takes processors or ends what others run, and is done where this allows it alone; nothing unless set.
    #[schemars(default)]
    pub allow: BTreeSet<Allowed>,
    /// The node that a run may boot, which the command line alone names.
    #[schemars(skip)]
    pub disrupt: Option<Placed<String>>,
    /// How long things may take.
    #[schemars(default, with = "WrittenDurations")]
    pub durations: Durations,
    /// How many requests, attempts, rounds and nodes a run uses.
    #[schemars(default, with = "WrittenLimits")]
    pub limits: Limits,
    /// Contexts or clusters, as the kubeconfig names them, on which winconform creates nothing: it refuses a run unless `--allow-protected` names its context.
    #[schemars(default)]
    pub protected: Vec<String>,
    /// What to check; `--select` replaces it: id patterns, `area=`, `type=` or an axis such as `pool=`; a leading `!` excludes. All checks unless set.
    #[schemars(default, with = "Vec<String>")]
    pub select: Vec<Placed<String>>,
    /// Failures that you know and accept for a time.
    #[schemars(default, with = "Vec<Waiver>")]
    pub waivers: Vec<Placed<Waiver>>,
    /// Why a run must not pull: the profile allows no public registry, and some images come from one.
    #[schemars(skip)]
    pub public: Option<Diagnostic>,
    /// SHA-256 of the file; `None` without one.
    #[schemars(skip)]
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
    let schema = schemars::schema_for!(Config);
    let mut text =
        serde_json::to_string_pretty(&schema).expect("a schema is JSON with text for keys");
    text.push('\n');
    text
}
