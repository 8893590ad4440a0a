//! What admission webhooks do to new pods: a closed list. The reader of a topology names each, and its
//! objects show the configuration of the webhook, which nothing calls.

use serde_json::{Value, json};

use super::refusal::Refusal;
use crate::base::fields::Fields;
use crate::server::storage::state::State;
use crate::topology::Effect;
use crate::world::Key;

/// Does to a new pod of a namespace, which a client or a controller creates, what a webhook does; the error is
/// why the pod is refused.
pub(super) fn act(
    state: &State,
    effect: &Effect,
    namespace: &str,
    is_of_client: bool,
    spec: &mut Value,
) -> Result<(), String> {
    match effect {
        Effect::Resource {
            name,
            config_map: (of, map),
            key,
        } => {
            let map = Key::new(of, map);
            let map = state.store.get("configmaps", &map);
            let is_on = map.is_some_and(|map| parses_as_true(map["data"][key].text()));
            if is_on && selects_windows(spec) && spec["hostNetwork"] != true {
                for of in ["limits", "requests"] {
                    if let Some(first) = spec.items_mut("containers").next() {
                        first["resources"][of][name] = json!("1");
                    }
                }
            }
        }
        Effect::Toleration(taint) => {
            let toleration = json!({"key": taint.key, "operator": "Equal", "value": taint.value,
                "effect": taint.effect});
            let has = spec["tolerations"].items().any(|one| *one == toleration);
            if selects_windows(spec) && !has {
                spec["tolerations"].push(toleration);
            }
        }
        Effect::Sidecar { name, image } => {
            if namespace != "kube-system" {
                spec["containers"].push(json!({"name": name, "image": image,
                    "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
                    "imagePullPolicy": "IfNotPresent", "resources": {}}));
            }
        }
        Effect::Drops(field) => {
            if namespace != "kube-system" {
                let mut pod = json!({"spec": spec.take()});
                field.remove_from(&mut pod);
                *spec = pod["spec"].take();
            }
        }
        Effect::HostDenied {
            unless,
            client: (of, client),
            says,
        } => {
            let windows = spec["os"]["name"] == "windows";
            let account = (namespace, spec["serviceAccountName"].text());
            let is_allowed = is_bound(state, namespace, account, unless)
                || is_of_client && is_bound(state, namespace, (of, client), unless);
            if spec["hostNetwork"] == true && !windows && !is_allowed {
                return Err(says.clone());
            }
        }
        Effect::CredentialSpecs { name, domain, .. } => {
            let contents =
                json!({"CmsPlugins": ["ActiveDirectory"], "DomainJoinConfig": {"DnsName": domain}});
            let containers = spec.items_mut("containers");
            for container in containers.filter(|one| credential_spec(one) == Some(name)) {
                let options = &mut container["securityContext"]["windowsOptions"];
                options["gmsaCredentialSpec"] = json!(contents.to_string());
            }
        }
    }
    Ok(())
}

/// The credential spec that a pod or a container names, if it does.
fn credential_spec(of: &Value) -> Option<&str> {
    of["securityContext"]["windowsOptions"]["gmsaCredentialSpecName"].as_str()
}

/// Refuses a new pod that names a credential spec that is not there, where a webhook looks for it.
pub(super) fn look_up(state: &State, spec: &Value) -> Result<(), Refusal> {
    let mut webhooks = state.effects.iter().filter_map(|effect| match effect {
        Effect::CredentialSpecs { webhook, name, .. } => Some((webhook, name)),
        _ => None,
    });
    let Some((webhook, known)) = webhooks.next() else {
        return Ok(());
    };
    let containers = ["containers", "initContainers"].map(|list| spec[list].items());
    let all = std::iter::once(spec).chain(containers.into_iter().flatten());
    let mut named = all.filter_map(credential_spec);
    named.find(|name| name != known).map_or(Ok(()), |name| {
        let words = format!(
            "admission webhook \"{webhook}\" denied the request: cred spec {name} does not exist"
        );
        Err(Refusal::new(404, words))
    })
}

/// Whether a pod's node selector names Windows; other rules that keep it there do not count.
fn selects_windows(spec: &Value) -> bool {
    let labels = ["kubernetes.io/os", "beta.kubernetes.io/os"];
    let mut values = labels.into_iter().map(|label| &spec["nodeSelector"][label]);
    values.any(|value| value == "windows")
}

/// Whether a binding of a namespace or the cluster gives a role of the cluster to an account, by the namespace and
/// name of it, or to all accounts there.
fn is_bound(state: &State, namespace: &str, (of, account): (&str, &str), role: &str) -> bool {
    let group = format!("system:serviceaccounts:{of}");
    let is_subject = |subject: &Value| match subject["kind"].text() {
        "ServiceAccount" => subject["name"] == account && subject["namespace"] == of,
        "Group" => subject["name"] == group,
        _ => false,
    };
    let local = state.store.all("rolebindings", namespace);
    let mut bindings = local.chain(state.store.all("clusterrolebindings", ""));
    bindings.any(|(_, binding)| {
        binding["roleRef"]["name"] == role && binding["subjects"].items().any(is_subject)
    })
}

/// As `strconv.ParseBool` of Go, by which the webhook of EKS reads.
fn parses_as_true(text: &str) -> bool {
    ["1", "t", "T", "TRUE", "true", "True"].contains(&text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::checks::admission::{Recorded, versions};
    use crate::server::kinds::Kind;
    use crate::topology::TaintSpec;

    fn state() -> State {
        let version = versions().next().expect("one");
        let version = Recorded::by_version(version).expect("known");
        let mut state = State::new(version, 1, String::new());
        let maps = Kind::named("configmaps");
        let on = json!({"data": {"enable-windows": "True"}});
        state.put(maps, &Key::new("kube-system", "addresses"), on);
        state
    }

    fn after(effect: &Effect, mut spec: Value) -> Value {
        act(&state(), effect, "a", true, &mut spec).expect("it is not refused");
        spec
    }

    #[test]
    fn only_a_node_selector_brings_an_address_or_a_toleration() {
        let address = Effect::Resource {
            name: "example.com/address".to_owned(),
            config_map: ("kube-system".to_owned(), "addresses".to_owned()),
            key: "enable-windows".to_owned(),
        };
        let selector = json!({"kubernetes.io/os": "windows"});
        let spec = json!({"nodeSelector": selector, "containers": [{"name": "a"}, {"name": "b"}]});
        let amount = json!({"example.com/address": "1"});
        let now = after(&address, spec.clone());
        let resources = json!({"limits": amount, "requests": amount});
        assert_eq!(
            now["containers"],
            json!([{"name": "a", "resources": resources}, {"name": "b"}])
        );
        let off = Effect::Resource {
            name: "example.com/address".to_owned(),
            config_map: ("kube-system".to_owned(), "none".to_owned()),
            key: "enable-windows".to_owned(),
        };
        assert_eq!(after(&off, spec.clone()), spec);
        let taint = TaintSpec {
            key: "os".to_owned(),
            value: "windows".to_owned(),
            effect: "NoSchedule".to_owned(),
        };
        let toleration = Effect::Toleration(taint);
        let once = after(&toleration, spec);
        assert_eq!(once["tolerations"].items().count(), 1);
        assert_eq!(after(&toleration, once.clone()), once);
        let affine =
            json!({"affinity": {}, "os": {"name": "windows"}, "containers": [{"name": "a"}]});
        for effect in [&address, &toleration] {
            assert_eq!(after(effect, affine.clone()), affine);
        }
    }

    #[test]
    fn pods_of_the_system_get_no_sidecar() {
        let sidecar = Effect::Sidecar {
            name: "proxy".to_owned(),
            image: "example.com/proxy:1".to_owned(),
        };
        let spec = json!({"containers": [{"name": "a"}]});
        assert_eq!(
            after(&sidecar, spec.clone())["containers"].items().count(),
            2
        );
        let mut system = spec.clone();
        act(&state(), &sidecar, "kube-system", true, &mut system).expect("it is not refused");
        assert_eq!(system, spec);
    }

    #[test]
    fn the_nodes_network_is_for_bound_accounts_and_windows() {
        let effect = Effect::HostDenied {
            unless: "privileged".to_owned(),
            client: ("tools".to_owned(), "tool".to_owned()),
            says: "no".to_owned(),
        };
        let mut state = state();
        let spec = |more: Value| {
            let mut spec = json!({"hostNetwork": true, "serviceAccountName": "default"});
            for (key, value) in more.fields() {
                spec[key] = value.clone();
            }
            spec
        };
        let refused_of = |state: &State, is_of_client, more| {
            act(state, &effect, "a", is_of_client, &mut spec(more)).is_err()
        };
        let refused = |state: &State, more| refused_of(state, true, more);
        assert!(refused(&state, json!({})));
        assert!(!refused(&state, json!({"hostNetwork": false})));
        assert!(!refused(&state, json!({"os": {"name": "windows"}})));
        let bind = |state: &mut State, of: &str, name: &str| {
            let binding = json!({"metadata": {}, "roleRef": {"name": "privileged"}, "subjects": [
                {"kind": "ServiceAccount", "name": name, "namespace": of}]});
            let key = Key::new("a", "b");
            state.store.put(Kind::named("rolebindings"), &key, binding);
        };
        bind(&mut state, "a", "default");
        let other = json!({"serviceAccountName": "other"});
        assert!(!refused(&state, json!({})));
        assert!(refused(&state, other.clone()));
        bind(&mut state, "tools", "tool");
        assert!(!refused(&state, other.clone()));
        assert!(refused_of(&state, false, other));
    }
}
