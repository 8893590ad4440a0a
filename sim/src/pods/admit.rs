//! Whether a node takes a pod that was bound to it (kubelet, pkg/kubelet/lifecycle/predicate.go).

use k8s_openapi::api::core::v1::Pod;

use super::book::NodeVerdict;
use crate::cluster::NodeState;

/// The reason for which the node refuses the pod, if it does.
pub(crate) fn refusal(pod: &Pod, node: &NodeState) -> Option<NodeVerdict> {
    let spec = pod.spec.as_ref()?;
    let os = node.pool.os().name();
    let refused = |reason: &str, message: &str| {
        Some(NodeVerdict {
            reason: reason.to_owned(),
            message: format!("Pod was rejected: {message}"),
        })
    };
    let selector = spec.node_selector.iter().flatten();
    if selector
        .into_iter()
        .any(|(key, value)| node.labels.get(key) != Some(value))
    {
        return refused(
            "NodeAffinity",
            "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector",
        );
    }
    // Despite its name this compares a label of the pod's metadata
    if let Some(label) = pod
        .metadata
        .labels
        .as_ref()
        .and_then(|labels| labels.get("kubernetes.io/os"))
        && label != os
    {
        return refused(
            "PodOSSelectorNodeLabelDoesNotMatch",
            "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label",
        );
    }
    if spec.os.as_ref().is_some_and(|asked| asked.name != os) {
        return refused(
            "PodOSNotSupported",
            "Failed to admit pod as the OS field doesn't match node OS",
        );
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::{Build, Pool};
    use crate::world::Node;
    use serde_json::json;

    fn reason(pod: serde_json::Value) -> Option<String> {
        let pool = Pool::Windows(Build::Ws2022);
        let view = Node::new(pool, [127, 77, 0, 1], 1, [10, 244, 1]);
        let labels = [("kubernetes.io/os".to_owned(), "windows".to_owned())].into();
        let node = NodeState::new("win".to_owned(), view, labels);
        let pod: Pod = serde_json::from_value(pod).expect("a pod");
        refusal(&pod, &node).map(|verdict| verdict.reason)
    }

    #[test]
    fn the_kubelets_reasons() {
        let spec = |spec: serde_json::Value| reason(json!({"spec": spec}));
        assert_eq!(spec(json!({"containers": []})), None);
        assert_eq!(
            spec(json!({"containers": [], "os": {"name": "windows"}})),
            None
        );
        assert_eq!(
            spec(json!({"containers": [], "os": {"name": "linux"}})),
            Some("PodOSNotSupported".to_owned())
        );
        assert_eq!(
            spec(json!({"containers": [], "nodeSelector": {"kubernetes.io/os": "linux"}})),
            Some("NodeAffinity".to_owned())
        );
        assert_eq!(
            reason(
                json!({"metadata": {"labels": {"kubernetes.io/os": "linux"}}, "spec": {"containers": []}})
            ),
            Some("PodOSSelectorNodeLabelDoesNotMatch".to_owned())
        );
        assert_eq!(reason(json!({})), None);
    }
}
