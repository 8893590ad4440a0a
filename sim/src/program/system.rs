//! The files that a container has from its image, its runtime and its kubelet, as far as programs are
//! asked for them.

use std::collections::BTreeMap;

use super::net::Net;
use super::seat::Seat;
use super::{Place, agnhost};
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

/// Whether a path is not there, and stands where the system has files that nobody here knows.
pub(super) fn is_unknown(place: &Place, path: &str) -> bool {
    const UNKNOWN: &[&str] = &["bin", "dev", "lib", "lib64", "proc", "sbin", "sys", "usr"];
    let first = path.trim_start_matches('/').split('/').next();
    let unknown = first.is_some_and(|first| UNKNOWN.contains(&first));
    let listed = place
        .files
        .list(path)
        .is_some_and(|names| !names.is_empty());
    place.os == Os::Linux && unknown && !listed && place.files.read(path).is_err()
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
