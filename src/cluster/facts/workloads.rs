//! Counts the running pods a page at a time, and reads the kubelets' events about pulls.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::mem;

use serde_json::Value as Json;
use winconform_core::facts::{PullFact, WorkloadsFact};
use winconform_core::method::fact::Quantity;

use super::read::{Unread, fold, path_of};
use crate::cluster::labels;
use crate::cluster::objects::status::{items, requested, word};
use crate::transport::Api;

pub(super) const PODS: &str = "/api/v1/pods";
pub(super) const EVENTS: &str = "/api/v1/events";

/// Selects pods that are not finished and on a node, so that the server sends no others.
const RUNNING: &str = "&fieldSelector=status.phase%21%3DSucceeded%2Cstatus.phase%21%3DFailed\
                       %2Cspec.nodeName%21%3D";
/// Selects the events of kubelets after a pull.
const PULLED: &str = "&fieldSelector=reason%3DPulled";
/// The label with a node's operating system.
const OS: &str = "kubernetes.io/os";

pub(super) async fn workloads(
    api: &Api,
    windows: &BTreeSet<String>,
) -> Result<WorkloadsFact, Unread> {
    fold(api, PODS, RUNNING, |fact, pod| count(fact, pod, windows)).await
}

fn count(fact: &mut WorkloadsFact, pod: &Json, windows: &BTreeSet<String>) {
    let (spec, status) = (&pod["spec"], &pod["status"]);
    let finished = matches!(status["phase"].as_str(), Some("Succeeded" | "Failed"));
    let Some(node) = spec["nodeName"].as_str().filter(|_| !finished) else {
        return;
    };
    if is_ours(pod) {
        return;
    }
    fact.pods += 1;
    add_requests(fact.taken.entry(node.to_owned()).or_default(), spec);
    if !windows.contains(node) {
        return;
    }
    let same_node = |(_, on): &(String, String)| on == node;
    // Keep one for each node, so that there are no more than nodes
    if is_problem_detector(pod) && !fact.problem_detectors.iter().any(same_node) {
        fact.problem_detectors.push((path_of(pod), node.to_owned()));
    }
    fact.windows_pods += 1;
    let keep = |names: &mut Vec<String>| {
        if names.len() < WorkloadsFact::SHOWN {
            names.push(path_of(pod));
        }
    };
    if spec["os"]["name"] != "windows" || !selects_windows(spec) {
        fact.without_os_count += 1;
        keep(&mut fact.without_os);
    }
    let mut containers = items(&spec["containers"]).chain(items(&spec["initContainers"]));
    if containers.any(lacks_requests) {
        fact.without_requests_count += 1;
        keep(&mut fact.without_requests);
    }
    // A pod in the host's network has the node's addresses, which show nothing about the pod network
    let in_pod_network = spec["hostNetwork"] != true;
    if let Some(families) = families(status).filter(|_| in_pod_network) {
        *fact.windows_families.entry(families).or_default() += 1;
    }
}

/// Adds what a pod takes of its node.
fn add_requests(taken: &mut BTreeMap<String, String>, spec: &Json) {
    let mut add = |resource: &str, amount: Quantity| {
        let before = taken
            .get(resource)
            .and_then(|amount| Quantity::parse(amount));
        let sum = before.unwrap_or(Quantity::ZERO).plus(amount);
        taken.insert(resource.to_owned(), sum.to_string());
    };
    add("pods", Quantity::ONE);
    for container in items(&spec["containers"]) {
        for resource in ["cpu", "memory", WorkloadsFact::ADDRESS] {
            add(resource, requested(container, resource));
        }
    }
}

/// Whether a run created it. The facts are about pods of no run, and runs may overlap.
fn is_ours(pod: &Json) -> bool {
    let labels = &pod["metadata"]["labels"];
    labels[labels::MANAGED_BY] == labels::WINCONFORM && !labels[labels::RUN].is_null()
}

/// Whether a selector, or every term of a required affinity, demands Windows.
fn selects_windows(spec: &Json) -> bool {
    if spec["nodeSelector"][OS] == "windows" {
        return true;
    }
    let required = &spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        ["nodeSelectorTerms"];
    let mut terms = items(required).peekable();
    terms.peek().is_some()
        && terms.all(|term| {
            items(&term["matchExpressions"]).any(|one| {
                one["key"] == OS
                    && one["operator"] == "In"
                    && one["values"] == serde_json::json!(["windows"])
            })
        })
}

/// Whether a container lacks a request for CPU or memory, or has one that differs from its limit.
fn lacks_requests(container: &Json) -> bool {
    let resources = &container["resources"];
    ["cpu", "memory"].iter().any(|name| {
        let (request, limit) = (&resources["requests"][*name], &resources["limits"][*name]);
        request.is_null() || (!limit.is_null() && !same(request, limit))
    })
}

/// Whether two quantities are equal, however they are written.
fn same(one: &Json, other: &Json) -> bool {
    let amount = |json: &Json| json.as_str().and_then(Quantity::parse);
    match (amount(one), amount(other)) {
        (Some(one), Some(other)) => one == other,
        _ => one == other,
    }
}

/// The families of a pod's addresses; `None` while it has none.
fn families(status: &Json) -> Option<String> {
    let addresses = items(&status["podIPs"]).filter_map(|ip| ip["ip"].as_str());
    let families: BTreeSet<_> = addresses
        .map(|address| match address.contains(':') {
            true => "ipv6",
            false => "ipv4",
        })
        .collect();
    let families: Vec<_> = families.into_iter().collect();
    (!families.is_empty()).then(|| families.join(","))
}

/// Whether it is kubernetes/node-problem-detector's deployment/node-problem-detector.yaml or a variant.
fn is_problem_detector(pod: &Json) -> bool {
    items(&pod["spec"]["containers"]).any(|container| {
        container["image"]
            .as_str()
            .is_some_and(|image| image.contains("node-problem-detector"))
    })
}

/// The longest pull of each image to each Windows node; a later pull found layers there.
pub(super) async fn pulls(api: &Api, windows: &BTreeSet<String>) -> Result<Vec<PullFact>, Unread> {
    let add = |pulls: &mut BTreeMap<(String, String), PullFact>, event: &Json| {
        let Some(pull) = read_pull(event, windows) else {
            return;
        };
        let key = (pull.image.clone(), pull.node.clone());
        if pulls.get(&key).is_none_or(|known| known.took < pull.took) {
            pulls.insert(key, pull);
        }
        if pulls.len() > 2 * PullFact::SHOWN {
            longest(pulls);
        }
    };
    let mut pulls = fold(api, EVENTS, PULLED, add).await?;
    longest(&mut pulls);
    Ok(pulls.into_values().collect())
}

fn read_pull(event: &Json, windows: &BTreeSet<String>) -> Option<PullFact> {
    if event["reason"] != "Pulled" {
        return None;
    }
    let host = &event["source"]["host"];
    let node = host.as_str().or(event["reportingInstance"].as_str())?;
    let node = windows.get(node)?;
    let mut pull = PullFact::read(event["message"].as_str()?, node)?;
    pull.image = word(&Json::String(pull.image));
    Some(pull)
}

/// Keeps the `PullFact::SHOWN` longest pulls.
fn longest(pulls: &mut BTreeMap<(String, String), PullFact>) {
    let mut each: Vec<_> = mem::take(pulls).into_iter().collect();
    // A stable sort: among equal ones the first stay
    each.sort_by_key(|(_, pull)| Reverse(pull.took));
    pulls.extend(each.into_iter().take(PullFact::SHOWN));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::super::fake::Fake;
    use super::*;

    fn windows() -> BTreeSet<String> {
        ["w1".to_owned(), "w2".to_owned()].into()
    }

    #[expect(clippy::needless_pass_by_value, reason = "they are made in place")]
    fn counted(pod: Json) -> WorkloadsFact {
        let mut found = WorkloadsFact::default();
        count(&mut found, &pod, &windows());
        found
    }

    fn pod(node: &str, spec: &Json) -> Json {
        let mut pod = json!({
            "metadata": {"namespace": "a", "name": "p"},
            "spec": {"nodeName": node, "containers": [{"name": "c", "image": "x"}]},
            "status": {"phase": "Running", "podIPs": [{"ip": "10.0.0.1"}]},
        });
        for (key, value) in spec.as_object().into_iter().flatten() {
            pod["spec"][key] = value.clone();
        }
        pod
    }

    #[test]
    fn a_pod_declares_its_os_only_by_field_and_selector() {
        let selector = json!({"kubernetes.io/os": "windows"});
        let os = json!({"name": "windows"});
        let affinity = |values: &[&str]| {
            let term = json!({"matchExpressions":
                [{"key": "kubernetes.io/os", "operator": "In", "values": values}]});
            json!({"nodeAffinity":
                {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}})
        };
        for (spec, without) in [
            (json!({}), 1),
            (json!({"os": os}), 1),
            (json!({"nodeSelector": selector}), 1),
            (
                json!({"os": {"name": "linux"}, "nodeSelector": selector}),
                1,
            ),
            (json!({"os": os, "nodeSelector": selector}), 0),
            (json!({"os": os, "affinity": affinity(&["windows"])}), 0),
            (
                json!({"os": os, "affinity": affinity(&["windows", "linux"])}),
                1,
            ),
        ] {
            let found = counted(pod("w1", &spec));
            assert_eq!(found.without_os_count, without, "{spec}");
            assert_eq!(found.without_os.len() as u64, without, "{spec}");
        }
    }

    #[test]
    fn requests_are_set_and_limits_equal_them_or_are_not_set() {
        let both = json!({"cpu": "1", "memory": "1Gi"});
        for (resources, without) in [
            (json!({}), 1),
            (json!({"requests": {"cpu": "1"}}), 1),
            (json!({"limits": both}), 1),
            (json!({"requests": both}), 0),
            (json!({"requests": both, "limits": both}), 0),
            (json!({"requests": both, "limits": {"cpu": "2"}}), 1),
            (
                json!({"requests": both, "limits": {"cpu": "1000m", "memory": "1024Mi"}}),
                0,
            ),
            (json!({"requests": both, "limits": {"memory": "1G"}}), 1),
        ] {
            let containers = json!({"containers": [{"name": "c", "resources": resources}]});
            let found = counted(pod("w1", &containers));
            assert_eq!(found.without_requests_count, without, "{resources}");
        }
    }

    #[test]
    fn addresses_of_the_host_are_none_of_the_pod_network() {
        let ipv4 = BTreeMap::from([("ipv4".to_owned(), 1)]);
        for (host, families) in [
            (json!(true), BTreeMap::new()),
            (json!(false), ipv4.clone()),
            (Json::Null, ipv4),
        ] {
            let found = counted(pod("w1", &json!({"hostNetwork": host})));
            assert_eq!(found.windows_families, families, "{host}");
            assert_eq!(found.windows_pods, 1, "{host}");
        }
    }

    #[test]
    fn only_what_runs_on_windows_counts_as_such() {
        let found = counted(pod("l1", &json!({})));
        assert_eq!(
            (found.pods, found.windows_pods, found.without_os_count),
            (1, 0, 0)
        );
        let mut done = pod("w1", &json!({}));
        done["status"]["phase"] = json!("Succeeded");
        assert_eq!(counted(done), WorkloadsFact::default());
        let mut unbound = pod("w1", &json!({}));
        unbound["spec"]["nodeName"].take();
        assert_eq!(counted(unbound), WorkloadsFact::default());
        let by = "app.kubernetes.io/managed-by";
        for (labels, pods) in [
            (json!({by: "winconform", "winconform/run": "r1"}), 0),
            (json!({by: "winconform"}), 1),
            (json!({by: "Helm", "winconform/run": "r1"}), 1),
        ] {
            let mut pod = pod("w1", &json!({}));
            pod["metadata"]["labels"] = labels;
            assert_eq!(counted(pod.clone()).pods, pods, "{pod}");
        }
        let image = "registry.k8s.io/node-problem-detector/node-problem-detector:v1";
        let mut dual = pod("w2", &json!({"containers": [{"image": image}]}));
        dual["status"]["podIPs"] = json!([{"ip": "fd00::1"}, {"ip": "10.0.0.1"}]);
        let found = counted(dual);
        assert_eq!(found.windows_families, [("ipv4,ipv6".to_owned(), 1)].into());
        assert_eq!(
            found.problem_detectors,
            [("a/p".to_owned(), "w2".to_owned())]
        );
    }

    #[test]
    fn one_problem_detector_of_each_windows_node_is_kept() {
        let detector = json!({"containers": [{"image": "x/node-problem-detector:v1"}]});
        let mut found = WorkloadsFact::default();
        for (name, node) in [("a", "l1"), ("b", "w1"), ("c", "w1"), ("d", "w2")] {
            let mut pod = pod(node, &detector);
            pod["metadata"]["name"] = json!(name);
            count(&mut found, &pod, &windows());
        }
        let kept = [("a/b", "w1"), ("a/d", "w2")];
        let kept = kept.map(|(pod, node)| (pod.to_owned(), node.to_owned()));
        assert_eq!(found.problem_detectors, kept);
        assert_eq!(found.pods, 4);
    }

    /// Checks the result, not the memory that reading took: the result holds only counts and the first names.
    #[tokio::test(start_paused = true)]
    async fn twenty_thousand_pods_leave_counts_and_a_few_names() {
        const PODS: u64 = 20_000;
        let fake = Fake::default();
        for index in 0..PODS {
            let node = if index % 2 == 0 { "w1" } else { "l1" };
            let path = format!("/api/v1/namespaces/a/pods/p{index:05}");
            let mut pod = pod(node, &json!({}));
            pod["metadata"]["name"] = json!(format!("p{index:05}"));
            fake.put(&path, pod);
        }
        let found = workloads(&fake.api(), &windows()).await.expect("read");
        assert_eq!((found.pods, found.windows_pods), (PODS, PODS / 2));
        assert_eq!(
            (found.without_os_count, found.without_requests_count),
            (PODS / 2, PODS / 2)
        );
        assert_eq!(found.without_os.len(), WorkloadsFact::SHOWN);
        assert_eq!(found.without_os[1], "a/p00002");
        assert_eq!(fake.log().len(), 40);
        let recorded = serde_json::to_string(&found).expect("is JSON");
        assert!(recorded.len() < 2_000, "{recorded}");
    }

    fn event(image: &str, host: &str, took: &str) -> Json {
        json!({"reason": "Pulled", "source": {"host": host},
            "message": format!("Successfully pulled image \"{image}\" in {took} ({took} including \
                waiting). Image size: 5 bytes.")})
    }

    #[tokio::test(start_paused = true)]
    async fn the_longest_pull_of_each_image_and_windows_node_is_kept() {
        let fake = Fake::default();
        let present = json!({"reason": "Pulled", "source": {"host": "w1"},
            "message": "Container image \"b\" already present on machine"});
        let mut newer = event("a", "", "3s");
        newer["source"].take();
        newer["reportingInstance"] = json!("w2");
        let events = [
            event("a", "w1", "1m2s"),
            event("a", "w1", "2s"),
            event("a", "l1", "9s"),
            present,
            newer,
        ];
        for (index, event) in events.into_iter().enumerate() {
            fake.put(&format!("/api/v1/namespaces/a/events/e{index}"), event);
        }
        let pulls = pulls(&fake.api(), &windows()).await.expect("read");
        let seen: Vec<_> = pulls.iter().map(|p| (p.node.as_str(), p.took)).collect();
        assert_eq!(seen, [("w1", 62_000), ("w2", 3_000)]);
    }

    #[tokio::test(start_paused = true)]
    async fn no_more_pulls_are_kept_than_are_shown() {
        let fake = Fake::default();
        for index in 0..3 * PullFact::SHOWN {
            let event = event(&format!("i{index:05}"), "w1", &format!("{}ms", index / 7));
            fake.put(&format!("/api/v1/namespaces/a/events/e{index:05}"), event);
        }
        let pulls = pulls(&fake.api(), &windows()).await.expect("read");
        assert_eq!(pulls.len(), PullFact::SHOWN);
        let least = pulls.iter().map(|pull| pull.took).min();
        assert_eq!(least, Some((2 * PullFact::SHOWN / 7) as u64));
    }
}
