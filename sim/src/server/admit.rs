//! What admission plugins that are on by default add to new objects: kubernetes 1.37.0,
//! `plugin/pkg/admission/`.

use serde_json::{Value, json};

use super::kinds::Kind;
use super::refusal::Refusal;
use super::state::State;
use crate::world::Key;

/// `scheduling.k8s.io`'s classes of the system (`pkg/apis/scheduling/v1/helpers.go`).
pub(super) const SYSTEM_CLASSES: [(&str, i64); 2] = [
    ("system-node-critical", 2_000_001_000),
    ("system-cluster-critical", 2_000_000_000),
];

/// For how long a pod stays on a node that is not ready (`defaulttolerationseconds`).
const STAYS: u32 = 300;

pub(super) fn created(state: &mut State, kind: &Kind, body: &mut Value) -> Result<(), Refusal> {
    match kind.plural {
        "pods" => pod(state, body),
        // `nodetaint`: nothing is placed on a node that nobody has heard of
        "nodes" => {
            let taint = json!({"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"});
            add(&mut body["spec"]["taints"], taint);
            Ok(())
        }
        _ => Ok(()),
    }
}

fn add(list: &mut Value, item: Value) {
    match list.as_array_mut() {
        Some(items) => items.push(item),
        None => *list = json!([item]),
    }
}

fn pod(state: &mut State, body: &mut Value) -> Result<(), Refusal> {
    let kind = Kind::named("pods");
    let name = body["metadata"]["name"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    let namespace = body["metadata"]["namespace"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    account(state, &namespace, &name, &mut body["spec"])?;
    priority(state, &name, &mut body["spec"])?;
    if let Some(class) = body["spec"]["runtimeClassName"].as_str().map(str::to_owned) {
        let Some(class) = state.store.get("runtimeclasses", &Key::new("", &class)) else {
            let why = format!("pod rejected: RuntimeClass \"{class}\" not found");
            return Err(Refusal::forbidden(kind, &name, &why));
        };
        runtime_class(class, &name, &mut body["spec"])?;
    }
    for key in ["not-ready", "unreachable"] {
        let key = format!("node.kubernetes.io/{key}");
        let has = |one: &Value| {
            let effect = one["effect"].as_str().unwrap_or_default();
            (one["key"] == key || one.get("key").is_none()) && matches!(effect, "" | "NoExecute")
        };
        let own = body["spec"]["tolerations"].as_array();
        if !own.is_some_and(|own| own.iter().any(has)) {
            let toleration = json!({"key": key, "operator": "Exists", "effect": "NoExecute",
                "tolerationSeconds": STAYS});
            add(&mut body["spec"]["tolerations"], toleration);
        }
    }
    Ok(())
}

/// `serviceaccount`.
fn account(
    state: &mut State,
    namespace: &str,
    name: &str,
    spec: &mut Value,
) -> Result<(), Refusal> {
    let own = spec["serviceAccountName"]
        .as_str()
        .filter(|own| !own.is_empty());
    let own = own.unwrap_or("default").to_owned();
    spec["serviceAccountName"] = json!(own);
    spec["serviceAccount"] = json!(own);
    let Some(account) = state
        .store
        .get("serviceaccounts", &Key::new(namespace, &own))
    else {
        let why = format!(
            "error looking up service account {namespace}/{own}: serviceaccount \"{own}\" not found"
        );
        return Err(Refusal::forbidden(Kind::named("pods"), name, &why));
    };
    let mounts = [&*spec, &**account]
        .into_iter()
        .find_map(|of| of["automountServiceAccountToken"].as_bool());
    if mounts == Some(false) {
        return Ok(());
    }
    let at = "/var/run/secrets/kubernetes.io/serviceaccount";
    let volume = format!("kube-api-access-{}", state.letters(5));
    let mut mounted = false;
    for list in ["initContainers", "containers"] {
        let containers = spec.get_mut(list).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            let mounts = container["volumeMounts"].as_array();
            if !mounts.is_some_and(|mounts| mounts.iter().any(|mount| mount["mountPath"] == at)) {
                let mount = json!({"name": volume, "readOnly": true, "mountPath": at});
                add(&mut container["volumeMounts"], mount);
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
        add(
            &mut spec["volumes"],
            json!({"name": volume, "projected": projected}),
        );
    }
    Ok(())
}

/// `priority`.
fn priority(state: &State, name: &str, spec: &mut Value) -> Result<(), Refusal> {
    let named = spec["priorityClassName"]
        .as_str()
        .filter(|named| !named.is_empty())
        .map(str::to_owned);
    let global = || {
        let classes = state.store.all("priorityclasses", "");
        let mut global = classes.filter(|(_, class)| class["globalDefault"] == true);
        global.next().map(|(_, class)| class)
    };
    let class = match &named {
        None => global(),
        Some(named) => {
            let class = state.store.get("priorityclasses", &Key::new("", named));
            let why = format!("no PriorityClass with name {named} was found");
            Some(class.ok_or_else(|| Refusal::forbidden(Kind::named("pods"), name, &why))?)
        }
    };
    let value = class.map_or(json!(0), |class| class["value"].clone());
    let given = &spec["priority"];
    if !given.is_null() && *given != value {
        let why = format!(
            "the integer value of priority ({given}) must not be provided in pod spec; priority admission \
             controller computed {value} from the given PriorityClass name"
        );
        return Err(Refusal::forbidden(Kind::named("pods"), name, &why));
    }
    spec["priority"] = value;
    if let (None, Some(class)) = (&named, class) {
        spec["priorityClassName"] = class["metadata"]["name"].clone();
    }
    if spec["preemptionPolicy"].is_null() {
        let policy = class.and_then(|class| class["preemptionPolicy"].as_str());
        spec["preemptionPolicy"] = json!(policy.unwrap_or("PreemptLowerPriority"));
    }
    Ok(())
}

/// `runtimeclass`: its scheduling and its overhead become the pod's.
fn runtime_class(class: &Value, name: &str, spec: &mut Value) -> Result<(), Refusal> {
    let selector = class["scheduling"]["nodeSelector"].as_object();
    for (label, value) in selector.into_iter().flatten() {
        let own = &spec["nodeSelector"][label];
        if !own.is_null() && own != value {
            let why = format!(
                "pod rejected: conflict: runtimeClass.scheduling.nodeSelector[{label}] = {}; \
                 pod.spec.nodeSelector[{label}] = {}",
                value.as_str().unwrap_or_default(),
                own.as_str().unwrap_or_default()
            );
            return Err(Refusal::forbidden(Kind::named("pods"), name, &why));
        }
        spec["nodeSelector"][label] = value.clone();
    }
    let tolerations = class["scheduling"]["tolerations"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    for toleration in tolerations {
        let own = spec["tolerations"].as_array();
        if !own.is_some_and(|own| own.contains(&toleration)) {
            add(&mut spec["tolerations"], toleration);
        }
    }
    if class["overhead"]["podFixed"].is_object() {
        spec["overhead"] = class["overhead"]["podFixed"].clone();
    }
    Ok(())
}
