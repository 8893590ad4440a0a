//! Whether a kubelet lets go of the subPaths of a pod that is deleted.

use super::run::PodRun;
use crate::fault::FaultKind;
use crate::nodes::cluster::Cluster;
use crate::nodes::node::kubelet;
use crate::topology::Os;

/// Whether a handle of a folder stays open (kubernetes issue 112630).
pub(super) fn holds_sub_paths(cluster: &Cluster, run: &PodRun) -> bool {
    let held = [
        (run.suffers(FaultKind::SubPathHeld, cluster), 1),
        (run.suffers(FaultKind::SubPathsHeld, cluster), 2),
        (keeps_sub_paths(cluster, run), 2),
    ];
    let most = most_sub_paths(run);
    held.iter().any(|(held, least)| *held && most >= *least)
}

/// Whether the kubelet lets go of the last subPath of a Windows container alone, as it does before 1.37
/// (kubernetes, PR 138367).
fn keeps_sub_paths(cluster: &Cluster, run: &PodRun) -> bool {
    let version = kubelet(&run.node, &cluster.version, &cluster.faults.current());
    let minor = version
        .split('.')
        .nth(1)
        .and_then(|minor| minor.parse::<u32>().ok());
    run.node.pool.os() == Os::Windows && minor.is_some_and(|minor| minor < 37)
}

/// How many subPaths the container mounts that mounts most.
fn most_sub_paths(run: &PodRun) -> usize {
    let spec = run.pod.spec.as_ref();
    let containers = spec.into_iter().flat_map(|spec| &spec.containers);
    let counts = containers.map(|container| {
        let mounts = container.volume_mounts.iter().flatten();
        let paths = mounts.filter_map(|mount| mount.sub_path.as_ref());
        paths.filter(|path| !path.is_empty()).count()
    });
    counts.max().unwrap_or_default()
}
