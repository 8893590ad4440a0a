//! The config file as written, from which its schema is made; all of it may be left out.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use schemars::JsonSchema;

use super::images::{PullPolicy, PullSecret};
use super::outside::Target;
use super::profile::Profile;
use super::waiver::Waiver;
use crate::document::Placed;
use crate::facts::WindowsBuild;

/// What winconform is to do differently: see `winconform config example`.
#[derive(Debug, Default, JsonSchema)]
#[schemars(title = "winconform", rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Written {
    /// What counts against the cluster; `default` unless set.
    pub(super) profile: Option<Profile>,
    /// The images that are pulled.
    #[schemars(default)]
    pub(super) images: WrittenImages,
    /// What lies outside the cluster.
    #[schemars(default)]
    pub(super) outside: WrittenOutside,
    /// How long things may take.
    #[schemars(default)]
    pub(super) durations: WrittenDurations,
    /// How much at once, and how often.
    #[schemars(default)]
    pub(super) limits: WrittenLimits,
    /// Contexts or clusters, as the kubeconfig names them, on which nothing is made: a run is refused unless `--allow-protected` names its context.
    #[schemars(default)]
    pub(super) protected: Vec<String>,
    /// What to check, as with `--select`, which takes the place of it: id patterns, `area=`, `type=` or an axis such as `pool=`; a leading `!` takes out. All checks unless set.
    #[schemars(default, with = "Vec<String>")]
    pub(super) select: Vec<Placed<String>>,
    /// Failures that are known and accepted for a time.
    #[schemars(default, with = "Vec<Waiver>")]
    pub(super) waivers: Vec<Placed<Waiver>>,
}

/// The images that are pulled.
#[derive(Debug, Default, JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct WrittenImages {
    /// Takes the place of public registries (registry.k8s.io, mcr.microsoft.com, docker.io) in the names of images, such as `registry.example.com/mirror`.
    pub(super) mirror: Option<String>,
    /// When nodes pull them, as `imagePullPolicy` has it; `IfNotPresent` unless set.
    pub(super) pull_policy: Option<PullPolicy>,
    /// Secrets of the cluster that they are pulled with, each as `NAMESPACE/NAME`: copied into the run's namespaces and removed with them.
    #[schemars(default, with = "Vec<String>")]
    pub(super) pull_secrets: Vec<PullSecret>,
    /// agnhost for Linux and Windows, with its tag.
    pub(super) agnhost: Option<String>,
    /// The builds that agnhost has an image of, such as `10.0.20348`; Windows Server 2019, 2022 and 2025 unless set. On others probers run Windows Server Core, and what agnhost alone can do is skipped.
    #[schemars(with = "Option<Vec<String>>")]
    pub(super) agnhost_builds: Option<BTreeSet<WindowsBuild>>,
    /// What `HostProcess` pods run in, with its tag.
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

/// What lies outside the cluster: who observes from there, and what pods are to reach there.
#[derive(Debug, Default, JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct WrittenOutside {
    /// Whether the machine that winconform runs on is to reach the nodes' addresses; only then `NodePorts` are observed from there. `false` unless set.
    pub(super) reaches_nodes: Option<bool>,
    /// The HTTP proxy by which it does, such as `http://192.0.2.1:3128`; directly unless set.
    #[schemars(with = "Option<String>")]
    pub(super) proxy: Option<Target>,
    /// Whether Services of type `LoadBalancer` are made, one for each Windows pool. They have the annotations that keep addresses internal in the clouds that know one; elsewhere the address may be public. `false` unless set.
    pub(super) load_balancers: Option<bool>,
    /// What Windows pods are to reach by a name; Microsoft's page for connection tests unless set.
    pub(super) names: Option<Vec<WrittenTarget>>,
    /// What they are to reach by an address; Cloudflare's 1.1.1.1 unless set.
    pub(super) addresses: Option<Vec<WrittenTarget>>,
}

/// A web server outside the cluster.
#[derive(Debug, JsonSchema)]
#[schemars(rename = "Target", rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct WrittenTarget {
    /// Plain HTTP, such as `http://www.example.com/page`.
    #[schemars(with = "String")]
    pub(super) url: Target,
    /// A text that its answer holds: whoever answers without it is somebody else.
    pub(super) says: String,
}

/// How long things may take: text such as `30s`, `20m` or `1h 30m`.
#[derive(Debug, Default, JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct WrittenDurations {
    /// From sending an API request to the head of its answer; it is sent again for six times as long. From 1s to 1m; 10s unless set.
    #[schemars(with = "Option<String>")]
    pub(super) api_answer: Option<Duration>,
    /// How long a connection over HTTP may take to stand. Windows needs 2s to refuse one and gives up by itself after 21s. From 3s to 20s; 4s unless set.
    #[schemars(with = "Option<String>")]
    pub(super) http_connect: Option<Duration>,
    /// How long one transfer over HTTP may take, its connection included. From 4s to 25s; 8s unless set.
    #[schemars(with = "Option<String>")]
    pub(super) http_total: Option<Duration>,
    /// From applying a workload to its standing: a Windows image takes minutes to pull. From 10s to 3h; 20m unless set.
    #[schemars(with = "Option<String>")]
    pub(super) fixture: Option<Duration>,
    /// How long the scheduler may find no node for a pod before that is final. From 5s to 1h; 30s unless set.
    #[schemars(with = "Option<String>")]
    pub(super) unscheduled: Option<Duration>,
    /// How long what is observed over the network may take to come right. From 1s to 30m; 1m unless set.
    #[schemars(with = "Option<String>")]
    pub(super) converge: Option<Duration>,
    /// All of tear-down. From 10s to 1h; 2m unless set.
    #[schemars(with = "Option<String>")]
    pub(super) tear_down: Option<Duration>,
}

/// How much at once, and how often.
#[derive(Debug, Default, JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct WrittenLimits {
    /// API requests under way at once. From 1 to 256; 16 unless set.
    pub(super) api_in_flight: Option<u32>,
    /// Attempts of a check that is not as documented; up to four while none confirms a failure. From 1 to 10; 2 unless set.
    pub(super) attempts: Option<u32>,
    /// Consecutive good rounds of a check over the network before it counts. From 1 to 20; 2 unless set.
    pub(super) hold_rounds: Option<u32>,
    /// Nodes of a pool that are each observed from. From 2 to 64; 16 unless set.
    pub(super) nodes_observed_from: Option<u32>,
}
