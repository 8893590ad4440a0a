//! The values that the server sets where a client sets none: by the rules of `defaults.yaml`, and
//! by code where they depend on several fields.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::PodSpec;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::base::fields::Fields;
use crate::pods::spec::resources::qos_class;
use crate::server::controllers::pods::is_going;
use crate::server::kinds::Kind;

/// A rule of `defaults.yaml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Rule {
    at: Vec<Vec<String>>,
    #[serde(default)]
    if_there: bool,
    #[serde(default)]
    when: BTreeMap<String, Vec<String>>,
    set: Value,
}

static RULES: LazyLock<BTreeMap<String, Vec<Rule>>> = LazyLock::new(|| {
    serde_saphyr::from_str(include_str!("defaults.yaml")).expect("defaults.yaml is whole")
});

pub(crate) fn set(kind: &Kind, object: &mut Value) {
    match kind.plural {
        "rolebindings" | "clusterrolebindings" if object["roleRef"]["apiGroup"] == "" => {
            object["roleRef"].remove("apiGroup");
        }
        "namespaces" => {
            let name = object["metadata"]["name"].clone();
            object["metadata"]["labels"]["kubernetes.io/metadata.name"] = name;
            if !is_going(object) {
                or(&mut object["spec"], json!({"finalizers": ["kubernetes"]}));
            }
        }
        "secrets" => encoded(object),
        "jobs" => {
            let spec = &mut object["spec"];
            if spec["completions"].is_null() && !spec["parallelism"].is_number() {
                spec["completions"] = json!(1);
            }
        }
        _ => {}
    }
    apply(kind.plural, object);
    match kind.plural {
        "pods" => {
            pod(&mut object["spec"]);
            let spec = PodSpec::deserialize(&object["spec"]);
            let class = spec.map_or("BestEffort", |spec| qos_class(&spec));
            or(&mut object["status"], json!({"qosClass": class}));
        }
        "deployments"
        | "replicasets"
        | "replicationcontrollers"
        | "daemonsets"
        | "statefulsets" => pod(&mut object["spec"]["template"]["spec"]),
        "cronjobs" => pod(&mut object["spec"]["jobTemplate"]["spec"]["template"]["spec"]),
        "jobs" => job(object),
        "services" if object["spec"]["type"] != "ExternalName" => {
            for port in object["spec"].items_mut("ports") {
                let number = port["port"].clone();
                or(port, json!({"protocol": "TCP", "targetPort": number}));
            }
        }
        _ => {}
    }
}

/// Applies the rules of a kind, or of a part of one.
fn apply(what: &str, value: &mut Value) {
    let rules = RULES.get(what).into_iter().flatten();
    for (rule, path) in rules.flat_map(|rule| rule.at.iter().map(move |path| (rule, path))) {
        for place in places(value, path, !rule.if_there) {
            let is = |field: &str| place[field].text();
            let mut when = rule.when.iter();
            if when.all(|(field, any)| any.iter().any(|one| one == is(field))) {
                or(place, rule.set.clone());
            }
        }
    }
}

/// Returns the values at a path; `add` creates missing fields.
fn places<'a>(value: &'a mut Value, path: &[String], add: bool) -> Vec<&'a mut Value> {
    match path {
        [] => vec![value],
        [name, rest @ ..] if name == "*" => {
            let items = value.as_array_mut().into_iter().flatten();
            items.flat_map(|item| places(item, rest, add)).collect()
        }
        [name, rest @ ..] if add => places(&mut value[name], rest, add),
        [name, rest @ ..] => {
            let next = value.get_mut(name).filter(|next| !next.is_null());
            next.map_or_else(Vec::new, |next| places(next, rest, add))
        }
    }
}

/// Moves a Secret's `stringData` to `data`, in Base64; clients never read `stringData`.
fn encoded(secret: &mut Value) {
    let given = secret.remove("stringData").unwrap_or_default();
    for (name, text) in given.fields() {
        let bytes = ByteString(text.text().into());
        secret["data"][name] = json!(bytes);
    }
}

/// Sets missing fields, also within fields; `within` is an object or null, since its shape has been checked.
fn or(within: &mut Value, defaults: Value) {
    match defaults {
        Value::Object(fields) if !fields.is_empty() => {
            for (name, value) in fields {
                or(&mut within[name], value);
            }
        }
        value if within.is_null() => *within = value,
        _ => {}
    }
}

fn pod(spec: &mut Value) {
    apply("pod", spec);
    if spec["serviceAccountName"].is_string() {
        spec["serviceAccount"] = spec["serviceAccountName"].clone();
    }
    let host = spec["hostNetwork"] == true;
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        spec.items_mut(list).for_each(|one| container(one, host));
    }
    for volume in spec.items_mut("volumes") {
        if volume.fields().count() == 1 {
            or(volume, json!({"emptyDir": {}}));
        }
    }
}

fn container(container: &mut Value, host: bool) {
    apply("container", container);
    let image = container["image"].text();
    let last = image.rsplit('/').next().unwrap_or_default();
    let floats = !image.contains('@') && (!last.contains(':') || last.ends_with(":latest"));
    let policy = if floats { "Always" } else { "IfNotPresent" };
    or(container, json!({"imagePullPolicy": policy}));
    if let Some(limits) = container["resources"].get("limits").cloned() {
        or(&mut container["resources"]["requests"], limits);
    }
    for port in container.items_mut("ports").filter(|_| host) {
        let number = port["containerPort"].clone();
        or(port, json!({"hostPort": number}));
    }
}

fn job(object: &mut Value) {
    let meta = &object["metadata"];
    let (uid, name) = (meta["uid"].clone(), meta["name"].clone());
    let spec = &mut object["spec"];
    if spec["manualSelector"] != true && uid.is_string() {
        let selector = json!({"matchLabels": {"batch.kubernetes.io/controller-uid": uid}});
        or(spec, json!({"selector": selector}));
        let labels = &mut spec["template"]["metadata"]["labels"];
        for prefix in ["batch.kubernetes.io/", ""] {
            labels[format!("{prefix}controller-uid")] = uid.clone();
            labels[format!("{prefix}job-name")] = name.clone();
        }
    }
    pod(&mut spec["template"]["spec"]);
}
