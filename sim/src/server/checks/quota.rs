//! Quotas of extended resources (kubernetes 1.37.0, `pkg/quota/v1/evaluator/core/pods.go`; apiserver,
//! `pkg/admission/plugin/resourcequota/controller.go`): others of a quota hold for nothing here.

use serde_json::{Value, json};

use crate::base::fields::Fields;
use crate::server::storage::state::State;

/// Has a quota hold, as its controller does once it has counted. It counts at admission here.
pub(crate) fn counted(body: &mut Value) {
    let hard = body["spec"]["hard"].clone();
    let used = hard.fields().map(|(name, _)| (name.to_owned(), json!("0")));
    let used: Value = used.collect::<serde_json::Map<_, _>>().into();
    body["status"] = json!({"hard": hard, "used": used});
}

/// Refuses a pod that requests more than a quota of its namespace has left.
pub(super) fn admit(state: &State, namespace: &str, spec: &Value) -> Result<(), String> {
    for (key, quota) in state.store.all("resourcequotas", namespace) {
        for (resource, limit) in quota["status"]["hard"].fields() {
            let Some(extended) = resource.strip_prefix("requests.") else {
                continue;
            };
            let asked = requested(spec, extended);
            if asked == 0 {
                continue;
            }
            let pods = state.store.all("pods", namespace);
            let used: u64 = pods.map(|(_, pod)| requested(&pod["spec"], extended)).sum();
            let limit = amount(limit);
            if used + asked > limit {
                return Err(format!(
                    "exceeded quota: {}, requested: {resource}={asked}, used: {resource}={used}, \
                     limited: {resource}={limit}",
                    key.name
                ));
            }
        }
    }
    Ok(())
}

/// How many of an extended resource, which has no fractions, a pod's containers request.
fn requested(spec: &Value, resource: &str) -> u64 {
    let containers = spec["containers"].items();
    containers
        .map(|one| amount(&one["resources"]["requests"][resource]))
        .sum()
}

fn amount(value: &Value) -> u64 {
    value.text().parse().unwrap_or_default()
}
