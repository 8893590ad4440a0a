//! The effects of the policies of `tests/real/policy.rs`, and of some that refuse pods, in front of a server
//! that evaluates none.

use http::{Request, Response, StatusCode};
use kube::client::Body;
use serde_json::{Value, json};

use crate::scheduling::{NEVER_PREEMPTS, OS_SELECTS};

/// A policy that refuses pods: its name, its message, and whether it refuses a pod.
type Refuses = (&'static str, &'static str, fn(&Value) -> bool);
const REFUSES: [Refuses; 3] = [
    (
        "policy-no-host-process",
        "the house runs no HostProcess containers",
        |pod| pod["spec"]["securityContext"]["windowsOptions"]["hostProcess"] == true,
    ),
    // As where Windows pods need a selector to get an address (Amazon EKS, "Deploy Windows nodes")
    (
        "policy-pods-select",
        "pods have to select their nodes",
        |pod| pod["spec"]["nodeSelector"].is_null(),
    ),
    (
        "policy-no-low-ports",
        "the house opens no low ports to all",
        |pod| {
            let name = "net.ipv4.ip_unprivileged_port_start";
            pod["spec"]["securityContext"]["sysctls"][0]["name"] == name
        },
    ),
];

/// Whether a fault is a policy that refuses pods.
pub(crate) fn refuses(fault: &str) -> bool {
    REFUSES.iter().any(|(name, _, _)| *name == fault)
}

/// A client whose pods a policy refuses; for other faults, the client itself.
pub(crate) fn refusing(client: kube::Client, fault: &str) -> kube::Client {
    let Some((_, words, concerns)) = REFUSES.iter().find(|(name, _, _)| *name == fault) else {
        return client;
    };
    let service = tower::service_fn(move |request: Request<Body>| {
        let client = client.clone();
        async move {
            let (parts, body) = request.into_parts();
            let (path, method) = (parts.uri.path(), parts.method.as_str());
            let is_pod = path.ends_with("/pods") || path.contains("/pods/") && method == "PATCH";
            if !is_pod || method == "GET" {
                return client.send(Request::from_parts(parts, body)).await;
            }
            let sent = body.collect_bytes().await?;
            let object: Value = serde_json::from_slice(&sent).expect("an object");
            if object["kind"] != "Pod" || !concerns(&object) {
                let body = Body::from(sent.to_vec());
                return client.send(Request::from_parts(parts, body)).await;
            }
            let name = &object["metadata"]["name"];
            let said = format!(
                "pods {name} is forbidden: ValidatingAdmissionPolicy 'house' with binding 'house' denied request: {words}"
            );
            let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": said,
                "reason": "Invalid", "code": 422, "details": {"kind": "pods", "causes": [{"message": said}]}});
            let body = Body::from(status.to_string().into_bytes());
            let answer = Response::builder()
                .status(StatusCode::UNPROCESSABLE_ENTITY)
                .header("Content-Type", "application/json");
            Ok(answer.body(body).expect("an answer"))
        }
    });
    kube::Client::new(service, "default")
}

/// A client whose objects these policies change on their way; other faults change nothing.
pub(crate) fn mutating(client: kube::Client, policies: &[&str]) -> kube::Client {
    let [selects, never] = [OS_SELECTS, NEVER_PREEMPTS].map(|name| policies.contains(&name));
    let service = tower::service_fn(move |request: Request<Body>| {
        let client = client.clone();
        async move {
            let (parts, body) = request.into_parts();
            let path = parts.uri.path();
            let pod = selects && path.contains("/pods/") && !path.contains("/exec");
            let class = never && path.contains("/priorityclasses/");
            if parts.method != "PATCH" || !(pod || class) {
                return client.send(Request::from_parts(parts, body)).await;
            }
            let sent = body.collect_bytes().await?;
            let mut object: Value = serde_json::from_slice(&sent).expect("an object");
            if pod {
                select_by_os(&mut object["spec"]);
            } else {
                object["preemptionPolicy"] = json!("Never");
            }
            let body = Body::from(object.to_string().into_bytes());
            client.send(Request::from_parts(parts, body)).await
        }
    });
    kube::Client::new(service, "default")
}

fn select_by_os(spec: &mut Value) {
    let os = spec["os"]["name"].clone();
    if os.is_string() && spec["nodeSelector"].is_null() {
        spec["nodeSelector"] = json!({"kubernetes.io/os": os});
    }
}
