//! The project's `env.*` cases on handwritten facts: each row of `environment.yaml` breaks one thing, and
//! names every check that gets another verdict, and every informational one that observes something else.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value as Json, json};
use winconform_core::claims::{ClaimId, ClaimType};
use winconform_core::config::Config;
use winconform_core::facts::{Facts, PoolName, WindowsBuild};
use winconform_core::method::fact::{Observed, ObservedPulls};
use winconform_core::method::{
    Bound, Fact, FactExpectation, FactObservation, Method, ObservationError, ReadyFixtures, Reply,
    Request, Topic,
};
use winconform_core::plan::{Disposition, plan};
use winconform_core::suite::Suites;
use winconform_core::verdict::Verdict::{self, Inconclusive, Informational, Pass, Skip};
use winconform_core::verdict::judge;

use crate::claims::project_suites;
use crate::rows::listed;

/// The claim type and verdict of a check, with its observation or the reason why there is none.
type Outcome = (ClaimType, Verdict, Json);

/// One difference from a healthy cluster.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    is: String,
    /// Values of facts, each by the words of its path.
    #[serde(default)]
    facts: BTreeMap<String, Json>,
    #[serde(default)]
    turns: BTreeMap<String, Verdict>,
    /// Informational checks that observe something else, with the same verdict.
    #[serde(default)]
    tells: Vec<String>,
}

#[test]
fn each_row_turns_what_it_names_and_nothing_else() {
    let rows: Vec<Row> = listed(include_str!("environment.yaml"));
    let suites = env_suites();
    let healthy = outcomes(&suites, &healthy());
    let mut wrong = Vec::new();
    for row in rows {
        let seen = outcomes(&suites, &with(&row.facts));
        let (mut turned, mut changed) = (BTreeMap::new(), Vec::new());
        for (id, (kind, verdict, observed)) in &seen {
            let Some((_, before, was_observed)) = healthy.get(id) else {
                continue;
            };
            if before != verdict {
                turned.insert(id.clone(), *verdict);
            } else if *kind == ClaimType::Informational && was_observed != observed {
                changed.push(id.clone());
            }
        }
        if !seen.keys().eq(healthy.keys()) || turned != row.turns || changed != row.tells {
            wrong.push(format!("{}: turned {turned:?}, told {changed:?}", row.is));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The healthy cluster's facts with these values in them.
fn with(values: &BTreeMap<String, Json>) -> Facts {
    let mut facts = json!(healthy());
    for (way, value) in values {
        let mut words = way.split(' ');
        let fact = &mut facts[words.next().expect("the name of a fact")];
        match value.get("unknown") {
            Some(_) => fact.clone_from(value),
            None => set(
                &mut fact["fact"]["value"],
                &words.collect::<Vec<_>>(),
                value,
            ),
        }
    }
    serde_json::from_value(facts).expect("facts")
}

/// Sets the value at a path: keys of objects, names or indices of list items, or `*` for all items.
fn set(at: &mut Json, way: &[&str], value: &Json) {
    match (at, way) {
        (at, []) => at.clone_from(value),
        (Json::Array(list), ["*", way @ ..]) => list.iter_mut().for_each(|it| set(it, way, value)),
        (Json::Array(list), [name, way @ ..]) => {
            let place = list.iter().position(|it| it["name"] == **name);
            let place = place.or(name.parse().ok()).expect(name);
            set(&mut list[place], way, value);
        }
        (at, [key, way @ ..]) => set(&mut at[*key], way, value),
    }
}

#[test]
fn a_healthy_cluster_passes_or_is_recorded() {
    for (id, (kind, verdict, seen)) in outcomes(&env_suites(), &healthy()) {
        let expected = match kind {
            ClaimType::Informational => Informational,
            _ => Pass,
        };
        assert_eq!(verdict, expected, "{id}: {seen}");
    }
}

#[test]
fn windows_server_2019_is_neither_failed_nor_passed_by_1_37() {
    let build = ("nodes w25-0 build".to_owned(), json!("10.0.17763"));
    for (server, expected) in [("v1.37.0", Skip), ("v1.27.16", Pass)] {
        let facts = with(&[build.clone(), ("server".to_owned(), json!(server))].into());
        let seen = outcomes(&env_suites(), &facts);
        let seen = &seen["env.os-version-supported[pool=windows-2019]"];
        assert_eq!(seen.1, expected, "{server}: {}", seen.2);
    }
}

#[test]
fn nodes_that_may_not_be_read_break_all_that_is_about_them() {
    let reason = unknown("/api/v1/nodes: status 403: nodes is forbidden");
    let facts = with(&[("nodes".to_owned(), reason)].into());
    let unaffected = [
        "env.cni",
        "env.kube-proxy",
        "env.overlay-vni",
        "env.requests-set",
        "env.workloads-declare-os",
    ];
    for (id, (_, verdict, seen)) in outcomes(&env_suites(), &facts) {
        let broken = verdict == Inconclusive;
        assert_eq!(broken, !unaffected.contains(&id.as_str()), "{id}: {seen}");
        assert!(
            !broken || seen.to_string().contains("/api/v1/nodes"),
            "{id}: {seen}"
        );
    }
}

/// Facts that were never read pass no check; an empty cluster passes none but cluster-wide ones.
#[test]
fn an_unread_cluster_passes_nothing() {
    for (id, (_, verdict, _)) in outcomes(&env_suites(), &Facts::default()) {
        assert_eq!(verdict, Inconclusive, "{id}");
    }
    let empty = with(&[("nodes".to_owned(), json!([]))].into());
    for (id, (kind, verdict, _)) in outcomes(&env_suites(), &empty) {
        let cluster_wide = ["env.requests-set", "env.workloads-declare-os"];
        assert!(
            verdict != Pass
                || kind == ClaimType::Informational
                || cluster_wide.contains(&id.as_str()),
            "{id}: {verdict}"
        );
    }
}

/// The observation of a topic on a pool, or on the cluster.
fn seen(
    topic: &Topic,
    facts: &Facts,
    pool: Option<&PoolName>,
) -> Result<FactObservation, ObservationError> {
    let ready = ReadyFixtures::default();
    let at = Bound {
        pool,
        build: pool.map(|_| WindowsBuild::SERVER_2022),
        ..Bound::to_ready(&ready)
    };
    Fact::prepare(topic, &at)?.read(&Reply::Facts(Arc::new(facts.clone())))
}

/// Whether a topic can be observed on the cluster, and on a pool.
fn is_told(topic: &Topic, facts: &Facts) -> [bool; 2] {
    let pool = PoolName::windows(WindowsBuild::SERVER_2022);
    [None, Some(&pool)].map(|pool| {
        let seen = seen(topic, facts, pool);
        seen.is_ok_and(|seen| Fact::compare(&FactExpectation::Told, &seen).is_ok())
    })
}

#[test]
fn a_topic_is_told_by_its_own_facts_and_by_no_others() {
    let healthy = json!(healthy());
    let fields = healthy.as_object().expect("facts by name");
    let without = |left_out: &dyn Fn(&str) -> bool| -> Facts {
        let mut facts = healthy.clone();
        for name in fields.keys().filter(|name| left_out(name)) {
            facts[name] = unknown("forbidden");
        }
        serde_json::from_value(facts).expect("facts")
    };
    for word in Topic::WORDS {
        let topic = Topic::parse(word).expect("known");
        let needed = topic.facts();
        assert!(!needed.is_empty(), "{word}");
        for needed in needed {
            assert!(fields.contains_key(*needed), "{word}: {needed}");
            let lacking = is_told(&topic, &without(&|name| name == *needed));
            assert!(lacking.contains(&false), "{word} without {needed}");
        }
        let observed = is_told(&topic, &without(&|name| !needed.contains(&name)));
        assert!(observed.contains(&true), "{word}");
    }
}

#[test]
fn usable_nodes_are_counted_by_their_system() {
    let Ok(FactObservation::Subjects(subjects)) = seen(&Topic::UsableNodes, &healthy(), None)
    else {
        panic!("told")
    };
    let counts: Vec<_> = subjects.iter().map(|one| (&*one.name, &one.saw)).collect();
    let [linux, windows] = [2, 3].map(|of| Observed::Nodes { usable: of, of });
    assert_eq!(counts, [("linux", &linux), ("windows", &windows)]);
}

#[test]
fn a_pull_is_told_of_the_node_it_was_to() {
    let pull = json!([{"image": SERVERCORE, "node": "w22-1", "took": 61_000}]);
    let facts = with(&[("pulls".to_owned(), pull)].into());
    let topic = Topic::Images(vec!["windows/servercore".to_owned()]);
    let pool = PoolName::windows(WindowsBuild::SERVER_2022);
    let Ok(FactObservation::Subjects(subjects)) = seen(&topic, &facts, Some(&pool)) else {
        panic!("told")
    };
    let pulls = subjects.iter().map(|one| match &one.saw {
        Observed::Images { pulls, .. } => (&*one.name, pulls.clone()),
        other => panic!("{other}"),
    });
    let took = |pulls: &[(&str, u64)]| {
        let pulls = pulls
            .iter()
            .map(|(image, took)| ((*image).to_owned(), *took));
        ObservedPulls::Took(pulls.collect())
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
    let is_of_facts =
        |claim: &ClaimId| claim.area() == "env" && claim.as_str() != "env.node-services";
    suites.cases.retain(|case| is_of_facts(&case.claim));
    suites
}

/// Plans, observes once with these facts, and judges.
fn outcomes(suites: &Suites, facts: &Facts) -> BTreeMap<String, Outcome> {
    let ready = ReadyFixtures::default();
    let plan = plan(suites, facts, &Config::default());
    let outcome = |check: &winconform_core::plan::Check| {
        let at = Bound {
            pool: check.point.pool.as_ref(),
            build: check.build,
            image: check.image.as_deref(),
            family: check.point.family,
            ..Bound::to_ready(&ready)
        };
        let test = match &check.disposition {
            Disposition::Skip(reason) => return (check.claim_type, Skip, json!(reason)),
            Disposition::Inconclusive(error) => {
                return (check.claim_type, Inconclusive, json!(error));
            }
            Disposition::Observe => &check.assertions[0].test,
        };
        let prepared = test.prepare(&at).expect("it is about facts");
        assert_eq!(prepared.request, Request::Facts);
        let taken = prepared.read(&Reply::Facts(Arc::new(facts.clone())));
        let comparison = taken.as_ref().map(|taken| &taken.comparison);
        let verdict = judge(check.claim_type, comparison, &[], &check.scope);
        let seen = taken.map_or_else(|error| json!(error), |taken| taken.observation);
        (check.claim_type, verdict, seen)
    };
    let checks = plan.checks.iter();
    checks
        .map(|check| (check.id.to_string(), outcome(check)))
        .collect()
}

/// The facts of a healthy cluster with two Windows pools.
fn healthy() -> Facts {
    let fact = |value: Json| json!({"fact": {"value": value, "source": "/"}});
    let nodes = [
        ("cp-0", None),
        ("lin-0", None),
        ("w22-0", Some("10.0.20348")),
        ("w22-1", Some("10.0.20348")),
        ("w25-0", Some("10.0.26100")),
    ];
    let endpoint = |node: &str| json!({"address": format!("10.244.0.{}", node.len()), "node": node, "ready": true});
    let facts = json!({
        "server": fact(json!("v1.37.0")),
        "cluster": fact(json!("uid")),
        "nodes": fact(nodes.map(|(name, build)| node(name, build)).to_vec().into()),
        "silent-nodes": fact(json!([])),
        "storage-classes": fact(json!([])),
        "cni": fact(json!({
            "product": "flannel", "mode": "overlay", "vxlan": {"vni": 4096, "port": 4789},
            "signs": ["ConfigMap kube-flannel/kube-flannel-cfg"],
        })),
        "kube-proxy": fact(json!({
            "linux-mode": "iptables", "windows-mode": "kernelspace", "dsr": true,
            "signs": ["ConfigMap kube-system/kube-proxy"],
        })),
        "dns": fact(json!({
            "service": "kube-system/kube-dns", "addresses": ["10.96.0.10"],
            "endpoints": [endpoint("cp-0"), endpoint("lin-0")],
        })),
        "workloads": fact(json!({
            "pods": 12, "windows-pods": 3, "windows-families": {"ipv4": 3}, "without-os": [], "without-os-count": 0,
            "without-requests": [], "without-requests-count": 0, "problem-detectors": [],
        })),
        "pulls": fact(json!([])),
        "csi-nodes": fact(json!([{"node": "w22-0", "drivers": ["disk.csi"]}])),
    });
    serde_json::from_value(facts).expect("facts")
}

fn node(name: &str, build: Option<&str>) -> Json {
    let os = if build.is_some() { "windows" } else { "linux" };
    let mut labels = json!({"kubernetes.io/os": os, "kubernetes.io/arch": "amd64"});
    let mut taints = json!([]);
    if let Some(build) = build {
        labels["node.kubernetes.io/windows-build"] = json!(build);
        taints = json!([{"key": "os", "value": "windows", "effect": "NoSchedule"}]);
    }
    let condition = |kind: &str, status: &str| json!({"kind": kind, "status": status, "since": "2026-03-01T02:01:30Z", "reason": ""});
    json!({
        "name": name, "os": os, "build": build, "usable": true, "taints": taints,
        "details": {
            "labels": labels, "arch": "amd64",
            "kernel": build.map_or("6.1.0-18-amd64".to_owned(), |build| format!("{build}.2700")),
            "os-image": "Windows Server Datacenter", "runtime": "containerd://1.7.20", "kubelet": "v1.37.0",
            "boot-id": "1", "clock-ahead": 0, "all-taints": taints, "control-plane": name == "cp-0",
            "capacity": {"memory": "16777216Ki", "cpu": "4"},
            "allocatable": {"memory": "14155776Ki", "cpu": "4"},
            "conditions": [condition("Ready", "True"), condition("MemoryPressure", "False")],
            "created": "2026-03-01T02:00:00Z", "pod-cidrs": ["10.244.1.0/24"],
            "images": [SERVERCORE, "registry.k8s.io/pause:3.10.2"],
        },
    })
}

const SERVERCORE: &str = "mcr.microsoft.com/windows/servercore:ltsc2022";

fn unknown(reason: &str) -> Json {
    json!({"unknown": {"reason": reason}})
}
