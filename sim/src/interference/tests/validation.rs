//! The scripted server's validation: the part of Kubernetes' that the tests need, with its causes.

use serde_json::{Value, json};

/// A real server's error about a pod or a workload's template; `None` if it is valid.
pub(super) fn refusal(resource: &str, object: &Value) -> Option<Value> {
    let (template, prefix) = match resource {
        "cronjobs" => (
            "/spec/jobTemplate/spec/template",
            "spec.jobTemplate.spec.template.",
        ),
        "podtemplates" => ("/template", "template."),
        "pods" | "pods/ephemeralcontainers" => ("", ""),
        "pods/resize" => {
            let cause = json!({
                "reason": "FieldValueForbidden",
                "message": "Forbidden: windows pods cannot be resized",
                "field": "<nil>",
            });
            return Some(status(&[cause]));
        }
        _ => ("/spec/template", "spec.template."),
    };
    let causes = causes(prefix, object.pointer(template)?);
    (!causes.is_empty()).then(|| status(&causes))
}

fn causes(prefix: &str, pod: &Value) -> Vec<Value> {
    let mut causes = Vec::new();
    let mut refuse = |field: &str, message: &str| {
        causes.push(json!({ "field": format!("{prefix}{field}"), "message": message }));
    };
    let spec = &pod["spec"];
    let os = spec["os"]["name"].as_str();
    match os {
        _ if spec["os"].is_null() => {}
        None | Some("") => refuse("spec.os.name", "Required value"),
        Some("windows" | "linux") => {}
        Some(_) => refuse("spec.os", "Unsupported value"),
    }
    // An ephemeral container's patch does not repeat the pod's operating system
    let windows = os == Some("windows") || spec["containers"].is_null();
    if windows && spec["hostPID"] == true {
        refuse("spec.hostPID", "Forbidden: cannot be set for a windows pod");
    }
    let mut host_process = false;
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        for (index, container) in spec[list].as_array().into_iter().flatten().enumerate() {
            let security = &container["securityContext"];
            if windows && !security["privileged"].is_null() {
                let field = format!("spec.{list}[{index}].securityContext.privileged");
                refuse(&field, "Forbidden: cannot be set for a windows pod");
            }
            host_process |= security["windowsOptions"]["hostProcess"] == true;
        }
    }
    if host_process && spec["hostNetwork"] != true {
        refuse("spec.hostNetwork", "Invalid value: must be true");
    }
    if host_process
        && spec["containers"]
            .as_array()
            .is_some_and(|all| all.len() > 1)
    {
        refuse("spec", "Invalid value: all must be hostProcess containers");
    }
    causes
}

fn status(causes: &[Value]) -> Value {
    json!({
        "kind": "Status",
        "status": "Failure",
        "code": 422,
        "reason": "Invalid",
        "message": "it is invalid",
        "details": { "causes": causes },
    })
}
