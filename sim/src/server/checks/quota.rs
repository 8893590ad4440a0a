//! Quotas of extended resources (kubernetes 1.37.0, `pkg/quota/v1/evaluator/core/pods.go`; apiserver,
//! `pkg/admission/plugin/resourcequota/controller.go`): others of a quota hold for nothing here.

use serde_json::{Value, json};

use crate::base::fields::Fields;
use crate::server::controllers::pods::is_over;
use crate::server::storage::state::State;
use crate::world::Key;

/// Counts what a quota's namespace uses, as the quota's controller does. Once counted, the quota holds.
pub(crate) fn count(state: &mut State, key: &Key) {
    let Some(quota) = state.store.get("resourcequotas", key).cloned() else {
        return;
    };
    let hard = &quota["spec"]["hard"];
    let used = hard.fields().map(|(name, _)| {
        let extended = name.strip_prefix("requests.");
        let used = extended.map_or(0, |extended| used(state, &key.namespace, extended));
        (name.to_owned(), json!(used.to_string()))
    });
    let used: Value = used.collect::<serde_json::Map<_, _>>().into();
    state.set_status("resourcequotas", key, json!({"hard": hard, "used": used}));
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
            let used = used(state, namespace, extended);
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

/// How many of an extended resource the pods of a namespace request that have not ended.
fn used(state: &State, namespace: &str, resource: &str) -> u64 {
    let pods = state.store.all("pods", namespace);
    let pods = pods.filter(|(_, pod)| !is_over(pod));
    pods.map(|(_, pod)| requested(&pod["spec"], resource)).sum()
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
