//! Validation of objects: kubernetes 1.37.0, `pkg/apis/*/validation/`, as far as people make such
//! errors by hand. It does not refuse everything that is invalid.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::{Value, json};

use super::refusal::{Cause, Refusal};
use crate::base::fields::Fields;
use crate::nodes::placing;
use crate::pods::spec::resources::amount;
use crate::server::kinds::Kind;

/// The rules of `valid.yaml`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Rules {
    pod_specs: BTreeMap<String, String>,
    foreign: Vec<Foreign>,
    changes_of_containers: Vec<String>,
    changes_of_pods: Vec<String>,
    only_these_changes: String,
    label_names: String,
    label_values: String,
    long_label_names: String,
    long_label_values: String,
}

/// Fields that cannot be set in pods of one operating system.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Foreign {
    os: String,
    of: Bearer,
    fields: Vec<String>,
    why: String,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Bearer {
    Pod,
    PodContext,
    ContainerContexts,
}

static RULES: LazyLock<Rules> = LazyLock::new(|| {
    serde_saphyr::from_str(include_str!("valid.yaml")).expect("valid.yaml is whole")
});

/// Refuses an invalid new object, or an invalid change of the `old` one.
pub(crate) fn check(kind: &Kind, body: &Value, old: Option<&Value>) -> Result<(), Refusal> {
    let mut causes = Vec::new();
    labels("metadata.labels", &body["metadata"]["labels"], &mut causes);
    let (spec, was) = (&body["spec"], old.map(|old| &old["spec"]));
    let workloads = ["deployments", "daemonsets", "replicasets", "statefulsets"];
    if workloads.contains(&kind.plural) {
        selecting(kind, spec, was, &mut causes);
    }
    if let Some(at) = RULES.pod_specs.get(kind.plural) {
        let pod_spec = body.pointer(&format!("/{}", at.replace('.', "/")));
        let pod_spec = pod_spec.unwrap_or(&Value::Null);
        pod(at, pod_spec, &mut causes);
        if let "jobs" | "cronjobs" = kind.plural {
            causes.extend(restarts(at, pod_spec["restartPolicy"].text()));
        }
    }
    match kind.plural {
        "pods" if was.is_some_and(|was| fixed(was, was) != fixed(was, spec)) => {
            causes.push(Cause::forbidden("spec", &RULES.only_these_changes));
        }
        "services" => {
            let is_other = spec["type"] == "ExternalName" || spec["clusterIP"] == "None";
            if spec["ports"].items().len() == 0 && !is_other {
                causes.push(Cause::required("spec.ports", ""));
            }
        }
        "rolebindings" => role_of(body, &["Role", "ClusterRole"], old, &mut causes),
        "clusterrolebindings" => role_of(body, &["ClusterRole"], old, &mut causes),
        _ => {}
    }
    let name = body["metadata"]["name"].text();
    match causes.is_empty() {
        true => Ok(()),
        false => Err(Refusal::invalid(kind, name, &causes)),
    }
}

/// Returns what is wrong with a Job's restart policy; a Job does not accept the default of pods.
fn restarts(at: &str, policy: &str) -> Option<Cause> {
    let (field, known) = (format!("{at}.restartPolicy"), ["OnFailure", "Never"]);
    match policy {
        "OnFailure" | "Never" => None,
        "Always" | "" => {
            let why = "valid values: \"OnFailure\", \"Never\"";
            Some(Cause::required(&field, why))
        }
        other => Some(Cause::unsupported(&field, other, &known)),
    }
}

/// The longest value of a label, and the longest name in its key.
const LONGEST_LABEL: usize = 63;

fn labels(at: &str, labels: &Value, causes: &mut Vec<Cause>) {
    let is_word = |text: &str| {
        let inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let end = |c: char| c.is_ascii_alphanumeric();
        text.chars().all(inner) && text.starts_with(end) && text.ends_with(end)
    };
    for (key, value) in labels.fields() {
        let name = key.rsplit_once('/').map_or(key.as_str(), |(_, name)| name);
        let (key, text) = (json!(key), value.text());
        let is_odd = !text.is_empty() && !is_word(text);
        for (is_wrong, what, why) in [
            (name.len() > LONGEST_LABEL, &key, &RULES.long_label_names),
            (!is_word(name), &key, &RULES.label_names),
            (text.len() > LONGEST_LABEL, value, &RULES.long_label_values),
            (is_odd, value, &RULES.label_values),
        ] {
            causes.extend(is_wrong.then(|| Cause::invalid(at, what, why)));
        }
    }
}

/// Checks the selector of a workload, and the labels of its pods.
fn selecting(kind: &Kind, spec: &Value, was: Option<&Value>, causes: &mut Vec<Cause>) {
    let (selector, at) = (&spec["selector"], "spec.selector");
    let given = &spec["template"]["metadata"]["labels"];
    let (equal, expressions) = (&selector["matchLabels"], &selector["matchExpressions"]);
    let is_empty = equal.fields().next().is_none() && expressions.items().len() == 0;
    if !selector.is_object() {
        if kind.plural != "daemonsets" {
            causes.push(Cause::required(at, ""));
        }
    } else if is_empty {
        // ReplicaSets use the message of Deployments, too
        let of = match kind.plural {
            "daemonsets" => "daemonset",
            "statefulsets" => "statefulset",
            _ => "deployment",
        };
        let why = format!("empty selector is invalid for {of}");
        causes.push(Cause::invalid(at, selector, &why));
    }
    if !placing::matches(selector, given) {
        let why = "`selector` does not match template `labels`";
        causes.push(Cause::invalid("spec.template.metadata.labels", given, why));
    }
    // Kubernetes names this path in the error
    labels("spec.template.labels", given, causes);
    if was.is_some_and(|was| was["selector"] != *selector) {
        causes.push(Cause::invalid(at, selector, "field is immutable"));
    }
}

/// Returns all containers, with their paths.
fn containers<'a>(at: &str, spec: &'a Value) -> Vec<(String, &'a Value)> {
    let lists = ["initContainers", "containers", "ephemeralContainers"].into_iter();
    lists
        .flat_map(|list| {
            let items = spec[list].items().enumerate();
            items.map(move |(index, item)| (format!("{at}.{list}[{index}]"), item))
        })
        .collect()
}

/// Checks a pod's spec, or that of a template.
fn pod(at: &str, spec: &Value, causes: &mut Vec<Cause>) {
    if spec["containers"].items().len() == 0 {
        causes.push(Cause::required(&format!("{at}.containers"), ""));
    }
    let containers = containers(at, spec);
    for (at, container) in &containers {
        let lacks = |field: &&str| container[field].text().is_empty();
        let lacking = ["name", "image"].into_iter().filter(lacks);
        causes.extend(lacking.map(|field| Cause::required(&format!("{at}.{field}"), "")));
    }
    match spec["os"]["name"].as_str() {
        Some(os @ ("windows" | "linux")) => foreign(os, at, spec, &containers, causes),
        Some("") => causes.push(Cause::required(&format!("{at}.os.name"), "")),
        Some(other) => {
            let at = format!("{at}.os");
            causes.push(Cause::unsupported(&at, other, &["linux", "windows"]));
        }
        None => {}
    }
    host_processes(at, spec, &containers, causes);
}

/// Checks that a pod sets no field that its operating system lacks.
fn foreign(
    os: &str,
    at: &str,
    spec: &Value,
    containers: &[(String, &Value)],
    causes: &mut Vec<Cause>,
) {
    let pod = (at.to_owned(), spec);
    for rule in RULES.foreign.iter().filter(|rule| rule.os == os) {
        let (bearers, within) = match rule.of {
            Bearer::Pod => (std::slice::from_ref(&pod), None),
            Bearer::PodContext => (std::slice::from_ref(&pod), Some("securityContext")),
            Bearer::ContainerContexts => (containers, Some("securityContext")),
        };
        for (at, of) in bearers {
            let (at, of) = match within {
                Some(field) => (format!("{at}.{field}"), &of[field]),
                None => (at.clone(), *of),
            };
            let is_set = |field: &&String| is_set(field, &of[field.as_str()]);
            for field in rule.fields.iter().filter(is_set) {
                causes.push(Cause::forbidden(&format!("{at}.{field}"), &rule.why));
            }
        }
    }
}

/// Whether a field counts as set.
fn is_set(field: &str, value: &Value) -> bool {
    match field {
        "hostPID" | "hostIPC" => value == true,
        "sysctls" => value.items().len() > 0,
        _ => !value.is_null(),
    }
}

/// Checks `HostProcess` containers (`validateWindowsHostProcessPod`).
fn host_processes(
    at: &str,
    spec: &Value,
    containers: &[(String, &Value)],
    causes: &mut Vec<Cause>,
) {
    let of = |of: &Value| of["securityContext"]["windowsOptions"]["hostProcess"].as_bool();
    let whole = of(spec);
    for (at, container) in containers {
        if let (Some(whole), Some(given)) = (whole, of(container))
            && whole != given
        {
            let field = format!("{at}.securityContext.windowsOptions.hostProcess");
            let why = format!(
                "pod hostProcess value must be identical if both are specified, was {whole}"
            );
            causes.push(Cause::invalid(&field, &json!(given), &why));
        }
    }
    let is_one = |(_, one): &&(String, &Value)| of(one).or(whole) == Some(true);
    let are = containers.iter().filter(is_one).count();
    if are > 0 && are < containers.len() {
        let why = "If pod contains any hostProcess containers then all containers must be HostProcess \
                   containers";
        causes.push(Cause::invalid(at, &json!(""), why));
    }
    if are > 0 && spec["hostNetwork"] != true {
        let why = "hostNetwork must be true if pod contains any hostProcess containers";
        let field = format!("{at}.hostNetwork");
        causes.push(Cause::invalid(&field, &json!(false), why));
    }
}

/// Returns the part of a pod's spec that cannot change, in a normal form.
fn fixed(was: &Value, spec: &Value) -> Value {
    let mut spec = spec.clone();
    let free = |of: &mut Value, names: &[String]| {
        for name in names {
            of.remove(name);
        }
    };
    free(&mut spec, &RULES.changes_of_pods);
    // Rules of placement may change while scheduling gates hold the pod
    if was["schedulingGates"].items().len() > 0 {
        spec.remove("nodeSelector");
        spec.get_mut("affinity")
            .map(|affinity| affinity.remove("nodeAffinity"));
    }
    for list in ["containers", "initContainers"] {
        let containers = spec.items_mut(list);
        containers.for_each(|container| free(container, &RULES.changes_of_containers));
    }
    plain(&mut spec);
    spec
}

/// Removes values that equal a missing one, and writes amounts in one form.
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
            // An `emptyDir` means something even without content
            fields.retain(|name, value| name == "emptyDir" || !is_empty(value));
        }
        Value::Array(items) => items.iter_mut().for_each(plain),
        _ => {}
    }
}

fn role_of(body: &Value, kinds: &[&str], old: Option<&Value>, causes: &mut Vec<Cause>) {
    let role = &body["roleRef"];
    let kind = role["kind"].text();
    if !kinds.contains(&kind) {
        causes.push(Cause::unsupported("roleRef.kind", kind, kinds));
    }
    if old.is_some_and(|old| old["roleRef"] != *role) {
        // As Go writes a structure without JSON names
        let shown = json!({"APIGroup": role["apiGroup"], "Kind": kind, "Name": role["name"]});
        causes.push(Cause::invalid("roleRef", &shown, "field is immutable"));
    }
}
