//! Which container image serves which role on which build, and how it is pulled.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use schemars::JsonSchema;
use serde::Deserialize;
use strum::{IntoStaticStr, VariantArray};

use super::written::WrittenImages;
use crate::document::{Decoder, Node};
use crate::facts::{WindowsBuild, read_build};
use crate::text::{hide_user, is_dns_label, is_dns_subdomain};

/// A role a container image plays in a run.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd)]
#[serde(rename_all = "kebab-case")]
pub enum Image {
    /// agnhost on Linux: probers.
    AgnhostLinux,
    /// agnhost on Windows: pods that are only placed, whether or not it has an image of their build.
    AgnhostWindows,
    /// What probers in Windows pods run: agnhost, or Windows Server Core on builds without it.
    WindowsProber,
    /// What a `HostProcess` prober runs in; its files come from the host.
    HostProcess,
    /// IIS on Windows Server Core: its sample.
    Iis,
    /// Nano Server: its sample.
    NanoServer,
    /// Windows Server Core: the win-webserver and the slow starter.
    ServerCore,
}

/// When a node pulls an image: `imagePullPolicy` of containers.
#[derive(Clone, Copy, Debug, Default, Eq, IntoStaticStr, JsonSchema, PartialEq, VariantArray)]
pub enum PullPolicy {
    /// Where it is not there yet.
    #[default]
    IfNotPresent,
    /// Each time; what is there already is asked for anew.
    Always,
    /// Never: it has to be there.
    Never,
}

crate::text::words!(PullPolicy);

/// A Secret of the cluster that images are pulled with.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PullSecret {
    /// The namespace it is in.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl PullSecret {
    /// `NAMESPACE/NAME`: a DNS label and a DNS subdomain (RFC 1123), as the API takes them.
    fn parse(text: &str) -> Option<Self> {
        let (namespace, name) = text.split_once('/')?;
        let valid = namespace.len() <= 63 && is_dns_label(namespace) && is_dns_subdomain(name);
        valid.then(|| Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        })
    }
}

impl fmt::Display for PullSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// The image table of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Images {
    /// When nodes pull them.
    pub policy: PullPolicy,
    /// The secrets that nodes pull them with, beside those of nodes and service accounts.
    pub secrets: Vec<PullSecret>,
    pub(super) agnhost: String,
    pub(super) agnhost_builds: BTreeSet<WindowsBuild>,
    pub(super) host_process: String,
    pub(super) iis: PerBuild,
    pub(super) nano_server: PerBuild,
    pub(super) server_core: PerBuild,
}

/// An image that has a tag for each build.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PerBuild {
    pub(super) name: String,
    pub(super) tags: BTreeMap<WindowsBuild, String>,
}

/// The builds that images are published for by default.
const BUILDS: [WindowsBuild; 3] = [
    WindowsBuild::SERVER_2019,
    WindowsBuild::SERVER_2022,
    WindowsBuild::SERVER_2025,
];

impl PerBuild {
    fn new(name: &str, tags: [&str; 3]) -> Self {
        Self {
            name: name.to_owned(),
            tags: BUILDS.into_iter().zip(tags.map(str::to_owned)).collect(),
        }
    }

    fn on(&self, build: Option<WindowsBuild>) -> Option<String> {
        let tag = self.tags.get(&build?)?;
        Some(format!("{}:{tag}", self.name))
    }
}

/// Registries that anyone can pull from, except a cluster without a way out.
const PUBLIC: [&str; 3] = ["registry.k8s.io", "mcr.microsoft.com", "docker.io"];

impl Images {
    /// The image of a role on a build; `None` when the table has none for it. On Linux the build does not
    /// matter.
    pub fn for_role(&self, image: Image, build: Option<WindowsBuild>) -> Option<String> {
        match image {
            Image::AgnhostLinux | Image::AgnhostWindows => Some(self.agnhost.clone()),
            Image::WindowsProber if self.has_agnhost(build) => Some(self.agnhost.clone()),
            Image::HostProcess => Some(self.host_process.clone()),
            Image::Iis => self.iis.on(build),
            Image::NanoServer => self.nano_server.on(build),
            Image::ServerCore | Image::WindowsProber => self.server_core.on(build),
        }
    }

    /// Whether agnhost has an image of a build. Where it has none, nothing in a prober sends
    /// datagrams or serves.
    pub fn has_agnhost(&self, build: Option<WindowsBuild>) -> bool {
        build.is_none_or(|build| self.agnhost_builds.contains(&build))
    }

    /// Replaces the public registry in the name of every image by a mirror.
    pub(super) fn mirror(&mut self, mirror: &str) {
        for name in [
            &mut self.agnhost,
            &mut self.host_process,
            &mut self.iis.name,
            &mut self.nano_server.name,
            &mut self.server_core.name,
        ] {
            match registry(name) {
                Some(host) if !PUBLIC.contains(&host) => {}
                Some(host) => *name = format!("{mirror}/{}", &name[host.len() + 1..]),
                None => *name = format!("{mirror}/{name}"),
            }
        }
    }

    /// The images that come from a public registry, each once.
    pub fn public(&self) -> BTreeSet<&str> {
        let used = [
            &self.agnhost,
            &self.host_process,
            &self.iis.name,
            &self.nano_server.name,
            &self.server_core.name,
        ];
        used.into_iter()
            .filter(|name| registry(name).is_none_or(|host| PUBLIC.contains(&host)))
            .map(String::as_str)
            .collect()
    }
}

/// The registry an image's name begins with; without one it is Docker's
/// (distribution/reference: a host has a dot or a port, or is `localhost`).
fn registry(name: &str) -> Option<&str> {
    let (host, _) = name.split_once('/')?;
    (host.contains(['.', ':']) || host == "localhost").then_some(host)
}

impl Default for Images {
    fn default() -> Self {
        Self {
            policy: PullPolicy::default(),
            secrets: Vec::new(),
            // kubernetes, test/images/agnhost/BASEIMAGE: with Windows Server 2025 since 2.62; Annual
            // Channel builds are not among them
            agnhost_builds: BUILDS.into(),
            // A manifest list with Linux and Windows builds (kubernetes, test/images/agnhost), the Windows
            // builds have a base image of 2026: before 2.66.1 it was of 2021, and so was its curl
            agnhost: "registry.k8s.io/e2e-test-images/agnhost:2.66.1".to_owned(),
            // Empty of files, runs on every build (microsoft/windows-host-process-containers-base-image)
            host_process:
                "mcr.microsoft.com/oss/kubernetes/windows-host-process-containers-base-image:v1.0.0"
                    .to_owned(),
            // Microsoft/iis-docker, README.md: supported tags
            iis: PerBuild::new(
                "mcr.microsoft.com/windows/servercore/iis",
                [
                    "windowsservercore-ltsc2019",
                    "windowsservercore-ltsc2022",
                    "windowsservercore-ltsc2025",
                ],
            ),
            nano_server: PerBuild::new(
                "mcr.microsoft.com/windows/nanoserver",
                ["ltsc2019", "ltsc2022", "ltsc2025"],
            ),
            server_core: PerBuild::new(
                "mcr.microsoft.com/windows/servercore",
                ["ltsc2019", "ltsc2022", "ltsc2025"],
            ),
        }
    }
}

/// The defaults with what the file sets.
fn valid(set: WrittenImages) -> Images {
    let mut images = Images::default();
    for (place, value) in [
        (&mut images.agnhost, set.agnhost),
        (&mut images.host_process, set.host_process),
        (&mut images.iis.name, set.iis),
        (&mut images.nano_server.name, set.nano_server),
        (&mut images.server_core.name, set.server_core),
    ] {
        *place = value.unwrap_or_else(|| std::mem::take(place));
    }
    if let Some(builds) = set.agnhost_builds {
        images.agnhost_builds = builds;
    }
    images.iis.tags.extend(set.iis_tags);
    images.nano_server.tags.extend(set.nano_server_tags);
    images.server_core.tags.extend(set.server_core_tags);
    images.policy = set.pull_policy.unwrap_or_default();
    images.secrets = set.pull_secrets;
    if let Some(mirror) = &set.mirror {
        images.mirror(mirror);
    }
    images
}

/// Reads the section.
pub(super) fn read(decoder: &mut Decoder<'_>, node: &Node) -> Option<Images> {
    let mut fields = decoder.fields(node, "`images`")?;
    let mut image = |key, tagged| {
        fields.set(decoder, key, |decoder, node| {
            read_image(decoder, node, key, tagged)
        })
    };
    let (mirror, agnhost, host_process) = (
        image("mirror", Tagged::Mirror),
        image("agnhost", Tagged::Yes),
        image("host-process", Tagged::Yes),
    );
    let [iis, nano_server, server_core] =
        ["iis", "nano-server", "server-core"].map(|key| image(key, Tagged::No));
    let [iis_tags, nano_server_tags, server_core_tags] =
        ["iis-tags", "nano-server-tags", "server-core-tags"].map(|key| {
            let node = fields.filled(key);
            node.map_or_else(BTreeMap::new, |node| read_tags(decoder, node, key))
        });
    let written = WrittenImages {
        pull_policy: fields.set(decoder, "pull-policy", |decoder, node| {
            decoder.member(node, "pull-policy", PullPolicy::ALL)
        }),
        pull_secrets: fields
            .set(decoder, "pull-secrets", read_secrets)
            .unwrap_or_default(),
        mirror,
        agnhost,
        agnhost_builds: fields.set(decoder, "agnhost-builds", |decoder, node| {
            let builds = decoder.kept(node, "`agnhost-builds`", read_build)?;
            Some(builds.into_iter().collect())
        }),
        host_process,
        iis,
        iis_tags,
        nano_server,
        nano_server_tags,
        server_core,
        server_core_tags,
    };
    fields.finish(decoder);
    Some(valid(written))
}

/// How the name of an image must end.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Tagged {
    /// A tag or a digest.
    Yes,
    /// No tag: the build decides it.
    No,
    /// It is only a prefix of names.
    Mirror,
}

/// The name of an image as container runtimes take it (distribution/reference).
fn read_image(
    decoder: &mut Decoder<'_>,
    node: &Node,
    what: &str,
    tagged: Tagged,
) -> Option<String> {
    let text = decoder.text(node, &format!("`{what}`"))?;
    let last = text.rsplit('/').next().unwrap_or_default();
    let has_tag = last.contains([':', '@']) && (text.contains('/') || tagged != Tagged::Mirror);
    let known = |c: char| c.is_ascii_alphanumeric() || "._-/:@".contains(c);
    let is_digest = |behind: &str| behind.starts_with("sha256:") || behind.starts_with("sha512:");
    let mut behind = text.split('@').skip(1);
    let without = format!("remove the tag: `{what}-tags` has the tag for each build");
    let has_user = behind.any(|behind| !is_digest(behind) || behind.contains('/'));
    let hint = if has_user {
        "without user and password, which belong in a Secret that `pull-secrets` names"
    } else if text.contains("://") {
        "without the scheme: `registry.example.com/mirror`"
    } else if text.len() > 255
        || !text.chars().all(known)
        || text.split('/').any(str::is_empty)
        || !text.starts_with(|c: char| c.is_ascii_alphanumeric())
    {
        "a registry and a path such as `registry.example.com/mirror/agnhost`, divided by `/`"
    } else {
        match (tagged, has_tag) {
            (Tagged::Yes, false) => "add the tag: `registry.example.com/mirror/agnhost:2.66.1`",
            (Tagged::No, true) => &without,
            (Tagged::Mirror, true) => "a mirror has no tag: `registry.example.com/mirror`",
            (Tagged::Yes, true) | (Tagged::No | Tagged::Mirror, false) => {
                return Some(text.to_owned());
            }
        }
    };
    let name = match tagged {
        Tagged::Mirror => "the beginning of an image's name",
        Tagged::Yes | Tagged::No => "the name of an image",
    };
    let shown = match has_user {
        true => hide_user(text),
        false => text,
    };
    let message = format!("`{what}` is `{shown}`, which this setting does not accept as {name}");
    decoder.fail(node, message, Some(hint.to_owned()))
}

fn read_tags(decoder: &mut Decoder<'_>, node: &Node, key: &str) -> BTreeMap<WindowsBuild, String> {
    let mut tags = BTreeMap::new();
    let entries = decoder.entries(node, &format!("`{key}`"));
    for entry in entries.unwrap_or_default() {
        let build = read_build(decoder, &entry.key_node());
        let Some(tag) = decoder.text(&entry.node, "a tag") else {
            continue;
        };
        let known = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        if tag.len() > 128 || !tag.chars().all(known) || tag.starts_with(['.', '-']) {
            let hint = "letters, digits, `.`, `_` and `-`, such as `ltsc2022`".to_owned();
            let shown = hide_user(tag);
            decoder.report(&entry.node, format!("`{shown}` is not a tag"), Some(hint));
        } else if let Some(build) = build {
            tags.insert(build, tag.to_owned());
        }
    }
    tags
}

fn read_secrets(decoder: &mut Decoder<'_>, node: &Node) -> Option<Vec<PullSecret>> {
    let items = decoder.list(node, "`pull-secrets`")?;
    let mut secrets = Vec::with_capacity(items.len());
    for item in items {
        let Some(text) = decoder.text(item, "a pull secret") else {
            continue;
        };
        let Some(secret) = PullSecret::parse(text) else {
            let hint = "its namespace and its name: `registry/regcred`".to_owned();
            let shown = hide_user(text);
            decoder.report(item, format!("`{shown}` is not a pull secret"), Some(hint));
            continue;
        };
        if secrets.contains(&secret) {
            let hint = "name it once".to_owned();
            let message = format!("a second time the pull secret `{text}`");
            decoder.report(item, message, Some(hint));
        } else {
            secrets.push(secret);
        }
    }
    Some(secrets)
}
