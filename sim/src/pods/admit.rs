//! Decides whether a node admits a pod that is bound to it (kubernetes 1.37.0,
//! `pkg/kubelet/lifecycle/predicate.go`, `pkg/kubelet/lifecycle/features_windows.go` and the
//! scheduler's `AdmissionCheck`).

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Pod, PodSpec};
use kube::ResourceExt;
use serde_json::json;

use crate::fault::FaultKind;
use crate::nodes::cluster::{Cluster, NodeState};
use crate::nodes::node::allocatable;
use crate::nodes::placing;
use crate::pods::course::run::PodRun;
use crate::pods::reporting::book::NodeVerdict;
use crate::pods::spec::resources;
use crate::topology::Os;

/// Returns why the node refuses the pod, if it does.
pub(crate) fn refusal(cluster: &Cluster, run: &Arc<PodRun>) -> Option<NodeVerdict> {
    let (pod, node) = (&run.pod, &run.node);
    let faults = cluster.faults.current();
    let under_pressure = crate::pods::course::evict::refusal(pod, node, &faults);
    let any_os = node.suffers(FaultKind::OtherOsAdmitted, &faults);
    under_pressure
        .or_else(|| of_kind(pod, node).filter(|_| !any_os))
        .or_else(|| of_room(cluster, pod, node))
        .or_else(|| of_labels(pod, node))
}

/// Whether the node would admit a pod that is not bound yet; `anyhow` ignores whether it has room for it.
pub(crate) fn takes(cluster: &Cluster, pod: &Pod, node: &NodeState, anyhow: bool) -> bool {
    let refused = of_kind(pod, node)
        .or_else(|| of_labels(pod, node))
        .or_else(|| of_room(cluster, pod, node).filter(|_| !anyhow));
    refused.is_none()
}

#[expect(clippy::unnecessary_wraps, reason = "every check returns an Option")]
fn refused(reason: &str, message: impl Into<String>) -> Option<NodeVerdict> {
    Some(NodeVerdict {
        reason: reason.to_owned(),
        message: message.into(),
    })
}

/// Checks the rules that depend on the node's operating system.
fn of_kind(pod: &Pod, node: &NodeState) -> Option<NodeVerdict> {
    let spec = pod.spec.as_ref()?;
    let os = node.pool.os();
    let is_windows = os == Os::Windows;
    // Despite the reason's name, the kubelet compares a label in the pod's metadata
    let label = pod.labels().get("kubernetes.io/os");
    let context = spec.security_context.as_ref();
    let policy = context.and_then(|context| context.supplemental_groups_policy.as_deref());
    let rules = [
        // features_windows.go, `isPodLevelResourcesSupported`
        (
            is_windows && spec.resources.is_some(),
            "PodLevelResourcesNotSupported",
            "pod-level resources are not supported on Windows",
        ),
        (
            label.is_some_and(|label| label != os.name()),
            "PodOSSelectorNodeLabelDoesNotMatch",
            "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label",
        ),
        (
            spec.os
                .as_ref()
                .is_some_and(|wanted| wanted.name != os.name()),
            "PodOSNotSupported",
            "Failed to admit pod as the OS field doesn't match node OS",
        ),
        (
            is_windows && policy == Some("Strict"),
            "SupplementalGroupsPolicyNotSupported",
            "SupplementalGroupsPolicy=Strict is not supported in this node",
        ),
    ];
    let (_, reason, message) = rules.into_iter().find(|(is_broken, ..)| *is_broken)?;
    refused(reason, message)
}

/// Checks whether the node has room for the pod beside its active pods.
fn of_room(cluster: &Cluster, pod: &Pod, node: &NodeState) -> Option<NodeVerdict> {
    let spec = pod.spec.as_ref()?;
    let uid = pod.metadata.uid.as_deref().unwrap_or_default();
    let others: Vec<Arc<PodRun>> = cluster.runs(node).values().map(Arc::clone).collect();
    let is_active = |other: &&Arc<PodRun>| {
        other.uid != uid && matches!(other.book().phase(), "Pending" | "Running")
    };
    let active = others.iter().filter(is_active);
    let active: Vec<&PodSpec> = active.filter_map(|other| other.pod.spec.as_ref()).collect();
    let has_huge_pages = node.suffers(FaultKind::HugePagesHonoured, &cluster.faults.current());
    let of_huge_pages = |name: &str| {
        let has = has_huge_pages && name.starts_with(HUGE_PAGES);
        has.then_some(i128::MAX)
    };
    lacking(spec, &active, |name| {
        of_huge_pages(name).or_else(|| allocatable(node, name))
    })
}

const HUGE_PAGES: &str = "hugepages-";

/// As `noderesources.Fits`: checks the number of pods first, then the requested resources.
fn lacking(
    spec: &PodSpec,
    others: &[&PodSpec],
    has: impl Fn(&str) -> Option<i128>,
) -> Option<NodeVerdict> {
    let short = |name: &str, requested: i128, used: i128, capacity: i128| {
        refused(
            &format!("OutOf{name}"),
            format!(
                "Node didn't have enough resource: {name}, requested: {requested}, used: {used}, \
                 capacity: {capacity}"
            ),
        )
    };
    let pods = has("pods").map_or(110, |pods| pods / 1000);
    let used = i128::try_from(others.len()).unwrap_or(i128::MAX);
    if used + 1 > pods {
        return short("pods", 1, used, pods);
    }
    let own = spec
        .containers
        .iter()
        .filter_map(|one| one.resources.as_ref()?.requests.as_ref());
    let scalar = own
        .flat_map(|requests| requests.keys())
        .map(String::as_str)
        .filter(|name| name.contains('/') || name.starts_with(HUGE_PAGES));
    ["cpu", "memory", "ephemeral-storage"]
        .into_iter()
        .chain(scalar)
        .find_map(|name| {
            // `cpu` counts in thousandths, every other resource in bytes
            let unit = if name == "cpu" { 1 } else { 1000 };
            let requested = resources::requested(spec, name) / unit;
            let used: i128 = others
                .iter()
                .map(|other| resources::requested(other, name) / unit)
                .sum();
            // A resource of another name that the node lacks was taken off the pod before
            let is_kept = name.starts_with(HUGE_PAGES);
            let capacity = has(name).or_else(|| is_kept.then_some(0))? / unit;
            let over = requested > 0 && requested > capacity - used;
            over.then(|| short(name, requested, used, capacity))
                .flatten()
        })
}

/// Checks whether the node's labels match the pod's node selector and affinity.
fn of_labels(pod: &Pod, node: &NodeState) -> Option<NodeVerdict> {
    let object = json!({"metadata": {"name": node.name, "labels": node.labels}});
    match placing::selects(&json!(pod), &object) {
        true => None,
        false => refused(
            "NodeAffinity",
            "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nodes::cluster::tests::node_of;
    use crate::topology::{Build, NodeSpec, Pool};

    fn reason(pod: serde_json::Value) -> Option<String> {
        let pool = Pool::Windows(Build::Ws2022);
        let mut spec = NodeSpec::new("win", pool);
        spec.labels.insert("cpus".to_owned(), "4".to_owned());
        let node = node_of(spec);
        let pod: Pod = serde_json::from_value(pod).expect("a pod");
        let verdict = of_kind(&pod, &node).or_else(|| of_labels(&pod, &node));
        verdict.map(|verdict| verdict.reason)
    }

    #[test]
    fn the_kubelets_reasons() {
        let linux = json!({"kubernetes.io/os": "linux"});
        let (limits, cpus) = (json!({"limits": {"cpu": "1"}}), json!({"cpus": "4"}));
        let strict = json!({"supplementalGroupsPolicy": "Strict"});
        for (field, value, expected) in [
            ("hostNetwork", json!(false), None),
            ("os", json!({"name": "windows"}), None),
            ("nodeSelector", cpus, None),
            ("os", json!({"name": "linux"}), Some("PodOSNotSupported")),
            ("nodeSelector", linux.clone(), Some("NodeAffinity")),
            ("resources", limits, Some("PodLevelResourcesNotSupported")),
            (
                "securityContext",
                strict,
                Some("SupplementalGroupsPolicyNotSupported"),
            ),
        ] {
            let pod = json!({"spec": {"containers": [], field: value}});
            assert_eq!(reason(pod).as_deref(), expected, "{field}");
        }
        let pod = json!({"metadata": {"labels": linux}, "spec": {"containers": []}});
        let expected = Some("PodOSSelectorNodeLabelDoesNotMatch".to_owned());
        assert_eq!(reason(pod), expected);
        assert_eq!(reason(json!({})), None);
    }

    #[test]
    fn affinity_is_read_as_the_scheduler_reads_it() {
        let with = |terms: serde_json::Value| {
            reason(
                json!({"spec": {"containers": [], "affinity": {"nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}}}),
            )
        };
        let rule = |operator: &str, values: &[&str]| {
            let expression =
                json!({"key": "kubernetes.io/os", "operator": operator, "values": values});
            json!([{"matchExpressions": [expression]}])
        };
        assert_eq!(with(rule("In", &["windows"])), None);
        assert_eq!(with(rule("NotIn", &["linux"])), None);
        assert_eq!(with(rule("Exists", &[])), None);
        let other = Some("NodeAffinity".to_owned());
        assert_eq!(with(rule("In", &["linux"])), other);
        assert_eq!(with(rule("DoesNotExist", &[])), other);
        assert_eq!(with(json!([{}])), other);
        assert_eq!(with(json!([{"matchExpressions": []}])), other);
        let field = json!({"key": "metadata.name", "operator": "In", "values": ["win"]});
        assert_eq!(with(json!([{"matchFields": [field]}])), None);
    }

    #[test]
    fn a_full_node_says_what_it_lacks() {
        let asks = |cpu: &str| -> PodSpec {
            let resources = json!({"requests": {"cpu": cpu}});
            let spec = json!({"containers": [{"name": "a", "resources": resources}]});
            serde_json::from_value(spec).expect("a spec")
        };
        let has = |name: &str| match name {
            "cpu" | "pods" => Some(2000),
            _ => None,
        };
        let (one, large) = (asks("1"), asks("1500m"));
        assert_eq!(lacking(&one, &[&one], has), None);
        let verdict = lacking(&large, &[&one], has).expect("no room");
        assert_eq!(verdict.reason, "OutOfcpu");
        assert_eq!(
            verdict.message,
            "Node didn't have enough resource: cpu, requested: 1500, used: 1000, capacity: 2000"
        );
        let verdict = lacking(&asks("0"), &[&one, &one], has).expect("no room");
        assert_eq!(verdict.reason, "OutOfpods");
        let resources = json!({"requests": {"hugepages-2Mi": "2Mi", "example.com/card": "1"}});
        let asks = json!({"containers": [{"name": "a", "resources": resources}]});
        let asks: PodSpec = serde_json::from_value(asks).expect("a spec");
        let verdict = lacking(&asks, &[], has).expect("no huge page");
        assert_eq!(verdict.reason, "OutOfhugepages-2Mi");
    }
}
