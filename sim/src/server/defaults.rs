//! What the server sets where a client says nothing: kubernetes 1.37.0,
//! `pkg/apis/*/v1/defaults.go`, as far as anybody here reads it.

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::PodSpec;
use serde::Deserialize;
use serde_json::{Value, json};

use super::kinds::Kind;
use crate::pods::resources::qos_class;

pub(super) fn set(kind: &Kind, object: &mut Value) {
    match kind.plural {
        "pods" => {
            // Of pods alone, not of templates
            let spec = &mut object["spec"];
            or(spec, json!({"enableServiceLinks": true}));
            pod(spec);
            let class = PodSpec::deserialize(&*spec).map_or("BestEffort", |spec| qos_class(&spec));
            let status = json!({"phase": "Pending", "qosClass": class});
            or(&mut object["status"], status);
        }
        "rolebindings" | "clusterrolebindings" => {
            let role = &mut object["roleRef"];
            if role["apiGroup"] == "" {
                role["apiGroup"] = Value::Null;
            }
            or(role, json!({"apiGroup": "rbac.authorization.k8s.io"}));
        }
        "deployments" => {
            let spec = &mut object["spec"];
            or(
                spec,
                json!({"replicas": 1, "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600,
                    "strategy": {"type": "RollingUpdate"}}),
            );
            if spec["strategy"]["type"] == "RollingUpdate" {
                let rolling = json!({"maxUnavailable": "25%", "maxSurge": "25%"});
                or(&mut spec["strategy"]["rollingUpdate"], rolling);
            }
            pod(&mut spec["template"]["spec"]);
        }
        "replicasets" | "replicationcontrollers" => {
            or(&mut object["spec"], json!({"replicas": 1}));
            pod(&mut object["spec"]["template"]["spec"]);
        }
        "daemonsets" => {
            let spec = &mut object["spec"];
            or(
                spec,
                json!({"revisionHistoryLimit": 10, "updateStrategy": {"type": "RollingUpdate"}}),
            );
            if spec["updateStrategy"]["type"] == "RollingUpdate" {
                let rolling = json!({"maxUnavailable": 1, "maxSurge": 0});
                or(&mut spec["updateStrategy"]["rollingUpdate"], rolling);
            }
            pod(&mut spec["template"]["spec"]);
        }
        "statefulsets" => {
            let spec = &mut object["spec"];
            or(
                spec,
                json!({"replicas": 1, "revisionHistoryLimit": 10, "podManagementPolicy": "OrderedReady",
                    "updateStrategy": {"type": "RollingUpdate"}}),
            );
            pod(&mut spec["template"]["spec"]);
        }
        "jobs" => job(object),
        "services" => service(&mut object["spec"]),
        "namespaces" => {
            let name = object["metadata"]["name"].clone();
            object["metadata"]["labels"]["kubernetes.io/metadata.name"] = name;
            if !object["metadata"]["deletionTimestamp"].is_string() {
                or(&mut object["spec"], json!({"finalizers": ["kubernetes"]}));
            }
            or(&mut object["status"], json!({"phase": "Active"}));
        }
        "secrets" => {
            or(object, json!({"type": "Opaque"}));
            encoded(object);
        }
        "priorityclasses" => or(object, json!({"preemptionPolicy": "PreemptLowerPriority"})),
        _ => {}
    }
}

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

/// Sets the fields that are not there, within fields, too; `within` is an object or nothing, as its shape was
/// looked at.
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

fn items<'a>(value: &'a mut Value, field: &str) -> impl Iterator<Item = &'a mut Value> {
    value
        .get_mut(field)
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
}

/// Sets what is missing of a field that is there.
fn or_within(within: &mut Value, field: &str, defaults: Value) {
    if let Some(field) = within.get_mut(field).filter(|field| field.is_object()) {
        or(field, defaults);
    }
}

fn pod(spec: &mut Value) {
    or(
        spec,
        json!({"dnsPolicy": "ClusterFirst", "restartPolicy": "Always", "schedulerName": "default-scheduler",
            "securityContext": {}, "terminationGracePeriodSeconds": 30}),
    );
    if spec["serviceAccountName"].is_string() {
        spec["serviceAccount"] = spec["serviceAccountName"].clone();
    }
    let host = spec["hostNetwork"] == true;
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        items(spec, list).for_each(|one| container(one, host));
    }
    for volume in items(spec, "volumes") {
        for kind in ["configMap", "secret", "projected", "downwardAPI"] {
            or_within(volume, kind, json!({"defaultMode": 420}));
        }
        or_within(volume, "hostPath", json!({"type": ""}));
        if volume.as_object().is_some_and(|volume| volume.len() == 1) {
            or(volume, json!({"emptyDir": {}}));
        }
    }
}

fn container(container: &mut Value, host: bool) {
    let image = container["image"].as_str().unwrap_or_default();
    let last = image.rsplit('/').next().unwrap_or_default();
    let floats = !image.contains('@') && (!last.contains(':') || last.ends_with(":latest"));
    let policy = if floats { "Always" } else { "IfNotPresent" };
    or(
        container,
        json!({"imagePullPolicy": policy, "terminationMessagePath": "/dev/termination-log",
            "terminationMessagePolicy": "File", "resources": {}}),
    );
    if let Some(limits) = container["resources"].get("limits").cloned() {
        or(&mut container["resources"]["requests"], limits);
    }
    for port in items(container, "ports") {
        or(port, json!({"protocol": "TCP"}));
        if host {
            let own = port["containerPort"].clone();
            or(port, json!({"hostPort": own}));
        }
    }
    for variable in items(container, "env") {
        if let Some(field) = variable.pointer_mut("/valueFrom/fieldRef") {
            or(field, json!({"apiVersion": "v1"}));
        }
    }
    let get = json!({"path": "/", "scheme": "HTTP"});
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let own = json!({"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3});
        or_within(container, probe, own);
        if let Some(probe) = container.get_mut(probe) {
            or_within(probe, "httpGet", get.clone());
        }
    }
    for hook in ["postStart", "preStop"] {
        if let Some(hook) = container.pointer_mut(&format!("/lifecycle/{hook}")) {
            or_within(hook, "httpGet", get.clone());
        }
    }
}

fn job(object: &mut Value) {
    let uid = object["metadata"]["uid"].clone();
    let name = object["metadata"]["name"].clone();
    let spec = &mut object["spec"];
    if spec["completions"].is_null() && !spec["parallelism"].is_number() {
        spec["completions"] = json!(1);
    }
    or(
        spec,
        json!({"parallelism": 1, "backoffLimit": 6, "completionMode": "NonIndexed", "suspend": false,
            "podReplacementPolicy": "TerminatingOrFailed"}),
    );
    if spec["manualSelector"] != true && uid.is_string() {
        let own = json!({"matchLabels": {"batch.kubernetes.io/controller-uid": uid}});
        or(spec, json!({"selector": own}));
        let labels = &mut spec["template"]["metadata"]["labels"];
        for prefix in ["batch.kubernetes.io/", ""] {
            labels[format!("{prefix}controller-uid")] = uid.clone();
            labels[format!("{prefix}job-name")] = name.clone();
        }
    }
    pod(&mut spec["template"]["spec"]);
}

fn service(spec: &mut Value) {
    or(
        spec,
        json!({"type": "ClusterIP", "sessionAffinity": "None"}),
    );
    if spec["sessionAffinity"] == "ClientIP" {
        let seconds = json!({"clientIP": {"timeoutSeconds": 10800}});
        or(&mut spec["sessionAffinityConfig"], seconds);
    }
    if spec["type"] == "ExternalName" {
        return;
    }
    or(spec, json!({"internalTrafficPolicy": "Cluster"}));
    if spec["type"] != "ClusterIP" {
        or(spec, json!({"externalTrafficPolicy": "Cluster"}));
    }
    if spec["type"] == "LoadBalancer" {
        or(spec, json!({"allocateLoadBalancerNodePorts": true}));
    }
    for port in items(spec, "ports") {
        let own = port["port"].clone();
        or(port, json!({"protocol": "TCP", "targetPort": own}));
    }
}
