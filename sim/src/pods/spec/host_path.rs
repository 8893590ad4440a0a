//! What a node has at the path of a `hostPath`: the directories of its system, and the files that pods look for.

use std::collections::BTreeMap;

use crate::nodes::files::Volume;
use crate::pods::course::run::PodRun;
use crate::topology::Os;

/// A directory of the node, with the one file that every Windows has (Microsoft, "Reset the Hosts file").
pub(super) fn volume(run: &PodRun, path: &str, name: &str) -> Volume {
    let volume = run.node.disks.volume(name);
    if run.node.pool.os() == Os::Windows && slashed(path).ends_with("/windows/system32/drivers/etc")
    {
        let hosts = b"# localhost name resolution is handled within DNS itself.\r\n".to_vec();
        volume.fill(BTreeMap::from([("hosts".to_owned(), hosts)]));
    }
    volume
}

/// What a node lacks for the type of a `hostPath`. A simulated node has the directories of its
/// operating system, and one file.
pub(super) fn lacking(os: Os, kind: &str, path: &str) -> Option<&'static str> {
    let known = match os {
        Os::Linux => &[
            "/",
            "/dev",
            "/etc",
            "/lib/modules",
            "/proc",
            "/run",
            "/sys",
            "/tmp",
            "/var",
        ][..],
        Os::Windows => &["c:", "c:/k", "c:/program files", "c:/var", "c:/windows"][..],
    };
    let plain = slashed(path);
    let within = |dir: &&&str| {
        let dir = dir.trim_end_matches('/');
        plain == dir || dir.len() > 2 && plain.starts_with(&format!("{dir}/"))
    };
    match kind {
        "Directory" if known.iter().any(|dir| within(&dir)) => None,
        "Directory" => Some("directory"),
        "File" => Some("file"),
        "Socket" => Some("socket file"),
        "CharDevice" => Some("character device"),
        "BlockDevice" => Some("block device"),
        _ => None,
    }
}

/// A path of a node as Windows compares it.
fn slashed(path: &str) -> String {
    let path = path.replace('\\', "/").to_lowercase();
    path.trim_end_matches('/').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_has_the_directories_of_its_system() {
        assert_eq!(lacking(Os::Linux, "Directory", "/var/log"), None);
        assert_eq!(lacking(Os::Linux, "Directory", "/srv"), Some("directory"));
        assert_eq!(
            lacking(Os::Windows, "Directory", "C:\\Windows\\System32"),
            None
        );
        assert_eq!(lacking(Os::Windows, "Directory", "/etc"), Some("directory"));
        assert_eq!(lacking(Os::Linux, "", "/srv"), None);
        assert_eq!(lacking(Os::Linux, "File", "/etc/passwd"), Some("file"));
    }
}
