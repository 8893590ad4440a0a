//! How pods and nodes select each other: selectors, affinity, taints.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelectorRequirement;
use kube::core::{Expression, SelectorExt};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::base::fields::Fields;

/// The labels of an object.
pub(crate) fn labels(labels: &Value) -> BTreeMap<String, String> {
    BTreeMap::deserialize(labels).unwrap_or_default()
}

/// Whether an object's selector with `matchLabels` and `matchExpressions` matches these labels. A missing
/// selector matches nothing, an empty one everything.
pub(crate) fn matches(selector: &Value, labels: &Value) -> bool {
    selector.is_object()
        && labels.includes(&selector["matchLabels"])
        && expressions(&selector["matchExpressions"], labels)
}

/// Whether expressions of `key`, `operator` and `values` hold for labels; `Gt` and `Lt` never hold here.
fn expressions(expressions: &Value, held: &Value) -> bool {
    let held = labels(held);
    expressions.items().all(|one| {
        let read = LabelSelectorRequirement::deserialize(one).ok();
        let read = read.and_then(|read| Expression::try_from(read).ok());
        read.is_some_and(|read| read.matches(&held))
    })
}

/// The terms of a pod's required node affinity.
pub(crate) fn node_terms(pod: &Value) -> Option<&Vec<Value>> {
    let path = "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution\
                /nodeSelectorTerms";
    pod.pointer(path)?.as_array()
}

/// Whether a pod selects a node: `nodeSelector` and the required node affinity.
pub(crate) fn selects(pod: &Value, node: &Value) -> bool {
    node["metadata"]["labels"].includes(&pod["spec"]["nodeSelector"])
        && node_terms(pod).is_none_or(|terms| terms.iter().any(|term| is_of_term(term, node)))
}

/// Whether a term of node affinity holds for a node; an empty term does not
/// (`component-helpers/scheduling/corev1/nodeaffinity`).
pub(crate) fn is_of_term(term: &Value, node: &Value) -> bool {
    let named = json!({"metadata.name": node["metadata"]["name"]});
    let (by_labels, by_fields) = (&term["matchExpressions"], &term["matchFields"]);
    by_labels.items().len() + by_fields.items().len() > 0
        && expressions(by_labels, &node["metadata"]["labels"])
        && expressions(by_fields, &named)
}

/// Whether a toleration tolerates a taint (`k8s.io/api/core/v1/toleration.go`).
pub(crate) fn tolerates(toleration: &Value, taint: &Value) -> bool {
    let (effect, key) = (toleration["effect"].text(), toleration["key"].text());
    if (!effect.is_empty() && taint["effect"] != effect) || (!key.is_empty() && taint["key"] != key)
    {
        return false;
    }
    match toleration["operator"].text() {
        "Exists" => true,
        "" | "Equal" => toleration["value"].text() == taint["value"].text(),
        _ => false,
    }
}

/// Whether any toleration of a pod tolerates a taint.
pub(crate) fn tolerated(pod: &Value, taint: &Value) -> bool {
    let mut tolerations = pod["spec"]["tolerations"].items();
    tolerations.any(|toleration| tolerates(toleration, taint))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_of_objects() {
        let labels = json!({"a": "b", "n": "5"});
        for (selector, takes) in [
            (json!({}), true),
            (Value::Null, false),
            (json!({"matchLabels": {"a": "b"}}), true),
            (json!({"matchLabels": {"a": "c"}}), false),
            (
                json!({"matchExpressions": [{"key": "n", "operator": "Gt", "values": ["4"]}]}),
                false,
            ),
            (
                json!({"matchExpressions": [{"key": "z", "operator": "Exists"}]}),
                false,
            ),
        ] {
            assert_eq!(matches(&selector, &labels), takes, "{selector}");
        }
    }

    #[test]
    fn tolerations_are_read_as_the_scheduler_reads_them() {
        let taint = json!({"key": "os", "value": "windows", "effect": "NoSchedule"});
        for (toleration, tolerated) in [
            (json!({"operator": "Exists"}), true),
            (json!({"key": "os", "operator": "Exists"}), true),
            (json!({"key": "os", "value": "windows"}), true),
            (
                json!({"key": "os", "operator": "Equal", "value": "windows", "effect": "NoSchedule"}),
                true,
            ),
            (json!({"key": "os", "value": "linux"}), false),
            (
                json!({"key": "os", "operator": "Equal", "value": "linux"}),
                false,
            ),
            (
                json!({"key": "os", "operator": "Exists", "effect": "NoExecute"}),
                false,
            ),
            (json!({"key": "gpu", "operator": "Exists"}), false),
            (
                json!({"key": "os", "operator": "Lt", "value": "windows"}),
                false,
            ),
        ] {
            assert_eq!(tolerates(&toleration, &taint), tolerated, "{toleration}");
        }
    }
}
