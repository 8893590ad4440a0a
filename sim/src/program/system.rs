//! The files that a container has from its image, its runtime and its kubelet, as far as programs are
//! asked for them.

use std::collections::BTreeMap;

use super::net::Net;
use super::seat::Seat;
use super::{Place, Ran, Refusal, agnhost, windows};
use crate::image::Family;
use crate::topology::Os;

/// By path; one that ends with a slash is an empty directory.
pub(super) fn files(seat: &Seat<'_>) -> BTreeMap<String, Vec<u8>> {
    let place = seat.place;
    let root: &[&str] = match (place.os, place.family) {
        (Os::Linux, Family::Pause) => &["/pause", "/dev/", "/etc/", "/proc/", "/sys/"],
        // busybox' own image
        (Os::Linux, Family::Busybox) => &[
            "/bin/", "/dev/", "/etc/", "/home/", "/lib/", "/lib64/", "/proc/", "/root/", "/sys/",
            "/tmp/", "/usr/", "/var/",
        ],
        // Alpine's, with agnhost
        (Os::Linux, _) => &[
            "/agnhost", "/bin/", "/dev/", "/etc/", "/home/", "/lib/", "/media/", "/mnt/", "/opt/",
            "/proc/", "/root/", "/run/", "/sbin/", "/srv/", "/sys/", "/tmp/", "/usr/", "/var/",
        ],
        (Os::Windows, Family::Agnhost) => &[
            "/agnhost.exe",
            "/License.txt",
            "/Program Files/",
            "/Users/",
            "/Windows/System32/",
        ],
        (Os::Windows, Family::Iis) => &[
            "/inetpub/",
            "/License.txt",
            "/Program Files/",
            "/Program Files (x86)/",
            "/ServiceMonitor.exe",
            "/Users/",
            "/Windows/System32/",
        ],
        (Os::Windows, Family::Servercore) => &[
            "/License.txt",
            "/Program Files/",
            "/Program Files (x86)/",
            "/Users/",
            "/Windows/System32/",
        ],
        (Os::Windows, _) => &["/License.txt", "/Users/", "/Windows/System32/"],
    };
    let mut files: BTreeMap<String, Vec<u8>> = root
        .iter()
        .map(|path| ((*path).to_owned(), Vec::new()))
        .collect();
    let hosts = agnhost::hosts(place, seat).into_bytes();
    match place.os {
        Os::Linux => {
            files.insert("/etc/hosts".to_owned(), hosts);
            let hostname = format!("{}\n", place.hostname).into_bytes();
            files.insert("/etc/hostname".to_owned(), hostname);
            files.insert(
                "/etc/resolv.conf".to_owned(),
                resolv_conf(seat).into_bytes(),
            );
        }
        Os::Windows => {
            let path = "/Windows/System32/drivers/etc/hosts";
            files.insert(path.to_owned(), hosts);
        }
    }
    files
}

/// Where a system has files that nobody here knows, by the first part of the path.
fn has_unknown(place: &Place, path: &str) -> bool {
    const LINUX: &[&str] = &[
        "bin", "dev", "etc", "lib", "lib64", "proc", "sbin", "sys", "usr",
    ];
    const WINDOWS: &[&str] = &["windows", "program files", "program files (x86)"];
    let path = place.files.normal(path);
    let folded = path.to_lowercase();
    let (path, unknown) = match place.os {
        Os::Linux => (&path, LINUX),
        Os::Windows => (&folded, WINDOWS),
    };
    let first = path.trim_start_matches('/').split('/').next();
    first.is_some_and(|first| unknown.contains(&first))
        && !path.starts_with("/windows/temp")
        && !place.files.is_mounted(path)
}

/// Whether a path is not there, and stands where the system has files that nobody here knows.
pub(super) fn is_unknown(place: &Place, path: &str) -> bool {
    let listed = place
        .files
        .list(path)
        .is_some_and(|names| !names.is_empty());
    has_unknown(place, path) && !listed && place.files.read(path).is_err()
}

/// Whether a directory has more in it than is known here.
pub(super) fn is_unlisted(place: &Place, path: &str) -> bool {
    let whole = place.os == Os::Windows;
    is_unknown(place, path) || whole && has_unknown(place, path) && place.files.read(path).is_err()
}

/// Whether a file or directory is there on Windows; what is not known is refused.
pub(super) fn exists(place: &Place, path: &str) -> Result<bool, Ran> {
    let known = place.files.read(path).is_ok()
        || place.files.list(path).is_some()
        || windows::is_program(place, &place.files.normal(path));
    match !known && is_unknown(place, path) {
        true => Err(Refusal::instead_of(&format!("the content of {path}"))),
        false => Ok(known),
    }
}

/// containerd, `internal/cri/opts`/`sandbox_run_linux.go`, `parseDNSOptions`: what the kubelet tells the
/// runtime, a line each; `ndots:5` goes with the cluster's own servers (kubernetes 1.37.0,
/// `pkg/kubelet/network/dns/dns.go`, `defaultDNSOptions`).
fn resolv_conf(seat: &Seat<'_>) -> String {
    let settings = seat.settings();
    let mut text = String::new();
    if !settings.searches.is_empty() {
        text.push_str(&format!("search {}\n", settings.searches.join(" ")));
    }
    for server in &settings.servers {
        text.push_str(&format!("nameserver {server}\n"));
    }
    if settings.ndots != 1 {
        text.push_str(&format!("options ndots:{}\n", settings.ndots));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::tests::{place, run};
    use super::super::{NOT_SIMULATED, Started};
    use crate::files::{Files, Mount, Volume};
    use crate::image::Family;
    use crate::topology::Os;

    #[test]
    fn of_etc_only_what_the_kubelet_and_volumes_bring_is_known() {
        let mut place = place(Os::Linux, Family::Agnhost);
        let mount = Mount {
            path: "/etc/config".to_owned(),
            volume: Volume::default(),
            sub_path: String::new(),
            read_only: true,
        };
        place.files = Files::with_mounts(Os::Linux, vec![mount]);
        let code = |script| match run(&place, &["sh", "-c", script]) {
            Started::Ended(ran) => ran.code,
            other => panic!("{script}: {other:?}"),
        };
        for script in ["cat /etc/os-release", "test -f /etc/passwd", "ls /etc/ssl"] {
            assert_eq!(code(script), NOT_SIMULATED, "{script}");
        }
        for script in [
            "cat /etc/hosts",
            "cd /etc",
            "test -d /etc",
            "ls /etc/config",
        ] {
            assert_eq!(code(script), 0, "{script}");
        }
        assert_eq!(code("cat /etc/config/none"), 1);
    }
}
