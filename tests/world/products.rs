//! What each product fault turns on simulated nodes, one of Linux and one of Windows Server 2022: the
//! checks, to what, and what the whole run then comes to.

use std::collections::BTreeMap;

use hybrid_sim::ProductFault;
use hybrid_sim::interference::Fault;
use winconform_core::claims::{Kind, Pattern};
use winconform_core::record::{CheckView, Exit, RunView};
use winconform_core::verdict::Verdict;

use crate::scheduling::{self, NEVER_PREEMPTS, OS_SELECTS, POLICIES};

const LABEL: &str = "env.windows-build-label[pool=windows-2022]";
const REJECT: &str = "reject.hostPID";
const SAMPLE: &str = "sample.win-webserver[pool=windows-2022]";
const ENDPOINTS: &str = "sample.win-webserver-service[pool=windows-2022]";
const LISTED: &str = "sample.pods-listed[pool=windows-2022]";
const IIS: &str = "sample.iis-2022[pool=windows-2022]";
/// An address was given to the Service in front of IIS.
const ADDRESS: &str = "sample.iis-loadbalancer/address";
/// IIS answers there.
const ANSWERS: &str = "sample.iis-loadbalancer/answers";
/// The same, to pods.
const BALANCED: &str = "net.service-types/load-balancer";
const PROBES: &str = "sample.dotnet-probes[pool=windows-2022]";
const NANO: &str = "sample.nanoserver[pool=windows-2022]";
/// Every check of the network, once nothing else is said of it.
const NET: &str = "net.*";
/// Of a network plugin that this cluster does not have.
const OVERLAY: &str = "net.overlay-node-pod";
/// Of network plugins that keep policies on Windows.
const POLICY: &str = "net.network-policy";
/// Those that need no sample on Windows.
const TO_LINUX: &str = "net.pod-to-pod-cross-os/to-linux";
const TO_NODES: &str = "net.pod-to-node";
const FROM_LINUX_TO_NODES: &str = "net.pod-to-node/from-linux";
/// One prober of a pool has no other to look at.
const BETWEEN_WINDOWS: &str = "net.*/between-windows";
const NO_NAT: &str = "net.no-nat-in-cluster";
const FROM_NODE: &str = "net.node-to-service-ip";
const LOCAL_NODE_PORT: &str = "net.local-nodeport";
const NODE_PORT_FROM_WINDOWS: &str = "net.service-types/node-port-from-windows";
const UDP: &str = "net.pod-to-pod-udp";
const PING_TO_LINUX: &str = "net.pod-to-pod-ping/to-linux";
const LONG: &str = "net.long-payload";
const OUT: &str = "net.outbound";
const OUT_BY_PING: &str = "net.outbound-icmp";
const PARTIAL_NAME: &str = "net.dns-search/namespaced-name-from-windows";
const OUTSIDE_NAMES: &str = "net.dns-external";
const NODES_BY_PING: &str = "net.icmp-node";
const LINUX_TO_NODES_BY_PING: &str = "net.icmp-node/from-linux";
const ITSELF: &str = "net.pod-to-self";
const CHURN: &str = "net.after-churn";
const CHURN_FROM_WINDOWS: &str = "net.after-churn[*source=windows-pod]";

/// What the simulated cluster gives other than a healthy one of its kind: it has no control-plane
/// nodes, no network plugin that anyone would recognise and no Windows Server 2019.
const OTHERWISE: [(&str, Verdict); 8] = [
    ("env.control-plane-linux", Verdict::Skip),
    ("env.overlay-vni", Verdict::Skip),
    ("sample.iis-2019", Verdict::Skip),
    // It has one Windows node
    ("sample.*/each-node", Verdict::Skip),
    ("net.pod-to-pod-cross-node", Verdict::Skip),
    (BETWEEN_WINDOWS, Verdict::Skip),
    (OVERLAY, Verdict::Skip),
    (POLICY, Verdict::Skip),
];

/// One usable node of a pool, or none, is no ring, whatever is broken.
const NO_RING: [(&str, Verdict); 2] = [
    ("net.*/ring", Verdict::Skip),
    ("net.*/each-*node", Verdict::Skip),
];

/// What may come of a fault, by pattern: as a load balancer picks nodes, and as a container ends before or after its
/// pod is Ready for the first time.
const BY_CHANCE: &[(&str, &str, &[Verdict])] = &[
    (
        "traffic-cut=windows-2022:linux",
        "sample.iis-loadbalancer/answers[*source=outside]",
        &[Verdict::Pass, Verdict::Fail, Verdict::Broken],
    ),
    (
        "crash-loop=windows-2022",
        BETWEEN_WINDOWS,
        &[Verdict::Skip, Verdict::Broken],
    ),
];

/// Something broken, the checks it turns and to what, the first that names one (those of scheduling
/// stand apart), and what the run then comes to.
pub(crate) struct Product {
    /// What is broken.
    pub(crate) fault: &'static str,
    /// The checks that it turns.
    pub(crate) turns: &'static [(&'static str, Verdict)],
    /// What the run comes to.
    pub(crate) exit: Exit,
}

impl Product {
    /// One that is written in a line.
    pub(crate) const fn row(
        fault: &'static str,
        turns: &'static [(&'static str, Verdict)],
        exit: Exit,
    ) -> Self {
        Self { fault, turns, exit }
    }
}

/// Every product fault that is tried.
pub(crate) const PRODUCT: &[Product] = &[
    Product::row("none", &[], Exit::Conformant),
    Product {
        fault: "node-label-wrong=windows-2022",
        // The RuntimeClass selects the build
        turns: &[
            (BALANCED, Verdict::Broken),
            (ANSWERS, Verdict::Broken),
            (LABEL, Verdict::Fail),
            (IIS, Verdict::Broken),
        ],
        exit: Exit::NotConformant,
    },
    Product {
        fault: "node-labels-missing=windows-2022",
        // The samples and probers select their nodes by what is missing
        turns: &[
            (ANSWERS, Verdict::Broken),
            ("env.node-labels", Verdict::Fail),
            (SAMPLE, Verdict::Broken),
            (ENDPOINTS, Verdict::Broken),
            (LISTED, Verdict::Broken),
            (IIS, Verdict::Broken),
            (PROBES, Verdict::Broken),
            (NANO, Verdict::Broken),
            (OVERLAY, Verdict::Skip),
            (POLICY, Verdict::Skip),
            (FROM_LINUX_TO_NODES, Verdict::Pass),
            (LINUX_TO_NODES_BY_PING, Verdict::Recorded),
            (NET, Verdict::Broken),
        ],
        exit: Exit::NotConformant,
    },
    Product::row(
        "kubelet-skewed=windows-2022",
        &[("env.version-skew", Verdict::Fail)],
        Exit::NotConformant,
    ),
    Product {
        fault: "runtime-docker=windows-2022",
        // Its handlers are not known
        turns: &[
            (BALANCED, Verdict::Broken),
            (ANSWERS, Verdict::Broken),
            ("env.container-runtime", Verdict::Fail),
            (IIS, Verdict::Broken),
        ],
        exit: Exit::NotConformant,
    },
    Product {
        fault: "nothing-reserved=windows-2022",
        turns: &[
            ("env.node-allocatable", Verdict::Fail),
            ("env.system-reserved", Verdict::Warn),
        ],
        exit: Exit::NotConformant,
    },
    Product::row(
        "untainted=windows-2022",
        &[("env.windows-taint", Verdict::Warn)],
        Exit::Conformant,
    ),
    Product {
        fault: "node-not-ready=windows-2022",
        turns: &[
            (ADDRESS, Verdict::Skip),
            (ANSWERS, Verdict::Skip),
            ("env.all-nodes-healthy", Verdict::Fail),
            ("env.hybrid-nodes", Verdict::Fail),
            (SAMPLE, Verdict::Skip),
            (ENDPOINTS, Verdict::Skip),
            (LISTED, Verdict::Skip),
            (IIS, Verdict::Skip),
            (PROBES, Verdict::Skip),
            (NANO, Verdict::Skip),
            (FROM_LINUX_TO_NODES, Verdict::Pass),
            (LINUX_TO_NODES_BY_PING, Verdict::Recorded),
            (NET, Verdict::Skip),
        ],
        exit: Exit::NotConformant,
    },
    Product::row(
        "admission-allows=spec.hostPID",
        &[(REJECT, Verdict::Fail)],
        Exit::NotConformant,
    ),
    Product::row(
        "admission-drops=spec.hostPID",
        &[(REJECT, Verdict::Broken)],
        Exit::CouldNotTell,
    ),
    // A webhook that adds a forbidden field makes the control speak. The layer alters what is
    // created by POST; what is applied by PATCH reaches the server as it is
    Product::row(
        "admission-injects=spec.hostIPC:true",
        &[(REJECT, Verdict::Broken)],
        Exit::CouldNotTell,
    ),
    Product {
        fault: "servercore-crashes=windows-2022",
        turns: &[
            (BALANCED, Verdict::Pass),
            (SAMPLE, Verdict::Fail),
            (ENDPOINTS, Verdict::Fail),
            (LISTED, Verdict::Fail),
            (PROBES, Verdict::Fail),
            (OVERLAY, Verdict::Skip),
            (POLICY, Verdict::Skip),
            (TO_LINUX, Verdict::Pass),
            (TO_NODES, Verdict::Pass),
            (BETWEEN_WINDOWS, Verdict::Skip),
            (NO_NAT, Verdict::Pass),
            (UDP, Verdict::Pass),
            (PING_TO_LINUX, Verdict::Pass),
            (LONG, Verdict::Pass),
            (OUT, Verdict::Pass),
            (OUT_BY_PING, Verdict::KnownLimitation),
            (OUTSIDE_NAMES, Verdict::Pass),
            (NODES_BY_PING, Verdict::Recorded),
            (ITSELF, Verdict::Recorded),
            (NET, Verdict::Broken),
        ],
        exit: Exit::NotConformant,
    },
    // Probers, too
    Product {
        fault: "crash-loop=windows-2022",
        turns: &[
            (ANSWERS, Verdict::Broken),
            (SAMPLE, Verdict::Fail),
            (ENDPOINTS, Verdict::Fail),
            (LISTED, Verdict::Fail),
            (IIS, Verdict::Fail),
            (PROBES, Verdict::Fail),
            (NANO, Verdict::Fail),
            (OVERLAY, Verdict::Skip),
            (POLICY, Verdict::Skip),
            (FROM_LINUX_TO_NODES, Verdict::Pass),
            (LINUX_TO_NODES_BY_PING, Verdict::Recorded),
            (NET, Verdict::Broken),
        ],
        exit: Exit::NotConformant,
    },
    Product {
        fault: "image-missing=windows-2022",
        turns: &[
            (ANSWERS, Verdict::Broken),
            (SAMPLE, Verdict::Broken),
            (ENDPOINTS, Verdict::Broken),
            (LISTED, Verdict::Broken),
            (IIS, Verdict::Broken),
            (PROBES, Verdict::Broken),
            (OVERLAY, Verdict::Skip),
            (POLICY, Verdict::Skip),
            (TO_LINUX, Verdict::Pass),
            (TO_NODES, Verdict::Pass),
            (BETWEEN_WINDOWS, Verdict::Skip),
            (NO_NAT, Verdict::Pass),
            (UDP, Verdict::Pass),
            (PING_TO_LINUX, Verdict::Pass),
            (LONG, Verdict::Pass),
            (OUT, Verdict::Pass),
            (OUT_BY_PING, Verdict::KnownLimitation),
            (OUTSIDE_NAMES, Verdict::Pass),
            (NODES_BY_PING, Verdict::Recorded),
            (ITSELF, Verdict::Recorded),
            (NET, Verdict::Broken),
        ],
        exit: Exit::CouldNotTell,
    },
    Product {
        fault: "handler-unknown=windows-2022",
        turns: &[
            (BALANCED, Verdict::Broken),
            (ANSWERS, Verdict::Broken),
            (IIS, Verdict::Broken),
        ],
        exit: Exit::CouldNotTell,
    },
    Product {
        fault: "sandbox-fails=windows-2022",
        turns: &[
            (ANSWERS, Verdict::Broken),
            (SAMPLE, Verdict::Broken),
            (ENDPOINTS, Verdict::Broken),
            (LISTED, Verdict::Broken),
            (IIS, Verdict::Broken),
            (PROBES, Verdict::Broken),
            (NANO, Verdict::Broken),
            (OVERLAY, Verdict::Skip),
            (POLICY, Verdict::Skip),
            (FROM_LINUX_TO_NODES, Verdict::Pass),
            (LINUX_TO_NODES_BY_PING, Verdict::Recorded),
            (NET, Verdict::Broken),
        ],
        exit: Exit::CouldNotTell,
    },
    Product {
        fault: "kube-proxy-dead=windows-2022",
        // Its NodePorts are dead, too, and it asks the cluster's DNS by a Service IP
        turns: &[
            (
                "net.service-ip-from-pod[*source=windows-pod]",
                Verdict::Fail,
            ),
            ("net.service-balancing[*source=windows-pod]", Verdict::Fail),
            ("net.port-mapping[*source=windows-pod]", Verdict::Fail),
            (PARTIAL_NAME, Verdict::Broken),
            ("net.dns-*source=windows-pod]", Verdict::Fail),
            // The other nodes are of Linux
            (NODE_PORT_FROM_WINDOWS, Verdict::Pass),
            ("net.service-types*source=windows-pod]", Verdict::Fail),
            ("net.service-types/node-port", Verdict::Fail),
            ("net.nodeport-*", Verdict::Fail),
            (LOCAL_NODE_PORT, Verdict::Broken),
            (FROM_NODE, Verdict::Broken),
            (CHURN_FROM_WINDOWS, Verdict::Broken),
        ],
        exit: Exit::NotConformant,
    },
    Product {
        fault: "service-answers-wrong",
        turns: &[
            (BALANCED, Verdict::Pass),
            // By the pods' own addresses, and by nodes'
            ("net.service-types/headless", Verdict::Pass),
            ("net.service-types/node-port", Verdict::Pass),
            (NODE_PORT_FROM_WINDOWS, Verdict::Pass),
            ("net.service-*", Verdict::Fail),
            ("net.port-mapping", Verdict::Fail),
            (OUTSIDE_NAMES, Verdict::Pass),
            (PARTIAL_NAME, Verdict::Broken),
            ("net.dns-*", Verdict::Fail),
            (LOCAL_NODE_PORT, Verdict::Broken),
            (FROM_NODE, Verdict::Broken),
            (CHURN, Verdict::Broken),
        ],
        exit: Exit::NotConformant,
    },
    Product {
        fault: "load-balancer-dead",
        // Those within do not go by it
        turns: &[(
            "sample.iis-loadbalancer/answers[*source=outside]",
            Verdict::Fail,
        )],
        exit: Exit::NotConformant,
    },
    Product {
        fault: "load-balancer-exhausted",
        turns: &[
            (ADDRESS, Verdict::Fail),
            (ANSWERS, Verdict::Broken),
            (BALANCED, Verdict::Broken),
        ],
        exit: Exit::NotConformant,
    },
    Product {
        fault: "captive-proxy=windows-2022",
        turns: &[
            (OUT, Verdict::Fail),
            (OUTSIDE_NAMES, Verdict::Broken),
            (OUT_BY_PING, Verdict::Broken),
        ],
        exit: Exit::NotConformant,
    },
    // What no operating system may do is not held against Windows; what every cluster has to have is
    Product::row(
        "outbound-cut",
        &[
            (OUT, Verdict::Skip),
            (OUTSIDE_NAMES, Verdict::Skip),
            (OUT_BY_PING, Verdict::Skip),
        ],
        Exit::Conformant,
    ),
    Product::row(
        "dns-down",
        &[
            (PARTIAL_NAME, Verdict::Broken),
            (OUTSIDE_NAMES, Verdict::Broken),
            ("net.dns-*", Verdict::Fail),
            ("net.service-types/headless", Verdict::Fail),
            ("net.service-types/external-name", Verdict::Fail),
        ],
        Exit::NotConformant,
    ),
    // One Linux node has no other: without a control it is judged as it is
    Product::row(
        "udp-dropped",
        &[(BETWEEN_WINDOWS, Verdict::Skip), (UDP, Verdict::Fail)],
        Exit::NotConformant,
    ),
    Product::row(
        "node-service-ip-answers=windows-2022",
        &[(FROM_NODE, Verdict::LimitationLifted)],
        Exit::Conformant,
    ),
    Product::row(
        "local-node-port-answers=windows-2022",
        &[(LOCAL_NODE_PORT, Verdict::LimitationLifted)],
        Exit::Conformant,
    ),
    Product {
        fault: "dns-suffix-wrong=windows-2022",
        turns: &[(
            "net.dns-search/short-name[*source=windows-pod]",
            Verdict::Fail,
        )],
        exit: Exit::NotConformant,
    },
    Product::row(
        "partial-names-resolve=windows-2022",
        &[(PARTIAL_NAME, Verdict::LimitationLifted)],
        Exit::Conformant,
    ),
    Product {
        fault: "vip-sticks=windows-2022",
        turns: &[
            ("net.service-balancing[*source=windows-pod]", Verdict::Fail),
            (CHURN_FROM_WINDOWS, Verdict::Broken),
        ],
        exit: Exit::NotConformant,
    },
    Product::row(
        "endpoint-stale=windows-2022",
        &[(CHURN_FROM_WINDOWS, Verdict::Fail)],
        Exit::NotConformant,
    ),
    Product {
        fault: "traffic-cut=windows-2022:linux",
        turns: &[
            (
                "sample.iis-loadbalancer/answers[*source=linux-pod]",
                Verdict::Fail,
            ),
            ("net.node-to-pod", Verdict::Fail),
            ("net.pod-to-pod-cross-os/*", Verdict::Fail),
            (TO_NODES, Verdict::Fail),
            (BETWEEN_WINDOWS, Verdict::Skip),
            (NO_NAT, Verdict::Fail),
            ("net.service-*source=linux-*", Verdict::Fail),
            ("net.port-mapping[*source=linux-pod]", Verdict::Broken),
            (PARTIAL_NAME, Verdict::Broken),
            ("net.dns-*", Verdict::Fail),
            ("net.service-types/headless", Verdict::Fail),
            ("net.service-types/external-name", Verdict::Fail),
            (UDP, Verdict::Fail),
            (LONG, Verdict::Fail),
            (PING_TO_LINUX, Verdict::Fail),
            (
                "net.pod-to-pod-ping/to-windows[*source=linux-pod]",
                Verdict::Fail,
            ),
            (NODE_PORT_FROM_WINDOWS, Verdict::Fail),
            ("net.nodeport-*", Verdict::Fail),
            (LOCAL_NODE_PORT, Verdict::Broken),
            ("net.after-churn[*source=linux-pod]", Verdict::Broken),
        ],
        exit: Exit::NotConformant,
    },
    Product::row(
        "node-service-ip-resets=windows-2022",
        &[(FROM_NODE, Verdict::Fail)],
        Exit::NotConformant,
    ),
    Product::row("taint-ignored=windows-2022", &[], Exit::NotConformant),
    Product::row("requests-ignored=windows-2022", &[], Exit::NotConformant),
    Product::row("any-build-runs=windows-2022", &[], Exit::Conformant),
    Product::row("platform-unasked=linux", &[], Exit::NotConformant),
    Product::row(OS_SELECTS, &[], Exit::NotConformant),
    Product::row(NEVER_PREEMPTS, &[], Exit::NotConformant),
];

/// Harness faults, each at a fifth of all requests it can hit.
pub(crate) const HARNESS: [&str; 13] = [
    "too-many-requests=0.2",
    "internal-error=0.2",
    "html-502=0.2",
    "gone=0.2",
    "hang=0.2",
    "reset=0.2",
    "cut-exec=0.2",
    "lose-exit-frame=0.2",
    "slow=0.2",
    "truncate-body=0.2",
    "stale-list=0.2",
    "silent-watch=0.2",
    "delete-created=0.2",
];

/// Faults under which nothing on these checks may pass, whatever the harness meets.
pub(crate) const BROKEN_WORLD: [&str; 3] = [
    "node-label-wrong=windows-2022",
    "admission-allows=spec.hostPID",
    "kube-proxy-dead=windows-2022",
];

/// Those of these faults that lie between harness and API server.
pub(crate) fn of_the_way(faults: &[&str]) -> Vec<Fault> {
    let elsewhere = |fault: &str| {
        fault == "none" || POLICIES.contains(&fault) || fault.parse::<ProductFault>().is_ok()
    };
    let faults = faults.iter().filter(|fault| !elsewhere(fault));
    let parsed = faults.map(|fault| fault.parse().expect("a fault of the way"));
    parsed.collect()
}

/// Whether a run came to what it should while one thing is broken, in every check and as a whole.
pub(crate) fn shows(view: &RunView, product: &Product) -> Result<(), String> {
    let expected = expected(view, &[product]);
    let mut seen = verdicts(view);
    for (_, pattern, any) in BY_CHANCE.iter().filter(|row| row.0 == product.fault) {
        let pattern = Pattern::parse(pattern).expect("a pattern of ids");
        let one_of = |verdict: &Option<Verdict>| verdict.is_some_and(|one| any.contains(&one));
        seen.retain(|id, verdict| !(pattern.covers(id) && one_of(verdict)));
    }
    let exit = winconform_core::record::exit(view);
    let other = |(id, verdict): (&&str, &Option<Verdict>)| {
        let expected = expected.get(*id).copied();
        (*verdict != expected).then(|| format!("{id}: {verdict:?}, not {expected:?}"))
    };
    let other: Vec<_> = seen.iter().filter_map(other).collect();
    if other.is_empty() && exit == product.exit {
        return Ok(());
    }
    Err(format!(
        "{}: expected {:?}, saw {exit:?}; {other:?}\n{}",
        product.fault,
        product.exit,
        described(view)
    ))
}

/// How many checks came to what they should while these things are broken, and how many to nothing
/// that tells; those that came to something else are wrong.
pub(crate) fn tally(view: &RunView, broken: &[&Product]) -> Result<(usize, usize), String> {
    tally_of(view, &expected(view, broken))
}

/// The same where it is known what every check should come to.
pub(crate) fn tally_of(
    view: &RunView,
    expected: &BTreeMap<&str, Verdict>,
) -> Result<(usize, usize), String> {
    let (mut told, mut untold) = (0, 0);
    for (check, seen) in verdicts(view) {
        if seen == expected.get(check).copied() {
            told += 1;
        } else if matches!(seen, None | Some(Verdict::Broken | Verdict::Skip)) {
            // Skipped: the Lease could not be renewed in time, which ends a run early;
            // nothing at all: it could not be had
            untold += 1;
        } else {
            let wanted = expected.get(check);
            let what = described(view);
            return Err(format!("{check}: {seen:?}, not {wanted:?}\n{what}"));
        }
    }
    Ok((told, untold))
}

/// What every check should come to while these things are broken.
fn expected<'v>(view: &'v RunView, broken: &[&Product]) -> BTreeMap<&'v str, Verdict> {
    let turned = broken.iter().flat_map(|product| {
        let apart = scheduling::turns(product.fault);
        product.turns.iter().chain(apart)
    });
    let all = NO_RING.iter().chain(turned).chain(&OTHERWISE);
    let known = all.map(|(name, verdict)| {
        let pattern = Pattern::parse(name).expect("a pattern of ids");
        (pattern, *verdict)
    });
    let known: Vec<_> = known.collect();
    let of = |check: &'v CheckView| {
        let id = check.planned.id.as_str();
        let named = known.iter().find(|(pattern, _)| pattern.covers(id));
        let usual = || usual(check.planned.kind);
        (id, named.map_or_else(usual, |(_, verdict)| *verdict))
    };
    view.checks.values().map(of).collect()
}

/// What a check of this kind comes to where nothing is broken.
pub(crate) fn usual(kind: Kind) -> Verdict {
    match kind {
        Kind::Capability | Kind::Requirement | Kind::Rejection | Kind::Advice => Verdict::Pass,
        Kind::Limitation => Verdict::KnownLimitation,
        Kind::Evidence => Verdict::Recorded,
    }
}

/// What every check came to; `None` where it came to nothing.
pub(crate) fn verdicts(view: &RunView) -> BTreeMap<&str, Option<Verdict>> {
    let of = |check: &'_ CheckView| check.conclusion.as_ref().map(|it| it.verdict);
    let checks = view.checks.values();
    checks
        .map(|check| (check.planned.id.as_str(), of(check)))
        .collect()
}

pub(crate) fn described(view: &RunView) -> String {
    winconform_core::report::terminal::render(
        view,
        160,
        winconform_core::report::terminal::Colour::Never,
    )
}
