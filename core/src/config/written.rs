//! The sections of the config file that are written otherwise than they are kept; every setting is optional.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use schemars::JsonSchema;

use super::images::{PullPolicy, PullSecret};
use super::outside::Target;
use crate::document::Placed;
use crate::facts::WindowsBuild;

/// The images that nodes pull for a run.
#[derive(Debug, JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct WrittenImages {
    /// A registry that replaces public ones (registry.k8s.io, mcr.microsoft.com, docker.io) in the names of images, such as `registry.example.com/mirror`.
    pub(super) mirror: Option<String>,
    /// When nodes pull images, as in `imagePullPolicy`; `IfNotPresent` unless set.
    pub(super) pull_policy: Option<PullPolicy>,
    /// Secrets of the cluster to pull with, each as `NAMESPACE/NAME`: a run copies these into its namespaces, and removes the copies with the namespaces.
    #[schemars(default, with = "Vec<String>")]
    pub(super) pull_secrets: Vec<PullSecret>,
    /// agnhost for Linux and Windows, with its tag.
    pub(super) agnhost: Option<String>,
    /// The builds for which agnhost has an image, such as `10.0.20348`; Windows Server 2019, 2022 and 2025 unless set. On other builds, probers in Windows pods run Windows Server Core instead, and checks that need agnhost there are skipped.
    #[schemars(with = "Option<Vec<String>>")]
    pub(super) agnhost_builds: Option<BTreeSet<WindowsBuild>>,
    /// The image of `HostProcess` pods, with its tag.
    pub(super) host_process: Option<String>,
    /// IIS on Windows Server Core, without its tag.
    pub(super) iis: Option<String>,
    /// The tag of IIS for a build as in the node label, such as `10.0.20348`; those of Windows Server 2019, 2022 and 2025 unless set.
    #[schemars(default, with = "BTreeMap<String, String>")]
    pub(super) iis_tags: BTreeMap<WindowsBuild, String>,
    /// Nano Server, without its tag.
    pub(super) nano_server: Option<String>,
    /// The tag of Nano Server for a build, as those of IIS.
    #[schemars(default, with = "BTreeMap<String, String>")]
    pub(super) nano_server_tags: BTreeMap<WindowsBuild, String>,
    /// Windows Server Core, without its tag.
    pub(super) server_core: Option<String>,
    /// The tag of Windows Server Core for a build, as those of IIS.
    #[schemars(default, with = "BTreeMap<String, String>")]
    pub(super) server_core_tags: BTreeMap<WindowsBuild, String>,
}

/// The pods of a run.
#[derive(Debug, Default, JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct WrittenFixtures {
    /// The RuntimeClass of the cluster that Windows pods run under, such as one for Hyper-V isolation; none but those of the samples unless set. `HostProcess` pods, and pods that are there to be placed, keep what their manifests say.
    #[schemars(with = "Option<String>")]
    pub(super) runtime_class: Option<Placed<String>>,
}

/// A web server outside the cluster.
#[derive(Debug, JsonSchema)]
#[schemars(rename = "Target", rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct WrittenTarget {
    /// Plain HTTP, such as `http://www.example.com/page`.
    #[schemars(with = "String")]
    pub(super) url: Target,
    /// A text that its answer contains: an answer without it comes from another server.
    pub(super) says: String,
}

/// How long things may take: text such as `30s`, `20m` or `1h 30m`.
#[derive(Debug, JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct WrittenDurations {
    /// From sending an API request to the head of its answer; it is sent again for six times as long. From 1s to 1m; 10s unless set.
    #[schemars(with = "Option<String>")]
    pub(super) api_answer: Option<Duration>,
    /// How long an HTTP connection may take to open. Windows needs 2s to refuse one, and gives up by itself after 21s. From 3s to 20s; 4s unless set.
    #[schemars(with = "Option<String>")]
    pub(super) http_connect: Option<Duration>,
    /// How long one HTTP transfer may take, including its connection. From 4s to 25s; 8s unless set.
    #[schemars(with = "Option<String>")]
    pub(super) http_total: Option<Duration>,
    /// From applying a workload until it is ready: a Windows image takes minutes to pull. From 10s to 3h; 20m unless set.
    #[schemars(with = "Option<String>")]
    pub(super) fixture: Option<Duration>,
    /// How long the scheduler may find no node for a pod before a run reports that there is none. Where nodes lack what other pods have on them, such as CPU, it is three minutes at least. From 5s to 1h; 30s unless set.
    #[schemars(with = "Option<String>")]
    pub(super) unscheduled: Option<Duration>,
    /// How long a check over the network may take to get the expected result. From 1s to 30m; 1m unless set.
    #[schemars(with = "Option<String>")]
    pub(super) converge: Option<Duration>,
    /// All of tear-down. Unless set, each Windows pod on the node with most of them adds 5s. From 10s to 1h; 2m unless set.
    #[schemars(with = "Option<String>")]
    pub(super) tear_down: Option<Duration>,
}

/// How many requests, attempts, rounds and nodes a run uses.
#[derive(Debug, JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct WrittenLimits {
    /// Concurrent API requests. From 1 to 256; 16 unless set.
    pub(super) api_in_flight: Option<u32>,
    /// Attempts of a check whose result is not as documented; up to four while none confirms a failure. From 1 to 10; 2 unless set.
    pub(super) attempts: Option<u32>,
    /// Consecutive good rounds that a check over the network needs to pass. From 1 to 20; 2 unless set.
    pub(super) hold_rounds: Option<u32>,
    /// Nodes of a pool from which a run observes, with a pod on each. From 2 to 64; 16 unless set.
    pub(super) nodes_observed_from: Option<u32>,
}
