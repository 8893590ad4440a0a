//! The worlds, and what a run comes to in each.

use winconform_core::verdict::Verdict::{self, Broken, Fail, KnownLimitation, Pass, Skip};

use crate::admission::House;

/// Which nodes are joined.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Nodes {
    /// Two of Linux.
    LinuxOnly,
    /// One of Windows Server 2022 and nothing else.
    OneWindows,
    /// One each of Linux, Windows Server 2022 and 2025.
    Hybrid,
}

/// What is bad.
#[derive(Debug)]
pub(crate) enum Bad {
    /// The nodes there are, and no more.
    Nothing,
    /// Faults of nodes.
    Nodes(&'static [&'static str]),
    /// A node takes no pods.
    Cordoned(&'static str),
    /// A fault of nodes that sets in once the last of their probers stands.
    Vanishing(&'static str),
    /// Faults between the run and the API server.
    Way(&'static [&'static str]),
    /// A rule for the run's namespaces.
    Admission(House),
    /// Faults of nodes, and whatever anybody says in the cluster or outside is hostile.
    Hostile(&'static [&'static str]),
    /// Whoever looks from outside is behind a proxy that answers everything by itself.
    CaptiveProxy,
}

/// Checks that come to something else than usual, or may, and what is then named as the cause.
pub(crate) struct Turn {
    pub(crate) checks: &'static str,
    pub(crate) to: &'static [Verdict],
    pub(crate) because: &'static str,
}

/// A cluster as one may be.
pub(crate) struct World {
    pub(crate) is: &'static str,
    pub(crate) nodes: Nodes,
    pub(crate) bad: Bad,
    /// The first that names a check counts.
    pub(crate) turns: &'static [Turn],
    /// What the report shows beside.
    pub(crate) shows: &'static [&'static str],
    pub(crate) exit: u8,
}

const fn turn(checks: &'static str, to: &'static [Verdict], because: &'static str) -> Turn {
    Turn {
        checks,
        to,
        because,
    }
}

/// All checks of a pool.
const OF_2025: &str = "*[pool=windows-2025*";
const NO_2025: &str =
    r#"NoUsableNode { of: "windows-2025", why: ["worlds-windows-2025-a is not Ready"] }"#;
const CORDONED: &str =
    r#"NoUsableNode { of: "windows-2025", why: ["worlds-windows-2025-a is cordoned"] }"#;
const POD_SECURITY: &str = r#"violates PodSecurity \"restricted:latest\""#;
const NO_LINUX: &str = r#"NoUsableNode { of: "linux", why: [] }"#;
const NO_WINDOWS: &str = r#"NoUsableNode { of: "windows", why: [] }"#;

pub(crate) const WORLDS: &[World] = &[
    World {
        is: "no_windows_nodes",
        nodes: Nodes::LinuxOnly,
        bad: Bad::Nothing,
        turns: &[
            turn("env.hybrid-nodes", &[Fail], "windows: 0 of 0"),
            turn("net.*", &[Skip], NO_WINDOWS),
            turn("sample.*", &[Skip], NO_WINDOWS),
            turn("sched.*", &[Skip], NO_WINDOWS),
        ],
        shows: &[],
        exit: 10,
    },
    World {
        is: "one_windows_node_and_no_linux_worker",
        nodes: Nodes::OneWindows,
        bad: Bad::Nothing,
        turns: &[
            turn("env.hybrid-nodes", &[Fail], "linux: 0 of 0"),
            turn("net.pod-to-pod-cross-os/*", &[Skip], NO_LINUX),
            turn(
                "net.service-ip-from-pod[*source=linux-pod]",
                &[Skip],
                NO_LINUX,
            ),
            turn("sched.*", &[Skip], NO_LINUX),
        ],
        shows: &[],
        exit: 10,
    },
    World {
        is: "a_pool_is_not_ready",
        nodes: Nodes::Hybrid,
        bad: Bad::Nodes(&["node-not-ready=windows-2025"]),
        turns: &[
            turn(
                "env.all-nodes-healthy",
                &[Fail],
                "worlds-windows-2025-a: Ready False",
            ),
            turn(OF_2025, &[Skip], NO_2025),
        ],
        shows: &[],
        exit: 10,
    },
    World {
        is: "a_pool_is_cordoned",
        nodes: Nodes::Hybrid,
        bad: Bad::Cordoned("windows-2025-a"),
        turns: &[turn(OF_2025, &[Skip], CORDONED)],
        // Claims about a pool that nobody has looked at are not told, whatever another pool says
        shows: &["the cluster has no usable windows-2025 node: worlds-windows-2025-a is cordoned"],
        exit: 11,
    },
    World {
        is: "images_are_missing_on_one_pool",
        nodes: Nodes::Hybrid,
        bad: Bad::Nodes(&["pull-fails=windows-2025"]),
        turns: &[
            // Where a pod goes is told before its image is there
            turn("sched.*", &[Pass], ""),
            turn(OF_2025, &[Broken], "failed to pull and unpack image"),
        ],
        shows: &[],
        exit: 11,
    },
    World {
        is: "containers_crash_on_one_pool",
        nodes: Nodes::Hybrid,
        bad: Bad::Nodes(&["crash-loop=windows-2025"]),
        turns: &[
            // Where a pod goes is told before it is started
            turn("sched.*", &[Pass], ""),
            turn(
                "sample.win-webserver[pool=windows-2025]",
                &[Fail],
                "exit code 1",
            ),
            // A prober may stand for a moment
            turn(OF_2025, &[Broken], ""),
        ],
        shows: &[
            "container windowswebserver: Listening at http://*:80/",
            "last event",
            "Back-off restarting failed container",
        ],
        exit: 10,
    },
    World {
        is: "a_node_vanishes_in_mid_run",
        nodes: Nodes::Hybrid,
        bad: Bad::Vanishing("node-vanishes=windows-2025"),
        turns: &[
            // It asks every node
            turn(
                "net.nodeport-external[*2022*",
                &[Pass, Broken],
                "worlds-windows-2025-a",
            ),
            turn(OF_2025, &[Pass, KnownLimitation, Broken], ""),
        ],
        shows: &[],
        exit: 11,
    },
    World {
        is: "a_quota_leaves_no_room",
        nodes: Nodes::Hybrid,
        bad: Bad::Admission(House::Quota),
        turns: &[
            turn("env.*", &[Pass], ""),
            turn(
                "reject.hostPID[workload=pod]",
                &[Broken],
                "exceeded quota: worlds",
            ),
            turn("reject.*", &[Pass], ""),
            turn("*", &[Broken], "exceeded quota: worlds"),
        ],
        shows: &[],
        exit: 11,
    },
    World {
        is: "pod_security_is_restricted_everywhere",
        nodes: Nodes::Hybrid,
        bad: Bad::Admission(House::Restricted),
        turns: &[
            turn("env.*", &[Pass], ""),
            turn("reject.hostPID[workload=pod]", &[Broken], POD_SECURITY),
            turn("reject.*", &[Pass], ""),
            turn("*", &[Broken], POD_SECURITY),
        ],
        shows: &[],
        exit: 11,
    },
    // Windows knows no IPv6 alone: here nodes and pods of both systems have IPv4
    World {
        is: "services_are_of_ipv6_only",
        nodes: Nodes::Hybrid,
        bad: Bad::Admission(House::IPv6Services),
        turns: &[
            turn("net.service-ip-from-pod", &[Fail], "connect to fd00:"),
            turn("net.node-to-service-ip", &[Broken], "connect to fd00:"),
            turn(
                "net.nodeport-external",
                &[Broken],
                "no node with an address of its family, IPv6",
            ),
        ],
        shows: &["An address of another family than the pods have"],
        exit: 10,
    },
    World {
        is: "host_process_is_refused",
        nodes: Nodes::Hybrid,
        bad: Bad::Admission(House::NoHostProcess),
        turns: &[turn(
            "net.node-to-service-ip",
            &[Broken],
            "the house runs no HostProcess containers",
        )],
        shows: &[],
        exit: 11,
    },
    World {
        is: "pods_without_selector_are_refused",
        nodes: Nodes::Hybrid,
        bad: Bad::Admission(House::PodsSelect),
        turns: &[
            turn(
                "reject.hostPID[workload=pod]",
                &[Broken],
                "pods have to select their nodes",
            ),
            turn(
                "sched.node-selector",
                &[Broken],
                "pods have to select their nodes",
            ),
        ],
        shows: &[],
        exit: 11,
    },
    World {
        is: "exec_is_forbidden",
        nodes: Nodes::Hybrid,
        bad: Bad::Way(&["answers-403=pods/exec"]),
        turns: &[
            turn("net.nodeport-external", &[Pass], ""),
            turn("net.*", &[Broken], r#"cannot get resource \"pods/exec\""#),
        ],
        shows: &[],
        exit: 11,
    },
    World {
        is: "the_api_server_restarts_in_mid_run",
        nodes: Nodes::Hybrid,
        bad: Bad::Way(&["server-restarts=60"]),
        turns: &[],
        shows: &[],
        exit: 0,
    },
    World {
        is: "whatever_is_said_is_hostile",
        nodes: Nodes::Hybrid,
        bad: Bad::Hostile(&["crash-loop=windows-2025", "service-answers-wrong"]),
        turns: &[
            turn("sched.*", &[Pass], ""),
            turn(
                "sample.win-webserver[pool=windows-2025]",
                &[Fail],
                "0 of 2 Ready",
            ),
            turn(OF_2025, &[Broken], ""),
            turn("net.nodeport-external", &[Broken], "answers by itself"),
            turn("net.service-ip-from-pod", &[Fail], "<html>welcome</html>"),
            turn("net.node-to-service-ip", &[Broken], "<html>welcome</html>"),
        ],
        shows: &[
            r"<html>welcome</html>\u{1b}[31m\u{1b}]0;owned\u{7}\u{1b}[2J]]>\u{202e}",
            "container windowswebserver",
            r"\u{1b}[31;1m\u{1b}[2J",
        ],
        exit: 10,
    },
    World {
        is: "who_looks_from_outside_is_behind_a_captive_proxy",
        nodes: Nodes::Hybrid,
        bad: Bad::CaptiveProxy,
        turns: &[turn(
            "net.nodeport-external",
            &[Broken],
            "answers by itself",
        )],
        shows: &[],
        exit: 11,
    },
];
