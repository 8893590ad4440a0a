//! What is broken, and what that turns.

use serde_json::{Value as Json, json};

use super::scene::{SERVERCORE, Scene, pod};
use super::{Broken, Fail, Row, Skip, Warn};

pub(crate) const ROWS: &[Row] = &[
    Row {
        is: "as it should be",
        by: |_| {},
        turns: &[],
        tells: &[],
    },
    Row {
        is: "a managed cluster without nodes of the control plane",
        by: |scene| {
            scene.without("env-cp-0");
            scene.dns().as_array_mut().expect("a list").remove(0);
        },
        turns: &[("env.control-plane-linux", Skip)],
        tells: &["env.provisioning-time"],
    },
    Row {
        is: "a Windows node of the control plane",
        by: |scene| {
            label(
                scene,
                "env-w22-0",
                "node-role.kubernetes.io/control-plane",
                json!(""),
            );
        },
        turns: &[("env.control-plane-linux", Fail)],
        tells: &[],
    },
    Row {
        is: "every Windows node is cordoned",
        by: |scene| {
            for name in ["env-w22-0", "env-w22-1", "env-w25-0"] {
                scene.node(name)["spec"]["unschedulable"] = json!(true);
                let taints = scene.node(name)["spec"]["taints"]
                    .as_array_mut()
                    .expect("a list");
                taints.push(
                    json!({"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}),
                );
            }
        },
        turns: &[("env.hybrid-nodes", Fail)],
        tells: &[],
    },
    Row {
        is: "a node that is not Ready",
        by: |scene| ready(scene, "env-w22-1", "False"),
        turns: &[("env.all-nodes-healthy", Fail)],
        tells: &["env.provisioning-time"],
    },
    Row {
        is: "a Linux node whose kubelet is silent",
        by: |scene| ready(scene, "env-lin-0", "Unknown"),
        turns: &[("env.all-nodes-healthy", Fail)],
        tells: &["env.provisioning-time"],
    },
    Row {
        is: "a node without the label kubernetes.io/arch",
        by: |scene| label(scene, "env-w25-0", "kubernetes.io/arch", Json::Null),
        turns: &[("env.node-labels", Fail)],
        tells: &[],
    },
    Row {
        is: "a Windows node labelled as Linux",
        by: |scene| label(scene, "env-w25-0", "kubernetes.io/os", json!("linux")),
        turns: &[("env.node-labels", Fail)],
        tells: &[],
    },
    Row {
        is: "a build label of another build",
        by: |scene| label(scene, "env-w22-1", BUILD, json!("10.0.17763")),
        turns: &[("env.windows-build-label[pool=windows-2022]", Fail)],
        tells: &[],
    },
    Row {
        is: "no build label",
        by: |scene| label(scene, "env-w25-0", BUILD, Json::Null),
        turns: &[("env.windows-build-label[pool=windows-2025]", Fail)],
        tells: &[],
    },
    Row {
        is: "Windows Server 2019",
        by: |scene| scene.windows("env-w19-0", "10.0.17763"),
        turns: &[("env.os-version-supported[pool=windows-2019]", Skip)],
        tells: &["env.provisioning-time"],
    },
    Row {
        is: "the Annual Channel's 23H2",
        by: |scene| scene.windows("env-w23-0", "10.0.25398"),
        turns: &[
            ("env.os-version-supported[pool=windows-25398]", Fail),
            // No rule says which image runs there
            ("env.pause-image[pool=windows-25398]", Skip),
        ],
        tells: &["env.provisioning-time"],
    },
    Row {
        is: "a Windows node without a kernel version",
        by: |scene| {
            scene.windows("env-w22-2", "10.0.20348");
            info(scene, "env-w22-2", "kernelVersion", "");
        },
        turns: UNREADABLE_BUILD,
        tells: &["env.provisioning-time"],
    },
    Row {
        is: "containerd 1.3",
        by: |scene| {
            info(
                scene,
                "env-w22-0",
                "containerRuntimeVersion",
                "containerd://1.3.9",
            );
        },
        turns: &[("env.container-runtime[pool=windows-2022]", Fail)],
        tells: &[],
    },
    Row {
        is: "Docker as dockershim had it",
        by: |scene| {
            info(
                scene,
                "env-w25-0",
                "containerRuntimeVersion",
                "docker://19.3.14",
            );
        },
        turns: &[("env.container-runtime[pool=windows-2025]", Fail)],
        tells: &[],
    },
    Row {
        is: "Mirantis Container Runtime, or a Docker Engine",
        by: |scene| {
            info(
                scene,
                "env-w25-0",
                "containerRuntimeVersion",
                "docker://25.0.8",
            );
        },
        turns: &[("env.container-runtime[pool=windows-2025]", Skip)],
        tells: &[],
    },
    Row {
        is: "a runtime that does not say its version",
        by: |scene| {
            info(
                scene,
                "env-w25-0",
                "containerRuntimeVersion",
                "containerd://Unknown",
            );
        },
        turns: &[("env.container-runtime[pool=windows-2025]", Broken)],
        tells: &[],
    },
    Row {
        is: "a kubelet that is too old",
        by: |scene| info(scene, "env-lin-0", "kubeletVersion", "v1.32.9"),
        turns: &[("env.version-skew", Fail)],
        tells: &[],
    },
    Row {
        is: "a kubelet newer than the API server",
        by: |scene| info(scene, "env-lin-0", "kubeletVersion", "v1.40.0"),
        turns: &[("env.version-skew", Fail)],
        tells: &[],
    },
    Row {
        is: "GKE's taint",
        by: |scene| {
            taints(
                scene,
                "env-w25-0",
                json!([
            {"key": "node.kubernetes.io/os", "value": "windows", "effect": "NoSchedule"}]),
            );
        },
        turns: &[],
        tells: &[],
    },
    Row {
        is: "no taint",
        by: |scene| taints(scene, "env-w25-0", json!([])),
        turns: &[("env.windows-taint[pool=windows-2025]", Warn)],
        tells: &[],
    },
    Row {
        is: "a taint that is only preferred",
        by: |scene| {
            taints(
                scene,
                "env-w22-0",
                json!([
            {"key": "os", "value": "windows", "effect": "PreferNoSchedule"}]),
            );
        },
        turns: &[("env.windows-taint[pool=windows-2022]", Warn)],
        tells: &[],
    },
    Row {
        is: "all memory is allocatable",
        by: |scene| memory(scene, "env-w22-0", "16777216Ki"),
        turns: &[
            ("env.node-allocatable[pool=windows-2022]", Fail),
            ("env.system-reserved[pool=windows-2022]", Warn),
        ],
        tells: &["env.kubelet-flags[pool=windows-2022]"],
    },
    Row {
        is: "100 MiB reserved",
        by: |scene| memory(scene, "env-w25-0", "16674816Ki"),
        turns: &[("env.system-reserved[pool=windows-2025]", Warn)],
        tells: &["env.kubelet-flags[pool=windows-2025]"],
    },
    Row {
        is: "memory pressure",
        by: |scene| scene.node("env-w22-0")["status"]["conditions"][1]["status"] = json!("True"),
        turns: &[],
        tells: &["env.memory-pressure[pool=windows-2022]"],
    },
    Row {
        is: "a node-problem-detector",
        by: |scene| {
            let mut detector = pod("env-npd", "env-w22-1");
            detector["spec"]["containers"][0]["image"] =
                json!("registry.k8s.io/node-problem-detector/node-problem-detector:v0.8.19");
            scene.pod(detector);
        },
        turns: &[],
        tells: &["env.node-problem-detector[pool=windows-2022]"],
    },
    Row {
        is: "a pause image without Windows Server 2025",
        by: |scene| {
            scene.node("env-w25-0")["status"]["images"][1]["names"] =
                json!(["registry.k8s.io/pause:3.10"]);
        },
        turns: &[],
        tells: &["env.pause-image[pool=windows-2025]"],
    },
    Row {
        is: "no base image",
        by: |scene| {
            scene.node("env-w22-1")["status"]["images"][0]["names"] = json!(["example.com/app:1"]);
        },
        turns: &[("env.image-pull[pool=windows-2022]", Warn)],
        tells: &[],
    },
    Row {
        is: "another revision",
        by: |scene| info(scene, "env-w22-1", "kernelVersion", "10.0.20348.1"),
        turns: &[],
        tells: &["env.patch-level[pool=windows-2022]"],
    },
    Row {
        is: "a network plugin that no rule recognises",
        by: |scene| scene.without("kube-flannel-ds"),
        turns: &[("env.overlay-vni", Skip)],
        tells: &["env.cni"],
    },
    Row {
        is: "Flannel by routes",
        by: |scene| flannel(scene, r#"{"Backend": {"Type": "host-gw"}}"#),
        turns: &[("env.overlay-vni", Skip)],
        tells: &["env.cni"],
    },
    Row {
        is: "Flannel with its defaults",
        by: |scene| flannel(scene, r#"{"Backend": {"Type": "vxlan"}}"#),
        turns: &[],
        tells: &["env.cni", "env.overlay-vni"],
    },
    Row {
        is: "no configuration of kube-proxy",
        by: |scene| scene.without("kube-proxy"),
        turns: &[],
        tells: &["env.kube-proxy"],
    },
    Row {
        is: "kube-proxy in another mode",
        by: |scene| {
            let config = "kind: KubeProxyConfiguration\nmode: nftables\n";
            scene.config("kube-proxy")["data"]["config.conf"] = json!(config);
        },
        turns: &[],
        tells: &["env.kube-proxy"],
    },
    Row {
        is: "the DNS on a Windows node",
        by: |scene| scene.dns()[0]["nodeName"] = json!("env-w22-0"),
        turns: &[("env.cluster-dns-on-linux", Fail)],
        tells: &[],
    },
    Row {
        is: "one of two DNS endpoints not ready",
        by: |scene| scene.dns()[0]["conditions"]["ready"] = json!(false),
        turns: &[],
        tells: &[],
    },
    Row {
        is: "no DNS endpoint ready",
        by: |scene| {
            scene.dns()[0]["conditions"]["ready"] = json!(false);
            scene.dns()[1]["conditions"]["ready"] = json!(false);
        },
        turns: &[("env.cluster-dns-on-linux", Fail)],
        tells: &[],
    },
    Row {
        is: "no Service of the DNS",
        by: |scene| {
            scene.without("kube-dns");
            scene.without("kube-dns-env");
        },
        turns: &[("env.cluster-dns-on-linux", Broken)],
        tells: &[],
    },
    Row {
        is: "a Windows pod with IPv6 only",
        by: |scene| {
            let mut pod = pod("env-six", "env-w25-0");
            pod["status"]["podIP"] = json!("fd00::7");
            pod["status"]["podIPs"] = json!([{"ip": "fd00::7"}]);
            scene.pod(pod);
        },
        turns: &[("env.ip-family", Fail)],
        tells: &[],
    },
    Row {
        is: "a Windows pod with both families",
        by: |scene| {
            let mut pod = pod("env-dual", "env-w25-0");
            pod["status"]["podIPs"] = json!([{"ip": "10.244.9.7"}, {"ip": "fd00::7"}]);
            scene.pod(pod);
        },
        turns: &[],
        tells: &[],
    },
    Row {
        is: "no Windows pod, and podCIDRs of IPv6 only",
        by: |scene| {
            scene.without_pods();
            let spec = &mut scene.node("env-w22-0")["spec"];
            spec["podCIDR"] = json!("fd00:9::/64");
            spec["podCIDRs"] = json!(["fd00:9::/64"]);
        },
        turns: &[
            ("env.ip-family", Fail),
            ("env.requests-set", Skip),
            ("env.workloads-declare-os", Skip),
        ],
        tells: &[],
    },
    Row {
        is: "a Windows pod without OS",
        by: |scene| {
            let mut pod = pod("env-any", "env-w22-0");
            pod["spec"]["os"] = Json::Null;
            scene.pod(pod);
        },
        turns: &[("env.workloads-declare-os", Warn)],
        tells: &[],
    },
    Row {
        is: "a Windows pod that selects no OS",
        by: |scene| {
            let mut pod = pod("env-any", "env-w22-0");
            pod["spec"]["nodeSelector"] = Json::Null;
            scene.pod(pod);
        },
        turns: &[("env.workloads-declare-os", Warn)],
        tells: &[],
    },
    Row {
        is: "a Windows pod without requests",
        by: |scene| {
            let mut pod = pod("env-free", "env-w22-0");
            pod["spec"]["containers"][0]["resources"] = json!({});
            scene.pod(pod);
        },
        turns: &[("env.requests-set", Warn)],
        tells: &[],
    },
    Row {
        is: "a Windows pod with higher limits than requests",
        by: |scene| {
            let mut pod = pod("env-free", "env-w22-0");
            pod["spec"]["containers"][0]["resources"]["limits"]["memory"] = json!("1Gi");
            scene.pod(pod);
        },
        turns: &[("env.requests-set", Warn)],
        tells: &[],
    },
    Row {
        is: "a pull of a base image that was seen",
        by: |scene| {
            let message = format!(
                "Successfully pulled image \"{SERVERCORE}\" in 1m33.4s (1m33.4s including waiting). Image size: 5000000000 bytes."
            );
            scene.event(json!({
                "apiVersion": "v1", "kind": "Event", "metadata": {"name": "env-pull"},
                "involvedObject": {"kind": "Pod", "namespace": "default", "name": "env-pod-0"},
                "type": "Normal", "reason": "Pulled", "message": message,
                "source": {"component": "kubelet", "host": "env-w22-0"},
            }));
        },
        turns: &[],
        tells: &["env.image-pull[pool=windows-2022]"],
    },
    Row {
        is: "Linux alone",
        by: |scene| {
            scene.without_pods();
            for name in ["env-w22-0", "env-w22-1", "env-w25-0"] {
                scene.without(name);
            }
        },
        turns: LINUX_ALONE,
        tells: &["env.provisioning-time"],
    },
];

/// Without Windows nodes the cases over pools are one skipped check each.
const LINUX_ALONE: &[(&str, super::Verdict)] = &[
    ("env.container-runtime", Skip),
    ("env.hybrid-nodes", Fail),
    ("env.image-pull", Skip),
    ("env.ip-family", Skip),
    ("env.kubelet-flags", Skip),
    ("env.memory-pressure", Skip),
    ("env.node-allocatable", Skip),
    ("env.node-problem-detector", Skip),
    ("env.os-version-supported", Skip),
    ("env.patch-level", Skip),
    ("env.pause-image", Skip),
    ("env.requests-set", Skip),
    ("env.system-reserved", Skip),
    ("env.windows-build-label", Skip),
    ("env.windows-taint", Skip),
    ("env.workloads-declare-os", Skip),
];

/// A pool of nodes whose build cannot be read is told nothing of.
const UNREADABLE_BUILD: &[(&str, super::Verdict)] = &[
    ("env.container-runtime[pool=windows-unknown]", Broken),
    ("env.image-pull[pool=windows-unknown]", Broken),
    ("env.kubelet-flags[pool=windows-unknown]", Broken),
    ("env.memory-pressure[pool=windows-unknown]", Broken),
    ("env.node-allocatable[pool=windows-unknown]", Broken),
    ("env.node-problem-detector[pool=windows-unknown]", Broken),
    ("env.os-version-supported[pool=windows-unknown]", Broken),
    ("env.patch-level[pool=windows-unknown]", Broken),
    ("env.pause-image[pool=windows-unknown]", Broken),
    ("env.system-reserved[pool=windows-unknown]", Broken),
    ("env.windows-build-label[pool=windows-unknown]", Broken),
    ("env.windows-taint[pool=windows-unknown]", Broken),
];

const BUILD: &str = "node.kubernetes.io/windows-build";

fn label(scene: &mut Scene, node: &str, label: &str, value: Json) {
    let labels = scene.node(node)["metadata"]["labels"].as_object_mut();
    let labels = labels.expect("a mapping");
    match value {
        Json::Null => drop(labels.remove(label)),
        value => drop(labels.insert(label.to_owned(), value)),
    }
}

fn info(scene: &mut Scene, node: &str, key: &str, value: &str) {
    scene.node(node)["status"]["nodeInfo"][key] = json!(value);
}

fn taints(scene: &mut Scene, node: &str, taints: Json) {
    scene.node(node)["spec"]["taints"] = taints;
}

fn memory(scene: &mut Scene, node: &str, allocatable: &str) {
    scene.node(node)["status"]["allocatable"]["memory"] = json!(allocatable);
}

fn ready(scene: &mut Scene, node: &str, status: &str) {
    scene.node(node)["status"]["conditions"][0]["status"] = json!(status);
}

fn flannel(scene: &mut Scene, config: &str) {
    scene.config("kube-flannel-cfg")["data"]["net-conf.json"] = json!(config);
}
