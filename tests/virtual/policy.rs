//! What the policies of `tests/world/policy.rs` do, in front of a server that evaluates none.

use http::Request;
use kube::client::Body;
use serde_json::{Value, json};

use crate::scheduling::{NEVER_PREEMPTS, OS_SELECTS};

/// A client whose objects these policies change on their way; other faults are no policies.
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
