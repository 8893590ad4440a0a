//! Who may do what.

use http::{Method, Request};
use http_body_util::BodyExt;
use kube::client::Body;
use serde_json::{Value, json};

use super::Scene;

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

impl Scene {
    /// Asks with a token.
    async fn by(&self, token: &str, method: Method, path: &str, body: &Value) -> (u16, Value) {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", "application/json")
            .header("authorization", format!("Bearer {token}"));
        let body = match body {
            Value::Null => Vec::new(),
            body => body.to_string().into_bytes(),
        };
        let request = request.body(Body::from(body)).expect("a request");
        let response = self.client.send(request).await.expect("an answer");
        let code = response.status().as_u16();
        let body = response.into_body().collect().await.expect("a whole body");
        let body = serde_json::from_slice(&body.to_bytes()).unwrap_or(Value::Null);
        (code, body)
    }

    async fn code_by(&self, token: &str, path: &str) -> u16 {
        self.by(token, Method::GET, path, &Value::Null).await.0
    }

    /// What an access review of its own says to a token.
    async fn review(&self, token: &str, attributes: &Value) -> Value {
        let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
        let (code, told) = self
            .by(token, Method::POST, path, &json!({"spec": attributes}))
            .await;
        assert_eq!(code, 201, "{told}");
        told["status"]["allowed"].clone()
    }

    /// A service account's token.
    async fn account(&self) -> String {
        let accounts = "/api/v1/namespaces/default/serviceaccounts";
        self.create(accounts, json!({"metadata": {"name": "us"}}))
            .await;
        let path = format!("{accounts}/us/token");
        let told = self.create(&path, json!({"spec": {}})).await;
        told["status"]["token"]
            .as_str()
            .expect("a token")
            .to_owned()
    }

    async fn role(&self, rules: &Value) {
        let role = json!({"metadata": {"name": "ours"}, "rules": rules});
        self.create(&format!("{RBAC}/clusterroles"), role).await;
    }

    async fn bound(&self, path: &str) {
        let subject = json!({"kind": "ServiceAccount", "name": "us", "namespace": "default"});
        let binding = json!({"metadata": {"name": "ours"}, "subjects": [subject],
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "ours"}});
        self.create(&format!("{RBAC}{path}"), binding).await;
    }
}

#[tokio::test]
async fn nobody_does_what_no_role_grants() {
    let scene = Scene::new();
    let token = scene.account().await;
    for (path, message) in [
        (
            "/api/v1/namespaces/default/pods/a/exec?command=ls",
            "pods \"a\" is forbidden: User \"system:serviceaccount:default:us\" cannot get resource \
             \"pods/exec\" in API group \"\" in the namespace \"default\"",
        ),
        (
            "/apis/apps/v1/deployments",
            "deployments.apps is forbidden: User \"system:serviceaccount:default:us\" cannot list \
             resource \"deployments\" in API group \"apps\" at the cluster scope",
        ),
        (
            "/metrics",
            "forbidden: User \"system:serviceaccount:default:us\" cannot get path \"/metrics\"",
        ),
    ] {
        let (code, told) = scene.by(&token, Method::GET, path, &Value::Null).await;
        assert_eq!(
            (code, told["reason"].as_str()),
            (403, Some("Forbidden")),
            "{path}"
        );
        assert_eq!(told["message"], message);
    }
    // What everybody may
    for path in ["/version", "/api", "/apis/apps/v1", "/readyz"] {
        assert_eq!(scene.code_by(&token, path).await, 200, "{path}");
    }
    // Nothing below but what is named
    for path in ["/readyz/ping", "/livez/etcd", "/healthz/ping", "/version/x"] {
        assert_eq!(scene.code_by(&token, path).await, 403, "{path}");
    }
    for (path, allowed) in [
        ("/version/", true),
        ("/openapi/v3", true),
        ("/apis/", true),
        ("/apiserver", false),
        ("/openapi.json", false),
    ] {
        let asked = json!({"nonResourceAttributes": {"verb": "get", "path": path}});
        assert_eq!(scene.review(&token, &asked).await, allowed, "{path}");
    }
    assert_eq!(scene.code_by("nobody's", "/version").await, 401);
    let accounts = "/api/v1/namespaces/default/serviceaccounts/us";
    scene
        .send(Method::DELETE, accounts, "application/json", "")
        .await;
    assert_eq!(scene.code_by(&token, "/version").await, 401);
}

#[tokio::test]
async fn tokens_are_of_no_seed_and_tell_nothing_of_each_other() {
    let (one, other) = (Scene::new(), Scene::new());
    let administrator = |scene: &Scene| {
        let state = scene.server.shared.state();
        state.tokens.administrator().to_owned()
    };
    let token = administrator(&one);
    assert!(token.len() >= 32, "{token}");
    assert_eq!(one.code_by(&token, "/api/v1/nodes").await, 200);
    assert_eq!(other.code_by(&token, "/api/v1/nodes").await, 401);
    let account = one.account().await;
    let accounts = "/api/v1/namespaces/default/serviceaccounts/us";
    let (_, us) = one.get(accounts).await;
    let (_, theirs) = {
        other.account().await;
        other.get(accounts).await
    };
    let uid = us["metadata"]["uid"].as_str().expect("a UID");
    assert_eq!(theirs["metadata"]["uid"], uid, "they are of one seed");
    assert_eq!(one.code_by(&account, "/version").await, 200);
    assert_eq!(other.code_by(&account, "/version").await, 401);
    let whole = format!("serviceaccount.{uid}");
    for guess in [uid, &whole, "everybody-may-do-everything", ""] {
        assert_eq!(one.code_by(guess, "/version").await, 401, "{guess}");
    }
    // Nor does any object hold one
    let objects = format!("{:?}", one.server.objects());
    for token in [&token, &account] {
        assert!(!objects.contains(token.as_str()));
    }
    assert!(!account.contains(uid));
}

#[tokio::test]
async fn a_role_grants_what_its_rules_say_and_no_more() {
    let scene = Scene::new();
    let token = scene.account().await;
    scene
        .role(&json!([
            {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]},
            {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["one"], "verbs": ["get"]},
            {"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["*"], "verbs": ["get"]},
            {"apiGroups": [""], "resources": ["pods/exec"], "verbs": ["get"]},
            {"nonResourceURLs": ["/metrics"], "verbs": ["get"]},
        ]))
        .await;
    scene.bound("/clusterrolebindings").await;
    for (path, code) in [
        ("/api/v1/pods", 200),
        ("/api/v1/namespaces/default/pods", 200),
        ("/api/v1/pods?watch=1&timeoutSeconds=0", 403),
        ("/api/v1/namespaces/default/pods/a", 403),
        ("/apis/apps/v1/deployments", 403),
        // It is not there
        ("/api/v1/namespaces/default/configmaps/one", 404),
        ("/api/v1/namespaces/default/configmaps/two", 403),
        ("/api/v1/namespaces/default/configmaps", 403),
        // No name stands for all
        ("/api/v1/namespaces/default/secrets/one", 403),
        ("/metrics", 200),
    ] {
        assert_eq!(scene.code_by(&token, path).await, code, "{path}");
    }
    // An upgrade needs another verb
    let exec = "/api/v1/namespaces/default/pods/a/exec?command=ls";
    let (_, told) = scene.by(&token, Method::GET, exec, &Value::Null).await;
    let message = told["message"].as_str().unwrap_or_default();
    assert!(
        message.contains("cannot create resource \"pods/exec\""),
        "{told}"
    );
    let of = |verb: &str, resource: &str, name: &str| json!({"resourceAttributes": {"verb": verb, "resource": resource, "name": name}});
    for (asked, allowed) in [
        (of("list", "pods", ""), true),
        (of("watch", "pods", ""), false),
        (of("get", "configmaps", "one"), true),
        (of("get", "configmaps", ""), false),
        (
            json!({"nonResourceAttributes": {"verb": "get", "path": "/metrics"}}),
            true,
        ),
        (
            json!({"nonResourceAttributes": {"verb": "put", "path": "/metrics"}}),
            false,
        ),
    ] {
        assert_eq!(scene.review(&token, &asked).await, allowed, "{asked}");
    }
}

#[tokio::test]
async fn a_binding_of_a_namespace_holds_there_alone() {
    let scene = Scene::new();
    let token = scene.account().await;
    let rule = json!({"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]});
    scene.role(&json!([rule])).await;
    scene.bound("/namespaces/kube-public/rolebindings").await;
    for (path, code) in [
        ("/api/v1/namespaces/kube-public/pods", 200),
        ("/api/v1/namespaces/default/pods", 403),
        ("/api/v1/pods", 403),
        ("/api/v1/nodes", 403),
    ] {
        assert_eq!(scene.code_by(&token, path).await, code, "{path}");
    }
    let path = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews";
    let asked = json!({"spec": {"namespace": "kube-public"}});
    let (_, told) = scene.by(&token, Method::POST, path, &asked).await;
    assert_eq!(told["status"]["resourceRules"], json!([rule]));
}
