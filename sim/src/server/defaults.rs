//! What the server sets where a client says nothing: kubernetes 1.37.0,
//! `pkg/apis/*/v1/defaults.go`, as far as anybody here reads it.

use k8s_openapi::ByteString;
use serde_json::{Value, json};

use super::kinds::Kind;

pub(super) fn set(kind: &Kind, object: &mut Value) {
    match kind.plural {
        "pods" => {
            // Of pods alone, not of templates
            or(&mut object["spec"], "enableServiceLinks", || json!(true));
            pod(&mut object["spec"]);
            let class = quality(&object["spec"]);
            let status = &mut object["status"];
            or(status, "phase", || json!("Pending"));
            or(status, "qosClass", || json!(class));
        }
        // kubernetes 1.37.0, pkg/apis/rbac/v1/defaults.go
        "rolebindings" | "clusterrolebindings" => {
            let role = &mut object["roleRef"];
            if role["apiGroup"] == "" {
                role["apiGroup"] = Value::Null;
            }
            or(role, "apiGroup", || json!("rbac.authorization.k8s.io"));
        }
        "podtemplates" => pod(&mut object["template"]["spec"]),
        "deployments" => {
            let spec = &mut object["spec"];
            or(spec, "replicas", || json!(1));
            or(spec, "revisionHistoryLimit", || json!(10));
            or(spec, "progressDeadlineSeconds", || json!(600));
            or(&mut spec["strategy"], "type", || json!("RollingUpdate"));
            if spec["strategy"]["type"] == "RollingUpdate" {
                or(
                    &mut spec["strategy"]["rollingUpdate"],
                    "maxUnavailable",
                    || json!("25%"),
                );
                or(&mut spec["strategy"]["rollingUpdate"], "maxSurge", || {
                    json!("25%")
                });
            }
            pod(&mut spec["template"]["spec"]);
        }
        "replicasets" | "replicationcontrollers" => {
            or(&mut object["spec"], "replicas", || json!(1));
            pod(&mut object["spec"]["template"]["spec"]);
        }
        "daemonsets" => {
            let spec = &mut object["spec"];
            or(spec, "revisionHistoryLimit", || json!(10));
            or(&mut spec["updateStrategy"], "type", || {
                json!("RollingUpdate")
            });
            if spec["updateStrategy"]["type"] == "RollingUpdate" {
                let rolling = &mut spec["updateStrategy"]["rollingUpdate"];
                or(rolling, "maxUnavailable", || json!(1));
                or(rolling, "maxSurge", || json!(0));
            }
            pod(&mut spec["template"]["spec"]);
        }
        "statefulsets" => {
            let spec = &mut object["spec"];
            or(spec, "replicas", || json!(1));
            or(spec, "revisionHistoryLimit", || json!(10));
            or(spec, "podManagementPolicy", || json!("OrderedReady"));
            or(&mut spec["updateStrategy"], "type", || {
                json!("RollingUpdate")
            });
            pod(&mut spec["template"]["spec"]);
        }
        "jobs" => job(object),
        "services" => service(&mut object["spec"]),
        "namespaces" => {
            let name = object["metadata"]["name"].clone();
            object["metadata"]["labels"]["kubernetes.io/metadata.name"] = name;
            if !object["metadata"]["deletionTimestamp"].is_string() {
                or(&mut object["spec"], "finalizers", || json!(["kubernetes"]));
            }
            or(&mut object["status"], "phase", || json!("Active"));
        }
        "secrets" => {
            or(object, "type", || json!("Opaque"));
            encoded(object);
        }
        "priorityclasses" => or(object, "preemptionPolicy", || json!("PreemptLowerPriority")),
        "networkpolicies" => {
            let types = match object["spec"].get("egress") {
                Some(_) => json!(["Ingress", "Egress"]),
                None => json!(["Ingress"]),
            };
            or(&mut object["spec"], "policyTypes", || types);
        }
        _ => {}
    }
}

/// Sets a field that is not there; `within` is an object or nothing, as its shape was looked at.
/// What a Secret is given as text it has as bytes, in Base64 (`stringData`, which is never read).
fn encoded(secret: &mut Value) {
    let text = secret
        .as_object_mut()
        .and_then(|fields| fields.remove("stringData"));
    for (name, text) in text
        .as_ref()
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        let bytes = ByteString(text.as_str().unwrap_or_default().into());
        secret["data"][name] = json!(bytes);
    }
}

fn or(within: &mut Value, field: &str, value: impl FnOnce() -> Value) {
    if within.get(field).is_none_or(Value::is_null) {
        within[field] = value();
    }
}

fn items<'a>(value: &'a mut Value, field: &str) -> impl Iterator<Item = &'a mut Value> {
    value
        .get_mut(field)
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
}

pub(super) fn pod(spec: &mut Value) {
    or(spec, "dnsPolicy", || json!("ClusterFirst"));
    or(spec, "restartPolicy", || json!("Always"));
    or(spec, "schedulerName", || json!("default-scheduler"));
    or(spec, "securityContext", || json!({}));
    or(spec, "terminationGracePeriodSeconds", || json!(30));
    if spec["serviceAccountName"].is_string() {
        spec["serviceAccount"] = spec["serviceAccountName"].clone();
    }
    let host = spec["hostNetwork"] == true;
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        items(spec, list).for_each(|one| container(one, host));
    }
    for volume in items(spec, "volumes") {
        for kind in ["configMap", "secret", "projected", "downwardAPI"] {
            if volume[kind].is_object() {
                or(&mut volume[kind], "defaultMode", || json!(420));
            }
        }
        if volume["hostPath"].is_object() {
            or(&mut volume["hostPath"], "type", || json!(""));
        }
    }
}

fn container(container: &mut Value, host: bool) {
    let image = container["image"].as_str().unwrap_or_default();
    let last = image.rsplit('/').next().unwrap_or_default();
    let floats = !image.contains('@') && (!last.contains(':') || last.ends_with(":latest"));
    let policy = if floats { "Always" } else { "IfNotPresent" };
    or(container, "imagePullPolicy", || json!(policy));
    or(container, "terminationMessagePath", || {
        json!("/dev/termination-log")
    });
    or(container, "terminationMessagePolicy", || json!("File"));
    or(container, "resources", || json!({}));
    if let Some(limits) = container["resources"]["limits"].as_object().cloned() {
        for (name, limit) in limits {
            or(&mut container["resources"]["requests"], &name, || limit);
        }
    } else if let Some(resources) = container["resources"].as_object_mut() {
        resources.retain(|_, value| !value.is_null());
    }
    for port in items(container, "ports") {
        or(port, "protocol", || json!("TCP"));
        if host {
            let own = port["containerPort"].clone();
            or(port, "hostPort", || own);
        }
    }
    for variable in items(container, "env") {
        if let Some(field) = variable.pointer_mut("/valueFrom/fieldRef") {
            or(field, "apiVersion", || json!("v1"));
        }
    }
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let Some(probe) = container.get_mut(probe).filter(|probe| probe.is_object()) else {
            continue;
        };
        for (field, value) in [
            ("timeoutSeconds", 1),
            ("periodSeconds", 10),
            ("successThreshold", 1),
            ("failureThreshold", 3),
        ] {
            or(probe, field, || json!(value));
        }
        get(probe);
    }
    for hook in ["postStart", "preStop"] {
        if let Some(hook) = container.pointer_mut(&format!("/lifecycle/{hook}")) {
            get(hook);
        }
    }
}

fn get(handler: &mut Value) {
    if let Some(get) = handler.get_mut("httpGet") {
        or(get, "path", || json!("/"));
        or(get, "scheme", || json!("HTTP"));
    }
}

fn job(object: &mut Value) {
    let uid = object["metadata"]["uid"].clone();
    let name = object["metadata"]["name"].clone();
    let spec = &mut object["spec"];
    let endless = spec["completions"].is_null() && spec["parallelism"].is_number();
    or(spec, "parallelism", || json!(1));
    if !endless {
        or(spec, "completions", || json!(1));
    }
    or(spec, "backoffLimit", || json!(6));
    or(spec, "completionMode", || json!("NonIndexed"));
    or(spec, "suspend", || json!(false));
    or(spec, "podReplacementPolicy", || {
        json!("TerminatingOrFailed")
    });
    if spec["manualSelector"] != true && uid.is_string() {
        or(
            spec,
            "selector",
            || json!({"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}),
        );
        let labels = &mut spec["template"]["metadata"]["labels"];
        for prefix in ["batch.kubernetes.io/", ""] {
            labels[format!("{prefix}controller-uid")] = uid.clone();
            labels[format!("{prefix}job-name")] = name.clone();
        }
    }
    pod(&mut spec["template"]["spec"]);
}

fn service(spec: &mut Value) {
    or(spec, "type", || json!("ClusterIP"));
    or(spec, "sessionAffinity", || json!("None"));
    if spec["sessionAffinity"] == "ClientIP" {
        or(
            &mut spec["sessionAffinityConfig"]["clientIP"],
            "timeoutSeconds",
            || json!(10800),
        );
    }
    if spec["type"] == "ExternalName" {
        return;
    }
    or(spec, "internalTrafficPolicy", || json!("Cluster"));
    if spec["type"] != "ClusterIP" {
        or(spec, "externalTrafficPolicy", || json!("Cluster"));
    }
    if spec["type"] == "LoadBalancer" {
        or(spec, "allocateLoadBalancerNodePorts", || json!(true));
    }
    let headless = spec["clusterIP"] == "None";
    for port in items(spec, "ports") {
        or(port, "protocol", || json!("TCP"));
        let own = port["port"].clone();
        if !headless || port.get("targetPort").is_none() {
            or(port, "targetPort", || own);
        }
    }
}

/// `pkg/apis/core/v1/helper/qos/qos.go`.
fn quality(spec: &Value) -> &'static str {
    let containers = ["initContainers", "containers"].map(|list| spec[list].as_array());
    let containers: Vec<&Value> = containers.into_iter().flatten().flatten().collect();
    let of = |container: &Value, kind: &str, name: &str| container["resources"][kind][name].clone();
    let both = |container: &&&Value| {
        ["cpu", "memory"].iter().all(|name| {
            let limit = of(container, "limits", name);
            !limit.is_null() && of(container, "requests", name) == limit
        })
    };
    let any = |container: &&Value| {
        ["cpu", "memory"].iter().any(|name| {
            !of(container, "requests", name).is_null() || !of(container, "limits", name).is_null()
        })
    };
    if !containers.iter().any(any) {
        "BestEffort"
    } else if containers.iter().filter(both).count() == containers.len() {
        "Guaranteed"
    } else {
        "Burstable"
    }
}
