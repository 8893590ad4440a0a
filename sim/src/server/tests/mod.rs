//! The server as its clients see it, through streams in memory.

mod access;
mod cases;
mod clients;
mod controllers;
mod inventory;
mod nonsense;
mod watches;

use http::Request;
use http_body_util::BodyExt;
use jiff::Timestamp;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

use super::{Server, ServerOptions};
use crate::base::fields::Fields;
use crate::topology::{Effect, IpFamilies};
use crate::wire::loopback::Loopback;

const MERGE: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

/// A server and a client of it.
struct Scene {
    server: Server,
    client: Client,
}

impl Scene {
    fn new() -> Self {
        Self::with_families(IpFamilies::default())
    }

    fn with_families(ip_families: IpFamilies) -> Self {
        Self::start(ServerOptions {
            ip_families,
            ..ServerOptions::default()
        })
    }

    /// A server whose webhooks have this effect.
    fn with_effect(effect: Effect) -> Self {
        let mut options = ServerOptions::default();
        options.api.effects.push(effect);
        Self::start(options)
    }

    fn start(options: ServerOptions) -> Self {
        let options = ServerOptions {
            loopback: Loopback::in_memory(Timestamp::UNIX_EPOCH),
            ..options
        };
        let server = Server::start(&options).expect("it starts");
        let client = server.client();
        Self { server, client }
    }

    /// Sends a request; returns status and body.
    async fn send(
        &self,
        method: &str,
        path: &str,
        form: &str,
        body: impl Into<Vec<u8>>,
    ) -> (u16, Value) {
        self.ask(method, path, [("content-type", form)], body).await
    }

    async fn ask<const N: usize>(
        &self,
        method: &str,
        path: &str,
        headers: [(&str, &str); N],
        body: impl Into<Vec<u8>>,
    ) -> (u16, Value) {
        let request = Request::builder().method(method).uri(path);
        let request = headers.iter().fold(request, |request, (name, value)| {
            request.header(*name, *value)
        });
        let request = request.body(Body::from(body.into())).expect("a request");
        let response = self.client.send(request).await.expect("an answer");
        let code = response.status().as_u16();
        let body = response.into_body().collect().await.expect("a whole body");
        (
            code,
            serde_json::from_slice(&body.to_bytes()).unwrap_or(Value::Null),
        )
    }

    async fn get(&self, path: &str) -> (u16, Value) {
        self.send("GET", path, "", "").await
    }

    async fn create(&self, path: &str, object: Value) -> Value {
        let (code, made) = self
            .send("POST", path, "application/json", object.to_string())
            .await;
        assert_eq!(code, 201, "{path}: {made}");
        made
    }

    async fn patch(&self, path: &str, form: &str, with: Value) -> Value {
        let (code, changed) = self.send("PATCH", path, form, with.to_string()).await;
        assert!(matches!(code, 200 | 201), "{path}: {changed}");
        changed
    }

    async fn delete(&self, path: &str, options: Value) -> (u16, Value) {
        self.send("DELETE", path, "application/json", options.to_string())
            .await
    }

    /// Adds a node that is ready, with room and labels.
    async fn node(&self, name: &str, labels: Value) {
        let mut labels = labels;
        labels["kubernetes.io/hostname"] = json!(name);
        let node = json!({"metadata": {"name": name, "labels": labels}});
        self.create("/api/v1/nodes", node).await;
        self.node_status(name).await;
    }

    /// Reports that a node is ready and has room.
    async fn node_status(&self, name: &str) {
        let status = json!({"status": {
            "conditions": [{"type": "Ready", "status": "True"}],
            "allocatable": {"cpu": "2", "memory": "4Gi", "pods": "110"},
        }});
        self.patch(&format!("/api/v1/nodes/{name}/status"), STRATEGIC, status)
            .await;
    }

    /// The pods of a namespace, by name.
    async fn pods(&self, namespace: &str) -> Vec<Value> {
        let path = format!("/api/v1/namespaces/{namespace}/pods");
        let (code, list) = self.get(&path).await;
        assert_eq!(code, 200, "{path}: {list}");
        list["items"].items().cloned().collect()
    }

    /// Reports that a pod runs and is ready.
    async fn run(&self, pod: &Value) {
        let status = json!({"status": {"phase": "Running", "podIP": "10.0.0.1",
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}});
        self.patch(&format!("{}/status", path_of(pod)), STRATEGIC, status)
            .await;
    }
}

fn path_of(pod: &Value) -> String {
    let (namespace, name) = (
        pod["metadata"]["namespace"].text(),
        pod["metadata"]["name"].text(),
    );
    format!("/api/v1/namespaces/{namespace}/pods/{name}")
}

fn pod(name: &str, spec: Value) -> Value {
    let mut spec = spec;
    spec["containers"] = json!([{"name": "main", "image": "i:1"}]);
    json!({"metadata": {"name": name, "labels": {"app": name}}, "spec": spec})
}

fn template(image: &str) -> Value {
    json!({"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "main", "image": image}]}})
}
