//! API servers that are too old, do not reach the simulator, or stop in the middle: the errors, and that
//! nothing stays behind.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::pending;
use std::sync::{Arc, Mutex};

use futures::stream;
use http::{Method, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Bytes, Frame};
use kube::client::Body;
use serde_json::{Value, json};
use tokio::runtime::Handle;
use tower::service_fn;

use super::*;
use crate::base::lock::locked;
use crate::nodes::node;
use crate::topology::{NodeSpec, Pool};

type Answer = UnsyncBoxBody<Bytes, Infallible>;

/// How long any step may take.
const DEADLINE: Duration = Duration::from_secs(20);

/// A fake API server with its objects and its behaviour.
struct Server {
    version: &'static str,
    objects: Mutex<BTreeMap<String, Value>>,
    /// The status and body of its answer to a request for a pod's log.
    log: (u16, &'static str),
    /// Interrupts the simulator when there are this many nodes.
    interrupts: Option<(usize, CancellationToken)>,
    asked: Mutex<Vec<String>>,
    /// The name of a node that a rival creates right after the simulator has checked that the names are free.
    rival: Option<&'static str>,
}

impl Server {
    fn new() -> Arc<Self> {
        Arc::new(Self::plain())
    }

    fn plain() -> Self {
        Self {
            version: "1.37.0",
            objects: Mutex::default(),
            log: (404, "container \"reach\" is not available"),
            interrupts: None,
            asked: Mutex::default(),
            rival: None,
        }
    }

    fn client(self: &Arc<Self>) -> Client {
        let server = Arc::clone(self);
        let service = service_fn(move |request: Request<Body>| {
            let server = Arc::clone(&server);
            async move { Ok::<_, Infallible>(server.answer(request).await) }
        });
        Client::new(service, "default")
    }

    /// The paths of the objects.
    fn paths(&self) -> Vec<String> {
        locked(&self.objects).keys().cloned().collect()
    }

    async fn answer(&self, request: Request<Body>) -> Response<Answer> {
        let (head, body) = request.into_parts();
        let body = body.collect().await.expect("a whole body").to_bytes();
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        let path = head.uri.path().trim_end_matches("/status").to_owned();
        locked(&self.asked).push(format!("{} {path}", head.method));
        if head.uri.query().unwrap_or_default().contains("watch=") {
            // The watch stays open, and nothing ever happens
            let never = stream::once(pending::<Result<Frame<Bytes>, Infallible>>());
            return Response::new(Answer::new(StreamBody::new(never)));
        }
        let (code, value) = self.said(&head.method, &path, body);
        let mut response = Response::new(Answer::new(Full::from(value.to_string())));
        *response.status_mut() = StatusCode::from_u16(code).expect("a status");
        response
    }

    fn said(&self, method: &Method, path: &str, mut body: Value) -> (u16, Value) {
        let mut objects = locked(&self.objects);
        let refused = |code: u16, message: &str| {
            let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "code": code,
                "status": "Failure", "message": message,
                "reason": if code == 404 { "NotFound" } else { "" }});
            (code, status)
        };
        match *method {
            Method::GET if path == "/version" => {
                let mut numbers = self.version.split('.');
                let version = json!({
                    "major": numbers.next(), "minor": numbers.next(), "gitVersion": format!("v{}", self.version),
                    "gitCommit": "", "gitTreeState": "", "buildDate": "", "goVersion": "", "compiler": "",
                    "platform": "",
                });
                (200, version)
            }
            Method::GET if path.ends_with("/log") => refused(self.log.0, self.log.1),
            Method::GET => {
                let plural = path.rsplit('/').next().unwrap_or_default();
                if let Some(object) = objects.get(path) {
                    return (200, object.clone());
                }
                if !["nodes", "pods", "leases"].contains(&plural) {
                    return refused(404, "not found");
                }
                let below = format!("/{plural}/");
                let items = objects.iter().filter(|(path, _)| path.contains(&below));
                let items: Vec<_> = items.map(|(_, object)| object).collect();
                let list =
                    json!({"kind": "List", "apiVersion": "v1", "metadata": {}, "items": items});
                (200, list)
            }
            Method::POST => {
                let name = body["metadata"]["name"].as_str().unwrap_or_default();
                if let Some(rival) = self.rival
                    && path.ends_with("/nodes")
                {
                    objects.extend(rivals(rival));
                }
                let made = format!("{path}/{name}");
                if objects.contains_key(&made) {
                    return refused(409, "already exists");
                }
                body["metadata"]["uid"] = format!("uid of {made}").into();
                objects.insert(made, body.clone());
                let nodes = objects.keys().filter(|path| path.contains("/nodes/"));
                if let Some((most, halt)) = &self.interrupts
                    && nodes.count() >= *most
                {
                    halt.cancel();
                }
                (201, body)
            }
            Method::PATCH => match objects.get_mut(path) {
                Some(object) => {
                    json_patch::merge(object, &body);
                    (200, object.clone())
                }
                None => refused(404, "not found"),
            },
            Method::DELETE => {
                let wanted = &body["preconditions"]["uid"];
                let Some(object) = objects.get(path) else {
                    return refused(404, "not found");
                };
                if !wanted.is_null() && *wanted != object["metadata"]["uid"] {
                    return refused(409, "the UID in the precondition does not match");
                }
                (200, objects.remove(path).unwrap_or_default())
            }
            _ => refused(405, "no"),
        }
    }
}

/// The objects of another simulator: a node, its lease, and a pod on it.
fn rivals(node: &str) -> BTreeMap<String, Value> {
    let uid = format!("uid of the other's {node}");
    let owner = json!({"apiVersion": "v1", "kind": "Node", "name": node, "uid": uid});
    let leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
    let lease = json!({"name": node, "uid": "of the lease", "ownerReferences": [owner]});
    let pod = json!({"name": "p", "namespace": "a", "uid": "of the pod"});
    [
        (
            "Node",
            "/api/v1/nodes",
            json!({"name": node, "uid": uid}),
            json!({"podCIDRs": ["10.0.0.0/24"]}),
        ),
        ("Lease", leases, lease, json!({})),
        (
            "Pod",
            "/api/v1/namespaces/a/pods",
            pod,
            json!({"nodeName": node, "containers": []}),
        ),
    ]
    .map(|(kind, path, metadata, spec)| {
        let path = format!("{path}/{}", metadata["name"].as_str().unwrap_or_default());
        (
            path,
            json!({"apiVersion": "v1", "kind": kind, "metadata": metadata, "spec": spec}),
        )
    })
    .into()
}

fn options(nodes: usize) -> JoinOptions {
    let names = (0..nodes).map(|number| NodeSpec::new(format!("n{number}"), Pool::Linux));
    JoinOptions {
        topology: Topology::of(names.collect()),
        faults: FaultPlan::default(),
        seed: 1,
        speed: 1.0,
        prefix: String::new(),
        loopback: Loopback::default(),
    }
}

/// Waits until no task runs any more, neither the simulator's nor a client's.
async fn nobody_is_left() {
    let tasks = || Handle::current().metrics().num_alive_tasks();
    let ended = timeout(DEADLINE, async {
        while tasks() > 0 {
            tokio::task::yield_now().await;
        }
    });
    assert!(ended.await.is_ok(), "{} tasks are left", tasks());
}

/// Leaves, and checks that no object is left.
async fn leave(joined: Joined, server: &Server) {
    joined.leave().await.expect("they leave");
    assert_eq!(server.paths(), Vec::<String>::new());
}

#[tokio::test]
async fn too_old_a_server_is_named_with_what_will_not_work_and_left_alone() {
    for version in ["1.32.2", "1.35.9"] {
        let server = Arc::new(Server {
            version,
            ..Server::plain()
        });
        let refused = join(server.client(), options(2)).await.err();
        let text = refused.expect("it is refused").to_string();
        let named = format!(
            "the API server is Kubernetes v{version}; before 1.36 it reaches kubelets by SPDY"
        );
        assert!(
            text.starts_with(&named) && text.contains("exec and all"),
            "{text}"
        );
        assert_eq!(*locked(&server.asked), ["GET /version"]);
    }
    nobody_is_left().await;
}

#[tokio::test]
async fn joining_and_leaving_leave_nothing_behind() {
    let server = Server::new();
    let traces = Traces::default();
    let halt = CancellationToken::new();
    let joined = Joined::unless(&halt, &traces, server.client(), options(3)).await;
    let joined = joined.expect("they join");
    let dns = ["endpointslice/kube-dns-simulated", "service/kube-dns"];
    let nodes = ["node/n0", "node/n1", "node/n2"];
    assert_eq!(traces.objects(), [&dns[..1], &nodes, &dns[1..]].concat());
    assert_eq!(server.paths().len(), 3 + 3 + 2, "{:?}", server.paths());
    joined.reached().await.expect("the kubelet has answered");
    leave(joined, &server).await;
    assert_eq!(traces.objects(), Vec::<String>::new());
    nobody_is_left().await;
}

#[tokio::test]
async fn a_deleted_node_is_given_up() {
    let server = Server::new();
    let joined = join(server.client(), options(2)).await.expect("they join");
    let node = &joined.cluster.nodes["n0"];
    node::renew(&joined.cluster, node).await;
    assert!(node.deleted.get().is_none());
    locked(&server.objects).retain(|path, _| !path.ends_with("/n0"));
    node::renew(&joined.cluster, node).await;
    assert!(node.deleted.get().is_some());
    let asked = || {
        let asked = locked(&server.asked);
        asked.iter().filter(|asked| asked.ends_with("/n0")).count()
    };
    let before = asked();
    node::renew(&joined.cluster, node).await;
    assert_eq!(asked(), before);
    leave(joined, &server).await;
    nobody_is_left().await;
}

#[tokio::test]
async fn the_dns_stays_as_long_as_anybody_is_joined() {
    const SLICE: &str =
        "/apis/discovery.k8s.io/v1/namespaces/kube-system/endpointslices/kube-dns-simulated";
    const SERVICE: &str = "/api/v1/namespaces/kube-system/services/kube-dns";
    let server = Server::new();
    let first = join(server.client(), options(2)).await.expect("they join");
    let prefixed = JoinOptions {
        prefix: "b-".to_owned(),
        ..options(1)
    };
    let second = join(server.client(), prefixed).await.expect("they join");
    let endpoint = || locked(&server.objects)[SLICE]["endpoints"][0].clone();
    assert_eq!(endpoint()["nodeName"], "n0");
    first.leave().await.expect("they leave");
    let node = locked(&server.objects)["/api/v1/nodes/b-n0"].clone();
    let network = node["spec"]["podCIDR"].as_str().expect("a network");
    let network = network.strip_suffix("0/24").expect("of IPv4");
    assert_eq!(endpoint()["nodeName"], "b-n0");
    assert_eq!(endpoint()["addresses"], json!([format!("{network}2")]));
    assert!(server.paths().contains(&SERVICE.to_owned()));
    leave(second, &server).await;
    nobody_is_left().await;
}

#[tokio::test]
async fn an_interrupted_join_leaves_nothing_behind() {
    for most in [1, 20, 40] {
        let halt = CancellationToken::new();
        let server = Arc::new(Server {
            interrupts: Some((most, halt.clone())),
            ..Server::plain()
        });
        let traces = Traces::default();
        let joined = Joined::unless(&halt, &traces, server.client(), options(40)).await;
        let error = joined.err().expect("it is interrupted");
        assert!(matches!(error, JoinError::Interrupted), "{error:?}");
        let asked = locked(&server.asked);
        let made = asked.iter().filter(|asked| *asked == "POST /api/v1/nodes");
        assert!((most..=40).contains(&made.count()), "{asked:?}");
        assert_eq!((server.paths(), traces.objects()), (vec![], vec![]));
    }
    nobody_is_left().await;
}

#[tokio::test]
async fn what_another_simulator_has_made_meanwhile_stays() {
    let server = Arc::new(Server {
        rival: Some("n1"),
        ..Server::plain()
    });
    let traces = Traces::default();
    let halt = CancellationToken::new();
    let joined = Joined::unless(&halt, &traces, server.client(), options(3)).await;
    let text = joined.err().expect("a name is taken").to_string();
    assert_eq!(text, "failed to register node `n1`");
    let theirs: Vec<String> = rivals("n1").into_keys().collect();
    assert_eq!((server.paths(), traces.objects()), (theirs, vec![]));
    nobody_is_left().await;
}

#[tokio::test]
async fn a_node_that_was_made_unheard_is_known_again() {
    let server = Server::new();
    let joined = join(server.client(), options(2)).await.expect("they join");
    let node = &joined.cluster.nodes["n0"];
    let again = node::register(&joined.cluster, node).await;
    let text = again.expect_err("the lease is there").to_string();
    assert!(text.contains("already exists"), "{text}");
    let path = "POST /apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
    let asked = locked(&server.asked).clone();
    let leases = asked.iter().filter(|asked| *asked == path);
    // The simulator took that node for its own, and so created a lease for it
    assert_eq!(leases.count(), 3, "{asked:?}");
    leave(joined, &server).await;
    nobody_is_left().await;
}

#[tokio::test]
async fn faults_that_are_replaced_before_they_are_shown_are_not_waited_for() {
    let server = Server::new();
    let joined = join(server.client(), options(2)).await.expect("they join");
    let fault = |kind: FaultKind| kind.on(Pool::Linux);
    joined.faults().set(fault(FaultKind::DnsDown));
    {
        let mut shown = pin!(joined.shown());
        // It waits for this fault only
        assert!(futures::poll!(&mut shown).is_pending());
        joined.faults().set(fault(FaultKind::UdpDropped));
        assert!(timeout(DEADLINE, shown).await.is_ok(), "it waits for ever");
    }
    joined.leave().await.expect("they leave");
    nobody_is_left().await;
}

#[tokio::test]
async fn what_an_abandoned_join_leaves_is_known() {
    let halt = CancellationToken::new();
    let server = Arc::new(Server {
        interrupts: Some((40, halt.clone())),
        ..Server::plain()
    });
    let traces = Traces::default();
    let client = server.client();
    let joining = Joined::unless(&halt, &traces, client, options(40));
    // Stops as a second signal does
    tokio::select! {
        biased;
        () = halt.cancelled() => {}
        _ = Box::pin(joining) => panic!("it is stopped in the middle"),
    }
    let node = |path: &String| Some(format!("node/{}", path.strip_prefix("/api/v1/nodes/")?));
    let left: Vec<String> = server.paths().iter().filter_map(node).collect();
    assert_eq!(left.len(), 40);
    assert_eq!(traces.objects(), left);
    nobody_is_left().await;
}

#[tokio::test]
async fn a_server_that_does_not_reach_the_kubelets_is_told_of() {
    for (code, reached) in [(500, false), (502, false), (404, true), (400, true)] {
        let why = "Get \"https://127.64.0.1:10250/containerLogs\": dial tcp: i/o timeout";
        let server = Arc::new(Server {
            log: (code, why),
            ..Server::plain()
        });
        let joined = join(server.client(), options(1)).await.expect("it joins");
        let told = joined.reached().await.map_err(|error| error.to_string());
        assert_eq!(told.is_ok(), reached, "{code}: {told:?}");
        if let Err(text) = told {
            let exec = "exec and logs will not work";
            for words in ["the kubelet of `n0` at 127.", exec, why] {
                assert!(text.contains(words), "{words}: {text}");
            }
        }
        let paths = server.paths();
        assert!(
            !paths.iter().any(|path| path.contains("/pods/")),
            "{paths:?}"
        );
        leave(joined, &server).await;
    }
    nobody_is_left().await;
}
