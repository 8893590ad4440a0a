//! Simulated nodes on the embedded API server, both in this process: requests through no socket, the
//! kubelets on loopback.

use std::time::Duration;

use hybrid_sim::server::{Server, ServerOptions};
use hybrid_sim::{FaultPlan, JoinError, JoinOptions, Topology, join};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Api;
use kube::api::{AttachParams, DeleteParams, ListParams, LogParams, PostParams};
use kube::runtime::wait::{await_condition, conditions};
use serde_json::json;
use tokio::io::AsyncReadExt;
use tokio::time::timeout;

/// How long what is waited for may take on a busy machine.
const PATIENCE: Duration = Duration::from_mins(2);

/// Two pods of a server on Windows.
fn web() -> Deployment {
    let deployment = json!({
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 2, "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {
                "nodeSelector": {"kubernetes.io/os": "windows"},
                "tolerations": [{"key": "os", "operator": "Exists"}],
                "containers": [{"name": "main", "image": "registry.k8s.io/e2e-test-images/agnhost:2.66.1",
                    "args": ["netexec", "--http-port=8080"]}]}},
        },
    });
    serde_json::from_value(deployment).expect("a deployment")
}

fn of_two_nodes() -> JoinOptions {
    JoinOptions {
        topology: Topology::hybrid(),
        faults: FaultPlan::default(),
        seed: 1,
        speed: 100.0,
        prefix: String::new(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_join_it_and_their_pods_are_placed_run_looked_into_and_removed() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let server = Server::start(&ServerOptions::default()).expect("it starts");
    let joined = join(server.client(), of_two_nodes())
        .await
        .expect("they join");
    joined.reached().await.expect("kubelets are reached");
    let client = server.client();
    let nodes: Api<Node> = Api::all(client.clone());
    for node in nodes.list(&ListParams::default()).await.expect("nodes") {
        let ready = node
            .status
            .and_then(|status| status.conditions)
            .unwrap_or_default();
        let ready = ready.iter().find(|condition| condition.type_ == "Ready");
        assert_eq!(ready.map(|ready| ready.status.as_str()), Some("True"));
    }
    let deployments: Api<Deployment> = Api::default_namespaced(client.clone());
    deployments
        .create(&PostParams::default(), &web())
        .await
        .expect("it is taken");
    let stands = await_condition(
        deployments.clone(),
        "web",
        conditions::is_deployment_completed(),
    );
    timeout(PATIENCE, stands)
        .await
        .expect("it stands in time")
        .expect("it is watched");
    let pods: Api<Pod> = Api::default_namespaced(client);
    let listed = pods
        .list(&ListParams::default().labels("app=web"))
        .await
        .expect("pods");
    assert_eq!(listed.items.len(), 2);
    // Another simulator of the same nodes is refused before it runs what is on them
    let second = join(server.client(), of_two_nodes()).await.err();
    assert!(
        matches!(second, Some(JoinError::Alive { .. })),
        "{second:?}"
    );
    let found = pods.list(&ListParams::default().labels("app=web")).await;
    let versions = |pods: &[Pod]| -> Vec<_> {
        let version = |pod: &Pod| pod.metadata.resource_version.clone();
        pods.iter().map(version).collect()
    };
    let found = found.expect("pods").items;
    assert_eq!(versions(&found), versions(&listed.items));
    let name = listed.items[0].metadata.name.as_deref().expect("a name");
    let log = pods.logs(name, &LogParams::default()).await.expect("a log");
    assert!(log.contains("Started HTTP server on port 8080"), "{log}");
    let asked = AttachParams::default().stderr(false);
    #[expect(
        clippy::disallowed_methods,
        reason = "the wait below is bounded, and kube's exec is what shows the upgrade as others use it"
    )]
    let mut session = pods
        .exec(name, ["hostname.exe"], &asked)
        .await
        .expect("a session");
    let mut said = String::new();
    let mut output = session.stdout().expect("an output");
    timeout(PATIENCE, output.read_to_string(&mut said))
        .await
        .expect("it ends")
        .expect("text");
    assert_eq!(said.trim(), name);
    deployments
        .delete("web", &DeleteParams::default())
        .await
        .expect("it goes");
    for pod in listed.items {
        let (name, uid) = (
            pod.metadata.name.expect("a name"),
            pod.metadata.uid.expect("a UID"),
        );
        let gone = await_condition(pods.clone(), &name, conditions::is_deleted(&uid));
        timeout(PATIENCE, gone)
            .await
            .expect("it goes in time")
            .expect("it is watched");
    }
    joined.leave().await.expect("they leave");
    assert!(
        nodes
            .list(&ListParams::default())
            .await
            .expect("nodes")
            .items
            .is_empty()
    );
    assert_eq!(
        server.unserved().into_iter().collect::<Vec<_>>(),
        Vec::<String>::new()
    );
    server.stop().await;
}
