//! What the default admission plugins add to new objects: kubernetes 1.37.0, `plugin/pkg/admission/`.

use serde_json::{Value, json};

use super::refusal::Refusal;
use super::{quota, webhooks};
use crate::base::fields::Fields;
use crate::server::kinds::Kind;
use crate::server::storage::state::State;
use crate::world::Key;

/// How many seconds a pod stays on a node that is not ready (`defaulttolerationseconds`).
const STAYS: u32 = 300;

pub(crate) fn created(state: &mut State, kind: &Kind, body: &mut Value) -> Result<(), Refusal> {
    match kind.plural {
        "pods" => pod(state, body),
        // `nodetaint`: no pod is placed on a node that has not reported yet
        "nodes" => {
            let taint = json!({"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"});
            body["spec"]["taints"].push(taint);
            Ok(())
        }
        _ => Ok(()),
    }
}

fn pod(state: &mut State, body: &mut Value) -> Result<(), Refusal> {
    let name = body["metadata"]["name"].text().to_owned();
    let namespace = body["metadata"]["namespace"].text().to_owned();
    let forbidden = |why: String| Refusal::forbidden(Kind::named("pods"), &name, &why);
    let is_of_client = body["metadata"]["ownerReferences"].items().next().is_none();
    let spec = &mut body["spec"];
    account(state, &namespace, spec).map_err(forbidden)?;
    priority(state, spec).map_err(forbidden)?;
    runtime_class(state, spec).map_err(forbidden)?;
    for effect in &state.effects {
        webhooks::act(state, effect, &namespace, is_of_client, spec).map_err(forbidden)?;
    }
    webhooks::look_up(state, spec)?;
    for key in ["not-ready", "unreachable"] {
        let key = format!("node.kubernetes.io/{key}");
        let has = |one: &Value| {
            (one["key"] == key || one.get("key").is_none())
                && matches!(one["effect"].text(), "" | "NoExecute")
        };
        if !spec["tolerations"].items().any(has) {
            spec["tolerations"].push(json!({"key": key, "operator": "Exists",
                "effect": "NoExecute", "tolerationSeconds": STAYS}));
        }
    }
    Ok(())
}

/// What is asked after validation, at the end.
pub(crate) fn allowed(state: &State, kind: &Kind, body: &Value) -> Result<(), Refusal> {
    if kind.plural != "pods" {
        return Ok(());
    }
    let [name, namespace] = ["name", "namespace"].map(|key| body["metadata"][key].text());
    quota::admit(state, namespace, &body["spec"])
        .map_err(|why| Refusal::forbidden(kind, name, &why))
}

/// The plugin `serviceaccount`: sets the pod's account and mounts its token.
fn account(state: &mut State, namespace: &str, spec: &mut Value) -> Result<(), String> {
    let name = match spec["serviceAccountName"].text() {
        "" => "default".to_owned(),
        name => name.to_owned(),
    };
    spec["serviceAccountName"] = json!(name);
    spec["serviceAccount"] = json!(name);
    let key = Key::new(namespace, &name);
    let account = state.store.get("serviceaccounts", &key).ok_or_else(|| {
        format!("error looking up service account {key}: serviceaccount \"{name}\" not found")
    })?;
    let mounts = [&*spec, &**account].map(|of| of["automountServiceAccountToken"].as_bool());
    if mounts.into_iter().flatten().next() == Some(false) {
        return Ok(());
    }
    let at = "/var/run/secrets/kubernetes.io/serviceaccount";
    let volume = format!("kube-api-access-{}", state.letters(5));
    let mut mounted = false;
    for list in ["initContainers", "containers"] {
        for container in spec.items_mut(list) {
            let mut mounts = container["volumeMounts"].items();
            if !mounts.any(|mount| mount["mountPath"] == at) {
                let mount = json!({"name": volume, "readOnly": true, "mountPath": at});
                container["volumeMounts"].push(mount);
                mounted = true;
            }
        }
    }
    if mounted {
        let field = json!({"apiVersion": "v1", "fieldPath": "metadata.namespace"});
        let sources = json!([
            {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": field}]}},
        ]);
        let projected = json!({"sources": sources, "defaultMode": 420});
        spec["volumes"].push(json!({"name": volume, "projected": projected}));
    }
    Ok(())
}

/// The plugin `priority`: sets the pod's priority and preemption policy.
fn priority(state: &State, spec: &mut Value) -> Result<(), String> {
    let named = spec["priorityClassName"].text();
    let class = match named {
        "" => {
            let mut classes = state.store.all("priorityclasses", "");
            let default = classes.find(|(_, class)| class["globalDefault"] == true);
            default.map(|(_, class)| class)
        }
        named => {
            let class = state.store.global("priorityclasses", named);
            Some(class.ok_or_else(|| format!("no PriorityClass with name {named} was found"))?)
        }
    };
    let value = class.map_or(json!(0), |class| class["value"].clone());
    let given = &spec["priority"];
    if !given.is_null() && *given != value {
        return Err(format!(
            "the integer value of priority ({given}) must not be provided in pod spec; priority admission \
             controller computed {value} from the given PriorityClass name"
        ));
    }
    spec["priority"] = value;
    if let Some(class) = class {
        spec["priorityClassName"] = class["metadata"]["name"].clone();
    }
    if spec["preemptionPolicy"].is_null() {
        let policy = class.and_then(|class| class["preemptionPolicy"].as_str());
        spec["preemptionPolicy"] = json!(policy.unwrap_or("PreemptLowerPriority"));
    }
    Ok(())
}

/// The plugin `runtimeclass`: copies the class's scheduling and overhead to the pod.
fn runtime_class(state: &State, spec: &mut Value) -> Result<(), String> {
    let Some(named) = spec["runtimeClassName"].as_str() else {
        return Ok(());
    };
    let class = state.store.global("runtimeclasses", named);
    let class = class.ok_or_else(|| format!("pod rejected: RuntimeClass \"{named}\" not found"))?;
    for (label, value) in class["scheduling"]["nodeSelector"].fields() {
        let current = &spec["nodeSelector"][label];
        if !current.is_null() && current != value {
            return Err(format!(
                "pod rejected: conflict: runtimeClass.scheduling.nodeSelector[{label}] = {}; \
                 pod.spec.nodeSelector[{label}] = {}",
                value.text(),
                current.text()
            ));
        }
        spec["nodeSelector"][label] = value.clone();
    }
    for toleration in class["scheduling"]["tolerations"].items() {
        if !spec["tolerations"].items().any(|one| one == toleration) {
            spec["tolerations"].push(toleration.clone());
        }
    }
    if class["overhead"]["podFixed"].is_object() {
        spec["overhead"] = class["overhead"]["podFixed"].clone();
    }
    Ok(())
}
