//! Which container image serves which role on which build.

use std::collections::BTreeMap;

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
    agnhost: String,
    host_process: String,
    server_core: String,
    tags: BTreeMap<WindowsBuild, &'static str>,
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

impl Default for Images {
    fn default() -> Self {
        let tags = [
            (WindowsBuild::SERVER_2019, "ltsc2019"),
            (WindowsBuild::SERVER_2022, "ltsc2022"),
            (WindowsBuild::SERVER_2025, "ltsc2025"),
        ];
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
