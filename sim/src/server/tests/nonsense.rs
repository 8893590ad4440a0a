//! Clients that send nonsense get a `Status`, and the server goes on.

use serde_json::json;

use super::{APPLY, MERGE, STRATEGIC, Scene};
use crate::base::fields::Fields;
use crate::server::kinds::KINDS;

const PODS: &str = "/api/v1/namespaces/default/pods";

#[tokio::test]
async fn bodies_of_any_shape_are_refused_or_stored_and_do_no_harm() {
    let scene = Scene::new();
    let shapes = [
        json!(null),
        json!(1),
        json!("x"),
        json!([]),
        json!({"metadata": "x"}),
        json!({"metadata": {"name": 1}}),
        json!({"metadata": {"name": "a", "labels": []}}),
        json!({"metadata": {"name": "a"}, "spec": []}),
        json!({"metadata": {"name": "a"}, "spec": {"containers": {}}}),
        json!({"metadata": {"name": "A b"}}),
        json!({"kind": "Other", "metadata": {"name": "a"}}),
        json!({"metadata": {"name": "ok"}}),
        json!({"metadata": {"name": "ok2"}, "spec": {}, "status": {}}),
        json!({"metadata": {"name": "ok3", "ownerReferences": [{}], "finalizers": []}}),
        json!({"metadata": {"name": "ok4"}, "spec": {"template": null, "selector": null}}),
        json!({"metadata": {"name": "ok5"}, "spec": {"replicas": -1, "template": {}, "selector": {}}}),
        json!({"metadata": {"name": "ok6", "generateName": "x"}, "spec": {"ports": [{}], "type": "NodePort"}}),
    ];
    let mut refused = 0;
    for kind in KINDS {
        let path = kind.path("default");
        for shape in &shapes {
            let (code, answer) = scene
                .send("POST", &path, "application/json", shape.to_string())
                .await;
            assert!(
                matches!(code, 201 | 400 | 403 | 409 | 422),
                "{path} {shape}: {code} {answer}"
            );
            refused += usize::from(code != 201);
            for (form, name) in [
                (MERGE, "ok"),
                (STRATEGIC, "ok2"),
                (APPLY, "ok7"),
                ("application/json-patch+json", "ok"),
            ] {
                let path = format!("{path}/{name}");
                let (code, answer) = scene.send("PATCH", &path, form, shape.to_string()).await;
                // As a real server says of an apply
                let message = answer["message"].text();
                let undeclared = code == 500 && message.ends_with("field not declared in schema");
                assert!(
                    undeclared || matches!(code, 200 | 201 | 400 | 403 | 404 | 409 | 422),
                    "{path} {form} {shape}: {code} {answer}"
                );
            }
        }
    }
    assert!(refused > KINDS.len() * 9, "{refused}");
    let (code, _) = scene.get("/version").await;
    assert_eq!(code, 200);
}

#[tokio::test]
async fn what_is_no_json_or_too_much_of_it_is_refused() {
    let scene = Scene::new();
    let large = format!("{{\"x\": \"{}\"}}", "y".repeat(10 * 1024 * 1024));
    for (method, path, form, body, code) in [
        ("POST", "", "application/json", "{", 400),
        ("POST", "", "application/json", "\u{0}", 400),
        (
            "POST",
            "",
            "application/vnd.kubernetes.protobuf",
            "k8s",
            415,
        ),
        ("POST", "", "application/json", &large, 413),
        ("PATCH", "/x", "text/plain", "x", 415),
    ] {
        let (is, answer) = scene
            .send(method, &format!("{PODS}{path}"), form, body)
            .await;
        assert_eq!((is, answer["kind"].text()), (code, "Status"), "{form}");
    }
}

#[tokio::test]
async fn paths_and_queries_of_any_kind_are_answered() {
    let scene = Scene::new();
    for path in [
        "/",
        "//",
        "/api",
        "/api/v2",
        "/apis//",
        "/api/v1/namespaces//pods",
        "/api/v1/pods?labelSelector=((",
        "/api/v1/pods?fieldSelector=%00%ff",
        "/api/v1/pods?watch=1&timeoutSeconds=-1&resourceVersion=-1",
        "/api/v1/namespaces/default/pods/none/exec?command=x",
        "/api/v1/namespaces/default/pods/none/log",
        "/apis/apps/v1/namespaces/default/deployments/none/scale",
        "/openapi/v3/apis/x/y",
        "/apis/x",
    ] {
        let (code, answer) = scene.get(path).await;
        assert!(matches!(code, 200 | 400 | 404 | 501), "{path}: {code}");
        assert!(
            code == 200 || answer["kind"] == "Status",
            "{path}: {answer}"
        );
    }
    let (code, list) = scene.get("/api/v1/namespaces").await;
    assert_eq!((code, list["items"].items().len()), (200, 4));
}
