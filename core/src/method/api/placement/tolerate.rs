//! Whether a toleration tolerates a taint (`k8s.io/component-helpers`,
//! `scheduling/corev1/helpers.go`).

use serde_json::Value as Json;

use crate::facts::NodeFact;

/// Whether a node has a taint that a pod, as the API server stored it, does not tolerate.
pub(super) fn has_untolerated(node: &NodeFact, pod: &Json) -> bool {
    let tolerations = pod["spec"]["tolerations"].as_array();
    let tolerated = |taint: &Json| {
        let mut each = tolerations.into_iter().flatten();
        each.any(|toleration| tolerates(toleration, taint))
    };
    node.taints.iter().any(|taint| !tolerated(taint))
}

/// Whether a toleration tolerates a taint; an unknown operator tolerates nothing.
fn tolerates(toleration: &Json, taint: &Json) -> bool {
    let text = |value: &Json| value.as_str().unwrap_or_default().to_owned();
    let any_or_same = |key: &str| {
        let wanted = text(&toleration[key]);
        wanted.is_empty() || wanted == text(&taint[key])
    };
    any_or_same("effect")
        && any_or_same("key")
        && match toleration["operator"].as_str() {
            Some("Exists") => true,
            None | Some("" | "Equal") => text(&toleration["value"]) == text(&taint["value"]),
            Some(_) => false,
        }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn tolerations_are_read_as_the_scheduler_reads_them() {
        let taint = json!({"key": "os", "value": "windows", "effect": "NoSchedule"});
        for (toleration, does) in [
            (json!({"operator": "Exists"}), true),
            (json!({"key": "os", "operator": "Exists"}), true),
            (json!({"key": "os", "value": "windows"}), true),
            (
                json!({"key": "os", "operator": "Equal", "value": "windows", "effect": "NoSchedule"}),
                true,
            ),
            (json!({"key": "os", "value": "linux"}), false),
            (json!({"key": "other", "operator": "Exists"}), false),
            (
                json!({"key": "os", "operator": "Exists", "effect": "NoExecute"}),
                false,
            ),
            (json!({"key": "os", "operator": "Gt", "value": "1"}), false),
        ] {
            assert_eq!(tolerates(&toleration, &taint), does, "{toleration}");
        }
    }
}
