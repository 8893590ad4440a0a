//! Which images a node can pull and run, and containerd's words when it cannot.

use std::time::Duration;

use crate::base::chance::Chance;
use crate::topology::{Build, NodeSpec, Os, Pool};

/// The images that the simulator knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Family {
    /// `registry.k8s.io/e2e-test-images/agnhost`, for every operating system and build.
    Agnhost,
    /// `mcr.microsoft.com/windows/servercore`.
    Servercore,
    /// `mcr.microsoft.com/windows/nanoserver`.
    Nanoserver,
    /// `mcr.microsoft.com/windows/servercore/iis`.
    Iis,
    /// `busybox` for Linux.
    Busybox,
    /// `pause`, for every operating system and build.
    Pause,
    /// `windows-host-process-containers-base-image`: it has no files and runs on any Windows build
    /// (microsoft/windows-host-process-containers-base-image).
    HostProcessBase,
    /// A cluster's components, whose work the simulator does elsewhere, such as kube-proxy and `CoreDNS`: each
    /// for every operating system and build.
    Component,
}

/// An image that a node can run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Image {
    pub(crate) family: Family,
    /// The reference with its registry and tag, as containerd reports it.
    pub(crate) reference: String,
    /// About how long a node's first pull takes.
    pub(crate) pull: Duration,
    /// The size that the event `Pulled` states.
    pub(crate) bytes: u64,
    /// Whether the node's build can run it: a manifest for a single platform is pulled without a check.
    pub(crate) runs: bool,
}

impl Image {
    /// Whether it is of the `servercore` family.
    pub(crate) fn is_servercore(&self) -> bool {
        matches!(self.family, Family::Servercore | Family::Iis)
    }

    /// Whether its Windows base is of August 2021, as for agnhost before 2.66 (kubernetes,
    /// test/images/agnhost/BASEIMAGE: `busybox:1.29-2-windows-amd64-…`).
    pub(crate) fn is_of_2021(&self) -> bool {
        self.family == Family::Agnhost && minor(&self.reference).is_some_and(|minor| minor < 66)
    }

    /// The name with a digest, as containerd reports it.
    pub(crate) fn id(&self, chance: Chance) -> String {
        if self.reference.contains('@') {
            return self.reference.clone();
        }
        let path = self.reference.rsplit_once(':').map_or("", |(path, _)| path);
        format!("{path}@sha256:{}", chance.hex(&self.reference, 64))
    }
}

/// What a runtime requires of an image before it pulls it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Demand {
    /// A variant for the node's operating system and build.
    Fits,
    /// A variant for any Windows build, which the node then runs.
    AnyBuild,
    /// Nothing.
    Nothing,
}

/// Why a runtime does not pull an image.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Unpulled {
    /// The registry does not have it, in the words of containerd.
    Unknown(String),
    /// It has no variant for the node; its whole name.
    NoPlatform(String),
}

impl Unpulled {
    /// The error of a node's runtime, which follows `Failed to pull image "…": `.
    pub(crate) fn words(self, node: &NodeSpec) -> String {
        match self {
            Self::NoPlatform(_) if node.is_crio() => no_image_in_index(),
            other => other.of_containerd(),
        }
    }

    fn of_containerd(self) -> String {
        match self {
            Self::NoPlatform(full) => no_match(&full),
            Self::Unknown(words) => words,
        }
    }
}

/// The image that a reference means on a node of a pool; else the error of containerd, which follows `Failed to
/// pull image "…": `.
pub(crate) fn resolve(reference: &str, pool: Pool) -> Result<Image, String> {
    demanded(reference, pool, Demand::Fits).map_err(Unpulled::of_containerd)
}

/// The image that a reference means on a node of a pool whose runtime has this demand.
pub(crate) fn demanded(reference: &str, pool: Pool, demand: Demand) -> Result<Image, Unpulled> {
    let full = normalise(reference);
    let Some(family) = family(&full) else {
        // containerd 2.1, core/remotes/docker: the error of a registry without that repository
        return Err(Unpulled::Unknown(format!(
            "rpc error: code = NotFound desc = failed to pull and unpack image \"{full}\": \
             failed to resolve reference \"{full}\": {full}: not found"
        )));
    };
    let fitting = fits(family, &full, pool);
    let of_any_build = || {
        let mut builds = Build::ALL.into_iter();
        pool.os() == Os::Windows && builds.any(|build| fits(family, &full, Pool::Windows(build)))
    };
    let pulled = match demand {
        Demand::Fits => fitting,
        Demand::AnyBuild => fitting || of_any_build(),
        Demand::Nothing => true,
    };
    if !pulled {
        return Err(Unpulled::NoPlatform(full));
    }
    let (seconds, bytes) = match (family, pool.os()) {
        (Family::Iis, _) => (70, 2_115_000_000),
        (Family::Servercore, _) => (60, 2_003_000_000),
        (Family::Nanoserver, _) => (8, 118_000_000),
        (Family::Agnhost, Os::Windows) => (9, 154_000_000),
        (Family::Agnhost, Os::Linux) => (5, 54_000_000),
        (Family::Busybox, _) => (2, 2_220_000),
        (Family::Pause, _) => (1, 320_000),
        (Family::HostProcessBase, _) => (1, 7_600),
        (Family::Component, _) => (2, 30_000_000),
    };
    Ok(Image {
        family,
        pull: Duration::from_secs(seconds),
        bytes,
        runs: match (family, pool) {
            _ if demand == Demand::AnyBuild => true,
            (_, Pool::Windows(_)) if !fitting => false,
            // These images run on any build, unless the tag names the manifest of a single build
            (Family::Agnhost | Family::Pause, Pool::Windows(host)) => {
                build_of_tag(&full).is_none_or(|image| runs_on(image, host))
            }
            _ => true,
        },
        reference: full,
    })
}

/// The error of CRI-O, which runs on Linux alone here, for an operating system that the image lacks
/// (cri-o issue 6457; containers/image, `internal/manifest/oci_index.go`).
fn no_image_in_index() -> String {
    "rpc error: code = Unknown desc = choosing image instance: no image found in image index for \
     architecture \"amd64\", variant \"\", OS \"linux\""
        .to_owned()
}

/// The error of containerd issue 6989, also for an operating system that the manifest list lacks.
fn no_match(full: &str) -> String {
    format!(
        "rpc error: code = NotFound desc = failed to pull and unpack image \"{full}\": \
         no match for platform in manifest: not found"
    )
}

/// The error of an unreachable registry (containerd 2.1, `core/remotes/docker/resolver.go`).
pub(crate) fn unreachable(reference: &str) -> String {
    let full = normalise(reference);
    let host = match full.split('/').next().unwrap_or_default() {
        "docker.io" => "registry-1.docker.io",
        host => host,
    };
    let path = full.split_once('/').map_or("", |(_, path)| path);
    let (path, tag) = path.rsplit_once(':').unwrap_or((path, "latest"));
    format!(
        "failed to pull and unpack image \"{full}\": failed to resolve reference \"{full}\": \
         failed to do request: Head \"https://{host}/v2/{path}/manifests/{tag}\": \
         dial tcp: lookup {host}: i/o timeout"
    )
}

/// The error for a malformed reference (kubelet's `parsers.ParseImageName`, which parses with
/// `distribution/reference`).
pub(crate) fn malformed(reference: &str) -> Option<String> {
    let invalid = |why: &str| {
        Some(format!(
            "couldn't parse image name \"{reference}\": invalid reference format{why}"
        ))
    };
    let name = reference.split('@').next().unwrap_or_default();
    let last = name.rsplit('/').next().unwrap_or_default();
    let path = match last.split_once(':') {
        Some((_, "")) => return invalid(""),
        Some((_, tag)) => &name[..name.len() - tag.len() - 1],
        None => name,
    };
    let plain = |text: &str| {
        let of_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "._-/".contains(c);
        !text.is_empty() && text.chars().all(of_name)
    };
    let named = |host: &str| host.contains(['.', ':']) || host == "localhost";
    let repository = match path.split_once('/') {
        Some((host, rest)) if named(host) => rest.to_owned(),
        Some(_) => path.to_owned(),
        None => format!("library/{path}"),
    };
    if repository.chars().any(|c| c.is_ascii_uppercase()) {
        return invalid(&format!(
            ": repository name ({repository}) must be lowercase"
        ));
    }
    if path.is_empty() || !plain(&repository) {
        return invalid("");
    }
    None
}

/// The reference as containerd writes it: with a registry, and with a tag or digest.
fn normalise(reference: &str) -> String {
    let first = reference.split('/').next().unwrap_or_default();
    let named = first.contains(['.', ':']) || first == "localhost";
    let full = match (reference.contains('/'), named) {
        (true, true) => reference.to_owned(),
        (true, false) => format!("docker.io/{reference}"),
        (false, _) => format!("docker.io/library/{reference}"),
    };
    with_tag(&full)
}

/// A reference with a tag or digest (kubelet, `applyDefaultImageTag`).
pub(crate) fn with_tag(reference: &str) -> String {
    let last = reference.rsplit('/').next().unwrap_or_default();
    match last.contains([':', '@']) {
        true => reference.to_owned(),
        false => format!("{reference}:latest"),
    }
}

fn family(full: &str) -> Option<Family> {
    let path = full.split('@').next().unwrap_or_default();
    let path = match path.rsplit_once(':') {
        Some((path, tag)) if !tag.contains('/') => path,
        _ => path,
    };
    if path.ends_with("windows/servercore/iis") {
        return Some(Family::Iis);
    }
    match path.rsplit('/').next()? {
        "agnhost" => Some(Family::Agnhost),
        "servercore" => Some(Family::Servercore),
        "nanoserver" => Some(Family::Nanoserver),
        "busybox" => Some(Family::Busybox),
        "pause" => Some(Family::Pause),
        "windows-host-process-containers-base-image" => Some(Family::HostProcessBase),
        name => COMPONENTS.contains(&name).then_some(Family::Component),
    }
}

/// The last parts of the names of components' images, of all topologies.
const COMPONENTS: [&str; 14] = [
    "kube-proxy",
    "flannel",
    "coredns",
    "hardened-coredns",
    "k8s-dns-kube-dns",
    // Calico's
    "node",
    "node-windows",
    "mirrored-calico-node",
    // AKS'
    "azure-cns",
    "azure-cns-win",
    "azure-cloud-node-manager",
    // EKS'
    "amazon-k8s-cni",
    "aws-network-policy-agent",
    // OpenShift's, all of one name
    "ocp-v4.0-art-dev",
];

/// Whether an image has a variant for a pool.
fn fits(family: Family, full: &str, pool: Pool) -> bool {
    match (family, pool) {
        // 2.62 was the first for Windows Server 2025 (kubernetes/k8s.io, pull request 9057)
        (Family::Agnhost, Pool::Windows(Build::Ws2025)) => {
            minor(full).is_none_or(|minor| minor >= 62)
        }
        (Family::Agnhost | Family::Pause | Family::Component, _)
        | (Family::Busybox, Pool::Linux)
        | (Family::HostProcessBase, Pool::Windows(_)) => true,
        (Family::Busybox, Pool::Windows(_))
        | (
            Family::Servercore | Family::Nanoserver | Family::Iis | Family::HostProcessBase,
            Pool::Linux,
        ) => false,
        (_, Pool::Windows(host)) => build_of_tag(full).is_some_and(|image| runs_on(image, host)),
    }
}

/// The minor version in a tag such as agnhost's: `2.59`, `2.66.1`, `2.53-windows-amd64-ltsc2019`.
fn minor(full: &str) -> Option<u32> {
    let (_, tag) = full.rsplit_once(':')?;
    let digits = |c: char| !c.is_ascii_digit();
    tag.strip_prefix("2.")?.split(digits).next()?.parse().ok()
}

/// The build that a tag names: `ltsc2022`, `windowsservercore-ltsc2022`, `1809`, `10.0.20348.2700`.
fn build_of_tag(full: &str) -> Option<Build> {
    let (_, tag) = full.rsplit_once(':')?;
    Build::ALL.into_iter().find(|build| {
        tag.ends_with(&format!("ltsc{}", build.year()))
            || tag.starts_with(&build.label())
            || (*build == Build::Ws2019 && tag.ends_with("1809"))
    })
}

/// Microsoft's table of January 2025 (version-compatibility.md): under process isolation a 2025 host runs
/// images of 2022 and 2025, every other host only those of its own build.
fn runs_on(image: Build, host: Build) -> bool {
    image == host || (host == Build::Ws2025 && image == Build::Ws2022)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVERCORE: &str = "mcr.microsoft.com/windows/servercore:ltsc2022";

    fn on(reference: &str, pool: Pool) -> Result<Family, String> {
        resolve(reference, pool).map(|image| image.family)
    }

    #[test]
    fn who_demands_less_pulls_more() {
        let old = "mcr.microsoft.com/windows/servercore:ltsc2019";
        let host = Pool::Windows(Build::Ws2022);
        let runs = |pool, demand| demanded(old, pool, demand).map(|image| image.runs).ok();
        assert_eq!(runs(host, Demand::Fits), None);
        assert_eq!(runs(host, Demand::AnyBuild), Some(true));
        assert_eq!(runs(host, Demand::Nothing), Some(false));
        assert_eq!(runs(Pool::Linux, Demand::AnyBuild), None);
        assert_eq!(runs(Pool::Linux, Demand::Nothing), Some(true));
        assert_eq!(runs(Pool::Windows(Build::Ws2019), Demand::Fits), Some(true));
    }

    #[test]
    fn builds_must_match_except_2022_on_2025() {
        let no_match = Err(format!(
            "rpc error: code = NotFound desc = failed to pull and unpack image \"{SERVERCORE}\": \
             no match for platform in manifest: not found"
        ));
        assert_eq!(
            on(SERVERCORE, Pool::Windows(Build::Ws2022)),
            Ok(Family::Servercore)
        );
        assert_eq!(
            on(SERVERCORE, Pool::Windows(Build::Ws2025)),
            Ok(Family::Servercore)
        );
        assert_eq!(on(SERVERCORE, Pool::Windows(Build::Ws2019)), no_match);
        assert_eq!(on(SERVERCORE, Pool::Linux), no_match);
    }

    #[test]
    fn agnhost_runs_everywhere_and_busybox_on_linux() {
        for pool in [
            Pool::Linux,
            Pool::Windows(Build::Ws2019),
            Pool::Windows(Build::Ws2025),
        ] {
            let agnhost = "registry.k8s.io/e2e-test-images/agnhost:2.66.1";
            assert_eq!(on(agnhost, pool), Ok(Family::Agnhost));
        }
        let old = "registry.k8s.io/e2e-test-images/agnhost:2.59";
        assert!(on(old, Pool::Windows(Build::Ws2022)).is_ok());
        assert!(on(old, Pool::Windows(Build::Ws2025)).is_err());
        assert_eq!(on("busybox", Pool::Linux), Ok(Family::Busybox));
        assert!(on("busybox", Pool::Windows(Build::Ws2022)).is_err());
    }

    #[test]
    fn an_unknown_image_is_not_found() {
        let text = on("nobody/nothing", Pool::Linux).expect_err("unknown");
        assert!(
            text.contains("docker.io/nobody/nothing:latest: not found"),
            "{text}"
        );
        assert!(on("", Pool::Linux).is_err());
        assert!(on("::::@/", Pool::Linux).is_err());
    }

    #[test]
    fn the_iis_image_knows_its_build() {
        let iis = "mcr.microsoft.com/windows/servercore/iis:windowsservercore-ltsc2019";
        assert_eq!(on(iis, Pool::Windows(Build::Ws2019)), Ok(Family::Iis));
        assert!(on(iis, Pool::Windows(Build::Ws2022)).is_err());
    }

    #[test]
    fn one_builds_own_manifest_is_pulled_and_does_not_run() {
        let runs = |reference: &str, build| {
            let image = resolve(reference, Pool::Windows(build));
            image.expect("it is pulled").runs
        };
        let own = "registry.k8s.io/e2e-test-images/agnhost:2.66.1-windows-amd64-ltsc2019";
        assert!(runs(own, Build::Ws2019) && !runs(own, Build::Ws2022));
        let any = "registry.k8s.io/e2e-test-images/agnhost:2.66.1";
        assert!(runs(any, Build::Ws2022));
    }

    #[test]
    fn references_are_checked_as_such() {
        for good in ["busybox", "a.b:5000/c/d:1", "b@sha256:00", "localhost/x"] {
            assert_eq!(malformed(good), None, "{good}");
        }
        let why = malformed("Busybox").expect("it is not lowercase");
        assert!(
            why.ends_with("repository name (library/Busybox) must be lowercase"),
            "{why}"
        );
        for bad in ["", "a b", "a:", "::::@/"] {
            assert!(malformed(bad).is_some(), "{bad}");
        }
    }

    #[test]
    fn an_unreachable_registry_is_named() {
        let text = unreachable("busybox");
        assert!(
            text.contains("lookup registry-1.docker.io: i/o timeout"),
            "{text}"
        );
    }
}
