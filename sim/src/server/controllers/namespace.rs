//! Namespaces: creates what every namespace has, and empties a namespace that is deleted.

use serde_json::json;

use super::pods::is_going;
use crate::server::kinds::Kind;
use crate::server::storage::state::State;
use crate::world::Key;

pub(super) fn look(state: &mut State, name: &str) {
    let Some(namespace) = state.store.global("namespaces", name) else {
        return;
    };
    if !is_going(namespace) {
        furnish(state, name);
        return;
    }
    for plural in state.store.kinds_in(name) {
        let within = state.store.all(plural, name);
        let stay = within.filter(|(_, object)| !is_going(object));
        let keys: Vec<Key> = stay.map(|(key, _)| key.clone()).collect();
        for key in keys {
            state.discard(plural, &key);
        }
    }
    if state.store.kinds_in(name).is_empty() {
        state.edit("namespaces", &Key::new("", name), |namespace| {
            namespace["spec"]["finalizers"] = json!([]);
        });
    }
}

/// Creates the service account `default` and the certificate by which pods trust the server.
fn furnish(state: &mut State, name: &str) {
    let description = "Contains a CA bundle that can be used to verify the kube-apiserver when using \
                       internal endpoints such as the internal service IP or kubernetes.default.svc. \
                       No other usage is guaranteed across distributions of Kubernetes clusters.";
    let trust = json!({
        "metadata": {"annotations": {"kubernetes.io/description": description}},
        "data": {"ca.crt": state.authority},
    });
    for (plural, named, mut body) in [
        ("serviceaccounts", "default", json!({})),
        ("configmaps", "kube-root-ca.crt", trust),
    ] {
        if state.store.get(plural, &Key::new(name, named)).is_some() {
            continue;
        }
        body["metadata"]["name"] = json!(named);
        if let Err(refusal) = state.create(Kind::named(plural), name, body, false) {
            tracing::debug!(?refusal, "a namespace lacks what every one has");
        }
    }
}
