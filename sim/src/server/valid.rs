//! What no server of Kubernetes takes: kubernetes 1.37.0, `pkg/apis/*/validation/`, as far as clients get
//! it wrong by hand. Not all that is invalid is refused here.

use serde_json::{Value, json};

use super::kinds::Kind;
use super::refusal::{Cause, Refusal};
use crate::placing;
use crate::pods::resources::amount;

/// What a Windows pod cannot have in its security context (`validateWindows`).
const NOT_OF_WINDOWS: [&str; 11] = [
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "fsGroup",
    "fsGroupChangePolicy",
    "sysctls",
    "runAsUser",
    "runAsGroup",
    "supplementalGroups",
    "supplementalGroupsPolicy",
    "seLinuxChangePolicy",
];
/// What it cannot have in its spec.
const NOT_OF_WINDOWS_PODS: [&str; 4] = ["hostUsers", "hostPID", "hostIPC", "shareProcessNamespace"];
/// What its containers cannot have in theirs.
const NOT_OF_WINDOWS_CONTAINERS: [&str; 10] = [
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "capabilities",
    "readOnlyRootFilesystem",
    "privileged",
    "allowPrivilegeEscalation",
    "procMount",
    "runAsUser",
    "runAsGroup",
];

/// What of a container may change while its pod is there: by itself, or by the subresource `resize`.
const CHANGES_OF_CONTAINERS: [&str; 2] = ["image", "resources"];
/// The same of a pod's spec.
const CHANGES_OF_PODS: [&str; 5] = [
    "activeDeadlineSeconds",
    "terminationGracePeriodSeconds",
    "tolerations",
    "schedulingGates",
    "ephemeralContainers",
];

/// Refuses what is invalid: of something new, or of what shall be another than it was.
pub(super) fn check(kind: &Kind, body: &Value, old: Option<&Value>) -> Result<(), Refusal> {
    let mut causes = Vec::new();
    labels("metadata.labels", &body["metadata"]["labels"], &mut causes);
    let (spec, was) = (&body["spec"], old.map(|old| &old["spec"]));
    match kind.plural {
        "pods" => {
            pod("spec", spec, &mut causes);
            if was.is_some_and(|was| fixed(was, was) != fixed(was, spec)) {
                let why = "pod updates may not change fields other than `spec.containers[*].image`,\
                           `spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,\
                           `spec.tolerations` (only additions to existing tolerations),\
                           `spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was \
                           previously negative)";
                causes.push(Cause::forbidden("spec", why));
            }
        }
        "deployments" | "daemonsets" | "replicasets" | "statefulsets" => {
            selecting(kind, spec, was, &mut causes);
            pod("spec.template.spec", &spec["template"]["spec"], &mut causes);
        }
        "jobs" => job("spec", spec, &mut causes),
        "cronjobs" => job(
            "spec.jobTemplate.spec",
            &spec["jobTemplate"]["spec"],
            &mut causes,
        ),
        "podtemplates" => pod("template.spec", &body["template"]["spec"], &mut causes),
        "replicationcontrollers" => {
            pod("spec.template.spec", &spec["template"]["spec"], &mut causes);
        }
        "services" => {
            let ports = spec["ports"].as_array().is_none_or(Vec::is_empty);
            if ports && spec["type"] != "ExternalName" && spec["clusterIP"] != "None" {
                causes.push(Cause::required("spec.ports", ""));
            }
        }
        "rolebindings" => role_of(body, &["Role", "ClusterRole"], old, &mut causes),
        "clusterrolebindings" => role_of(body, &["ClusterRole"], old, &mut causes),
        _ => {}
    }
    let name = body["metadata"]["name"].as_str().unwrap_or_default();
    match causes.is_empty() {
        true => Ok(()),
        false => Err(Refusal::invalid(kind, name, causes)),
    }
}

/// The spec of a Job, or of the Jobs that a `CronJob` creates.
fn job(at: &str, spec: &Value, causes: &mut Vec<Cause>) {
    let template = &spec["template"]["spec"];
    pod(&format!("{at}.template.spec"), template, causes);
    let field = format!("{at}.template.spec.restartPolicy");
    match template["restartPolicy"].as_str() {
        Some("OnFailure" | "Never") => {}
        // A Job does not take the default of pods
        Some("Always") | None => {
            let why = "valid values: \"OnFailure\", \"Never\"";
            causes.push(Cause::required(&field, why));
        }
        Some(other) => {
            let known = ["OnFailure", "Never"];
            causes.push(Cause::unsupported(&field, other, &known));
        }
    }
}

/// The longest value of a label, and name of its key.
const LONGEST_LABEL: usize = 63;

fn labels(at: &str, labels: &Value, causes: &mut Vec<Cause>) {
    let word = |text: &str| {
        let inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let end = |c: char| c.is_ascii_alphanumeric();
        text.chars().all(inner) && text.starts_with(end) && text.ends_with(end)
    };
    let long = format!("must be no more than {LONGEST_LABEL} bytes");
    for (key, value) in labels.as_object().into_iter().flatten() {
        let name = key.rsplit_once('/').map_or(key.as_str(), |(_, name)| name);
        if name.len() > LONGEST_LABEL {
            causes.push(Cause::invalid(
                at,
                &json!(key),
                &format!("name part {long}"),
            ));
        }
        if !word(name) {
            let why = "name part must consist of alphanumeric characters, '-', '_' or '.', and must \
                       start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  \
                       or '123-abc', regex used for validation is \
                       '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
            causes.push(Cause::invalid(at, &json!(key), why));
        }
        let text = value.as_str().unwrap_or_default();
        if text.len() > LONGEST_LABEL {
            causes.push(Cause::invalid(at, value, &long));
        }
        if !text.is_empty() && !word(text) {
            let why = "a valid label must be an empty string or consist of alphanumeric characters, \
                       '-', '_' or '.', and must start and end with an alphanumeric character (e.g. \
                       'MyValue',  or 'my_value',  or '12345', regex used for validation is \
                       '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
            causes.push(Cause::invalid(at, value, why));
        }
    }
}

/// The selector of a workload, and the labels of its pods.
fn selecting(kind: &Kind, spec: &Value, was: Option<&Value>, causes: &mut Vec<Cause>) {
    let (own, at) = (&spec["selector"], "spec.selector");
    let given = &spec["template"]["metadata"]["labels"];
    let empty = ["matchLabels", "matchExpressions"]
        .iter()
        .all(|part| match &own[part] {
            Value::Object(fields) => fields.is_empty(),
            Value::Array(items) => items.is_empty(),
            _ => true,
        });
    if !own.is_object() {
        if kind.plural != "daemonsets" {
            causes.push(Cause::required(at, ""));
        }
    } else if empty {
        // ReplicaSets say it of Deployments, too
        let of = match kind.plural {
            "daemonsets" => "daemonset",
            "statefulsets" => "statefulset",
            _ => "deployment",
        };
        let why = format!("empty selector is invalid for {of}");
        causes.push(Cause::invalid(at, own, &why));
    }
    if !placing::matches(own, given) {
        let why = "`selector` does not match template `labels`";
        causes.push(Cause::invalid("spec.template.metadata.labels", given, why));
    }
    // As it is called there
    labels("spec.template.labels", given, causes);
    if was.is_some_and(|was| was["selector"] != *own) {
        causes.push(Cause::invalid(at, own, "field is immutable"));
    }
}

/// All containers, with where they stand.
fn containers<'a>(at: &str, spec: &'a Value) -> Vec<(String, &'a Value)> {
    let mut all = Vec::new();
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        let items = spec[list].as_array().into_iter().flatten().enumerate();
        all.extend(items.map(|(index, item)| (format!("{at}.{list}[{index}]"), item)));
    }
    all
}

/// A pod's spec, or that of a template.
fn pod(at: &str, spec: &Value, causes: &mut Vec<Cause>) {
    if spec["containers"].as_array().is_none_or(Vec::is_empty) {
        causes.push(Cause::required(&format!("{at}.containers"), ""));
    }
    let containers = containers(at, spec);
    for (at, container) in &containers {
        for field in ["name", "image"] {
            if container[field].as_str().is_none_or(str::is_empty) {
                causes.push(Cause::required(&format!("{at}.{field}"), ""));
            }
        }
    }
    match spec["os"]["name"].as_str() {
        Some("windows") => windows(at, spec, &containers, causes),
        Some("linux") => {
            for (at, of) in contexts(at, spec, &containers) {
                if is_set("windowsOptions", &of["windowsOptions"]) {
                    let why = "windows options cannot be set for a linux pod";
                    causes.push(Cause::forbidden(&format!("{at}.windowsOptions"), why));
                }
            }
        }
        Some("") => causes.push(Cause::required(&format!("{at}.os.name"), "")),
        Some(other) => {
            let at = format!("{at}.os");
            causes.push(Cause::unsupported(&at, other, &["linux", "windows"]));
        }
        None => {}
    }
    host_processes(at, spec, &containers, causes);
}

/// The security contexts, with where they stand: the pod's first.
fn contexts<'a>(
    at: &str,
    spec: &'a Value,
    containers: &[(String, &'a Value)],
) -> Vec<(String, &'a Value)> {
    let own = (at.to_owned(), spec);
    let all = std::iter::once(&own).chain(containers);
    all.map(|(at, of)| (format!("{at}.securityContext"), &of["securityContext"]))
        .collect()
}

fn windows(pod: &str, spec: &Value, containers: &[(String, &Value)], causes: &mut Vec<Cause>) {
    let mut refuse = |at: &str, of: &Value, fields: &[&str]| {
        for field in fields {
            if is_set(field, &of[field]) {
                let why = "cannot be set for a windows pod";
                causes.push(Cause::forbidden(&format!("{at}.{field}"), why));
            }
        }
    };
    let contexts = contexts(pod, spec, containers);
    for (number, (at, of)) in contexts.iter().enumerate() {
        match number {
            0 => {
                refuse(at, of, &NOT_OF_WINDOWS);
                refuse(pod, spec, &NOT_OF_WINDOWS_PODS);
            }
            _ => refuse(at, of, &NOT_OF_WINDOWS_CONTAINERS),
        }
    }
    if is_set("resources", &spec["resources"]) {
        let why = "may not be set for a windows pod";
        causes.push(Cause::forbidden(&format!("{pod}.resources"), why));
    }
}

/// Whether a field says anything.
fn is_set(field: &str, value: &Value) -> bool {
    match field {
        "hostPID" | "hostIPC" => value == true,
        "sysctls" => value.as_array().is_some_and(|all| !all.is_empty()),
        _ => !value.is_null(),
    }
}

/// `validateWindowsHostProcessPod`.
fn host_processes(
    at: &str,
    spec: &Value,
    containers: &[(String, &Value)],
    causes: &mut Vec<Cause>,
) {
    let of = |of: &Value| of["securityContext"]["windowsOptions"]["hostProcess"].as_bool();
    let whole = of(spec);
    for (at, container) in containers {
        if let (Some(whole), Some(own)) = (whole, of(container))
            && whole != own
        {
            let field = format!("{at}.securityContext.windowsOptions.hostProcess");
            let why = format!(
                "pod hostProcess value must be identical if both are specified, was {whole}"
            );
            causes.push(Cause::invalid(&field, &json!(own), &why));
        }
    }
    let are = containers
        .iter()
        .filter(|(_, one)| of(one).or(whole) == Some(true));
    let are = are.count();
    if are > 0 && are < containers.len() {
        let why = "If pod contains any hostProcess containers then all containers must be HostProcess \
                   containers";
        causes.push(Cause::invalid(at, &json!(""), why));
    }
    if are > 0 && spec["hostNetwork"] != true {
        let why = "hostNetwork must be true if pod contains any hostProcess containers";
        causes.push(Cause::invalid(
            &format!("{at}.hostNetwork"),
            &json!(false),
            why,
        ));
    }
}

/// What of a pod's spec stays as it was made: how it is written matters not.
fn fixed(was: &Value, spec: &Value) -> Value {
    let gated = was["schedulingGates"]
        .as_array()
        .is_some_and(|gates| !gates.is_empty());
    let mut spec = spec.clone();
    if let Some(fields) = spec.as_object_mut() {
        fields.retain(|name, _| !CHANGES_OF_PODS.contains(&name.as_str()));
        // Where it goes may be said until it goes
        if gated {
            fields.remove("nodeSelector");
            if let Some(affinity) = fields.get_mut("affinity").and_then(Value::as_object_mut) {
                affinity.remove("nodeAffinity");
            }
        }
    }
    for list in ["containers", "initContainers"] {
        let items = spec.get_mut(list).and_then(Value::as_array_mut);
        for container in items.into_iter().flatten().filter_map(Value::as_object_mut) {
            container.retain(|name, _| !CHANGES_OF_CONTAINERS.contains(&name.as_str()));
        }
    }
    plain(&mut spec);
    spec
}

/// Takes away what is as good as not said, and writes amounts in one way.
fn plain(value: &mut Value) {
    let is_empty = |value: &Value| match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    };
    match value {
        Value::Object(fields) => {
            for (name, value) in fields.iter_mut() {
                plain(value);
                if name == "sizeLimit"
                    && let Some(amount) = value.as_str().and_then(amount)
                {
                    *value = json!(amount);
                }
            }
            // An emptyDir says what it is by being there
            fields.retain(|name, value| name == "emptyDir" || !is_empty(value));
        }
        Value::Array(items) => items.iter_mut().for_each(plain),
        _ => {}
    }
}

fn role_of(body: &Value, kinds: &[&str], old: Option<&Value>, causes: &mut Vec<Cause>) {
    let role = &body["roleRef"];
    let kind = role["kind"].as_str().unwrap_or_default();
    if !kinds.contains(&kind) {
        causes.push(Cause::unsupported("roleRef.kind", kind, kinds));
    }
    if old.is_some_and(|old| old["roleRef"] != *role) {
        // As Go writes a structure without names of its own
        let shown = json!({"APIGroup": role["apiGroup"], "Kind": kind, "Name": role["name"]});
        causes.push(Cause::invalid("roleRef", &shown, "field is immutable"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(plural: &str, body: &Value, old: Option<&Value>) -> Vec<String> {
        let Err(refusal) = check(Kind::named(plural), body, old) else {
            return Vec::new();
        };
        let status = refusal.status();
        let causes = status["details"]["causes"].as_array().expect("causes");
        let field = |cause: &Value| cause["field"].as_str().expect("a field").to_owned();
        causes.iter().map(field).collect()
    }

    #[test]
    fn what_says_nothing_is_not_refused() {
        let container = json!({"name": "a", "image": "a"});
        for (more, refused) in [
            (json!({"hostPID": false, "hostIPC": false}), None),
            (json!({"securityContext": {"sysctls": []}}), None),
            (json!({"securityContext": {"windowsOptions": {}}}), None),
            (json!({"hostIPC": true}), Some("spec.hostIPC")),
            (
                json!({"shareProcessNamespace": false}),
                Some("spec.shareProcessNamespace"),
            ),
        ] {
            let mut spec = more;
            spec["os"] = json!({"name": "windows"});
            spec["containers"] = json!([container]);
            let told = fields("pods", &json!({"spec": spec}), None);
            assert_eq!(told, Vec::from_iter(refused), "{spec}");
            // Nobody knows which it is for
            spec["os"] = Value::Null;
            let told = fields("pods", &json!({"spec": spec}), None);
            assert_eq!(told, Vec::<String>::new(), "{spec}");
        }
    }

    #[test]
    fn pods_change_where_they_may() {
        let pod = |image: &str, command: &str, node: &str| {
            let container = json!({"name": "a", "image": image, "command": [command]});
            json!({"spec": {"containers": [container], "tolerations": [node]}})
        };
        let old = pod("a", "b", "c");
        for (new, refused) in [
            (pod("z", "b", "c"), None),
            (pod("a", "b", "z"), None),
            (pod("a", "z", "c"), Some("spec")),
        ] {
            assert_eq!(fields("pods", &new, Some(&old)), Vec::from_iter(refused));
        }
    }

    #[test]
    fn labels_are_words() {
        let of =
            |labels: Value| fields("configmaps", &json!({"metadata": {"labels": labels}}), None);
        for right in [json!({"a": ""}), json!({"a.b/c_d": "E-1"}), Value::Null] {
            assert_eq!(of(right.clone()), Vec::<String>::new(), "{right}");
        }
        for wrong in [
            json!({"a": "b c"}),
            json!({"a": "-b"}),
            json!({"a b": ""}),
            json!({"": ""}),
            json!({"a": "x".repeat(64)}),
        ] {
            assert_eq!(of(wrong.clone()), ["metadata.labels"], "{wrong}");
        }
    }
}
