//! Recorded statuses of pods, and every cell of what they compare to.

use super::*;
use crate::facts::{NodeDetails, PoolName};
use crate::way::{ApiReply, Standing};
use serde_json::json;
use std::sync::Arc;

const BUILD: WindowsBuild = WindowsBuild::SERVER_2022;

fn word(compared: &Result<Comparison, Trouble>) -> &'static str {
    match compared {
        Ok(Comparison::Holds(_)) => "holds",
        Ok(Comparison::Refuted(_)) => "refuted",
        Ok(Comparison::Otherwise(_)) => "otherwise",
        Ok(Comparison::Inapplicable(_)) => "inapplicable",
        Err(trouble) => trouble.kind.as_str(),
    }
}

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

fn seen_among(
    nodes: Vec<NodeFact>,
    pod: PlacedPod,
    items: &Json,
) -> Result<PlacementSeen, Trouble> {
    let standing = Standing {
        run: "r1".to_owned(),
        namespace: "winconform-r1".to_owned(),
        node_facts: Arc::new(nodes),
        ..Standing::default()
    };
    let pool = PoolName::windows(BUILD);
    let at = Bound {
        pool: Some(&pool),
        build: Some(BUILD),
        ..Bound::of(&standing)
    };
    let body = json!({"items": items});
    Placement::read(
        &PlacementAsk { pod },
        &at,
        &Reply::Api(ApiReply { status: 200, body }),
    )
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

fn compared(expect: &PlacementExpect, pod: &Json) -> &'static str {
    among(nodes(&[taint()]), expect, pod)
}

fn among(nodes: Vec<NodeFact>, expect: &PlacementExpect, pod: &Json) -> &'static str {
    let seen = seen_among(nodes, PlacedPod::Plain, &json!([pod]));
    word(&seen.and_then(|seen| Placement::compare(expect, &seen)))
}

fn on(node: &str) -> Json {
    pod(Some(node), &json!([{"operator": "Exists"}]), "")
}

fn waits(tolerations: &Json, reasons: &str) -> Json {
    let message = format!(
        "0/4 nodes are available: {reasons}. preemption: not eligible due to preemptionPolicy=Never."
    );
    pod(None, tolerations, &message)
}

const TAINTED: &str =
    "2 node(s) didn't satisfy plugin(s) [NodeAffinity], 2 node(s) had untolerated taint(s)";
const SELECTS: &str = "1 node(s) didn't satisfy plugin(s) [NodeAffinity], 3 node(s) didn't match \
    Pod's node affinity/selector";
const FULL: &str = "2 Insufficient cpu, 2 node(s) didn't match Pod's node affinity/selector";

#[test]
fn a_place_is_that_of_the_node_and_not_of_its_labels() {
    for (ground, node, expected) in [
        (Ground::Pool, "win-a", "holds"),
        (Ground::Pool, "old", "refuted"),
        (Ground::Pool, "lin", "refuted"),
        (Ground::TaintedPool, "win-b", "holds"),
        (Ground::TaintedPool, "lin", "refuted"),
        (Ground::Linux, "lin", "holds"),
        (Ground::Linux, "win-a", "refuted"),
        (Ground::Pool, "came-later", "fact-unknown"),
    ] {
        let expect = PlacementExpect::Placed(ground);
        assert_eq!(compared(&expect, &on(node)), expected, "{ground:?} {node}");
    }
    let expect = PlacementExpect::Placed(Ground::TaintedPool);
    assert_eq!(among(nodes(&[]), &expect, &on("win-a")), "inapplicable");
}

#[test]
fn without_a_place_only_what_the_pod_itself_lacks_counts() {
    let (all, none) = (json!([{"operator": "Exists"}]), json!([]));
    let expect = PlacementExpect::Placed(Ground::Pool);
    for (tolerations, reasons, expected) in [
        (&all, SELECTS, "otherwise"),
        (&none, TAINTED, "otherwise"),
        // What it tolerates all of: a taint that has come since
        (&all, TAINTED, "unscheduled"),
        (&all, FULL, "unscheduled"),
        (&all, "4 node(s) were unschedulable", "unscheduled"),
    ] {
        let pod = waits(tolerations, reasons);
        assert_eq!(compared(&expect, &pod), expected, "{reasons}");
    }
    // A node has gone since: whom the selector meant may be that one
    let fewer = "0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector.";
    assert_eq!(compared(&expect, &pod(None, &all, fewer)), "unscheduled");
}

#[test]
fn a_taint_keeps_off_by_the_schedulers_word_alone() {
    let none = json!([]);
    let expect = PlacementExpect::Pending(Hindrance::UntoleratedTaint);
    for (pod, expected) in [
        (waits(&none, TAINTED), "holds"),
        (
            waits(&none, &TAINTED.replace("taint(s)", "taint {os: windows}")),
            "holds",
        ),
        (waits(&none, SELECTS), "unscheduled"),
        (waits(&none, FULL), "unscheduled"),
        // By other nodes' taints
        (
            waits(
                &none,
                "3 Insufficient cpu, 1 node(s) had untolerated taint(s)",
            ),
            "unscheduled",
        ),
        (pod(Some("win-a"), &none, ""), "refuted"),
        (
            pod(None, &none, "no nodes available"),
            "unrecognised-output",
        ),
    ] {
        assert_eq!(compared(&expect, &pod), expected, "{pod}");
    }
    let bound = pod(Some("win-a"), &none, "");
    assert_eq!(among(nodes(&[]), &expect, &bound), "inapplicable");
    // Not this taint, by what is known: another that came since, as of a node that is not Ready
    let pending = waits(&none, TAINTED);
    assert_eq!(among(nodes(&[]), &expect, &pending), "unscheduled");
}

#[test]
fn room_is_too_little_by_the_schedulers_word_alone() {
    let all = json!([{"operator": "Exists"}]);
    let cpu = PlacementExpect::Pending(Hindrance::InsufficientCpu);
    let memory = PlacementExpect::Pending(Hindrance::InsufficientMemory);
    assert_eq!(compared(&cpu, &waits(&all, FULL)), "holds");
    assert_eq!(compared(&memory, &waits(&all, FULL)), "unscheduled");
    let less = FULL.replace("cpu", "memory");
    assert_eq!(compared(&memory, &waits(&all, &less)), "holds");
    assert_eq!(compared(&cpu, &on("win-a")), "refuted");
    let affinity = "4 node(s) didn't match pod affinity rules";
    assert_eq!(compared(&cpu, &waits(&all, affinity)), "unscheduled");
}

/// The pod on Linux, with this status of its container.
fn begun(status: &Json) -> Json {
    let mut pod = on("lin");
    let mut status = status.clone();
    status["name"] = json!("a");
    pod["status"]["containerStatuses"] = json!([status]);
    pod
}

#[test]
fn a_start_is_judged_by_its_cause() {
    let not_started = PlacementExpect::NotStarted([StartFailure::WrongPlatform].into());
    let waiting = |reason: &str, message: &str| json!({"state": {"waiting": {"reason": reason, "message": message}}});
    let platform = "no match for platform in manifest: not found";
    let build = "The container operating system does not match the host operating system.";
    for (status, starts, limited) in [
        (json!({"state": {"running": {}}}), "holds", "refuted"),
        (waiting("ErrImagePull", platform), "refuted", "holds"),
        (waiting("RunContainerError", build), "refuted", "otherwise"),
        (
            waiting("CreateContainerError", "x"),
            "otherwise",
            "otherwise",
        ),
        (
            waiting("ErrImagePull", "i/o timeout"),
            "image-pull",
            "image-pull",
        ),
        (
            waiting("ContainerCreating", ""),
            "unrecognised-output",
            "unrecognised-output",
        ),
    ] {
        let pod = begun(&status);
        assert_eq!(compared(&PlacementExpect::Starts, &pod), starts, "{status}");
        assert_eq!(compared(&not_started, &pod), limited, "{status}");
    }
    for expect in [PlacementExpect::Starts, not_started] {
        let pod = waits(&json!([]), TAINTED);
        assert_eq!(compared(&expect, &pod), "unscheduled");
    }
}

#[test]
fn the_cause_is_named_with_the_node() {
    let status = json!({"state": {"waiting": {"reason": "ErrImagePull",
        "message": "no match for platform in manifest: not found"}}});
    let seen = seen_among(nodes(&[]), PlacedPod::Plain, &json!([begun(&status)]));
    let compared = Placement::compare(&PlacementExpect::Starts, &seen.expect("read"));
    let Ok(Comparison::Refuted(difference)) = compared else {
        panic!("{compared:?}");
    };
    assert_eq!(
        difference.seen,
        "bound to lin, Linux; container a did not start, since its image has no variant for this \
         node: ErrImagePull: no match for platform in manifest: not found"
    );
}

#[test]
fn what_is_not_there_or_is_going_tells_nothing() {
    let mut going = on("win-a");
    going["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let unsaid = json!({"metadata": {"name": "plain-windows-2022"}, "spec": {}, "status": {}});
    for (items, kind) in [
        (json!([]), TroubleKind::NotApplied),
        (json!([going]), TroubleKind::NotApplied),
        (json!([unsaid]), TroubleKind::UnrecognisedOutput),
    ] {
        let trouble = seen_among(nodes(&[]), PlacedPod::Plain, &items).expect_err("nothing");
        assert_eq!(trouble.kind, kind, "{items}");
    }
    for (status, kind) in [
        (403, TroubleKind::Forbidden),
        (500, TroubleKind::UnrecognisedOutput),
    ] {
        let body = json!({"message": "no"});
        let reply = Reply::Api(ApiReply { status, body });
        let refused = reply.items("no list").map(<[Json]>::len);
        assert_eq!(refused.map_err(|trouble| trouble.kind), Err(kind));
    }
}

#[test]
fn names_of_fixtures_are_found_again() {
    for name in super::super::FixtureName::ALL {
        let written = serde_json::to_value(name).expect("a word");
        assert_eq!(written, name.as_str());
        let read: super::super::FixtureName = serde_json::from_value(written).expect("known");
        assert_eq!(read, name);
    }
}

#[test]
fn taints_of_the_pool_say_nothing_of_linux_nodes() {
    let pending = waits(&json!([]), TAINTED);
    let linux = PlacementExpect::Placed(Ground::Linux);
    assert_eq!(compared(&linux, &pending), "unscheduled");
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
    let seen = |whereabouts| PlacementSeen {
        whereabouts,
        start: Start::Started,
        pool: None,
        pool_nodes: 0,
        untolerated_nodes: 0,
        nodes: 1,
    };
    let compared = |expect: &PlacementExpect, seen| word(&Placement::compare(expect, &seen));
    let placed = PlacementExpect::Placed(Ground::Pool);
    assert_eq!(compared(&placed, seen(whereabouts(1))), "unscheduled");
    let pending = PlacementExpect::Pending(Hindrance::UntoleratedTaint);
    assert_eq!(compared(&pending, seen(whereabouts(1))), "unscheduled");
    let unknown = Whereabouts::On {
        node: "n".to_owned(),
        os: Os::Windows,
        build: None,
        tainted: false,
        untolerated: false,
    };
    assert_eq!(compared(&placed, seen(unknown)), "refuted");
}

#[test]
fn what_is_expected_and_what_the_scheduler_said_have_words() {
    let not_started = [StartFailure::WrongPlatform, StartFailure::WrongBuild];
    for (expect, words) in [
        (
            PlacementExpect::Placed(Ground::TaintedPool),
            "bound to a node of the pool",
        ),
        (
            PlacementExpect::Placed(Ground::Linux),
            "bound to a Linux node",
        ),
        (
            PlacementExpect::Pending(Hindrance::InsufficientCpu),
            "kept Pending by too little CPU left",
        ),
        (PlacementExpect::Starts, "all its containers start"),
        (
            PlacementExpect::NotStarted(not_started.into()),
            "a container does not start: wrong-platform or wrong-build",
        ),
    ] {
        assert_eq!(expect.to_string(), words);
    }
    let said = Said::parse(&format!("0/4 nodes are available: {FULL}.")).expect("read");
    assert_eq!(said.to_string(), format!("none of 4 nodes: {FULL}"));
}

#[test]
fn what_may_land_on_linux_needs_a_linux_node_and_what_starts_is_looked_at_to_its_start() {
    use crate::way::SchedFixture as S;
    let fixtures = |so: fn(S) -> bool| {
        let mut words: Vec<_> = PlacedPod::ALL.iter().map(|pod| pod.fixture()).collect();
        words.dedup();
        words.retain(|fixture| so(*fixture));
        words
    };
    assert_eq!(
        fixtures(S::needs_linux),
        [
            S::Selected,
            S::RuntimeClass,
            S::OsAlone,
            S::Unselected,
            S::Mixed
        ]
    );
    assert_eq!(fixtures(S::starts), [S::Unselected, S::Builds, S::Mixed]);
}

#[test]
fn tolerations_that_were_not_sent_are_named_as_the_cause() {
    let expect = PlacementExpect::Pending(Hindrance::UntoleratedTaint);
    for (taints, words) in [
        (vec![taint()], "tolerations that were not sent"),
        (vec![], "has no taint that keeps the pod away"),
    ] {
        let seen = seen_among(nodes(&taints), PlacedPod::Plain, &json!([on("win-a")]));
        let compared = Placement::compare(&expect, &seen.expect("read"));
        let Ok(Comparison::Inapplicable(because)) = compared else {
            panic!("{compared:?}");
        };
        assert!(because.contains(words), "{because}");
    }
}
