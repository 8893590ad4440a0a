//! Every claim of the network crossed with every fault of it, in memory: what a fault turns is
//! written down, and it turns nothing else.

mod families;
mod world;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use hybrid_sim::{FaultSet, NetworkMode, ProductFault, Topology};
use winconform_core::claims::Pattern;
use winconform_core::facts::{Cni, CniMode};
use winconform_core::suite::{SuiteFile, Suites};
use winconform_core::verdict::Verdict;
use winconform_core::verdict::Verdict::{Broken, Fail, LimitationLifted, Pass, Recorded, Skip};
use winconform_core::way::{ExitStatus, FixtureName};

use world::{BALANCED, Seen, World, three_builds};

/// Something broken, and what it turns: patterns of check ids, of which the first that matches
/// counts. Every pattern is about something.
struct Row {
    fault: &'static str,
    turns: &'static [(&'static str, Verdict)],
    /// What may come to this besides: a Service leads to one of its pods, and some are affected.
    by_chance: &'static [(&'static str, Verdict)],
}

const ROWS: &[Row] = &[
    // Its NodePorts are dead, too, and every Service has one on every node
    Row {
        fault: "kube-proxy-dead=windows-2022",
        turns: &[
            (
                "net.service-ip-from-pod*[pool=windows-2022,source=windows-pod*",
                Fail,
            ),
            (
                "net.service-balancing*[pool=windows-2022,source=windows-pod*",
                Fail,
            ),
            (
                "net.port-mapping[pool=windows-2022,source=windows-pod]",
                Fail,
            ),
            (PARTIAL_OF_2022, Broken),
            ("net.dns-*[pool=windows-2022,source=windows-pod*", Fail),
            (
                "net.service-types/*[pool=windows-2022,source=windows-pod]",
                Fail,
            ),
            ("net.service-types/node-port*", Fail),
            ("net.nodeport-*", Fail),
            ("net.node-to-service-ip*[pool=windows-2022,*", Broken),
            ("net.local-nodeport[pool=windows-2022,*", Broken),
            (CHURN_OF_2022, Broken),
        ],
        by_chance: &[],
    },
    Row {
        fault: "kube-proxy-dead=linux",
        turns: &[
            ("sample.iis-loadbalancer/answers[*source=linux-pod]", Fail),
            (CHURN_TO_LINUX, Broken),
            ("net.service-ip-from-*source=linux-*", Fail),
            ("net.service-balancing*[*source=linux-*", Fail),
            ("net.port-mapping[*source=linux-pod]", Fail),
            ("net.dns-*source=linux-pod*", Fail),
            ("net.service-types/*source=linux-pod]", Fail),
            ("net.service-types/node-port-from-windows[*", Fail),
            ("net.nodeport-*", Fail),
        ],
        by_chance: &[],
    },
    Row {
        fault: "node-port-closed=windows-2022",
        turns: &[
            ("net.nodeport-*", Fail),
            ("net.service-types/node-port*", Fail),
            ("net.local-nodeport[pool=windows-2022,*", Broken),
        ],
        by_chance: &[],
    },
    Row {
        fault: "node-port-closed=linux",
        turns: &[
            ("net.nodeport-*", Fail),
            ("net.service-types/node-port*", Fail),
        ],
        by_chance: &[],
    },
    // The cluster's DNS is on Linux
    Row {
        fault: "traffic-cut=windows-2022:linux",
        turns: &[
            (
                "net.after-churn*[pool=windows-2022,source=linux-pod*",
                Broken,
            ),
            (
                "sample.iis-loadbalancer/answers[pool=windows-2022,source=linux-pod]",
                Fail,
            ),
            (
                "net.service-types/load-balancer[pool=windows-2022,source=linux-pod]",
                Fail,
            ),
            ("net.node-to-pod[pool=windows-2022,*", Fail),
            ("net.pod-to-pod-cross-os/*[pool=windows-2022,*", Fail),
            ("net.pod-to-pod-udp/to-*[pool=windows-2022,*", Fail),
            ("net.long-payload/to-*[pool=windows-2022,*", Fail),
            (
                "net.pod-to-pod-ping/to-windows[pool=windows-2022,source=linux-pod]",
                Fail,
            ),
            ("net.pod-to-pod-ping/to-linux[pool=windows-2022,*", Fail),
            (EACH_LINUX_TO_2022, Fail),
            ("net.no-nat-in-cluster/to-*[pool=windows-2022,*", Fail),
            ("net.pod-to-node/from-linux[*", Fail),
            ("net.pod-to-node/from-windows[pool=windows-2022,*", Fail),
            (
                "net.service-ip-from-*[pool=windows-2022,source=linux-*",
                Fail,
            ),
            (
                "net.service-balancing[pool=windows-2022,source=linux-*",
                Fail,
            ),
            ("net.port-mapping[pool=windows-2022,source=linux-*", Broken),
            (PARTIAL_OF_2022, Broken),
            ("net.dns-*[pool=windows-2022,*", Fail),
            (
                "net.service-types/cluster-ip[pool=windows-2022,source=linux-pod]",
                Fail,
            ),
            ("net.service-types/node-port[*", Fail),
            (
                "net.service-types/node-port-from-windows[pool=windows-2022,*",
                Fail,
            ),
            ("net.service-types/headless[pool=windows-2022,*", Fail),
            ("net.service-types/external-name[pool=windows-2022,*", Fail),
            ("net.nodeport-from-node[*", Fail),
            ("net.nodeport-external[pool=windows-2022,*", Fail),
            ("net.local-nodeport[pool=windows-2022,*", Broken),
        ],
        by_chance: &[(
            "sample.iis-loadbalancer/answers[pool=windows-2022,source=outside]",
            Fail,
        )],
    },
    Row {
        fault: "traffic-cut-one-way=linux:windows-2022",
        turns: &[
            (
                "net.after-churn*[pool=windows-2022,source=linux-pod*",
                Broken,
            ),
            (
                "sample.iis-loadbalancer/answers[pool=windows-2022,source=linux-pod]",
                Fail,
            ),
            ("net.node-to-pod[pool=windows-2022,*", Fail),
            (
                "net.pod-to-pod-cross-os/to-windows[pool=windows-2022,*",
                Fail,
            ),
            ("net.pod-to-pod-udp/to-windows[pool=windows-2022,*", Fail),
            ("net.long-payload/to-windows[pool=windows-2022,*", Fail),
            ("net.no-nat-in-cluster/to-windows[pool=windows-2022,*", Fail),
            (EACH_LINUX_TO_2022, Fail),
            (
                "net.pod-to-pod-ping/to-windows[pool=windows-2022,source=linux-pod]",
                Fail,
            ),
            ("net.pod-to-node/from-linux[*", Fail),
            (
                "net.service-ip-from-*[pool=windows-2022,source=linux-*",
                Fail,
            ),
            (
                "net.service-balancing[pool=windows-2022,source=linux-*",
                Fail,
            ),
            ("net.port-mapping[pool=windows-2022,source=linux-*", Broken),
            ("net.dns-*[pool=windows-2022,source=linux-pod*", Fail),
            (
                "net.service-types/*[pool=windows-2022,source=linux-pod]",
                Fail,
            ),
            ("net.service-types/node-port[*", Fail),
            (
                "net.service-types/node-port-from-windows[pool=windows-2022,*",
                Fail,
            ),
            ("net.nodeport-from-node[*", Fail),
            ("net.nodeport-external[pool=windows-2022,*", Fail),
            ("net.local-nodeport[pool=windows-2022,*", Broken),
        ],
        by_chance: &[(
            "sample.iis-loadbalancer/answers[pool=windows-2022,source=outside]",
            Fail,
        )],
    },
    Row {
        fault: "dns-down=windows-2022",
        turns: &[
            (PARTIAL_OF_2022, Broken),
            ("net.dns-*[pool=windows-2022,source=windows-pod*", Fail),
            (HEADLESS_OF_2022, Fail),
            (ALIAS_OF_2022, Fail),
        ],
        by_chance: &[],
    },
    Row {
        fault: "dns-down=linux",
        turns: &[
            ("net.dns-*source=linux-pod*", Fail),
            (HEADLESS_TO_LINUX, Fail),
            (ALIAS_TO_LINUX, Fail),
        ],
        by_chance: &[],
    },
    // Four seconds an answer: a Linux resolver asks more than once
    Row {
        fault: "dns-slow=linux",
        turns: &[
            ("net.dns-*source=linux-pod*", Fail),
            (HEADLESS_TO_LINUX, Fail),
            (ALIAS_TO_LINUX, Fail),
        ],
        by_chance: &[],
    },
    Row {
        fault: "dns-suffix-wrong=windows-2022",
        turns: &[
            (
                "net.dns-search/short-name[pool=windows-2022,source=windows-pod]",
                Fail,
            ),
            ("net.dns-search/each-node[pool=windows-2022,*", Fail),
        ],
        by_chance: &[],
    },
    Row {
        fault: "partial-names-resolve=windows-2022",
        turns: &[(PARTIAL_OF_2022, LimitationLifted)],
        by_chance: &[],
    },
    Row {
        fault: "dns-wrong-address=windows-2022",
        turns: &[
            (PARTIAL_OF_2022, Broken),
            (
                "net.dns-service*[pool=windows-2022,source=windows-pod*",
                Fail,
            ),
            (
                "net.dns-search/*[pool=windows-2022,source=windows-pod*",
                Fail,
            ),
            (HEADLESS_OF_2022, Fail),
            (ALIAS_OF_2022, Fail),
        ],
        by_chance: &[],
    },
    // What it turns is recorded, below
    Row {
        fault: "own-address-dead=windows-2022",
        turns: &[],
        by_chance: &[],
    },
    Row {
        fault: "vip-sticks=windows-2022",
        turns: &[
            (
                "net.service-balancing*[pool=windows-2022,source=windows-pod*",
                Fail,
            ),
            (CHURN_OF_2022, Broken),
        ],
        by_chance: &[],
    },
    Row {
        fault: "vip-sticks=linux",
        turns: &[
            ("net.service-balancing*[*source=linux-*", Fail),
            (CHURN_TO_LINUX, Broken),
        ],
        by_chance: &[],
    },
    // Every other Service has the pods it began with
    Row {
        fault: "endpoint-stale=windows-2022",
        turns: &[(CHURN_OF_2022, Fail)],
        by_chance: &[],
    },
    Row {
        fault: "endpoint-stale=linux",
        turns: &[(CHURN_TO_LINUX, Fail)],
        by_chance: &[],
    },
    Row {
        fault: "service-answers-wrong",
        turns: &[
            // By the pods' own addresses, and by nodes'
            ("net.service-types/headless[*", Pass),
            ("net.service-types/load-balancer[*", Pass),
            ("net.service-types/node-port*", Pass),
            ("net.service-*", Fail),
            ("net.port-mapping[*", Fail),
            ("net.dns-external[*", Pass),
            ("net.dns-search/namespaced-name-from-windows[*", Broken),
            ("net.dns-*", Fail),
            ("net.node-to-service-ip*[*", Broken),
            ("net.local-nodeport[*", Broken),
            ("net.after-churn*", Broken),
        ],
        by_chance: &[],
    },
    // Those within do not go by it
    Row {
        fault: "load-balancer-dead",
        turns: &[("sample.iis-loadbalancer/answers[*source=outside]", Fail)],
        by_chance: &[],
    },
    Row {
        fault: "node-service-ip-answers=windows-2022",
        turns: &[(
            "net.node-to-service-ip*[pool=windows-2022,*",
            LimitationLifted,
        )],
        by_chance: &[],
    },
    Row {
        fault: "node-service-ip-resets=windows-2022",
        turns: &[("net.node-to-service-ip*[pool=windows-2022,*", Fail)],
        by_chance: &[],
    },
    Row {
        fault: "local-node-port-answers=windows-2022",
        turns: &[("net.local-nodeport[pool=windows-2022,*", LimitationLifted)],
        by_chance: &[],
    },
    Row {
        fault: "captive-proxy=windows-2022",
        turns: &[
            ("net.outbound-icmp[pool=windows-2022,*", Broken),
            ("net.outbound*[pool=windows-2022,*", Fail),
            ("net.dns-external[pool=windows-2022,*", Broken),
        ],
        by_chance: &[],
    },
    // What no operating system may do is not held against Windows
    Row {
        fault: "outbound-cut=windows-2022",
        turns: &[
            ("net.outbound-icmp[pool=windows-2022,*", Broken),
            ("net.outbound*[pool=windows-2022,*", Fail),
            ("net.dns-external[pool=windows-2022,*", Broken),
        ],
        by_chance: &[],
    },
    Row {
        fault: "outbound-cut",
        turns: &[("net.outbound*", Skip), ("net.dns-external[*", Skip)],
        by_chance: &[],
    },
    Row {
        fault: "ping-dropped",
        turns: &[
            ("net.pod-to-pod-ping/*", Skip),
            ("net.outbound-icmp[*", Skip),
        ],
        by_chance: &[],
    },
    Row {
        fault: "udp-dropped",
        turns: &[("net.pod-to-pod-udp/*", Skip)],
        by_chance: &[],
    },
    Row {
        fault: "outbound-ping-answers=windows-2022",
        turns: &[("net.outbound-icmp[pool=windows-2022,*", LimitationLifted)],
        by_chance: &[],
    },
    Row {
        fault: "ping-dropped=windows-2022",
        turns: &[(
            "net.pod-to-pod-ping/*[pool=windows-2022,source=windows-pod*",
            Fail,
        )],
        by_chance: &[],
    },
    Row {
        fault: "udp-dropped=windows-2022",
        turns: &[
            WITHIN_2022,
            ("net.pod-to-pod-udp/to-linux[pool=windows-2022,*", Fail),
            ("net.pod-to-pod-udp/ring[pool=windows-2022,*", Fail),
            (
                "net.pod-to-pod-udp/between-windows[pool=windows-2022,*",
                Fail,
            ),
        ],
        by_chance: &[],
    },
    Row {
        fault: "udp-dropped=linux",
        turns: &[
            ("net.pod-to-pod-udp/to-windows[*", Skip),
            ("net.pod-to-pod-udp/each-linux-node[*", Skip),
        ],
        by_chance: &[],
    },
    Row {
        fault: "mtu-black-hole=windows-2022",
        turns: &[
            WITHIN_2022,
            ("net.long-payload/*[pool=windows-2022,*", Fail),
            ("net.long-payload/between-windows[*to=windows-2022]", Fail),
        ],
        by_chance: &[],
    },
    Row {
        fault: "source-rewritten=windows-2022",
        turns: &[
            WITHIN_2022,
            (
                "net.no-nat-in-cluster/*[pool=windows-2022,source=windows-pod*",
                Fail,
            ),
        ],
        by_chance: &[],
    },
    Row {
        fault: "source-rewritten=linux",
        turns: &[
            ("net.no-nat-in-cluster/to-windows[*", Fail),
            ("net.no-nat-in-cluster/each-linux-node[*", Fail),
        ],
        by_chance: &[],
    },
    // The first node of a pool is looked from, and has one of its two pods
    Row {
        fault: "traffic-cut=node/windows-2022-a:node/windows-2022-a",
        turns: &[
            ("net.*/each-node[pool=windows-2022,*node=2]", Pass),
            ("net.pod-to-pod-same-node[pool=windows-2022,*", Fail),
            (
                "net.pod-to-pod-ping/to-windows[pool=windows-2022,source=windows-pod]",
                Fail,
            ),
            (
                "net.service-balancing*[pool=windows-2022,source=windows-pod*",
                Fail,
            ),
            (
                "net.port-mapping[pool=windows-2022,source=windows-pod]",
                Broken,
            ),
            (CHURN_OF_2022, Broken),
            // The node's way to its own pods
            (
                "net.node-to-service-ip/each-windows-node[pool=windows-2022,*node=1]",
                Broken,
            ),
        ],
        by_chance: &[
            (
                "sample.iis-loadbalancer/answers[pool=windows-2022,source=outside]",
                Fail,
            ),
            (
                "net.service-ip-from-pod[pool=windows-2022,source=windows-pod]",
                Fail,
            ),
            (
                "net.*/each-node[pool=windows-2022,source=windows-pod,node=1]",
                Fail,
            ),
            (
                "net.dns-service[pool=windows-2022,source=windows-pod]",
                Fail,
            ),
            (PARTIAL_OF_2022, Broken),
            (
                "net.dns-search/*[pool=windows-2022,source=windows-pod]",
                Fail,
            ),
            (
                "net.service-types/*[pool=windows-2022,source=windows-pod]",
                Fail,
            ),
            ("net.service-types/node-port[pool=windows-2022,*", Fail),
            ("net.node-to-service-ip*[pool=windows-2022,*", Broken),
            ("net.local-nodeport[pool=windows-2022,*", Broken),
            ("net.nodeport-*[pool=windows-2022,*", Fail),
        ],
    },
    // The pool's prober is on its first node: that the second is not as it should be is seen from there
    // alone
    Row {
        fault: "kube-proxy-dead=node/windows-2022-b",
        turns: &[
            (
                "net.service-ip-from-pod/each-node[pool=windows-2022,*node=2]",
                Fail,
            ),
            ("net.dns-*/each-node[pool=windows-2022,*node=2]", Fail),
            (
                "net.service-balancing/each-node[pool=windows-2022,*node=2]",
                Fail,
            ),
            (
                "net.after-churn/each-node[pool=windows-2022,*node=2]",
                Broken,
            ),
            (
                "net.node-to-service-ip/each-windows-node[pool=windows-2022,*node=2]",
                Broken,
            ),
            ("net.service-types/node-port*", Fail),
            ("net.nodeport-*", Fail),
        ],
        by_chance: &[("net.local-nodeport[pool=windows-2022,*", Broken)],
    },
    // What is documented not to work is known of each
    Row {
        fault: "node-service-ip-answers=node/windows-2022-b",
        turns: &[(
            "net.node-to-service-ip/each-windows-node[pool=windows-2022,*node=2]",
            LimitationLifted,
        )],
        by_chance: &[],
    },
    Row {
        fault: "node-service-ip-resets=node/windows-2022-b",
        turns: &[(
            "net.node-to-service-ip/each-windows-node[pool=windows-2022,*node=2]",
            Fail,
        )],
        by_chance: &[],
    },
    // So are Linux nodes, whose probers are on the first, too
    Row {
        fault: "kube-proxy-dead=node/linux-b",
        turns: &[
            (
                "net.service-ip-from-*/each-linux-node[*source=linux-*node=2]",
                Fail,
            ),
            (
                "net.dns-service/each-linux-node[*source=linux-pod,node=2]",
                Fail,
            ),
            (
                "net.service-balancing/each-linux-node[*source=linux-pod,node=2]",
                Fail,
            ),
            (
                "net.after-churn/each-linux-node[*source=linux-pod,node=2]",
                Broken,
            ),
            ("net.service-types/node-port*", Fail),
            ("net.nodeport-*", Fail),
        ],
        by_chance: &[],
    },
    Row {
        fault: "traffic-cut=node/linux-b:windows-2022",
        turns: &[
            (
                "net.after-churn/each-linux-node[pool=windows-2022,source=linux-pod,node=2]",
                Broken,
            ),
            (
                "net.*/each-linux-node[pool=windows-2022,source=linux-*,node=2]",
                Fail,
            ),
            ("net.pod-to-node/from-windows[pool=windows-2022,*", Fail),
            // The server there is not on the prober's node
            ("net.*/to-linux[pool=windows-2022,*", Fail),
        ],
        by_chance: &[
            ("net.dns-*[pool=windows-2022,*source=windows-pod*", Fail),
            (PARTIAL_OF_2022, Broken),
            ("net.nodeport-*", Fail),
            ("net.service-types/node-port*", Fail),
        ],
    },
    Row {
        fault: "mtu-black-hole=node/linux-b",
        turns: &[
            ("net.long-payload/each-linux-node[*node=2]", Fail),
            ("net.long-payload/to-linux[*", Fail),
        ],
        by_chance: &[],
    },
    Row {
        fault: "dns-down=node/linux-b",
        turns: &[("net.dns-service/each-linux-node[*node=2]", Fail)],
        by_chance: &[],
    },
    Row {
        fault: "udp-dropped=node/linux-b",
        turns: &[("net.pod-to-pod-udp/each-linux-node[*node=2]", Skip)],
        by_chance: &[],
    },
    Row {
        fault: "source-rewritten=node/linux-b",
        turns: &[("net.no-nat-in-cluster/each-linux-node[*node=2]", Fail)],
        by_chance: &[],
    },
    Row {
        fault: "vip-sticks=node/linux-b",
        turns: &[
            ("net.service-balancing/each-linux-node[*node=2]", Fail),
            ("net.after-churn/each-linux-node[*node=2]", Broken),
        ],
        by_chance: &[],
    },
    Row {
        fault: "endpoint-stale=node/linux-b",
        turns: &[("net.after-churn/each-linux-node[*node=2]", Fail)],
        by_chance: &[],
    },
    Row {
        fault: "ping-dropped=node/linux-b",
        turns: &[("net.pod-to-pod-ping/each-linux-node[*node=2]", Skip)],
        by_chance: &[],
    },
    Row {
        fault: "dns-suffix-wrong=node/windows-2022-b",
        turns: &[("net.dns-search/each-node[pool=windows-2022,*node=2]", Fail)],
        by_chance: &[],
    },
    Row {
        fault: "vip-sticks=node/windows-2022-b",
        turns: &[
            (
                "net.service-balancing/each-node[pool=windows-2022,*node=2]",
                Fail,
            ),
            (
                "net.after-churn/each-node[pool=windows-2022,*node=2]",
                Broken,
            ),
        ],
        by_chance: &[],
    },
    Row {
        fault: "endpoint-stale=node/windows-2022-b",
        turns: &[("net.after-churn/each-node[pool=windows-2022,*node=2]", Fail)],
        by_chance: &[],
    },
    Row {
        fault: "ping-dropped=node/windows-2022-b",
        turns: &[(
            "net.pod-to-pod-ping/each-node[pool=windows-2022,*node=2]",
            Fail,
        )],
        by_chance: &[],
    },
    Row {
        fault: "captive-proxy=node/windows-2022-b",
        turns: &[("net.outbound/each-node[pool=windows-2022,*node=2]", Fail)],
        by_chance: &[],
    },
    Row {
        fault: "udp-dropped=node/windows-2022-b",
        turns: &[("net.pod-to-pod-udp/ring[pool=windows-2022,*node=2]", Fail)],
        by_chance: &[],
    },
    Row {
        fault: "source-rewritten=node/windows-2022-b",
        turns: &[(
            "net.no-nat-in-cluster/ring[pool=windows-2022,*node=2]",
            Fail,
        )],
        by_chance: &[],
    },
    Row {
        fault: "traffic-cut-one-way=node/windows-2022-b:node/windows-2022-a",
        turns: &[
            ("net.*/ring[pool=windows-2022,*node=2]", Fail),
            (
                "net.after-churn/each-node[pool=windows-2022,*node=2]",
                Broken,
            ),
        ],
        by_chance: &[
            ("net.*/each-node[pool=windows-2022,*node=2]", Fail),
            (
                "net.node-to-service-ip/each-windows-node[pool=windows-2022,*node=2]",
                Broken,
            ),
            ("net.local-nodeport[pool=windows-2022,*", Broken),
            ("net.nodeport-*[pool=windows-2022,*", Fail),
            ("net.service-types/node-port*[pool=windows-2022,*", Fail),
            (
                "sample.iis-loadbalancer/answers[pool=windows-2022,source=outside]",
                Fail,
            ),
        ],
    },
    Row {
        fault: "traffic-cut-one-way=windows-2019:windows-2025",
        turns: &[
            (
                "net.pod-to-pod-cross-node[pool=windows-2019,source=windows-pod,to=windows-2025]",
                Fail,
            ),
            (
                "net.*/between-windows[pool=windows-2019,source=windows-pod,to=windows-2025]",
                Fail,
            ),
            ("net.pod-to-node/from-windows[pool=windows-2019,*", Fail),
            (
                "net.service-types/node-port-from-windows[pool=windows-2019,*",
                Fail,
            ),
        ],
        // Forwarded by nodes of the one to pods of the other, or to those of Linux
        by_chance: &[
            (
                "sample.iis-loadbalancer/answers[pool=windows-2025,source=outside]",
                Fail,
            ),
            ("net.nodeport-*[pool=windows-2025,*", Fail),
            ("net.service-types/node-port*[pool=windows-2025,*", Fail),
        ],
    },
];

/// A pool's prober is one pod, which does not look at itself.
const WITHIN_2022: (&str, Verdict) = (
    "net.*/between-windows[pool=windows-2022,source=windows-pod,to=windows-2022*",
    Skip,
);

const PARTIAL_OF_2022: &str =
    "net.dns-search/namespaced-name-from-windows[pool=windows-2022,source=windows-pod]";
/// All that is looked at from each Linux node.
const EACH_LINUX_TO_2022: &str = "net.*/each-linux-node[pool=windows-2022,source=linux-*";
const CHURN_OF_2022: &str = "net.after-churn*[pool=windows-2022,source=windows-pod*";
const CHURN_TO_LINUX: &str = "net.after-churn*[*source=linux-pod*";
const HEADLESS_OF_2022: &str = "net.service-types/headless[pool=windows-2022,source=windows-pod]";
const ALIAS_OF_2022: &str = "net.service-types/external-name[pool=windows-2022,source=windows-pod]";
const HEADLESS_TO_LINUX: &str = "net.service-types/headless[*source=linux-pod]";
const ALIAS_TO_LINUX: &str = "net.service-types/external-name[*source=linux-pod]";

/// A limitation of a network plugin that the usual cluster does not have.
const OVERLAY: &str = "net.overlay-node-pod";
/// A capability of network plugins that the usual cluster does not have.
const POLICY: &str = "net.network-policy/";

/// Whether a case is about network plugins that the usual cluster does not have.
fn is_of_another(case: &str) -> bool {
    case.starts_with(OVERLAY) || case.starts_with(POLICY)
}

/// Whether a check would look from a pool's prober at the probers of that pool.
fn is_of_itself(id: &str) -> bool {
    let value = |axis: &str| {
        let value = id.split(axis).nth(1)?;
        value.split([',', ']']).next()
    };
    id.contains("/between-windows[") && value("pool=") == value(",to=")
}

/// Of a cluster whose network plugin keeps policies.
const POLICY_ROWS: &[Row] = &[
    Row {
        fault: "policy-ignored=windows-2022",
        turns: &[("net.network-policy/deny[pool=windows-2022,*", Fail)],
        by_chance: &[],
    },
    Row {
        fault: "policy-closed=windows-2022",
        turns: &[
            ("net.network-policy/allow[pool=windows-2022,*", Fail),
            ("net.network-policy/deny[pool=windows-2022,*", Broken),
        ],
        by_chance: &[],
    },
    // Whom a policy admits is told by the address
    Row {
        fault: "source-rewritten=windows-2022",
        turns: &[
            WITHIN_2022,
            (
                "net.no-nat-in-cluster/*[pool=windows-2022,source=windows-pod*",
                Fail,
            ),
            (
                "net.network-policy/allow[pool=windows-2022,source=windows-pod]",
                Fail,
            ),
            (
                "net.network-policy/deny[pool=windows-2022,source=windows-pod]",
                Broken,
            ),
        ],
        by_chance: &[],
    },
];

fn plugin(product: &str, mode: CniMode) -> Cni {
    Cni {
        product: product.to_owned(),
        mode: Some(mode),
        vxlan: None,
        signs: Vec::new(),
        unread: Vec::new(),
    }
}

fn otherwise(seen: Seen) -> Vec<(String, Verdict, String)> {
    let seen = seen
        .into_iter()
        .map(|(id, (verdict, why))| (id, verdict, why));
    seen.filter(|(_, verdict, _)| !matches!(verdict, Pass | Verdict::KnownLimitation | Recorded))
        .collect()
}

#[test]
fn a_healthy_cluster_is_as_documented() {
    let mut seen = World::three_builds(&suites()).with(FaultSet::default());
    let mut alone = 0;
    seen.retain(|id, (verdict, why)| {
        if is_of_itself(id) {
            assert_eq!(*verdict, Skip, "{id}: {why}");
            assert!(why.contains("the only pod of windows-pod-prober"), "{why}");
            alone += 1;
            return false;
        }
        !is_of_another(case(id)) || *verdict != Skip
    });
    assert_eq!(alone, 9);
    assert_eq!(otherwise(seen), []);
}

#[test]
fn where_the_network_plugin_keeps_policies_they_hold_or_it_is_told() {
    let mut topology = three_builds();
    for node in &mut topology.nodes {
        node.network.policies = true;
    }
    for product in ["calico", "antrea"] {
        let cni = plugin(product, CniMode::L2bridge);
        let mut world = World::healthy(&topology, &suites(), Some(cni));
        let healthy = verdicts(world.with(FaultSet::default()));
        let of_policy = healthy.iter().filter(|(id, _)| id.starts_with(POLICY));
        assert_eq!(
            of_policy.map(|(_, verdict)| *verdict).collect::<Vec<_>>(),
            vec![Pass; 12]
        );
        assert_eq!(
            wrong(&mut world, POLICY_ROWS, &healthy),
            Vec::<String>::new()
        );
    }
    // Of others nobody says so
    let cni = plugin("flannel", CniMode::L2bridge);
    let mut seen = World::healthy(&topology, &suites(), Some(cni)).with(FaultSet::default());
    seen.retain(|id, _| id.starts_with(POLICY));
    let because = "the question does not arise: the network plugin is flannel, and it is known of \
                   calico and antrea alone";
    for (verdict, why) in seen.values() {
        assert_eq!((*verdict, why.as_str()), (Skip, because));
    }
}

#[test]
fn pods_behind_policies_are_ready_once_they_listen_and_no_policy_keeps_that_from_them() {
    let mut topology = three_builds();
    for node in &mut topology.nodes {
        node.network.policies = true;
    }
    let cni = plugin("calico", CniMode::L2bridge);
    let mut world = World::healthy(&topology, &suites(), Some(cni));
    for name in [FixtureName::PolicyDenied, FixtureName::PolicyAllowed] {
        let seen = world.readiness(name);
        assert_eq!(seen.len(), 3, "{name:?}");
        for pod in seen {
            assert_eq!(pod, [0, 1].map(ExitStatus::Code), "{name:?}");
        }
    }
}

#[test]
fn under_an_overlay_nodes_do_not_reach_pods_of_others() {
    let flannel = plugin("flannel", CniMode::Overlay);
    let mut topology = three_builds();
    for node in &mut topology.nodes {
        node.network.mode = NetworkMode::Overlay;
    }
    let of_overlay = |topology: &Topology| {
        let mut seen =
            World::healthy(topology, &suites(), Some(flannel.clone())).with(FaultSet::default());
        seen.retain(|id, _| id.starts_with(OVERLAY));
        verdicts(seen).into_values().collect::<Vec<_>>()
    };
    // Of each of three pools from one node, and from each of two
    let known = vec![Verdict::KnownLimitation; 9];
    assert_eq!(of_overlay(&topology), known);
    // Where they do, that is told
    assert_eq!(of_overlay(&three_builds()), vec![LimitationLifted; 9]);
    // Where nothing answers, nothing is
    let mut world = World::healthy(&topology, &suites(), Some(flannel.clone()));
    let cut = "traffic-cut=node/windows-2022-a:node/windows-2022-a";
    let seen = verdicts(world.with(faults(cut)));
    let of = |point: &str| seen[&format!("net.overlay-node-pod{point}")];
    let each = "/each-windows-node[pool=windows-2022,source=windows-node,node=";
    assert_eq!(of("[pool=windows-2022,source=windows-node]"), Broken);
    assert_eq!(of(&format!("{each}1]")), Broken);
    assert_eq!(of(&format!("{each}2]")), Verdict::KnownLimitation);
}

#[test]
fn one_node_of_a_pool_has_no_other() {
    let topology = Topology::hybrid();
    let seen = World::healthy(&topology, &suites(), None).with(FaultSet::default());
    let skipped: Vec<_> = otherwise(seen)
        .into_iter()
        .filter(|(id, ..)| !id.starts_with(POLICY))
        .map(|(id, verdict, _)| (id, verdict))
        .collect();
    let within = "[pool=windows-2022,source=windows-pod,to=windows-2022]";
    let each = "[pool=windows-2022,source=windows-pod]";
    let from_linux_pod = "[pool=windows-2022,source=linux-pod]";
    let from_linux_node = "[pool=windows-2022,source=linux-node]";
    let from_windows_node = "[pool=windows-2022,source=windows-node]";
    let expected = [
        format!("net.after-churn/each-linux-node{from_linux_pod}"),
        format!("net.after-churn/each-node{each}"),
        format!("net.dns-search/each-node{each}"),
        format!("net.dns-service/each-linux-node{from_linux_pod}"),
        format!("net.dns-service/each-node{each}"),
        format!("net.long-payload/between-windows{within}"),
        format!("net.long-payload/each-linux-node{from_linux_pod}"),
        format!("net.long-payload/ring{each}"),
        format!("net.no-nat-in-cluster/between-windows{within}"),
        format!("net.no-nat-in-cluster/each-linux-node{from_linux_pod}"),
        format!("net.no-nat-in-cluster/ring{each}"),
        format!("net.node-to-pod/each-linux-node{from_linux_node}"),
        format!("net.node-to-service-ip/each-windows-node{from_windows_node}"),
        format!("net.outbound/each-node{each}"),
        format!("net.overlay-node-pod/each-windows-node{from_windows_node}"),
        format!("net.overlay-node-pod{from_windows_node}"),
        format!("net.pod-to-pod-cross-node/ring{each}"),
        format!("net.pod-to-pod-cross-node{within}"),
        format!("net.pod-to-pod-cross-os/each-linux-node{from_linux_pod}"),
        format!("net.pod-to-pod-ping/each-linux-node{from_linux_pod}"),
        format!("net.pod-to-pod-ping/each-node{each}"),
        format!("net.pod-to-pod-udp/between-windows{within}"),
        format!("net.pod-to-pod-udp/each-linux-node{from_linux_pod}"),
        format!("net.pod-to-pod-udp/ring{each}"),
        format!("net.service-balancing/each-linux-node{from_linux_pod}"),
        format!("net.service-balancing/each-node{each}"),
        format!("net.service-ip-from-node/each-linux-node{from_linux_node}"),
        format!("net.service-ip-from-pod/each-linux-node{from_linux_pod}"),
        format!("net.service-ip-from-pod/each-node{each}"),
    ];
    assert_eq!(skipped, expected.map(|id| (id, Skip)));
}

#[test]
fn each_fault_turns_what_it_says_and_nothing_else() {
    let suites = suites();
    let mut world = World::three_builds(&suites);
    let healthy = verdicts(world.with(FaultSet::default()));
    let wrong = wrong(&mut world, ROWS, &healthy);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What comes of faults otherwise than their rows say.
fn wrong(world: &mut World, rows: &[Row], healthy: &BTreeMap<String, Verdict>) -> Vec<String> {
    let mut wrong = Vec::new();
    for row in rows {
        let seen = world.with(faults(row.fault));
        let expected = expected(row.turns, healthy);
        let by_chance = self::expected(row.by_chance, &expected);
        for (id, (verdict, why)) in &seen {
            if ![expected[id], by_chance[id]].contains(verdict) {
                let (fault, wanted) = (row.fault, expected[id]);
                wrong.push(format!("{fault}: {id}: {verdict}, not {wanted}: {why}"));
            }
        }
    }
    wrong
}

#[test]
fn without_an_address_nothing_is_told_of_it() {
    let suites = suites();
    let exhausted = faults("load-balancer-exhausted");
    let mut world = World::made_under(exhausted, &three_builds(), &suites, None);
    let mut seen = world.with(FaultSet::default());
    seen.retain(|id, _| !is_of_another(case(id)) && !is_of_itself(id));
    let turned = otherwise(seen).into_iter();
    let turned: BTreeSet<_> = turned
        .map(|(id, verdict, why)| {
            assert!(why.contains("iis has no load balancer's address"), "{why}");
            (case(&id).to_owned(), verdict)
        })
        .collect();
    let cases = [BALANCED, "net.service-types/load-balancer"];
    assert_eq!(turned, cases.map(|case| (case.to_owned(), Broken)).into());
}

#[test]
fn every_case_is_turned_by_a_fault() {
    let suites = suites();
    let healthy = verdicts(World::three_builds(&suites).with(FaultSet::default()));
    let turned: BTreeSet<_> = ROWS
        .iter()
        .flat_map(|row| expected(row.turns, &healthy))
        .filter(|(id, verdict)| healthy[id] != *verdict && verdict.is_conclusive())
        .map(|(id, _)| case(&id).to_owned())
        .collect();
    // Those have clusters of their own above, and what is recorded is never turned
    let all: BTreeSet<_> = healthy
        .iter()
        .filter(|(id, verdict)| !is_of_another(case(id)) && **verdict != Recorded)
        .map(|(id, _)| case(id).to_owned())
        .collect();
    assert_eq!(
        all.difference(&turned).collect::<Vec<_>>(),
        Vec::<&String>::new()
    );
}

#[test]
fn what_is_recorded_is_what_is_there() {
    let mut world = World::three_builds(&suites());
    let recorded = |seen: Seen| -> BTreeMap<String, String> {
        let recorded = seen
            .into_iter()
            .filter(|(_, (verdict, _))| *verdict == Recorded);
        recorded.map(|(id, (_, why))| (id, why)).collect()
    };
    let healthy = recorded(world.with(FaultSet::default()));
    let mut differs = BTreeSet::new();
    for (fault, of) in [
        ("ping-dropped=windows-2022", "pool=windows-2022"),
        ("ping-dropped=linux", "net.icmp-node/from-linux"),
        ("service-answers-wrong", "net.pod-to-self/by-service"),
        (
            "own-address-dead=windows-2022",
            "net.pod-to-self/by-address[pool=windows-2022,",
        ),
    ] {
        for (id, why) in recorded(world.with(faults(fault))) {
            if healthy[&id] != why {
                assert!(id.contains(of), "{fault}: {id}: {why}");
                differs.insert(case(&id).to_owned());
            }
        }
    }
    let cases: BTreeSet<_> = healthy.keys().map(|id| case(id).to_owned()).collect();
    assert_eq!(differs, cases);
}

#[test]
fn where_a_pod_reaches_itself_that_is_recorded() {
    let mut topology = three_builds();
    for node in &mut topology.nodes {
        node.network.mode = NetworkMode::Overlay;
    }
    let by_service = "net.pod-to-self/by-service[pool=windows-2022,source=windows-pod]";
    let mut world = World::healthy(&topology, &suites(), None);
    let mut told = |fault: &str| {
        let seen = world.with(faults(fault));
        let (verdict, why) = &seen[by_service];
        (*verdict, why.starts_with("Ok(Holds"))
    };
    assert_eq!(told(""), (Recorded, true));
    assert_eq!(told("hairpin-broken=windows-2022"), (Recorded, false));
}

/// What every check comes to, where patterns say otherwise than usual.
fn expected(
    turns: &[(&str, Verdict)],
    usual: &BTreeMap<String, Verdict>,
) -> BTreeMap<String, Verdict> {
    let turns: Vec<_> = turns
        .iter()
        .map(|(pattern, verdict)| (Pattern::parse(pattern).expect(pattern), *verdict))
        .collect();
    for (pattern, _) in &turns {
        let mut ids = usual.keys();
        assert!(ids.any(|id| pattern.covers(id)), "nothing is {pattern}");
    }
    let of = |(id, usual): (&String, &Verdict)| {
        let turned = turns.iter().find(|(pattern, _)| pattern.covers(id));
        (id.clone(), turned.map_or(*usual, |(_, verdict)| *verdict))
    };
    usual.iter().map(of).collect()
}

fn verdicts(seen: Seen) -> BTreeMap<String, Verdict> {
    seen.into_iter()
        .map(|(id, (verdict, _))| (id, verdict))
        .collect()
}

/// A check's case: its id without the point.
fn case(id: &str) -> &str {
    id.split('[').next().unwrap_or(id)
}

fn faults(written: &str) -> FaultSet {
    let faults = written.split_whitespace();
    faults
        .map(|fault| fault.parse::<ProductFault>().expect(fault))
        .collect()
}

/// The project's own claims and ledger, with the cases of the network.
fn suites() -> Suites {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("suites");
    let area = root.join("net").read_dir().expect("the area");
    let cases = area.map(|entry| {
        let name = entry.expect("an entry").file_name();
        format!("net/{}", name.to_string_lossy())
    });
    let paths = ["claims.yaml", "limitations.yaml", "sample/iis.yaml"].map(str::to_owned);
    let files = paths.into_iter().chain(cases).map(|path| SuiteFile {
        text: std::fs::read_to_string(root.join(&path)).expect(&path),
        shown: path.clone(),
        path,
    });
    Suites::read(files.collect()).expect("valid suites")
}
