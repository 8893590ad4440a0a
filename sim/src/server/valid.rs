//! What no server of Kubernetes takes: kubernetes 1.37.0, `pkg/apis/*/validation/`, as far as clients get
//! it wrong by hand. Not all that is invalid is refused here.

use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::{Value, json};

use super::fields::Fields;
use super::kinds::Kind;
use super::refusal::{Cause, Refusal};
use crate::placing;
use crate::pods::resources::amount;

/// The lists of `valid.yaml`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Lists {
    not_of_windows: Vec<String>,
    not_of_windows_pods: Vec<String>,
    not_of_windows_containers: Vec<String>,
    changes_of_containers: Vec<String>,
    changes_of_pods: Vec<String>,
}

static LISTS: LazyLock<Lists> = LazyLock::new(|| {
    serde_saphyr::from_str(include_str!("valid.yaml")).expect("valid.yaml is whole")
});

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
        "cronjobs" => {
            let job_spec = &spec["jobTemplate"]["spec"];
            job("spec.jobTemplate.spec", job_spec, &mut causes);
        }
        "podtemplates" => pod("template.spec", &body["template"]["spec"], &mut causes),
        "replicationcontrollers" => {
            pod("spec.template.spec", &spec["template"]["spec"], &mut causes);
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
    match causes.is_empty() {
        true => Ok(()),
        false => Err(Refusal::invalid(
            kind,
            body["metadata"]["name"].text(),
            &causes,
        )),
    }
}

/// The spec of a Job, or of the Jobs that a `CronJob` creates.
fn job(at: &str, spec: &Value, causes: &mut Vec<Cause>) {
    let template = &spec["template"]["spec"];
    pod(&format!("{at}.template.spec"), template, causes);
    let field = format!("{at}.template.spec.restartPolicy");
    causes.extend(match template["restartPolicy"].text() {
        "OnFailure" | "Never" => None,
        // A Job does not take the default of pods
        "Always" | "" => {
            let why = "valid values: \"OnFailure\", \"Never\"";
            Some(Cause::required(&field, why))
        }
        other => Some(Cause::unsupported(&field, other, &["OnFailure", "Never"])),
    });
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
    let mut invalid = |value: &Value, why: &str| causes.push(Cause::invalid(at, value, why));
    for (key, value) in labels.fields() {
        let name = key.rsplit_once('/').map_or(key.as_str(), |(_, name)| name);
        if name.len() > LONGEST_LABEL {
            invalid(&json!(key), &format!("name part {long}"));
        }
        if !word(name) {
            let why = "name part must consist of alphanumeric characters, '-', '_' or '.', and must \
                       start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  \
                       or '123-abc', regex used for validation is \
                       '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
            invalid(&json!(key), why);
        }
        let text = value.text();
        if text.len() > LONGEST_LABEL {
            invalid(value, &long);
        }
        if !text.is_empty() && !word(text) {
            let why = "a valid label must be an empty string or consist of alphanumeric characters, \
                       '-', '_' or '.', and must start and end with an alphanumeric character (e.g. \
                       'MyValue',  or 'my_value',  or '12345', regex used for validation is \
                       '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
            invalid(value, why);
        }
    }
}

/// The selector of a workload, and the labels of its pods.
fn selecting(kind: &Kind, spec: &Value, was: Option<&Value>, causes: &mut Vec<Cause>) {
    let (own, at) = (&spec["selector"], "spec.selector");
    let given = &spec["template"]["metadata"]["labels"];
    let (equal, expressions) = (&own["matchLabels"], &own["matchExpressions"]);
    let is_empty = equal.fields().next().is_none() && expressions.items().len() == 0;
    if !own.is_object() {
        if kind.plural != "daemonsets" {
            causes.push(Cause::required(at, ""));
        }
    } else if is_empty {
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
    let lists = ["initContainers", "containers", "ephemeralContainers"].into_iter();
    lists
        .flat_map(|list| {
            let items = spec[list].items().enumerate();
            items.map(move |(index, item)| (format!("{at}.{list}[{index}]"), item))
        })
        .collect()
}

/// A pod's spec, or that of a template.
fn pod(at: &str, spec: &Value, causes: &mut Vec<Cause>) {
    if spec["containers"].items().len() == 0 {
        causes.push(Cause::required(&format!("{at}.containers"), ""));
    }
    let containers = containers(at, spec);
    for (at, container) in &containers {
        let lacking = ["name", "image"]
            .into_iter()
            .filter(|field| container[field].text().is_empty());
        causes.extend(lacking.map(|field| Cause::required(&format!("{at}.{field}"), "")));
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
    let mut refuse = |at: &str, of: &Value, fields: &[String]| {
        for field in fields
            .iter()
            .filter(|field| is_set(field, &of[field.as_str()]))
        {
            let why = "cannot be set for a windows pod";
            causes.push(Cause::forbidden(&format!("{at}.{field}"), why));
        }
    };
    for (number, (at, of)) in contexts(pod, spec, containers).iter().enumerate() {
        if number > 0 {
            refuse(at, of, &LISTS.not_of_windows_containers);
            continue;
        }
        refuse(at, of, &LISTS.not_of_windows);
        refuse(pod, spec, &LISTS.not_of_windows_pods);
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
        "sysctls" => value.items().len() > 0,
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
    let are = containers.iter();
    let are = are
        .filter(|(_, one)| of(one).or(whole) == Some(true))
        .count();
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

/// What of a pod's spec stays as it was made: how it is written matters not.
fn fixed(was: &Value, spec: &Value) -> Value {
    let mut spec = spec.clone();
    LISTS
        .changes_of_pods
        .iter()
        .for_each(|name| drop(spec.remove(name)));
    // Where it goes may be said until it goes
    if was["schedulingGates"].items().len() > 0 {
        spec.remove("nodeSelector");
        spec.get_mut("affinity")
            .map(|affinity| affinity.remove("nodeAffinity"));
    }
    for list in ["containers", "initContainers"] {
        for container in spec.items_mut(list) {
            LISTS
                .changes_of_containers
                .iter()
                .for_each(|name| drop(container.remove(name)));
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
    let kind = role["kind"].text();
    if !kinds.contains(&kind) {
        causes.push(Cause::unsupported("roleRef.kind", kind, kinds));
    }
    if old.is_some_and(|old| old["roleRef"] != *role) {
        // As Go writes a structure without names of its own
        let shown = json!({"APIGroup": role["apiGroup"], "Kind": kind, "Name": role["name"]});
        causes.push(Cause::invalid("roleRef", &shown, "field is immutable"));
    }
}
