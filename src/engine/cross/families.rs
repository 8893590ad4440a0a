//! The same where nodes, pods and Services have addresses of two families: what a fault of one turns
//! is what is looked at in that one.

use hybrid_sim::IpFamilies;
use winconform_core::verdict::Verdict::Skip;

use super::*;

/// What ids of the second family end with.
const SECOND: &str = ",family=ipv6]";

/// A case of all Windows pods in the second family: those of Windows Server 2019 have no addresses of
/// it (hcsshim, `hcn/hcnglobals.go`).
const OLD: (&str, Verdict) = ("*[pool=windows-2019,*family=ipv6]", Skip);
const TO_OLD: (&str, Verdict) = ("*to=windows-2019,family=ipv6]", Skip);

const PARTIAL_IN_SECOND: &str =
    "net.dns-search/namespaced-name-from-windows[pool=windows-2022,*,family=ipv6]";

const ROWS: &[Row] = &[
    // Its NodePorts are dead, too, and every Service has one on every node
    Row {
        fault: "ipv6-proxy-dead=windows-2022",
        turns: &[
            OLD,
            ("net.service-types/headless[*", Pass),
            ("net.service-types/node-port*,family=ipv6]", Fail),
            ("net.nodeport-from-node[*,family=ipv6]", Fail),
            (
                "net.service-*[pool=windows-2022,source=windows-pod,*family=ipv6]",
                Fail,
            ),
            (
                "net.port-mapping[pool=windows-2022,source=windows-pod,family=ipv6]",
                Fail,
            ),
            (PARTIAL_IN_SECOND, Broken),
            (
                "net.dns-*[pool=windows-2022,source=windows-pod,*family=ipv6]",
                Fail,
            ),
            (
                "net.node-to-service-ip*[pool=windows-2022,*,family=ipv6]",
                Broken,
            ),
            (
                "net.local-nodeport[pool=windows-2022,*,family=ipv6]",
                Broken,
            ),
            (
                "net.after-churn*[pool=windows-2022,source=windows-pod,*family=ipv6]",
                Broken,
            ),
        ],
        by_chance: &[],
    },
    Row {
        fault: "ipv6-proxy-dead=linux",
        turns: &[
            OLD,
            ("net.service-types/headless[*", Pass),
            ("net.service-*[*,source=linux-*family=ipv6]", Fail),
            ("net.nodeport-from-node[*,family=ipv6]", Fail),
            (
                "net.service-types/node-port-from-windows[*,family=ipv6]",
                Fail,
            ),
            ("net.port-mapping[*,source=linux-pod,family=ipv6]", Fail),
            ("net.dns-*[*,source=linux-pod,*family=ipv6]", Fail),
            ("net.after-churn*[*,source=linux-pod,*family=ipv6]", Broken),
        ],
        by_chance: &[],
    },
    // Nor between its own two nodes: some Services lead to a pod on the node itself
    Row {
        fault: "ipv6-dropped=windows-2022",
        turns: &[
            OLD,
            ("net.after-churn*[pool=windows-2022,*family=ipv6]", Broken),
            TO_OLD,
            WITHIN_2022,
            ("net.*/between-windows[*to=windows-2022,family=ipv6]", Fail),
            ("net.*/ring[pool=windows-2022,*family=ipv6]", Fail),
            (
                "net.pod-to-pod-cross-node[*windows-2022,*,family=ipv6]",
                Fail,
            ),
            (
                "net.pod-to-pod-cross-node[*to=windows-2022,family=ipv6]",
                Fail,
            ),
            (
                "net.pod-to-pod-cross-os/*[pool=windows-2022,*,family=ipv6]",
                Fail,
            ),
            (
                "net.pod-to-pod-udp/*[pool=windows-2022,*,family=ipv6]",
                Fail,
            ),
            (
                "net.pod-to-pod-ping/*[pool=windows-2022,*,family=ipv6]",
                Fail,
            ),
            ("net.long-payload/*[pool=windows-2022,*,family=ipv6]", Fail),
            (
                "net.no-nat-in-cluster/*[pool=windows-2022,*,family=ipv6]",
                Fail,
            ),
            ("net.node-to-pod*[pool=windows-2022,*,family=ipv6]", Fail),
            (
                "net.*/each-linux-node[pool=windows-2022,source=linux-*family=ipv6]",
                Fail,
            ),
            ("net.pod-to-node/*,family=ipv6]", Fail),
            ("net.nodeport-from-node[*,family=ipv6]", Fail),
            ("net.service-types/node-port*,family=ipv6]", Fail),
            (
                "net.service-balancing*[pool=windows-2022,*family=ipv6]",
                Fail,
            ),
            (
                "net.service-*[pool=windows-2022,source=linux-*family=ipv6]",
                Fail,
            ),
            (
                "net.dns-*[pool=windows-2022,source=linux-pod,*family=ipv6]",
                Fail,
            ),
            ("net.port-mapping[pool=windows-2022,*,family=ipv6]", Broken),
            (
                "net.local-nodeport[pool=windows-2022,*,family=ipv6]",
                Broken,
            ),
        ],
        by_chance: &[
            (PARTIAL_IN_SECOND, Broken),
            (
                "net.service-*[pool=windows-2022,source=windows-pod,*family=ipv6]",
                Fail,
            ),
            (
                "net.dns-*[pool=windows-2022,source=windows-pod,*family=ipv6]",
                Fail,
            ),
            (
                "net.node-to-service-ip*[pool=windows-2022,*,family=ipv6]",
                Broken,
            ),
        ],
    },
];

/// Faults that know no family: a check of the second comes to what that of the first does.
const OF_BOTH: &[&str] = &[
    "kube-proxy-dead=windows-2022",
    "traffic-cut=node/windows-2022-a:node/windows-2022-a",
    "node-service-ip-answers=windows-2022",
    "node-service-ip-resets=windows-2022",
    "local-node-port-answers=windows-2022",
    "udp-dropped=windows-2022",
    "mtu-black-hole=windows-2022",
    "source-rewritten=windows-2022",
    "source-rewritten=linux",
    "vip-sticks=windows-2022",
    "endpoint-stale=windows-2022",
    "endpoint-stale=linux",
    "dns-suffix-wrong=windows-2022",
    "partial-names-resolve=windows-2022",
];

/// Which pod of two a Service leads to is chance, and one is cut off.
const BY_CHANCE: &str = "traffic-cut=node/";

fn dual() -> Topology {
    Topology {
        ip_families: IpFamilies::DualStack,
        ..three_builds()
    }
}

/// An id's check in the first family.
fn in_first(id: &str) -> Option<String> {
    let point = id.strip_suffix("family=ipv6]")?;
    let point = point.strip_suffix(['[', ',']).unwrap_or(point);
    Some(match point.contains('[') {
        true => format!("{point}]"),
        false => point.to_owned(),
    })
}

#[test]
fn a_healthy_cluster_is_as_documented_in_both() {
    let suites = suites();
    let single = verdicts(World::three_builds(&suites).with(FaultSet::default()));
    let mut seen = World::healthy(&dual(), &suites, None).with(FaultSet::default());
    let (mut both, mut alone) = (BTreeMap::new(), 0);
    for (id, (verdict, why)) in seen.clone() {
        match in_first(&id) {
            // With the ids and verdicts of a cluster that has no second family
            None => drop(both.insert(id, verdict)),
            Some(_) if is_of_itself(&id) => assert_eq!(verdict, Skip, "{id}: {why}"),
            Some(_) if verdict == Skip => {
                assert!(id.contains("windows-2019"), "{id}: {why}");
                assert!(why.contains("no IPv6 address"), "{id}: {why}");
            }
            Some(first) => {
                assert_eq!(verdict, seen[&first].0, "{id}: {why}");
                alone += 1;
            }
        }
    }
    assert_eq!(both, single);
    assert!(alone > 60, "{alone}");
    seen.retain(|id, (verdict, _)| {
        if is_of_itself(id) {
            return *verdict != Skip;
        }
        let is_old = id.ends_with(SECOND) && *verdict == Skip;
        !is_old && (!is_of_another(case(id)) || *verdict != Skip)
    });
    assert_eq!(otherwise(seen), []);
}

#[test]
fn what_is_wrong_with_the_second_family_turns_that_alone() {
    let mut world = World::healthy(&dual(), &suites(), None);
    let healthy = verdicts(world.with(FaultSet::default()));
    let wrong = wrong(&mut world, ROWS, &healthy);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_is_wrong_with_both_turns_both_and_every_case_is_turned() {
    let mut world = World::healthy(&dual(), &suites(), None);
    let healthy = verdicts(world.with(FaultSet::default()));
    let mut turned = BTreeSet::new();
    for fault in OF_BOTH
        .iter()
        .copied()
        .chain(ROWS.iter().map(|row| row.fault))
    {
        let seen = verdicts(world.with(faults(fault)));
        for (id, verdict) in &seen {
            let Some(first) = in_first(id).filter(|_| *verdict != Skip) else {
                continue;
            };
            if OF_BOTH.contains(&fault) && !fault.starts_with(BY_CHANCE) {
                assert_eq!(*verdict, seen[&first], "{fault}: {id}");
            }
            if *verdict != healthy[id] && verdict.is_conclusive() {
                turned.insert(case(id).to_owned());
            }
        }
    }
    let second = healthy.iter().filter(|(id, _)| in_first(id).is_some());
    let told = second.filter(|(_, verdict)| !matches!(verdict, Skip | Recorded));
    let all: BTreeSet<_> = told.map(|(id, _)| case(id).to_owned()).collect();
    assert_eq!(turned, all);
}

/// The world in which Windows has no IPv6, whatever ranges its nodes have, and who is told of it.
fn overlay(cni: Option<Cni>) -> Seen {
    let mut topology = dual();
    for node in &mut topology.nodes {
        node.network.mode = NetworkMode::Overlay;
    }
    let mut world = World::healthy(&topology, &suites(), cni);
    let mut seen = world.with(FaultSet::default());
    seen.retain(|id, _| in_first(id).is_some());
    seen
}

#[test]
fn where_windows_is_known_to_have_no_second_family_nothing_is_asked_of_it() {
    let because =
        "the question does not arise: flannel is in mode overlay, in which Windows has no IPv6";
    for (id, (verdict, why)) in overlay(Some(plugin("flannel", CniMode::Overlay))) {
        match id.contains("pool=") {
            true => assert_eq!((verdict, &*why), (Skip, because), "{id}"),
            false => assert_eq!(verdict, Pass, "{id}: {why}"),
        }
    }
}

/// That its network is an overlay nobody says, its nodes have ranges of both, and its pods no address.
#[test]
fn pods_without_an_address_that_they_should_have_are_no_skip() {
    let mut broken = 0;
    for (id, (verdict, why)) in overlay(None) {
        let of_old = id.contains("pool=windows-2019") || id.contains("to=windows-2019");
        if !id.contains("pool=") {
            assert_eq!(verdict, Pass, "{id}: {why}");
        } else if verdict == Skip {
            assert!(of_old && why.contains("no IPv6 address"), "{id}: {why}");
        } else {
            assert_eq!(verdict, Broken, "{id}: {why}");
            let due = "no IPv6 address, though windows-20";
            assert!(why.contains(due), "{id}: {why}");
            broken += 1;
        }
    }
    assert!(broken > 40, "{broken}");
}
