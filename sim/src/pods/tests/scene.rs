//! A cluster of two nodes on a stub server, and requests about its pods.

use std::sync::Arc;
use std::time::Duration;

use form_urlencoded::Serializer;
use futures::StreamExt;
use http::Request;
use http::header::{
    CONNECTION, HOST, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::time::timeout;
use tokio_tungstenite::client_async;
use tokio_tungstenite::tungstenite::Message;

use super::stub::{Stub, path};
use crate::base::clock::{self, Clock, Wall};
use crate::fault::{FaultSet, FaultSwitch};
use crate::nodes::cluster::{Cluster, NodeState};
use crate::nodes::kubelet::speak;
use crate::nodes::node;
use crate::pods::course::run::PodRun;
use crate::program::Place;
use crate::topology::{Build, NodeSpec, Pool};
use crate::world::{self, Key};

pub(super) const AGNHOST: &str = "registry.k8s.io/e2e-test-images/agnhost:2.66.1";

const NODES: [(&str, Pool); 2] = [
    ("linux", Pool::Linux),
    ("ws2022-a", Pool::Windows(Build::Ws2022)),
];

/// How long a kubelet may take to answer.
const PATIENCE: Duration = Duration::from_secs(20);

/// A running cluster.
pub(super) struct Scene {
    pub(super) stub: Stub,
    pub(super) cluster: Arc<Cluster>,
}

impl Scene {
    /// Starts nodes, and waits until they have registered and have the image.
    pub(super) async fn begin() -> Self {
        let stub = Stub::default();
        let nodes = (1_u8..).zip(NODES).map(|(number, (name, pool))| {
            let view = world::Node::new(pool, [127, 77, 0, number], 1, [10, 244, number]);
            let spec = NodeSpec::new(name, pool);
            let node = NodeState::new(name.to_owned(), spec, view, Wall::default());
            node.image(AGNHOST).set(()).expect("it is new");
            (name.to_owned(), Arc::new(node))
        });
        let faults = FaultSwitch::new(FaultSet::default());
        let (client, clock) = (stub.client(), Clock::new(1.0));
        let mut cluster = Cluster::new(client, clock, 7, faults, nodes.collect());
        "v1.37.0".clone_into(&mut cluster.version);
        let cluster = Arc::new(cluster);
        crate::pods::reporting::watch::begin(&cluster);
        for node in cluster.nodes.values() {
            let registered = node::register(&cluster, node).await;
            registered.expect("it is taken");
        }
        node::keep(&cluster);
        Self { stub, cluster }
    }

    /// Creates a pod of one container, `main`, on a node.
    pub(super) fn create(&self, node: &str, name: &str, container: Value) {
        self.create_with(node, name, container, json!({}));
    }

    pub(super) fn create_with(&self, node: &str, name: &str, container: Value, spec: Value) {
        self.create_in("test", node, name, container, spec);
    }

    pub(super) fn create_in(
        &self,
        namespace: &str,
        node: &str,
        name: &str,
        mut container: Value,
        mut spec: Value,
    ) {
        container["name"] = json!("main");
        container["image"] = json!(AGNHOST);
        spec["nodeName"] = json!(node);
        spec["containers"] = json!([container]);
        let meta = json!({"name": name, "namespace": namespace, "uid": name, "generation": 1});
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec});
        self.stub.state().create(pod);
    }

    pub(super) fn pod(&self, name: &str) -> Value {
        self.stub.state().objects[&path("test", name)].clone()
    }

    pub(super) fn container(&self, name: &str) -> Value {
        self.pod(name)["status"]["containerStatuses"][0].clone()
    }

    /// The messages of the pod's events with a reason.
    pub(super) fn events_of(&self, name: &str, reason: &str) -> Vec<String> {
        let state = self.stub.state();
        let of =
            |event: &&Value| event["involvedObject"]["name"] == name && event["reason"] == reason;
        let events = state.objects.values().filter(of);
        let words = events.map(|event| event["message"].as_str().unwrap_or_default().to_owned());
        words.collect()
    }

    pub(super) fn run(&self, namespace: &str, name: &str) -> Arc<PodRun> {
        let cluster = &self.cluster;
        let key = Key::new(namespace, name);
        let mut nodes = cluster.nodes.values();
        let run = nodes.find_map(|node| cluster.runs(node).get(&key).map(Arc::clone));
        run.expect("it runs")
    }

    /// The place of the pod's container.
    pub(super) fn place(&self, name: &str) -> Place {
        let run = self.run("test", name);
        let place = run.book().container("main").and_then(|it| it.place.clone());
        place.expect("it runs")
    }

    /// A file of the pod's container, as a program there reads it now.
    pub(super) fn file(&self, name: &str, path: &str) -> Option<String> {
        let bytes = self.place(name).files.read(path).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    pub(super) fn config_map(&self, value: Option<&str>) {
        let path = "/api/v1/namespaces/test/configmaps/settings".to_owned();
        let objects = &mut self.stub.state().objects;
        match value {
            Some(value) => {
                let object = json!({"metadata": {"name": "settings"}, "data": {"key": value}});
                objects.insert(path, object)
            }
            None => objects.remove(&path),
        };
    }

    fn connect(&self, node: &str) -> DuplexStream {
        let (near, far) = duplex(1 << 16);
        let cluster = Arc::clone(&self.cluster);
        let node = Arc::clone(&cluster.nodes[node]);
        self.cluster
            .spawn(async move { speak(&cluster, &node, far).await });
        near
    }

    /// What a kubelet answers to a GET.
    pub(super) async fn get(&self, node: &str, path: &str) -> String {
        let mut stream = self.connect(node);
        let request = format!("GET /{path} HTTP/1.0\r\nhost: n\r\n\r\n");
        let sent = stream.write_all(request.as_bytes()).await;
        sent.expect("it is taken");
        let mut told = String::new();
        timeout(PATIENCE, stream.read_to_string(&mut told))
            .await
            .expect("in time")
            .expect("text");
        let (_, body) = told.split_once("\r\n\r\n").expect("a head");
        body.to_owned()
    }

    /// Returns what an exec prints, and the Status that ends it; none without an exec session.
    pub(super) async fn exec(
        &self,
        node: &str,
        container: &str,
        argv: &[&str],
    ) -> Option<(String, String)> {
        let words = argv.iter().map(|word| ("command", *word));
        let query = Serializer::new(String::new())
            .extend_pairs(words.chain([("output", "1"), ("error", "1")]))
            .finish();
        let request = Request::get(format!("ws://n/exec/{container}?{query}"))
            .header(HOST, "n")
            .header(CONNECTION, "Upgrade")
            .header(UPGRADE, "websocket")
            .header(SEC_WEBSOCKET_VERSION, "13")
            .header(SEC_WEBSOCKET_KEY, "dGhlIHNhbXBsZSBub25jZQ==")
            .header(SEC_WEBSOCKET_PROTOCOL, "v5.channel.k8s.io")
            .body(())
            .expect("a request");
        let connected = timeout(PATIENCE, client_async(request, self.connect(node))).await;
        let (mut socket, _) = connected.ok()?.ok()?;
        let mut told = [const { Vec::new() }; 4];
        while let Some(Ok(message)) = timeout(PATIENCE, socket.next()).await.ok()? {
            if let Message::Binary(bytes) = message {
                let (channel, rest) = bytes.split_first()?;
                told[usize::from(*channel)].extend_from_slice(rest);
            }
        }
        let [_, out, error, status] = told.map(|bytes| bytes.escape_ascii().to_string());
        Some((out + &error, status))
    }

    pub(super) fn set(&self, fault: &str) {
        self.cluster.faults.set(fault.parse().expect("a fault"));
    }

    pub(super) fn lift(&self, fault: &str) {
        self.cluster.faults.lift(&fault.parse().expect("a fault"));
    }

    /// Time is paused: it passes only when nothing else is left to do.
    pub(super) async fn pass(&self, seconds: u64) {
        clock::elapse(Duration::from_secs(seconds)).await;
    }

    pub(super) async fn end(self) {
        self.cluster.stop.cancel();
        self.cluster.tasks.close();
        self.cluster.tasks.wait().await;
    }
}
