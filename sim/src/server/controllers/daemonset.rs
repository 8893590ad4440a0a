//! Daemon sets: a pod on every node that takes it (kubernetes 1.37.0, `pkg/controller/daemon/`).

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::pods::{self, is_going, is_over, is_ready};
use super::{Work, count, hash_of, made, scheduler, without_zeros};
use crate::base::clock;
use crate::base::fields::Fields;
use crate::fault::FaultKind;
use crate::server::storage::state::State;
use crate::server::storage::store::Object;
use crate::world::Key;

const COMPONENT: &str = "daemonset-controller";
const REVISION: &str = "controller-revision-hash";

/// How long a daemon set waits before it replaces a failed pod on a node: at first and at most, doubled each
/// time, so that it does not flood kubelets that refuse its pods (`cmd/kube-controller-manager/app/apps.go`).
const WAITS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_mins(15));

/// The taints that the pods tolerate beside their own (`pkg/controller/daemon/util/daemonset_util.go`).
const TOLERATED: [(&str, &str); 6] = [
    ("not-ready", "NoExecute"),
    ("unreachable", "NoExecute"),
    ("disk-pressure", "NoSchedule"),
    ("memory-pressure", "NoSchedule"),
    ("pid-pressure", "NoSchedule"),
    ("unschedulable", "NoSchedule"),
];

pub(super) fn look(state: &mut State, key: &Key, set: &Value) {
    let template = &set["spec"]["template"];
    let hash = hash_of(template);
    let mut wanted = json!({"spec": template["spec"]});
    tolerate(&mut wanted["spec"]);
    let nodes = state.store.all("nodes", "");
    let nodes: Vec<(String, bool)> = nodes
        .map(|(key, node)| (key.name.clone(), scheduler::takes(&wanted, node)))
        .collect();
    let mut by_node: BTreeMap<String, Vec<(Key, Object)>> = BTreeMap::new();
    for (key, pod) in made(&state.store, "pods", set) {
        by_node.entry(node_of(&pod)).or_default().push((key, pod));
    }
    // A webhook may drop the affinity by which the controller knows for which node it made a pod. The real one then makes
    // more, as fast as its client may and without end (`getNodesToDaemonPods`); this one waits longer each time.
    let loses_pods = by_node
        .values()
        .flatten()
        .any(|(_, pod)| aim(pod).is_none());
    let mut taking = nodes.iter().filter(|(_, takes)| *takes);
    let last = taking.next().and(taking.next_back());
    let left_out = last.filter(|_| state.suffers(FaultKind::DaemonSetsShort));
    let mut missing = 0;
    for (name, takes) in &nodes {
        let here = by_node.get(name).map_or(&[][..], Vec::as_slice);
        if !takes {
            for (key, _) in here.iter().filter(|(_, pod)| !is_going(pod)) {
                pods::delete(state, COMPONENT, set, key);
            }
            continue;
        }
        for (pod_key, pod) in here.iter().filter(|(_, p)| is_over(p) && !is_going(p)) {
            match replace(state, set, name, pod) {
                Ok(()) => pods::delete(state, COMPONENT, set, pod_key),
                Err(left) => state.later(left, Work::workload("daemonsets", key)),
            }
        }
        missing += i64::from(!here.iter().any(|(_, pod)| is_ready(pod) && !is_going(pod)));
        let is_left_out = left_out.is_some_and(|(last, _)| last == name);
        if here.is_empty() && !is_left_out {
            if loses_pods && let Err(left) = paced(state, set, name) {
                state.later_once(left, Work::workload("daemonsets", key));
                continue;
            }
            // An event reports a failure, and the next change tries again
            let _ = pods::create(state, COMPONENT, set, template, |pod| {
                pod["metadata"]["labels"][REVISION] = json!(hash);
                tolerate(&mut pod["spec"]);
                let field = json!({"key": "metadata.name", "operator": "In", "values": [name]});
                let terms = &mut pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
                terms["nodeSelectorTerms"] = json!([{"matchFields": [field]}]);
            });
        }
    }
    let most = &set["spec"]["updateStrategy"]["rollingUpdate"]["maxUnavailable"];
    let mut may_go = most.as_i64().unwrap_or(1).max(1) - missing;
    let is_new = |pod: &Value| pod["metadata"]["labels"][REVISION] == hash;
    for (key, pod) in by_node.values().flatten() {
        if !is_new(pod) && !is_going(pod) && (may_go > 0 || !is_ready(pod)) {
            may_go -= i64::from(is_ready(pod));
            pods::delete(state, COMPONENT, set, key);
        }
    }
    let mut live = made(&state.store, "pods", set);
    live.retain(|(_, pod)| !is_going(pod));
    let wanted = nodes.iter().filter(|(_, takes)| *takes).count();
    let ready = count(&live, is_ready);
    let status = json!({
        "currentNumberScheduled": live.len(), "desiredNumberScheduled": wanted, "numberMisscheduled": 0,
        "numberReady": ready, "numberAvailable": ready, "numberUnavailable": wanted.saturating_sub(ready),
        "updatedNumberScheduled": count(&live, is_new), "observedGeneration": set["metadata"]["generation"],
    });
    let [current, desired] = ["currentNumberScheduled", "desiredNumberScheduled"];
    let always = [current, desired, "numberMisscheduled", "numberReady"];
    state.set_status("daemonsets", key, without_zeros(status, &always));
}

/// Decides whether a pod that has ended is replaced now; the error is the remaining wait
/// (client-go, `util/flowcontrol/backoff.go`, without the random part).
fn replace(state: &mut State, set: &Value, node: &str, pod: &Value) -> Result<(), Duration> {
    match pod["status"]["phase"] == "Failed" {
        true => paced(state, set, node),
        false => Ok(()),
    }
}

/// Decides whether a node gets another pod now, ever later each time; the error is the remaining wait.
fn paced(state: &mut State, set: &Value, node: &str) -> Result<(), Duration> {
    let (first, longest) = WAITS;
    let now = clock::moment();
    let uid = set["metadata"]["uid"].text();
    let before = state.replaced.entry((uid.to_owned(), node.to_owned()));
    let (last, wait) = before.or_insert((now, Duration::ZERO));
    let passed = now - *last;
    if passed > longest * 2 {
        *wait = Duration::ZERO;
    }
    let left = wait.saturating_sub(passed);
    if !left.is_zero() {
        return Err(left);
    }
    (*last, *wait) = (now, (*wait * 2).clamp(first, longest));
    Ok(())
}

fn tolerate(spec: &mut Value) {
    for (key, effect) in TOLERATED {
        let key = format!("node.kubernetes.io/{key}");
        spec["tolerations"].push(json!({"key": key, "operator": "Exists", "effect": effect}));
    }
}

/// The node of a pod, or the node that its affinity names.
fn node_of(pod: &Value) -> String {
    let bound = pod["spec"]["nodeName"].as_str();
    bound.or_else(|| aim(pod)).unwrap_or_default().to_owned()
}

/// The node that a pod's affinity names.
fn aim(pod: &Value) -> Option<&str> {
    let path = "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution\
                /nodeSelectorTerms/0/matchFields/0/values/0";
    pod.pointer(path).and_then(Value::as_str)
}
