//! What faults of nodes, kubelets and runtimes turn that
//! [`PRODUCT`](crate::products::PRODUCT) has nothing of: in virtual time alone, since some take long.

use winconform_core::record::Exit;
use winconform_core::verdict::Verdict;

use crate::products::Product;

/// What is looked at by exec on Windows. A control of what is known not to work from its nodes is, too.
const EXECS: &[(&str, Verdict)] = &[
    ("net.*/between-windows", Verdict::Skip),
    ("net.pod-to-pod-cross-node", Verdict::Skip),
    ("net.overlay-node-pod", Verdict::Skip),
    ("net.network-policy", Verdict::Skip),
    ("net.*source=windows-*", Verdict::Broken),
];

/// No container starts on Windows; its nodes are reached all the same.
const NOTHING_STARTS: &[(&str, Verdict)] = &[
    ("sample.iis-loadbalancer/answers", Verdict::Broken),
    ("sample.win-webserver[*", Verdict::Broken),
    ("sample.win-webserver-service", Verdict::Broken),
    ("sample.pods-listed", Verdict::Broken),
    ("sample.iis-2022", Verdict::Broken),
    ("sample.dotnet-probes", Verdict::Broken),
    ("sample.nanoserver", Verdict::Broken),
    ("net.overlay-node-pod", Verdict::Skip),
    ("net.network-policy", Verdict::Skip),
    ("net.pod-to-node/from-linux", Verdict::Pass),
    ("net.icmp-node/from-linux", Verdict::Recorded),
    ("net.*", Verdict::Broken),
    ("sched.missing-selector-pitfall", Verdict::Broken),
    ("sched.build-mismatch", Verdict::Broken),
    ("sched.single-os-pod", Verdict::Broken),
];

/// Those that turn nothing are about what no case is about, or what a check is to bear.
pub(crate) const KUBELET: &[Product] = &[
    // No case asks for the time of a node
    Product::row("clock-wrong=windows-2022", &[], Exit::Conformant),
    // What is read is no language's
    Product::row("tools-localised=windows-2022", &[], Exit::Conformant),
    // No case is about how containers are probed, end and are told to, or what they print: what a run
    // starts becomes Ready, and is deleted, all the same
    Product::row("probe-ignored=windows-2022", &[], Exit::Conformant),
    Product::row("pre-stop-skipped=windows-2022", &[], Exit::Conformant),
    Product::row("grace-ignored=windows-2022", &[], Exit::Conformant),
    Product::row("exit-code-lost=windows-2022", &[], Exit::Conformant),
    Product::row("logs-empty=windows-2022", &[], Exit::Conformant),
    Product::row("logs-cut=windows-2022", &[], Exit::Conformant),
    // Before anything of ours runs there
    Product::row("node-reboots=windows-2022", &[], Exit::Conformant),
    // It is tainted, and takes nothing
    Product {
        fault: "memory-pressure=windows-2022",
        turns: &[
            ("env.hybrid-nodes", Verdict::Fail),
            ("sample.*", Verdict::Skip),
            ("net.pod-to-node/from-linux", Verdict::Pass),
            ("net.icmp-node/from-linux", Verdict::Recorded),
            ("net.*", Verdict::Skip),
            ("sched.*", Verdict::Skip),
        ],
        exit: Exit::NotConformant,
    },
    // Those of the probers and of Nano Server, which are small, come in time
    Product {
        fault: "pull-slow=windows-2022",
        turns: &[
            ("net.*/between-windows", Verdict::Skip),
            ("net.service-types/load-balancer", Verdict::Broken),
            ("sample.iis-loadbalancer/answers", Verdict::Broken),
            ("sample.win-webserver[*", Verdict::Broken),
            ("sample.win-webserver-service", Verdict::Broken),
            ("sample.pods-listed", Verdict::Broken),
            ("sample.iis-2022", Verdict::Broken),
            ("sample.dotnet-probes", Verdict::Broken),
            ("net.overlay-node-pod", Verdict::Skip),
            ("net.network-policy", Verdict::Skip),
            ("net.pod-to-pod-cross-os/to-linux", Verdict::Pass),
            ("net.pod-to-node", Verdict::Pass),
            ("net.no-nat-in-cluster", Verdict::Pass),
            ("net.pod-to-pod-udp", Verdict::Pass),
            ("net.pod-to-pod-ping/to-linux", Verdict::Pass),
            ("net.long-payload", Verdict::Pass),
            ("net.outbound", Verdict::Pass),
            ("net.outbound-icmp", Verdict::KnownLimitation),
            ("net.dns-external", Verdict::Pass),
            ("net.icmp-node", Verdict::Recorded),
            ("net.pod-to-self", Verdict::Recorded),
            ("net.*", Verdict::Broken),
            ("sched.missing-selector-pitfall", Verdict::Broken),
            ("sched.build-mismatch", Verdict::Broken),
            ("sched.single-os-pod", Verdict::Broken),
        ],
        exit: Exit::CouldNotTell,
    },
    Product::row(
        "image-build-wrong=windows-2022",
        NOTHING_STARTS,
        Exit::CouldNotTell,
    ),
    Product::row(
        "pause-image-wrong=windows-2022",
        NOTHING_STARTS,
        Exit::CouldNotTell,
    ),
    // All but the control of those that run elsewhere select their node
    Product {
        fault: "network-needs-selector=windows-2022",
        turns: &[
            ("sched.missing-selector-pitfall", Verdict::Broken),
            ("sched.build-mismatch", Verdict::Broken),
            ("sched.single-os-pod", Verdict::Broken),
        ],
        exit: Exit::CouldNotTell,
    },
    Product {
        fault: "host-process-refused=windows-2022",
        turns: &[
            ("net.overlay-node-pod", Verdict::Skip),
            ("net.*source=windows-node]", Verdict::Broken),
        ],
        exit: Exit::CouldNotTell,
    },
    Product::row("exec-refused=windows-2022", EXECS, Exit::CouldNotTell),
    Product::row("exec-output-lost=windows-2022", EXECS, Exit::CouldNotTell),
    Product::row(
        "exec-rpc-unavailable=windows-2022",
        EXECS,
        Exit::CouldNotTell,
    ),
];
