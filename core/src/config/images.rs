//! Which container image serves which role on which build, and how it is pulled.

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
    /// IIS on Windows Server Core: its sample.
    Iis,
    /// Nano Server: its sample.
    NanoServer,
    /// Windows Server Core: the win-webserver and the slow starter.
    ServerCore,
}

/// The image table of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Images {
    pub(super) agnhost: String,
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

impl PerBuild {
    fn new(name: &str, tags: [&str; 3]) -> Self {
        let builds = [
            WindowsBuild::SERVER_2019,
            WindowsBuild::SERVER_2022,
            WindowsBuild::SERVER_2025,
        ];
        Self {
            name: name.to_owned(),
            tags: builds.into_iter().zip(tags.map(str::to_owned)).collect(),
        }
    }

    fn on(&self, build: Option<WindowsBuild>) -> Option<String> {
        let tag = self.tags.get(&build?)?;
        Some(format!("{}:{tag}", self.name))
    }
}

/// Registries that anyone can pull from, and that a cluster without a way out cannot.
const PUBLIC: [&str; 3] = ["registry.k8s.io", "mcr.microsoft.com", "docker.io"];

impl Images {
    /// The image of a role on a build; `None` when the table has none for it.
    /// On Linux the build is not asked for.
    pub fn of(&self, image: Image, build: Option<WindowsBuild>) -> Option<String> {
        match image {
            Image::AgnhostLinux | Image::AgnhostWindows => Some(self.agnhost.clone()),
            Image::HostProcess => Some(self.host_process.clone()),
            Image::Iis => self.iis.on(build),
            Image::NanoServer => self.nano_server.on(build),
            Image::ServerCore => self.server_core.on(build),
        }
    }

    /// Has every image of a public registry come from a mirror, whose name takes its place.
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
        let all = [
            &self.agnhost,
            &self.host_process,
            &self.iis.name,
            &self.nano_server.name,
            &self.server_core.name,
        ];
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
        Self {
            // A manifest list with Linux and Windows builds (kubernetes test/images/agnhost)
            agnhost: "registry.k8s.io/e2e-test-images/agnhost:2.59".to_owned(),
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
