//! What no server of Kubernetes takes of pods and templates of pods, as far as it is of Windows: kubernetes 1.37.0,
//! `pkg/apis/core/validation/validation.go`. Dry runs that were recorded do not come so far.

use serde_json::Value;

use super::kinds::Kind;
use super::refusal::{Cause, Refusal};

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
const NOT_OF_WINDOWS_PODS: [&str; 5] = [
    "hostUsers",
    "hostPID",
    "hostIPC",
    "shareProcessNamespace",
    "resources",
];
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

/// Where the pod of a kind of object is, as a JSON pointer and as a server writes it.
fn pod_of(kind: &Kind) -> Option<(&'static str, &'static str)> {
    Some(match kind.plural {
        "pods" => ("/spec", "spec"),
        "podtemplates" => ("/template/spec", "template.spec"),
        "cronjobs" => (
            "/spec/jobTemplate/spec/template/spec",
            "spec.jobTemplate.spec.template.spec",
        ),
        "daemonsets"
        | "deployments"
        | "jobs"
        | "replicasets"
        | "replicationcontrollers"
        | "statefulsets" => ("/spec/template/spec", "spec.template.spec"),
        _ => return None,
    })
}

/// Refuses what is invalid.
pub(super) fn check(kind: &Kind, body: &Value) -> Result<(), Refusal> {
    let mut causes = Vec::new();
    if let Some((place, at)) = pod_of(kind)
        && let Some(spec) = body.pointer(place)
    {
        pod(at, spec, &mut causes);
    }
    let name = body["metadata"]["name"].as_str().unwrap_or_default();
    match causes.is_empty() {
        true => Ok(()),
        false => Err(Refusal::invalid(kind, name, causes)),
    }
}

fn pod(at: &str, spec: &Value, causes: &mut Vec<Cause>) {
    let containers = containers(at, spec);
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
        Some(other) if !other.is_empty() => {
            let at = format!("{at}.os");
            causes.push(Cause::unsupported(&at, other, &["linux", "windows"]));
        }
        _ => {}
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
}

/// Whether a field says anything.
fn is_set(field: &str, value: &Value) -> bool {
    match field {
        "hostPID" | "hostIPC" => value == true,
        "sysctls" => value.as_array().is_some_and(|all| !all.is_empty()),
        _ => !value.is_null(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_says_nothing_is_not_refused() {
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
            let told = check(Kind::named("pods"), &json!({"spec": spec}));
            let told = told.map_err(|refusal| refusal.status()["details"]["causes"].clone());
            let field = |told: &Value| told[0]["field"].as_str().map(str::to_owned);
            assert_eq!(told.err().as_ref().and_then(field).as_deref(), refused);
            // Nobody knows which it is for
            spec["os"] = Value::Null;
            assert!(check(Kind::named("pods"), &json!({"spec": spec})).is_ok());
        }
    }
}
