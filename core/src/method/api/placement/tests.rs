//! Recorded statuses of pods, and how each compares.

use super::*;
use crate::facts::{NodeDetails, PoolName};
use crate::fixture::Until;
use crate::method::{ApiReply, PoolNode, ReadyFixtures, Reply};
use crate::rows::listed;
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;

const BUILD: WindowsBuild = WindowsBuild::SERVER_2022;

fn taint() -> Json {
    json!({"key": "os", "value": "windows", "effect": "NoSchedule"})
}

/// One Linux node, and three with Windows: two of the pool, one of another build.
fn nodes(taints: &[Json]) -> Vec<NodeFact> {
    let node = |name: &str, build: Option<WindowsBuild>| NodeFact {
        name: name.to_owned(),
        os: build.map_or(Os::Linux, |_| Os::Windows),
        build,
        usable: true,
        excluded: None,
        spared: None,
        taints: build.map_or(Vec::new(), |_| taints.to_vec()),
        details: NodeDetails::default(),
    };
    vec![
        node("lin", None),
        node("win-a", Some(BUILD)),
        node("win-b", Some(BUILD)),
        node("old", Some(WindowsBuild::SERVER_2019)),
    ]
}

fn seen_among(nodes: Vec<NodeFact>, pod: PlacedPod, items: &Json) -> Result<PlacementObservation> {
    let used = nodes.iter().filter(|node| node.usable);
    let used = used.map(|node| PoolNode {
        name: node.name.clone(),
        pool: node.build.map_or_else(PoolName::linux, PoolName::windows),
        kubelet: None,
        addresses: Vec::new(),
    });
    let ready = ReadyFixtures {
        run: "r1".to_owned(),
        namespace: "winconform-r1".to_owned(),
        nodes: used.collect(),
        node_facts: Arc::new(nodes),
        ..ReadyFixtures::default()
    };
    let pool = PoolName::windows(BUILD);
    let at = Bound {
        pool: Some(&pool),
        build: Some(BUILD),
        ..Bound::to_ready(&ready)
    };
    let body = json!({"items": items});
    let reply = Reply::Api(ApiReply { status: 200, body });
    Placement::prepare(&pod, &at)?.read(&reply)
}

/// A pod `plain` as the API server has it.
fn pod(node: Option<&str>, tolerations: &Json, message: &str) -> Json {
    let scheduled = match node {
        Some(_) => json!({"type": "PodScheduled", "status": "True"}),
        None => json!({"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
            "message": message}),
    };
    json!({"metadata": {"name": "plain-windows-2022"},
        "spec": {"nodeName": node, "tolerations": tolerations, "containers": [{"name": "a"}]},
        "status": {"phase": "Pending", "conditions": [scheduled]}})
}

/// A row of `tests.yaml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    expectation: String,
    on: Option<String>,
    /// Why it waits.
    waits: Option<String>,
    /// The scheduler's whole message instead.
    message: Option<String>,
    /// What the kubelet says that refused it.
    refused: Option<String>,
    /// The state of its container.
    #[serde(default)]
    state: Json,
    #[serde(default)]
    intolerant: bool,
    #[serde(default)]
    untainted: bool,
    came: String,
    /// The observation, or why the question does not arise.
    #[serde(default)]
    says: String,
}

impl Row {
    fn expectation(&self) -> PlacementExpectation {
        match self.expectation.as_str() {
            "placed pool" => PlacementExpectation::Placed(Ground::Pool),
            "placed tainted-pool" => PlacementExpectation::Placed(Ground::TaintedPool),
            "placed linux" => PlacementExpectation::Placed(Ground::Linux),
            "pending untolerated-taint" => {
                PlacementExpectation::Pending(Hindrance::UntoleratedTaint)
            }
            "pending insufficient-cpu" => PlacementExpectation::Pending(Hindrance::InsufficientCpu),
            "pending insufficient-memory" => {
                PlacementExpectation::Pending(Hindrance::InsufficientMemory)
            }
            "pending insufficient-hugepages" => {
                PlacementExpectation::Pending(Hindrance::InsufficientHugePages)
            }
            "starts" => PlacementExpectation::Starts,
            "not-started" => PlacementExpectation::NotStarted([StartFailure::WrongPlatform].into()),
            other => panic!("{other} is none"),
        }
    }

    fn pod(&self) -> Json {
        let tolerations = match self.intolerant {
            true => json!([]),
            false => json!([{"operator": "Exists"}]),
        };
        if !self.state.is_null() {
            let mut pod = pod(Some("lin"), &tolerations, "");
            pod["status"]["containerStatuses"] = json!([{"name": "a", "state": self.state}]);
            return pod;
        }
        let waits = self.waits.as_ref().map(|reasons| {
            format!(
                "0/4 nodes are available: {reasons}. preemption: not eligible due to \
                 preemptionPolicy=Never."
            )
        });
        let message = waits.or(self.message.clone()).unwrap_or_default();
        let mut pod = pod(self.on.as_deref(), &tolerations, &message);
        if let Some(words) = &self.refused {
            pod["status"] = json!({"phase": "Failed", "message": words});
        }
        pod
    }
}

#[test]
fn what_became_of_a_pod_compares_as_its_row_says() {
    let rows: Vec<Row> = listed(include_str!("tests.yaml"));
    for row in rows {
        let taints = if row.untainted { vec![] } else { vec![taint()] };
        let seen = seen_among(nodes(&taints), PlacedPod::Plain, &json!([row.pod()]));
        let compared = seen.and_then(|seen| Placement::compare(&row.expectation(), &seen));
        let (came, said) = match compared {
            Ok(Comparison::Met(difference)) => ("met", difference.seen),
            Ok(Comparison::NotMet(difference)) => ("not-met", difference.seen),
            Ok(Comparison::Unexpected(difference)) => ("unexpected", difference.seen),
            Ok(Comparison::NotApplicable(reason)) => ("not-applicable", reason),
            Err(error) => (error.kind.as_str(), error.detail),
        };
        assert_eq!(came, row.came, "{}: {}: {said}", row.expectation, row.pod());
        assert!(said.contains(&row.says), "{said}");
    }
}

#[test]
fn what_is_not_there_or_is_going_tells_nothing() {
    let mut going = pod(Some("win-a"), &json!([]), "");
    going["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let unsaid = json!({"metadata": {"name": "plain-windows-2022"}, "spec": {}, "status": {}});
    for (items, kind) in [
        (json!([]), ErrorKind::NotApplied),
        (json!([going]), ErrorKind::NotApplied),
        (json!([unsaid]), ErrorKind::UnrecognisedOutput),
    ] {
        let error = seen_among(nodes(&[]), PlacedPod::Plain, &items).expect_err("nothing");
        assert_eq!(error.kind, kind, "{items}");
    }
    for (status, kind) in [
        (403, ErrorKind::Forbidden),
        (500, ErrorKind::UnrecognisedOutput),
    ] {
        let body = json!({"message": "no"});
        let reply = Reply::Api(ApiReply { status, body });
        let refused = reply.items().map(<[Json]>::len);
        assert_eq!(refused.map_err(|error| error.kind), Err(kind));
    }
}

#[test]
fn names_of_fixtures_are_found_again() {
    for name in FixtureName::all() {
        let written = serde_json::to_value(name).expect("a word");
        assert_eq!(written, name.as_str());
        let read: FixtureName = serde_json::from_value(written).expect("known");
        assert_eq!(read, name);
    }
}

#[test]
fn a_pool_without_nodes_and_a_build_that_is_not_known_prove_nothing() {
    let whereabouts = |of: usize| {
        Whereabouts::Pending(Said {
            of,
            kept_off: vec![KeptOff {
                nodes: 1,
                by: Hindrance::Other,
                words: "x".to_owned(),
            }],
        })
    };
    let seen = |whereabouts| PlacementObservation {
        whereabouts,
        start: Start::Started,
        pool: None,
        pool_nodes: 0,
        untolerated_nodes: 0,
        nodes: 1,
    };
    let compared =
        |expectation: &PlacementExpectation, seen| match Placement::compare(expectation, &seen) {
            Ok(Comparison::NotMet(_)) => "not-met",
            Err(error) => error.kind.as_str(),
            Ok(other) => panic!("{other:?}"),
        };
    let placed = PlacementExpectation::Placed(Ground::Pool);
    assert_eq!(compared(&placed, seen(whereabouts(1))), "unscheduled");
    let pending = PlacementExpectation::Pending(Hindrance::UntoleratedTaint);
    assert_eq!(compared(&pending, seen(whereabouts(1))), "unscheduled");
    let unknown = Whereabouts::On {
        node: "n".to_owned(),
        os: Os::Windows,
        build: None,
        tainted: false,
        untolerated: false,
    };
    assert_eq!(compared(&placed, seen(unknown)), "not-met");
}

#[test]
fn what_is_expected_and_what_the_scheduler_said_have_words() {
    let not_started = [StartFailure::WrongPlatform, StartFailure::WrongBuild];
    for (expectation, words) in [
        (
            PlacementExpectation::Placed(Ground::TaintedPool),
            "bound to a node of the pool",
        ),
        (
            PlacementExpectation::Placed(Ground::Linux),
            "bound to a Linux node",
        ),
        (
            PlacementExpectation::Pending(Hindrance::InsufficientCpu),
            "kept Pending by too little CPU left",
        ),
        (PlacementExpectation::Starts, "all its containers start"),
        (
            PlacementExpectation::NotStarted(not_started.into()),
            "a container does not start: wrong-platform or wrong-build",
        ),
    ] {
        assert_eq!(expectation.to_string(), words);
    }
    let full = "2 Insufficient cpu, 2 node(s) didn't match Pod's node affinity/selector";
    let said = Said::parse(&format!("0/4 nodes are available: {full}.")).expect("read");
    assert_eq!(said.to_string(), format!("none of 4 nodes: {full}"));
}

#[test]
fn what_may_land_on_linux_needs_a_linux_node_and_what_starts_is_observed_to_its_start() {
    let fixtures = |so: fn(FixtureName) -> bool| {
        let mut words: Vec<_> = PlacedPod::ALL.iter().map(|pod| pod.fixture()).collect();
        words.dedup();
        words.retain(|fixture| so(*fixture));
        words
    };
    assert_eq!(
        fixtures(FixtureName::needs_linux),
        [
            FixtureName::SCHED_SELECTED,
            FixtureName::SCHED_RUNTIME_CLASS,
            FixtureName::SCHED_OS_ALONE,
            FixtureName::SCHED_UNSELECTED,
            FixtureName::SCHED_MIXED
        ]
    );
    assert_eq!(
        fixtures(|name| name.until() == Until::Started),
        [
            FixtureName::SCHED_UNSELECTED,
            FixtureName::SCHED_BUILDS,
            FixtureName::SCHED_MIXED
        ]
    );
}
