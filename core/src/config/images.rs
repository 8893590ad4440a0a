//! Which container image serves which role on which build.

use std::collections::{BTreeMap, BTreeSet};

use crate::facts::WindowsBuild;

/// A role a container image plays in a run.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Image {
    /// agnhost on Linux: probers.
    AgnhostLinux,
    /// agnhost on Windows: probers in pods.
    AgnhostWindows,
    /// What a `HostProcess` prober runs in; its files come from the host.
    HostProcess,
    /// Windows Server Core: the win-webserver sample.
    ServerCore,
}

/// The image table of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Images {
    pub(super) agnhost: String,
    pub(super) host_process: String,
    pub(super) server_core: String,
    pub(super) tags: BTreeMap<WindowsBuild, String>,
}

impl Images {
    /// The image of a role on a build; `None` when the table has none for it.
    /// On Linux the build is not asked for.
    pub fn of(&self, image: Image, build: Option<WindowsBuild>) -> Option<String> {
        match image {
            Image::AgnhostLinux | Image::AgnhostWindows => Some(self.agnhost.clone()),
            Image::HostProcess => Some(self.host_process.clone()),
            Image::ServerCore => {
                let tag = self.tags.get(&build?)?;
                Some(format!("{}:{tag}", self.server_core))
            }
        }
    }
}

/// Registries that anyone can pull from, and that a cluster without a way out cannot.
const PUBLIC: [&str; 3] = ["registry.k8s.io", "mcr.microsoft.com", "docker.io"];

impl Images {
    /// Has every image of a public registry come from a mirror, whose name takes its place.
    pub(super) fn mirror(&mut self, mirror: &str) {
        for name in [
            &mut self.agnhost,
            &mut self.host_process,
            &mut self.server_core,
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
        let all = [&self.agnhost, &self.host_process, &self.server_core];
        all.into_iter()
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
        let tags = [
            (WindowsBuild::SERVER_2019, "ltsc2019"),
            (WindowsBuild::SERVER_2022, "ltsc2022"),
            (WindowsBuild::SERVER_2025, "ltsc2025"),
        ]
        .map(|(build, tag)| (build, tag.to_owned()));
        Self {
            // A manifest list with Linux and Windows builds (kubernetes test/images/agnhost)
            agnhost: "registry.k8s.io/e2e-test-images/agnhost:2.59".to_owned(),
            // Empty of files, runs on every build (microsoft/windows-host-process-containers-base-image)
            host_process:
                "mcr.microsoft.com/oss/kubernetes/windows-host-process-containers-base-image:v1.0.0"
                    .to_owned(),
            server_core: "mcr.microsoft.com/windows/servercore".to_owned(),
            tags: tags.into(),
        }
    }
}
