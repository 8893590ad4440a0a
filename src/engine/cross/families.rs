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

const ROWS: &[Row] = &[
    Row {
        fault: "ipv6-proxy-dead=windows-2022",
        turns: &[OLD],
        by_chance: &[],
    },
    Row {
        fault: "ipv6-proxy-dead=linux",
        turns: &[OLD],
        by_chance: &[],
    },
    Row {
        fault: "ipv6-dropped=windows-2022",
        turns: &[OLD],
        by_chance: &[],
    },
];

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
            Some(_) if verdict == Skip => {
                assert!(id.contains("windows-2019"), "{id}: {why}");
                assert!(why.ends_with("no IPv6 address"), "{id}: {why}");
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
