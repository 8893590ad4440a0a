//! Mutating admission policies on the control plane, as some clusters have them.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use winconform::cluster::{Condition, connect, poll_until};
use winconform::transport::Api;
use winconform_core::config::{Durations, Limits};
use winconform_core::method::{ApiRequest, Verb};

use crate::scheduling::{OS_SELECTS, POLICIES};
use crate::world::options;

const API_VERSION: &str = "admissionregistration.k8s.io/v1";

/// Creates these policies and deletes the others, and waits until the server behaves so.
pub(crate) async fn set(kubeconfig: &Path, wanted: &[&str]) {
    let (options, limits) = (options(kubeconfig), Limits::default());
    let cluster = connect(&options, Durations::default(), limits).await;
    let api = cluster.expect("the control plane answers").api;
    for name in POLICIES {
        let is_set = wanted.contains(&name);
        if holds(&api, name).await == is_set {
            continue;
        }
        for (plural, object) in objects(name) {
            let request = ApiRequest {
                verb: if is_set { Verb::Apply } else { Verb::Delete },
                path: format!("/apis/{API_VERSION}/{plural}/{name}"),
                body: is_set.then_some(object),
            };
            let reply = api.send(&request).await.expect("an answer");
            assert!(reply.status < 300, "{}", reply.body);
        }
        let limit = Duration::from_mins(1);
        let polled = poll_until(Duration::from_millis(100), limit, name, async || {
            match holds(&api, name).await == is_set {
                true => Condition::Done(()),
                false => Condition::NotYet("not as set".to_owned()),
            }
        });
        polled.await.expect("the policy takes effect");
    }
}

/// Whether the server applies a policy.
async fn holds(api: &Api, name: &str) -> bool {
    let metadata = json!({"generateName": "asks-"});
    let (path, body) = match name {
        OS_SELECTS => (
            "/api/v1/namespaces/default/pods",
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata,
                "spec": {"os": {"name": "windows"}, "containers": [{"name": "a", "image": "a"}]}}),
        ),
        _ => (
            "/apis/scheduling.k8s.io/v1/priorityclasses",
            json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
                "metadata": metadata, "value": -1}),
        ),
    };
    let request = ApiRequest {
        verb: Verb::Create,
        path: format!("{path}?dryRun=All"),
        body: Some(body),
    };
    let reply = api.send(&request).await.expect("an answer");
    assert!(reply.status < 300, "{}", reply.body);
    match name {
        OS_SELECTS => !reply.body["spec"]["nodeSelector"].is_null(),
        _ => reply.body["preemptionPolicy"] == "Never",
    }
}

fn objects(name: &str) -> [(&'static str, Value); 2] {
    let (group, resource, condition, patch) = match name {
        OS_SELECTS => (
            "",
            "pods",
            "has(object.spec.os) && !has(object.spec.nodeSelector)",
            "[JSONPatch{op: 'add', path: '/spec/nodeSelector', \
             value: {'kubernetes.io/os': object.spec.os.name}}]",
        ),
        _ => (
            "scheduling.k8s.io",
            "priorityclasses",
            "true",
            "[JSONPatch{op: 'add', path: '/preemptionPolicy', value: 'Never'}]",
        ),
    };
    let policy = json!({
        "apiVersion": API_VERSION, "kind": "MutatingAdmissionPolicy", "metadata": {"name": name},
        "spec": {
            "failurePolicy": "Fail", "reinvocationPolicy": "Never",
            "matchConstraints": {"resourceRules": [{"apiGroups": [group], "apiVersions": ["v1"],
                "operations": ["CREATE"], "resources": [resource]}]},
            "matchConditions": [{"name": "concerns-it", "expression": condition}],
            "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": patch}}],
        },
    });
    let binding = json!({
        "apiVersion": API_VERSION, "kind": "MutatingAdmissionPolicyBinding",
        "metadata": {"name": name}, "spec": {"policyName": name},
    });
    [
        ("mutatingadmissionpolicies", policy),
        ("mutatingadmissionpolicybindings", binding),
    ]
}
