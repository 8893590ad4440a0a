//! The project's `env.*` cases on facts made by hand: each row breaks one thing and names every
//! check that turns, and every piece of evidence that tells something else.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

use serde_json::{Value as Json, json};
use winconform_core::claims::Kind;
use winconform_core::config::Config;
use winconform_core::facts::{
    ClusterDns, Cni, CniMode, ConditionFact, DnsEndpoint, Facts, Known, KubeProxy, NodeDetails,
    NodeFact, Os, PoolName, PullFact, Vxlan, WindowsBuild, WorkloadsFact,
};
use winconform_core::plan::{Fate, plan};
use winconform_core::suite::Suites;
use winconform_core::verdict::Verdict::{self, Broken, Fail, Pass, Recorded, Skip, Warn};
use winconform_core::verdict::judge;
use winconform_core::way::fact::{PullsSeen, Saw};
use winconform_core::way::{
    Bound, Fact, FactExpect, FactSeen, Reply, Request, Standing, Topic, Trouble, Way,
};

use crate::claims::project_suites;

/// What a check came to, with the observation or the reason why there is none.
type Outcome = (Kind, Verdict, Json);

/// One thing that is otherwise than in a healthy cluster.
struct Row {
    is: &'static str,
    by: fn(&mut Facts),
    turns: &'static [(&'static str, Verdict)],
    /// Evidence that tells something else, besides what turns.
    tells: &'static [&'static str],
}

const ROWS: &[Row] = &[
    Row {
        is: "as it should be",
        by: |_| {},
        turns: &[],
        tells: &[],
    },
    Row {
        is: "no node of the control plane is shown",
        by: |facts| {
            for n in nodes(facts) {
                n.details.control_plane = false;
            }
        },
        turns: &[("env.control-plane-linux", Skip)],
        tells: &[],
    },
    Row {
        is: "a Windows node is of the control plane",
        by: |facts| node(facts, "w22-0").details.control_plane = true,
        turns: &[("env.control-plane-linux", Fail)],
        tells: &[],
    },
    Row {
        is: "every Linux node is cordoned",
        by: |facts| {
            nodes(facts)
                .iter_mut()
                .filter(|n| n.os == Os::Linux)
                .for_each(|n| n.usable = false);
        },
        turns: &[("env.hybrid-nodes", Fail)],
        tells: &[],
    },
    Row {
        is: "no Windows node at all",
        by: |facts| {
            nodes(facts).retain(|node| node.os == Os::Linux);
            let workloads = value(&mut facts.workloads);
            *workloads = WorkloadsFact {
                pods: 9,
                ..WorkloadsFact::default()
            };
        },
        turns: &[
            ("env.hybrid-nodes", Fail),
            ("env.ip-family", Skip),
            ("env.requests-set", Skip),
            ("env.workloads-declare-os", Skip),
        ],
        tells: &["env.provisioning-time"],
    },
    Row {
        is: "a node that is not Ready",
        by: |facts| {
            let node = node(facts, "w22-0");
            node.usable = false;
            node.details.conditions[0].status = "False".into();
            node.details.conditions[0].reason = "KubeletNotReady".into();
        },
        turns: &[("env.all-nodes-healthy", Fail)],
        tells: &["env.provisioning-time"],
    },
    Row {
        is: "a node that does not say what it runs",
        by: |facts| value(&mut facts.silent_nodes).push("new-0".to_owned()),
        turns: &[("env.all-nodes-healthy", Fail)],
        tells: &[],
    },
    Row {
        is: "nodes that do not say what they run are not told",
        by: |facts| facts.silent_nodes = Known::default(),
        turns: &[("env.all-nodes-healthy", Broken)],
        tells: &[],
    },
    Row {
        is: "a node without the condition Ready",
        by: |facts| node(facts, "lin-0").details.conditions.clear(),
        turns: &[("env.all-nodes-healthy", Fail)],
        tells: &["env.provisioning-time"],
    },
    Row {
        is: "a node without the label kubernetes.io/os",
        by: |facts| {
            drop(
                node(facts, "lin-0")
                    .details
                    .labels
                    .remove("kubernetes.io/os"),
            );
        },
        turns: &[("env.node-labels", Fail)],
        tells: &[],
    },
    Row {
        is: "a node with another architecture in its label",
        by: |facts| label(facts, "w25-0", "kubernetes.io/arch", "arm64"),
        turns: &[("env.node-labels", Fail)],
        tells: &[],
    },
    Row {
        is: "a Windows node labelled as Linux",
        by: |facts| label(facts, "w22-1", "kubernetes.io/os", "linux"),
        turns: &[("env.node-labels", Fail)],
        tells: &[],
    },
    Row {
        is: "a build label of another build",
        by: |facts| {
            label(
                facts,
                "w22-0",
                "node.kubernetes.io/windows-build",
                "10.0.17763",
            );
        },
        turns: &[("env.windows-build-label[pool=windows-2022]", Fail)],
        tells: &[],
    },
    Row {
        is: "a build label with the revision",
        by: |facts| {
            label(
                facts,
                "w25-0",
                "node.kubernetes.io/windows-build",
                "10.0.26100.1",
            );
        },
        turns: &[("env.windows-build-label[pool=windows-2025]", Fail)],
        tells: &[],
    },
    Row {
        is: "no build label",
        by: |facts| {
            drop(
                node(facts, "w22-1")
                    .details
                    .labels
                    .remove("node.kubernetes.io/windows-build"),
            );
        },
        turns: &[("env.windows-build-label[pool=windows-2022]", Fail)],
        tells: &[],
    },
    Row {
        is: "Windows Server 2022 with Kubernetes 1.14",
        by: |facts| version(facts, "v1.14.10"),
        turns: &[
            ("env.os-version-supported[pool=windows-2022]", Fail),
            ("env.os-version-supported[pool=windows-2025]", Fail),
        ],
        tells: &[
            "env.memory-pressure[pool=windows-2022]",
            "env.memory-pressure[pool=windows-2025]",
        ],
    },
    Row {
        is: "a Windows Server 2025 with Kubernetes 1.34, whose documents do not name it",
        by: |facts| version(facts, "v1.34.7"),
        turns: &[("env.os-version-supported[pool=windows-2025]", Skip)],
        tells: &[
            "env.memory-pressure[pool=windows-2022]",
            "env.memory-pressure[pool=windows-2025]",
        ],
    },
    Row {
        is: "a server of a version that is not told",
        by: |facts| facts.server = unknown("/version: status 500: etcd"),
        turns: &[
            ("env.os-version-supported[pool=windows-2022]", Broken),
            ("env.os-version-supported[pool=windows-2025]", Broken),
            ("env.version-skew", Broken),
        ],
        tells: &[],
    },
    Row {
        is: "containerd 1.3",
        by: |facts| node(facts, "w22-0").details.runtime = "containerd://1.3.9".into(),
        turns: &[("env.container-runtime[pool=windows-2022]", Fail)],
        tells: &[],
    },
    Row {
        is: "Docker by dockershim's last version",
        by: |facts| node(facts, "w25-0").details.runtime = "docker://19.3.14".into(),
        turns: &[("env.container-runtime[pool=windows-2025]", Fail)],
        tells: &[],
    },
    Row {
        is: "Mirantis Container Runtime, or a Docker Engine",
        by: |facts| node(facts, "w25-0").details.runtime = "docker://23.0.9-3".into(),
        turns: &[("env.container-runtime[pool=windows-2025]", Skip)],
        tells: &[],
    },
    Row {
        is: "dockershim where the kubelet had it",
        by: |facts| {
            node(facts, "w25-0").details.runtime = "docker://18.09.7".into();
            node(facts, "w25-0").details.kubelet = "v1.23.17".into();
        },
        turns: &[("env.version-skew", Fail)],
        tells: &["env.memory-pressure[pool=windows-2025]"],
    },
    Row {
        is: "a runtime that does not say its version",
        by: |facts| node(facts, "w25-0").details.runtime = "containerd://Unknown".into(),
        turns: &[("env.container-runtime[pool=windows-2025]", Broken)],
        tells: &[],
    },
    Row {
        is: "a kubelet three minor versions older",
        by: |facts| node(facts, "lin-0").details.kubelet = "v1.34.9".into(),
        turns: &[],
        tells: &[],
    },
    Row {
        is: "a kubelet four minor versions older",
        by: |facts| node(facts, "lin-0").details.kubelet = "v1.33.9".into(),
        turns: &[("env.version-skew", Fail)],
        tells: &[],
    },
    Row {
        is: "a kubelet that does not say its version",
        by: |facts| node(facts, "lin-0").details.kubelet = "master".into(),
        turns: &[("env.version-skew", Broken)],
        tells: &[],
    },
    Row {
        is: "a kubelet that does not say its version, and one that is too old",
        by: |facts| {
            node(facts, "lin-0").details.kubelet = "master".into();
            node(facts, "w25-0").details.kubelet = "v1.33.9".into();
        },
        turns: &[("env.version-skew", Fail)],
        tells: &["env.memory-pressure[pool=windows-2025]"],
    },
    Row {
        is: "a runtime that does not say its version, and one that is too old",
        by: |facts| {
            node(facts, "w22-0").details.runtime = "containerd://Unknown".into();
            node(facts, "w22-1").details.runtime = "containerd://1.3.9".into();
        },
        turns: &[("env.container-runtime[pool=windows-2022]", Fail)],
        tells: &[],
    },
    Row {
        is: "a runtime too old under a kubelet that does not say its version",
        by: |facts| {
            node(facts, "w25-0").details.runtime = "containerd://1.3.9".into();
            node(facts, "w25-0").details.kubelet = "master".into();
        },
        turns: &[
            ("env.container-runtime[pool=windows-2025]", Fail),
            ("env.version-skew", Broken),
        ],
        tells: &["env.memory-pressure[pool=windows-2025]"],
    },
    Row {
        is: "Docker under a kubelet that does not say whether it has dockershim",
        by: |facts| {
            node(facts, "w25-0").details.runtime = "docker://18.09.7".into();
            node(facts, "w25-0").details.kubelet = "master".into();
        },
        turns: &[
            ("env.container-runtime[pool=windows-2025]", Broken),
            ("env.version-skew", Broken),
        ],
        tells: &["env.memory-pressure[pool=windows-2025]"],
    },
    Row {
        is: "memory that is no quantity on one node, and none reserved on another",
        by: |facts| {
            allocatable(facts, "w22-0", "much");
            allocatable(facts, "w22-1", "16777216Ki");
        },
        turns: &[
            ("env.kubelet-flags[pool=windows-2022]", Broken),
            ("env.node-allocatable[pool=windows-2022]", Fail),
            ("env.system-reserved[pool=windows-2022]", Warn),
        ],
        tells: &[],
    },
    Row {
        is: "silent nodes that are not told, and a node that is not Ready",
        by: |facts| {
            facts.silent_nodes = Known::default();
            node(facts, "lin-0").details.conditions[0].status = "False".into();
        },
        turns: &[("env.all-nodes-healthy", Fail)],
        tells: &["env.provisioning-time"],
    },
    Row {
        is: "a kubelet newer than the server",
        by: |facts| node(facts, "lin-0").details.kubelet = "v1.38.0-alpha.1".into(),
        turns: &[("env.version-skew", Fail)],
        tells: &[],
    },
    Row {
        is: "GKE's taint",
        by: |facts| {
            taint(
                facts,
                "w25-0",
                &json!([{"key": "node.kubernetes.io/os", "value": "windows", "effect": "NoSchedule"}]),
            );
        },
        turns: &[],
        tells: &[],
    },
    Row {
        is: "no taint",
        by: |facts| taint(facts, "w25-0", &json!([])),
        turns: &[("env.windows-taint[pool=windows-2025]", Warn)],
        tells: &[],
    },
    Row {
        is: "a taint that is only preferred",
        by: |facts| {
            taint(
                facts,
                "w22-1",
                &json!([{"key": "os", "value": "windows", "effect": "PreferNoSchedule"}]),
            );
        },
        turns: &[("env.windows-taint[pool=windows-2022]", Warn)],
        tells: &[],
    },
    Row {
        is: "all memory is allocatable",
        by: |facts| allocatable(facts, "w22-0", "16777216Ki"),
        turns: &[
            ("env.node-allocatable[pool=windows-2022]", Fail),
            ("env.system-reserved[pool=windows-2022]", Warn),
        ],
        tells: &["env.kubelet-flags[pool=windows-2022]"],
    },
    Row {
        is: "100 MiB reserved",
        by: |facts| allocatable(facts, "w25-0", "16674816Ki"),
        turns: &[("env.system-reserved[pool=windows-2025]", Warn)],
        tells: &["env.kubelet-flags[pool=windows-2025]"],
    },
    Row {
        is: "exactly 2 GB reserved",
        by: |facts| allocatable(facts, "w25-0", "15179869184"),
        turns: &[],
        tells: &["env.kubelet-flags[pool=windows-2025]"],
    },
    Row {
        is: "a byte less than 2 GB reserved",
        by: |facts| allocatable(facts, "w25-0", "15179869185"),
        turns: &[("env.system-reserved[pool=windows-2025]", Warn)],
        tells: &["env.kubelet-flags[pool=windows-2025]"],
    },
    Row {
        is: "memory that is no quantity",
        by: |facts| allocatable(facts, "w25-0", "much"),
        turns: &[
            ("env.kubelet-flags[pool=windows-2025]", Broken),
            ("env.node-allocatable[pool=windows-2025]", Broken),
            ("env.system-reserved[pool=windows-2025]", Broken),
        ],
        tells: &[],
    },
    Row {
        is: "memory pressure",
        by: |facts| node(facts, "w22-0").details.conditions[1].status = "True".into(),
        turns: &[],
        tells: &["env.memory-pressure[pool=windows-2022]"],
    },
    Row {
        is: "a node-problem-detector on Windows",
        by: |facts| {
            value(&mut facts.workloads)
                .problem_detectors
                .push(("npd/a".to_owned(), "w22-0".to_owned()));
        },
        turns: &[],
        tells: &["env.node-problem-detector[pool=windows-2022]"],
    },
    Row {
        is: "a pause image without Windows Server 2025",
        by: |facts| {
            node(facts, "w25-0").details.images = vec![
                SERVERCORE.to_owned(),
                "registry.k8s.io/pause:3.10".to_owned(),
            ];
        },
        turns: &[],
        tells: &["env.pause-image[pool=windows-2025]"],
    },
    Row {
        is: "no base image, and a pull seen",
        by: |facts| {
            node(facts, "w22-0")
                .details
                .images
                .retain(|image| image != SERVERCORE);
            value(&mut facts.pulls).push(PullFact {
                image: SERVERCORE.to_owned(),
                node: "w22-0".to_owned(),
                took: 93_400,
                waited: None,
                size: None,
            });
        },
        turns: &[("env.image-pull[pool=windows-2022]", Warn)],
        tells: &["env.pause-image[pool=windows-2022]"],
    },
    Row {
        is: "another revision",
        by: |facts| node(facts, "w22-1").details.kernel = "10.0.20348.1".into(),
        turns: &[],
        tells: &["env.patch-level[pool=windows-2022]"],
    },
    Row {
        is: "a network plugin that no rule recognises",
        by: |facts| *value(&mut facts.cni) = None,
        turns: &[("env.overlay-vni", Skip)],
        tells: &["env.cni"],
    },
    Row {
        is: "Calico",
        by: |facts| cni(facts).product = "calico".into(),
        turns: &[("env.overlay-vni", Skip)],
        tells: &["env.cni"],
    },
    Row {
        is: "Flannel without VXLAN",
        by: |facts| {
            cni(facts).vxlan = None;
            cni(facts).mode = Some(CniMode::L2bridge);
        },
        turns: &[("env.overlay-vni", Skip)],
        tells: &["env.cni"],
    },
    Row {
        is: "Flannel of which no backend is told",
        by: |facts| {
            cni(facts).vxlan = None;
            cni(facts).mode = None;
        },
        turns: &[("env.overlay-vni", Broken)],
        tells: &["env.cni"],
    },
    Row {
        is: "Flannel with its defaults",
        by: |facts| {
            cni(facts).vxlan = Some(Vxlan {
                vni: None,
                port: None,
            });
        },
        turns: &[],
        tells: &["env.cni", "env.overlay-vni"],
    },
    Row {
        is: "Flannel whose configuration may not be read",
        by: |facts| {
            cni(facts).vxlan = None;
            cni(facts).unread = vec!["/api/v1/x: status 403: no".to_owned()];
        },
        turns: &[("env.overlay-vni", Broken)],
        tells: &["env.cni"],
    },
    Row {
        is: "kube-proxy without direct server return",
        by: |facts| value(&mut facts.kube_proxy).as_mut().expect("set").dsr = Some(false),
        turns: &[],
        tells: &["env.kube-proxy"],
    },
    Row {
        is: "no sign of kube-proxy",
        by: |facts| *value(&mut facts.kube_proxy) = None,
        turns: &[],
        tells: &["env.kube-proxy"],
    },
    Row {
        is: "a DNS endpoint on Windows",
        by: |facts| dns(facts)[0].node = Some("w22-0".to_owned()),
        turns: &[("env.cluster-dns-on-linux", Fail)],
        tells: &[],
    },
    Row {
        is: "one of two DNS endpoints not ready",
        by: |facts| dns(facts)[0].ready = false,
        turns: &[],
        tells: &[],
    },
    Row {
        is: "no DNS endpoint ready",
        by: |facts| {
            for endpoint in dns(facts) {
                endpoint.ready = false;
            }
        },
        turns: &[("env.cluster-dns-on-linux", Fail)],
        tells: &[],
    },
    Row {
        is: "no DNS endpoint",
        by: |facts| dns(facts).clear(),
        turns: &[("env.cluster-dns-on-linux", Fail)],
        tells: &[],
    },
    Row {
        is: "a DNS endpoint on a node that is not told",
        by: |facts| dns(facts)[1].node = None,
        turns: &[("env.cluster-dns-on-linux", Broken)],
        tells: &[],
    },
    Row {
        is: "a DNS endpoint on a node that is not told, and one on Windows",
        by: |facts| {
            dns(facts)[0].node = Some("w22-0".to_owned());
            dns(facts)[1].node = None;
        },
        turns: &[("env.cluster-dns-on-linux", Fail)],
        tells: &[],
    },
    Row {
        is: "a DNS endpoint that is not ready on a node that is not told",
        by: |facts| {
            dns(facts)[1].node = None;
            dns(facts)[1].ready = false;
        },
        turns: &[],
        tells: &[],
    },
    Row {
        is: "no Service of the DNS recognised",
        by: |facts| *value(&mut facts.dns) = None,
        turns: &[("env.cluster-dns-on-linux", Broken)],
        tells: &[],
    },
    Row {
        is: "a pod with IPv6 only",
        by: |facts| {
            value(&mut facts.workloads)
                .windows_families
                .extend([("ipv6".to_owned(), 1)]);
        },
        turns: &[("env.ip-family", Fail)],
        tells: &[],
    },
    Row {
        is: "dual stack",
        by: |facts| {
            value(&mut facts.workloads).windows_families = [("ipv4,ipv6".to_owned(), 3)].into();
        },
        turns: &[],
        tells: &[],
    },
    Row {
        is: "no pod with an address, and podCIDRs of IPv6 only",
        by: |facts| {
            value(&mut facts.workloads).windows_families.clear();
            node(facts, "w22-0").details.pod_cidrs = vec!["fd00::/64".to_owned()];
        },
        turns: &[("env.ip-family", Fail)],
        tells: &[],
    },
    Row {
        is: "no pod with an address, and no podCIDRs",
        by: |facts| {
            value(&mut facts.workloads).windows_families.clear();
            for node in nodes(facts) {
                node.details.pod_cidrs.clear();
            }
        },
        turns: &[("env.ip-family", Skip)],
        tells: &[],
    },
    Row {
        is: "a pod without OS",
        by: |facts| {
            value(&mut facts.workloads).without_os_count = 1;
            value(&mut facts.workloads).without_os = vec!["default/iis".to_owned()];
        },
        turns: &[("env.workloads-declare-os", Warn)],
        tells: &[],
    },
    Row {
        is: "a pod without requests",
        by: |facts| value(&mut facts.workloads).without_requests_count = 2,
        turns: &[("env.requests-set", Warn)],
        tells: &[],
    },
    Row {
        is: "pods that may not be read",
        by: |facts| facts.workloads = unknown("/api/v1/pods: status 403: no"),
        turns: &[
            ("env.ip-family", Broken),
            ("env.node-problem-detector[pool=windows-2022]", Broken),
            ("env.node-problem-detector[pool=windows-2025]", Broken),
            ("env.requests-set", Broken),
            ("env.workloads-declare-os", Broken),
        ],
        tells: &[],
    },
    Row {
        is: "events that may not be read",
        by: |facts| facts.pulls = unknown("/api/v1/events: status 403: no"),
        turns: &[],
        tells: &[
            "env.pause-image[pool=windows-2022]",
            "env.pause-image[pool=windows-2025]",
        ],
    },
];

#[test]
fn each_row_turns_what_it_names_and_nothing_else() {
    let suites = env_suites();
    let healthy = outcomes(&suites, &healthy());
    let mut wrong = Vec::new();
    for row in ROWS {
        let mut facts = self::healthy();
        (row.by)(&mut facts);
        let seen = outcomes(&suites, &facts);
        let same_checks = seen.keys().eq(healthy.keys());
        let turned: Vec<_> = seen
            .iter()
            .filter(|(id, seen)| healthy.get(*id).is_some_and(|healthy| healthy.1 != seen.1))
            .map(|(id, seen)| (id.as_str(), seen.1))
            .collect();
        let told: Vec<_> = seen
            .iter()
            .filter(|(id, seen)| {
                seen.0 == Kind::Evidence
                    && healthy
                        .get(*id)
                        .is_some_and(|h| h.1 == seen.1 && h.2 != seen.2)
            })
            .map(|(id, _)| id.as_str())
            .collect();
        // Without Windows nodes there are other checks: those without a pool are compared
        let whole = same_checks || row.is.starts_with("no Windows node");
        if !whole || turned != row.turns || told != row.tells {
            wrong.push(format!("{}: turned {turned:?}, told {told:?}", row.is));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Every claim with a case is turned by a row, or tells something else in one.
#[test]
fn no_claim_is_left_without_a_row() {
    let suites = env_suites();
    for case in &suites.cases {
        let of_claim = |id: &str| id.split('[').next() == Some(case.claim.as_str());
        let turned = ROWS.iter().any(|row| {
            row.turns.iter().any(|(id, _)| of_claim(id)) || row.tells.iter().any(|id| of_claim(id))
        });
        assert!(turned, "{}", case.claim);
    }
    assert_eq!(suites.cases.len(), 25);
}

#[test]
fn a_healthy_cluster_passes_or_is_recorded() {
    for (id, (kind, verdict, seen)) in outcomes(&env_suites(), &healthy()) {
        let expected = match kind {
            Kind::Evidence => Recorded,
            _ => Pass,
        };
        assert_eq!(verdict, expected, "{id}: {seen}");
    }
}

#[test]
fn windows_server_2019_is_neither_failed_nor_passed_by_1_37() {
    let mut facts = healthy();
    for node in nodes(&mut facts)
        .iter_mut()
        .filter(|node| node.os == Os::Windows)
    {
        node.build = Some(WindowsBuild::SERVER_2019);
    }
    let of = |facts: &Facts| {
        let (_, verdict, seen) = outcomes(&env_suites(), facts)
            .remove("env.os-version-supported[pool=windows-2019]")
            .expect("a check of that pool");
        (verdict, seen.to_string())
    };
    assert_eq!(of(&facts).0, Skip);
    version(&mut facts, "v1.27.16");
    assert_eq!(of(&facts).0, Pass);
    let mut channel = facts.clone();
    version(&mut channel, "v1.37.0");
    for node in nodes(&mut channel) {
        node.build = node.build.and(WindowsBuild::parse_label("10.0.25398"));
    }
    let seen = outcomes(&env_suites(), &channel);
    assert_eq!(seen["env.os-version-supported[pool=windows-25398]"].1, Fail);
}

#[test]
fn nodes_that_may_not_be_read_break_all_that_is_about_them() {
    let mut facts = healthy();
    facts.nodes = unknown("/api/v1/nodes: status 403: nodes is forbidden");
    let told = [
        "env.cni",
        "env.kube-proxy",
        "env.overlay-vni",
        "env.requests-set",
        "env.workloads-declare-os",
    ];
    for (id, (_, verdict, seen)) in outcomes(&env_suites(), &facts) {
        let broken = verdict == Broken;
        assert_eq!(broken, !told.contains(&id.as_str()), "{id}: {seen}");
        assert!(
            !broken || seen.to_string().contains("/api/v1/nodes"),
            "{id}: {seen}"
        );
    }
}

/// Nothing is told of an empty cluster, as nothing is of facts that were never asked for.
#[test]
fn an_unread_cluster_passes_nothing() {
    for (id, (_, verdict, _)) in outcomes(&env_suites(), &Facts::default()) {
        assert_eq!(verdict, Broken, "{id}");
    }
    let mut empty = healthy();
    nodes(&mut empty).clear();
    for (id, (kind, verdict, _)) in outcomes(&env_suites(), &empty) {
        let cluster_wide = ["env.requests-set", "env.workloads-declare-os"];
        assert!(
            verdict != Pass || kind == Kind::Evidence || cluster_wide.contains(&id.as_str()),
            "{id}: {verdict}"
        );
    }
}

/// What is seen of a topic by a look at a pool, or at the cluster.
fn seen(topic: &Topic, facts: &Facts, pool: Option<&PoolName>) -> Result<FactSeen, Trouble> {
    let standing = Standing::default();
    let at = Bound {
        pool,
        build: pool.map(|_| WindowsBuild::SERVER_2022),
        ..Bound::of(&standing)
    };
    Fact::read(topic, &at, &Reply::Facts(Arc::new(facts.clone())))
}

/// Whether it is told of the cluster, and of a pool.
fn told(topic: &Topic, facts: &Facts) -> [bool; 2] {
    let pool = PoolName::windows(WindowsBuild::SERVER_2022);
    [None, Some(&pool)].map(|pool| {
        let seen = seen(topic, facts, pool);
        seen.is_ok_and(|seen| Fact::compare(&FactExpect::Told, &seen).is_ok())
    })
}

#[test]
fn a_topic_is_told_by_its_own_facts_and_by_no_others() {
    let healthy = json!(healthy());
    let fields = healthy.as_object().expect("facts by name");
    let without = |left_out: &dyn Fn(&str) -> bool| -> Facts {
        let mut facts = healthy.clone();
        for name in fields.keys().filter(|name| left_out(name)) {
            facts[name] = json!(unknown::<()>("forbidden"));
        }
        serde_json::from_value(facts).expect("facts")
    };
    for word in Topic::WORDS {
        let topic = Topic::parse(word).expect("known");
        let needed = topic.facts();
        assert!(!needed.is_empty(), "{word}");
        for needed in needed {
            assert!(fields.contains_key(*needed), "{word}: {needed}");
            let lacking = told(&topic, &without(&|name| name == *needed));
            assert!(lacking.contains(&false), "{word} without {needed}");
        }
        let told = told(&topic, &without(&|name| !needed.contains(&name)));
        assert!(told.contains(&true), "{word}");
    }
}

#[test]
fn usable_nodes_are_counted_by_their_system() {
    let Ok(FactSeen::Subjects(subjects)) = seen(&Topic::UsableNodes, &healthy(), None) else {
        panic!("told")
    };
    let counts: Vec<_> = subjects.iter().map(|one| (&*one.name, &one.saw)).collect();
    let [linux, windows] = [2, 3].map(|all| Saw::Nodes {
        usable: all,
        of: all,
    });
    assert_eq!(counts, [("linux", &linux), ("windows", &windows)]);
}

#[test]
fn a_pull_is_told_of_the_node_it_was_to() {
    let mut facts = healthy();
    facts.pulls = known(vec![PullFact {
        image: SERVERCORE.to_owned(),
        node: "w22-1".to_owned(),
        took: 61_000,
        waited: None,
        size: None,
    }]);
    let topic = Topic::Images(vec!["windows/servercore".to_owned()]);
    let pool = PoolName::windows(WindowsBuild::SERVER_2022);
    let Ok(FactSeen::Subjects(subjects)) = seen(&topic, &facts, Some(&pool)) else {
        panic!("told")
    };
    let pulls = subjects.iter().map(|one| match &one.saw {
        Saw::Images { pulls, .. } => (&*one.name, pulls.clone()),
        other => panic!("{other}"),
    });
    let took = |pulls: &[(&str, u64)]| {
        let pulls = pulls
            .iter()
            .map(|(image, took)| ((*image).to_owned(), *took));
        PullsSeen::Took(pulls.collect())
    };
    assert_eq!(
        pulls.collect::<Vec<_>>(),
        [
            ("w22-0", took(&[])),
            ("w22-1", took(&[(SERVERCORE, 61_000)]))
        ]
    );
}

fn env_suites() -> Suites {
    let mut suites = project_suites();
    suites.cases.retain(|case| case.claim.area() == "env");
    suites
}

/// Plans, looks once with these facts, and judges.
fn outcomes(suites: &Suites, facts: &Facts) -> BTreeMap<String, Outcome> {
    let standing = Standing::default();
    let plan = plan(suites, facts, &Config::default());
    let outcome = |check: &winconform_core::plan::Check| {
        let at = Bound {
            pool: check.point.pool.as_ref(),
            build: check.build,
            image: check.image.as_deref(),
            family: check.point.family,
            ..Bound::of(&standing)
        };
        let test = match &check.fate {
            Fate::Skip(reason) => return (check.kind, Skip, json!(reason)),
            Fate::Broken(trouble) => return (check.kind, Broken, json!(trouble)),
            Fate::Look => &check.looks[0].test,
        };
        assert_eq!(test.request(&at), Ok(Request::Facts));
        let taken = test.take(&at, &Reply::Facts(Arc::new(facts.clone())));
        let comparison = taken.as_ref().map(|taken| &taken.comparison);
        let verdict = judge(check.kind, comparison, &[], &check.scope);
        let seen = taken.map_or_else(|trouble| json!(trouble), |taken| taken.observation);
        (check.kind, verdict, seen)
    };
    let checks = plan.checks.iter();
    checks
        .map(|check| (check.id.to_string(), outcome(check)))
        .collect()
}

fn healthy() -> Facts {
    let (w22, w25) = (WindowsBuild::SERVER_2022, WindowsBuild::SERVER_2025);
    Facts {
        server: known("v1.37.0".to_owned()),
        cluster: known("uid".to_owned()),
        nodes: known(vec![
            made("cp-0", None),
            made("lin-0", None),
            made("w22-0", Some(w22)),
            made("w22-1", Some(w22)),
            made("w25-0", Some(w25)),
        ]),
        silent_nodes: known(Vec::new()),
        cni: known(Some(Cni {
            product: "flannel".to_owned(),
            mode: Some(CniMode::Overlay),
            vxlan: Some(Vxlan {
                vni: Some(4096),
                port: Some(4789),
            }),
            signs: vec!["ConfigMap kube-flannel/kube-flannel-cfg".to_owned()],
            unread: Vec::new(),
        })),
        kube_proxy: known(Some(KubeProxy {
            linux_mode: Some("iptables".to_owned()),
            windows_mode: Some("kernelspace".to_owned()),
            dsr: Some(true),
            signs: vec!["ConfigMap kube-system/kube-proxy".to_owned()],
            unread: Vec::new(),
        })),
        dns: known(Some(ClusterDns {
            service: "kube-system/kube-dns".to_owned(),
            addresses: vec!["10.96.0.10".to_owned()],
            endpoints: ["cp-0", "lin-0"].map(endpoint).into(),
        })),
        workloads: known(WorkloadsFact {
            pods: 12,
            windows_pods: 3,
            windows_families: [("ipv4".to_owned(), 3)].into(),
            ..WorkloadsFact::default()
        }),
        pulls: known(Vec::new()),
        ..Facts::default()
    }
}

fn endpoint(node: &str) -> DnsEndpoint {
    DnsEndpoint {
        address: format!("10.244.0.{}", node.len()),
        node: Some(node.to_owned()),
        ready: true,
    }
}

fn made(name: &str, build: Option<WindowsBuild>) -> NodeFact {
    let os = if build.is_some() {
        Os::Windows
    } else {
        Os::Linux
    };
    let word = if build.is_some() { "windows" } else { "linux" };
    let mut labels = BTreeMap::from([
        ("kubernetes.io/os".to_owned(), word.to_owned()),
        ("kubernetes.io/arch".to_owned(), "amd64".to_owned()),
    ]);
    labels.extend(build.map(|build| {
        (
            "node.kubernetes.io/windows-build".to_owned(),
            build.to_string(),
        )
    }));
    let taints: Vec<_> = build
        .map(|_| json!({"key": "os", "value": "windows", "effect": "NoSchedule"}))
        .into_iter()
        .collect();
    let condition = |kind: &str, status: &str| ConditionFact {
        kind: kind.to_owned(),
        status: status.to_owned(),
        since: "2026-03-01T02:01:30Z".parse().ok(),
        reason: String::new(),
    };
    let memory = |amount: &str| {
        BTreeMap::from([
            ("memory".to_owned(), amount.to_owned()),
            ("cpu".to_owned(), "4".to_owned()),
        ])
    };
    NodeFact {
        name: name.to_owned(),
        os,
        build,
        usable: true,
        taints: taints.clone(),
        details: NodeDetails {
            kubelet_port: Some(10250),
            labels,
            arch: "amd64".to_owned(),
            kernel: build.map_or("6.1.0-18-amd64".to_owned(), |build| format!("{build}.2700")),
            os_image: "Windows Server Datacenter".to_owned(),
            runtime: "containerd://1.7.20".to_owned(),
            kubelet: "v1.37.0".to_owned(),
            boot_id: "1".to_owned(),
            all_taints: taints,
            unschedulable: false,
            control_plane: name == "cp-0",
            capacity: memory("16777216Ki"),
            allocatable: memory("14155776Ki"),
            conditions: vec![
                condition("Ready", "True"),
                condition("MemoryPressure", "False"),
            ],
            created: "2026-03-01T02:00:00Z".parse().ok(),
            pod_cidrs: vec!["10.244.1.0/24".to_owned()],
            addresses: Vec::new(),
            images: vec![
                SERVERCORE.to_owned(),
                "registry.k8s.io/pause:3.10.2".to_owned(),
            ],
        },
    }
}

const SERVERCORE: &str = "mcr.microsoft.com/windows/servercore:ltsc2022";

fn known<T>(value: T) -> Known<T> {
    let source = "/".into();
    Known::Fact { value, source }
}

fn unknown<T>(because: &str) -> Known<T> {
    let because = because.to_owned();
    Known::Unknown { because }
}

fn value<T: Debug>(fact: &mut Known<T>) -> &mut T {
    match fact {
        Known::Fact { value, .. } => value,
        Known::Unknown { because } => panic!("{because}"),
    }
}

fn nodes(facts: &mut Facts) -> &mut Vec<NodeFact> {
    value(&mut facts.nodes)
}

fn node<'f>(facts: &'f mut Facts, name: &str) -> &'f mut NodeFact {
    let found = nodes(facts).iter_mut().find(|node| node.name == name);
    found.expect("a node of the healthy cluster")
}

fn label(facts: &mut Facts, name: &str, label: &str, text: &str) {
    node(facts, name)
        .details
        .labels
        .insert(label.to_owned(), text.to_owned());
}

fn version(facts: &mut Facts, text: &str) {
    text.clone_into(value(&mut facts.server));
    for node in nodes(facts) {
        text.clone_into(&mut node.details.kubelet);
    }
}

fn taint(facts: &mut Facts, name: &str, taints: &Json) {
    node(facts, name).details.all_taints = taints.as_array().cloned().unwrap_or_default();
}

fn allocatable(facts: &mut Facts, name: &str, memory: &str) {
    let amounts = &mut node(facts, name).details.allocatable;
    amounts.insert("memory".to_owned(), memory.to_owned());
}

fn cni(facts: &mut Facts) -> &mut Cni {
    value(&mut facts.cni).as_mut().expect("set")
}

fn dns(facts: &mut Facts) -> &mut Vec<DnsEndpoint> {
    &mut value(&mut facts.dns).as_mut().expect("set").endpoints
}
