//! The status that a kubelet reports: kubernetes 1.37.0, pkg/kubelet/nodestatus/setters.go.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use serde_json::{Value, json};

use super::boot;
use crate::fault::{FaultKind, FaultSet};
use crate::nodes::cluster::{NodeState, Readiness};
use crate::nodes::image;
use crate::pods::spec::resources::milli;
use crate::topology::{NodeSpec, Os, Pool};

/// The image of a pod's sandbox, which every node has.
const SANDBOX: &str = "registry.k8s.io/pause:3.10.1";

/// The disk of every node: 100 GiB.
pub(crate) const DISK_KI: u64 = 100 * 1024 * 1024;

/// The memory that the guide for Windows advises to reserve for the system.
const RESERVED_KI: u64 = 2 * 1024 * 1024;

/// How many minor versions a skewed kubelet is behind; Kubernetes supports three.
const SKEW: u64 = 4;

/// A kubelet's words while its node has no network.
const NO_NETWORK: &str = "container runtime network not ready: NetworkReady=false \
     reason:NetworkPluginNotReady message:Network plugin returns error: cni plugin not initialized";

/// Its words while it waits for the list of containers: pkg/kubelet/pleg/generic.go (`Healthy`), and before them those
/// of pkg/kubelet/runtime.go (`runtimeErrors`).
const NO_LIST: &str = "PLEG is not healthy: pleg was last seen active 3m7s ago; threshold is 3m0s";

/// Whether a change of faults changes a node's status.
pub(super) fn differs(node: &NodeState, before: &FaultSet, after: &FaultSet) -> bool {
    [
        FaultKind::KubeletSkewed,
        FaultKind::RuntimeDocker,
        FaultKind::ContainerdOld,
        FaultKind::HandlerUnknown,
        FaultKind::NothingReserved,
        FaultKind::HugePagesHonoured,
        FaultKind::NodeNotReady,
        FaultKind::PlegUnhealthy,
        FaultKind::MemoryPressure,
        FaultKind::ClockWrong,
    ]
    .into_iter()
    .any(|kind| node.suffers(kind, before) != node.suffers(kind, after))
}

/// The status of a node under these faults in a cluster of a version.
pub(super) fn status(node: &NodeState, version: &str, faults: &FaultSet) -> Value {
    let addresses = node.view.addresses();
    let addresses = addresses.map(|address| json!({"address": address, "type": "InternalIP"}));
    let named = json!({"address": node.name, "type": "Hostname"});
    let reserved = !node.suffers(FaultKind::NothingReserved, faults);
    let huge = node.suffers(FaultKind::HugePagesHonoured, faults);
    let stops = node.power.borrow().stops;
    let has_network = !stops && !node.suffers(FaultKind::NodeNotReady, faults);
    let why = if has_network { NO_LIST } else { NO_NETWORK };
    let ready = has_network && !node.suffers(FaultKind::PlegUnhealthy, faults);
    let now = node.time(faults);
    let pressed = node.pressed(node.suffers(FaultKind::MemoryPressure, faults), now);
    json!({
        "addresses": addresses.chain([named]).collect::<Vec<_>>(),
        "allocatable": resources(&node.spec, reserved, huge),
        "capacity": resources(&node.spec, false, huge),
        "conditions": conditions(node.ready_at(ready, now), why, pressed, now),
        "daemonEndpoints": {"kubeletEndpoint": {"Port": node.view.kubelet_port}},
        // Kubernetes 1.36: the API server then passes exec to this kubelet as WebSocket instead of SPDY
        "declaredFeatures": ["ExtendWebSocketsToKubelet"],
        "features": {"supplementalGroupsPolicy": node.pool.os() == Os::Linux},
        "images": images(node),
        "nodeInfo": info(node, version, faults),
        "runtimeHandlers": handlers(node, faults),
    })
}

/// How much of a resource a node leaves to pods, in thousandths of its unit.
pub(crate) fn allocatable(node: &NodeState, name: &str) -> Option<i128> {
    let amounts = resources(&node.spec, true, false);
    amounts.get(name).and_then(milli)
}

/// What a node has of each resource; or, with `reserved`, what it leaves to pods.
///
/// The default eviction thresholds are reserved too: 100 MiB of memory, 500 MiB on Windows, and a tenth of
/// the disk (`pkg/kubelet/eviction/defaults_linux.go`, `defaults_windows.go`).
fn resources(spec: &NodeSpec, reserved: bool, huge: bool) -> BTreeMap<String, Quantity> {
    let has = u64::from(spec.memory) * 1024;
    let pool = spec.pool;
    let (memory, disk) = match (reserved, pool.os()) {
        (false, _) => (has, format!("{DISK_KI}Ki")),
        (true, os) => {
            let memory = match os {
                Os::Linux => has.saturating_sub(100 * 1024),
                Os::Windows => has.saturating_sub(RESERVED_KI + 500 * 1024),
            };
            (memory, (DISK_KI * 1024 / 10 * 9).to_string())
        }
    };
    let mut resources = vec![
        ("cpu", spec.cpus.to_string()),
        ("memory", format!("{memory}Ki")),
        ("pods", spec.pods.to_string()),
        ("ephemeral-storage", disk),
    ];
    let others = spec.resources.iter();
    resources.extend(others.map(|(name, amount)| (name.as_str(), amount.to_string())));
    if huge {
        resources.push(("hugepages-2Mi", "64Mi".to_owned()));
    }
    if pool.os() == Os::Linux {
        resources.extend(["hugepages-1Gi", "hugepages-2Mi"].map(|name| (name, "0".to_owned())));
    }
    resources
        .into_iter()
        .map(|(name, amount)| (name.to_owned(), Quantity(amount)))
        .collect()
}

/// The conditions of a node; `why` says why it is not ready.
fn conditions(
    readiness: Readiness,
    why: &str,
    pressed: Option<Timestamp>,
    now: Timestamp,
) -> [Value; 4] {
    let of = |named: &str, is: bool, reason: &str, message: &str, since| {
        let status = if is { "True" } else { "False" };
        json!({"lastHeartbeatTime": now, "lastTransitionTime": since, "message": message,
            "reason": reason, "status": status, "type": named})
    };
    let (short, reason) = match pressed {
        Some(_) => ("insufficient", "KubeletHasInsufficientMemory"),
        None => ("sufficient", "KubeletHasSufficientMemory"),
    };
    let memory = format!("kubelet has {short} memory available");
    let (is_short, since) = (pressed.is_some(), pressed.unwrap_or(readiness.first));
    let (no_disk, no_pid) = ("KubeletHasNoDiskPressure", "KubeletHasSufficientPID");
    let disk = "kubelet has no disk pressure";
    let processes = "kubelet has sufficient PID available";
    let (ready, words) = match readiness.ready {
        true => ("KubeletReady", "kubelet is posting ready status"),
        false => ("KubeletNotReady", why),
    };
    [
        of("MemoryPressure", is_short, reason, &memory, since),
        of("DiskPressure", false, no_disk, disk, readiness.first),
        of("PIDPressure", false, no_pid, processes, readiness.first),
        of("Ready", readiness.ready, ready, words, readiness.since),
    ]
}

/// The pulled images, the largest first, and no more than a kubelet reports.
fn images(node: &NodeState) -> Vec<Value> {
    const MOST: usize = 50;
    let mut references = node.pulled();
    if !references.iter().any(|reference| reference == SANDBOX) {
        references.push(SANDBOX.to_owned());
    }
    let images = references.iter();
    let images = images.filter_map(|reference| image::resolve(reference, node.pool).ok());
    let mut images: Vec<_> = images.collect();
    images.sort_by_key(|image| Reverse(image.bytes));
    let images = images.into_iter().take(MOST);
    images
        .map(|image| json!({"names": [image.reference], "sizeBytes": image.bytes}))
        .collect()
}

/// The handlers of the runtime, as containerd 2 lists those of its configuration: the default twice, once without
/// a name (`introspectRuntimeHandlers` in internal/cri/server/service.go).
fn handlers(node: &NodeState, faults: &FaultSet) -> Vec<Value> {
    let spec = &node.spec;
    let own = match node.pool.os() {
        Os::Linux => "runc",
        Os::Windows => "runhcs-wcow-process",
    };
    let names: Vec<_> = if node.suffers(FaultKind::RuntimeDocker, faults) {
        Vec::new()
    } else if node.suffers(FaultKind::HandlerUnknown, faults) {
        vec![""]
    } else if spec.reported_handlers.is_empty() {
        let more = spec.handlers.iter().map(String::as_str);
        ["", own].into_iter().chain(more).collect()
    } else {
        spec.reported_handlers.iter().map(String::as_str).collect()
    };
    names.iter().map(|name| json!({"name": name})).collect()
}

fn info(node: &NodeState, version: &str, faults: &FaultSet) -> Value {
    let (os_image, kernel) = match node.pool {
        Pool::Linux => (
            "Debian GNU/Linux 13 (trixie)".to_owned(),
            crate::topology::LINUX_KERNEL,
        ),
        Pool::Windows(build) => (
            format!("Windows Server {} Datacenter", build.year()),
            build.kernel_version(),
        ),
    };
    json!({
        "architecture": "amd64", "bootID": boot::id(node), "containerRuntimeVersion": runtime(node, faults),
        "kernelVersion": kernel, "kubeProxyVersion": "",
        "kubeletVersion": kubelet(node, version, faults), "machineID": node.name,
        "operatingSystem": node.pool.os().name(), "osImage": os_image, "systemUUID": node.name,
    })
}

/// A node's container runtime with its version.
pub(crate) fn runtime<'n>(node: &'n NodeState, faults: &FaultSet) -> &'n str {
    if node.suffers(FaultKind::RuntimeDocker, faults) {
        "docker://18.9.9"
    } else if node.suffers(FaultKind::ContainerdOld, faults) {
        "containerd://1.6.18"
    } else {
        &node.spec.runtime
    }
}

/// The version of a node's kubelet in a cluster of a version.
pub(crate) fn kubelet(node: &NodeState, version: &str, faults: &FaultSet) -> String {
    let version = node.spec.kubelet.as_deref().unwrap_or(version);
    let skewed = node.suffers(FaultKind::KubeletSkewed, faults);
    let older = older(version).filter(|_| skewed);
    older.unwrap_or_else(|| version.to_owned())
}

/// A version that is too many minor versions older than one such as `v1.37.0`.
fn older(version: &str) -> Option<String> {
    let (major, rest) = version.split_once('.')?;
    let minor: u64 = rest.split('.').next()?.parse().ok()?;
    Some(format!("{major}.{}.0", minor.checked_sub(SKEW)?))
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{NodeCondition, NodeStatus};

    use super::*;
    use crate::nodes::cluster::tests::node_of;
    use crate::nodes::node::read;
    use crate::topology::Build;

    const WINDOWS: Pool = Pool::Windows(Build::Ws2022);

    fn node(pool: Pool) -> NodeState {
        node_of(NodeSpec::new("n", pool))
    }

    fn reported(pool: Pool, faults: &[crate::fault::ProductFault]) -> NodeStatus {
        read(status(
            &node(pool),
            "v1.37.0",
            &faults.iter().cloned().collect(),
        ))
    }

    fn memory(status: &NodeStatus) -> (u64, u64) {
        let of = |list: &Option<BTreeMap<String, Quantity>>| {
            let Quantity(text) = &list.as_ref().expect("a list")["memory"];
            text.strip_suffix("Ki")
                .expect("in Ki")
                .parse()
                .expect("a number")
        };
        (of(&status.capacity), of(&status.allocatable))
    }

    fn ready(status: &NodeStatus) -> &NodeCondition {
        let conditions = status.conditions.as_ref().expect("conditions");
        conditions
            .iter()
            .find(|one| one.type_ == "Ready")
            .expect("Ready")
    }

    #[test]
    fn a_healthy_windows_node_is_as_the_guide_advises() {
        let status = reported(WINDOWS, &[]);
        let (capacity, allocatable) = memory(&status);
        assert_eq!(capacity - allocatable, (2048 + 500) * 1024);
        let info = status.node_info.as_ref().expect("info");
        assert_eq!(info.kubelet_version, "v1.37.0");
        assert_eq!(info.container_runtime_version, "containerd://2.1.0");
        assert_eq!(ready(&status).status, "True");
        let images = status.images.as_ref().expect("images");
        assert_eq!(images[0].names, Some(vec![SANDBOX.to_owned()]));
        let (capacity, allocatable) = memory(&reported(Pool::Linux, &[]));
        assert_eq!(capacity - allocatable, 100 * 1024);
    }

    #[test]
    fn each_fault_shows_in_its_place_on_its_pool_alone() {
        let faults = [
            FaultKind::KubeletSkewed.on(WINDOWS),
            FaultKind::RuntimeDocker.on(WINDOWS),
            FaultKind::NothingReserved.on(WINDOWS),
            FaultKind::NodeNotReady.on(WINDOWS),
            FaultKind::PlegUnhealthy.on(WINDOWS),
        ];
        let status = reported(WINDOWS, &faults);
        let info = status.node_info.as_ref().expect("info");
        assert_eq!(info.kubelet_version, "v1.33.0");
        assert_eq!(info.container_runtime_version, "docker://18.9.9");
        assert_eq!(status.allocatable, status.capacity);
        assert_eq!(ready(&status).reason.as_deref(), Some("KubeletNotReady"));

        let other = reported(Pool::Linux, &faults);
        let healthy = reported(Pool::Linux, &[]);
        assert_eq!(other.node_info, healthy.node_info);
        assert_eq!(other.allocatable, healthy.allocatable);
        assert_eq!(ready(&other).status, "True");
        for fault in faults {
            let one = FaultSet::from_iter([fault.clone()]);
            assert!(
                differs(&node(WINDOWS), &FaultSet::default(), &one),
                "{fault}"
            );
            assert!(
                !differs(&node(Pool::Linux), &FaultSet::default(), &one),
                "{fault}"
            );
        }
    }

    #[test]
    fn a_kubelet_says_why_its_node_is_not_ready() {
        let kinds = [FaultKind::NodeNotReady, FaultKind::PlegUnhealthy];
        let said = kinds.map(|kind| {
            let status = reported(WINDOWS, &[kind.on(WINDOWS)]);
            ready(&status).message.clone().expect("a message")
        });
        assert!(said[0].ends_with("cni plugin not initialized"), "{said:?}");
        assert_eq!(
            said[1],
            "PLEG is not healthy: pleg was last seen active 3m7s ago; threshold is 3m0s"
        );
    }

    #[test]
    fn a_condition_keeps_the_time_of_its_last_change() {
        let node = node(WINDOWS);
        let second = |number| Timestamp::from_second(number).expect("a time");
        for (ready, now, since) in [(true, 1, 1), (true, 2, 1), (false, 3, 3), (false, 4, 3)] {
            let readiness = node.ready_at(ready, second(now));
            assert_eq!(readiness.since, second(since), "at {now}");
            let conditions = conditions(readiness, NO_NETWORK, None, second(now));
            for condition in conditions {
                let since = if condition["type"] == "Ready" {
                    since
                } else {
                    1
                };
                assert_eq!(condition["lastTransitionTime"], json!(second(since)));
            }
        }
    }

    #[test]
    fn versions_get_older() {
        assert_eq!(older("v1.36.4").as_deref(), Some("v1.32.0"));
        assert_eq!(older("v1.38.0-alpha.1+x").as_deref(), Some("v1.34.0"));
        assert_eq!(older("unknown"), None);
    }
}
