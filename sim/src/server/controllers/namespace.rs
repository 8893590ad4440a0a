//! Namespaces: what every one has, and how one goes with all that is in it.

use serde_json::json;

use crate::server::kinds::Kind;
use crate::server::state::State;
use crate::world::Key;

pub(super) fn look(state: &mut State, name: &str) {
    let key = Key::new("", name);
    let Some(own) = state.store.get("namespaces", &key) else {
        return;
    };
    if !own["metadata"]["deletionTimestamp"].is_string() {
        furnish(state, name);
        return;
    }
    for plural in state.store.kinds_in(name) {
        let within: Vec<Key> = super::all(&state.store, plural, name).collect();
        for key in within {
            let going = state.store.get(plural, &key);
            if going.is_some_and(|value| !value["metadata"]["deletionTimestamp"].is_string()) {
                state.discard(plural, &key);
            }
        }
    }
    if state.store.kinds_in(name).is_empty() {
        state.edit("namespaces", &key, |own| {
            own["spec"]["finalizers"] = json!([]);
        });
    }
}

/// The service account `default`, and what pods trust the server by.
fn furnish(state: &mut State, name: &str) {
    let description = "Contains a CA bundle that can be used to verify the kube-apiserver when using \
                       internal endpoints such as the internal service IP or kubernetes.default.svc. \
                       No other usage is guaranteed across distributions of Kubernetes clusters.";
    for (plural, named, body) in [
        ("serviceaccounts", "default", json!({})),
        (
            "configmaps",
            "kube-root-ca.crt",
            json!({"metadata": {"annotations": {"kubernetes.io/description": description}},
                "data": {"ca.crt": state.authority}}),
        ),
    ] {
        let key = Key::new(name, named);
        if state.store.get(plural, &key).is_none() {
            let mut body = body;
            body["metadata"]["name"] = json!(named);
            if let Err(refusal) = state.create(Kind::named(plural), name, body, false) {
                tracing::debug!(?refusal, "a namespace lacks what every one has");
            }
        }
    }
}
