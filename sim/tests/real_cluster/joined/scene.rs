//! The simulator, the namespace and the helpers of a test.

use std::fmt::Debug;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use hybrid_sim::{JoinOptions, Joined, Loopback, TimedFault, Topology, join};
use k8s_openapi::api::core::v1::{Namespace, Node, Pod};
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::runtime::wait::{Condition, await_condition};
use kube::{Api, Client, ResourceExt};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::RwLockReadGuard;
use tokio::time::timeout;

/// How long any step may take.
pub(crate) const DEADLINE: Duration = Duration::from_mins(1);

/// A simulator and a namespace for one test.
pub(crate) struct Scene {
    pub(crate) client: Client,
    kubeconfig: String,
    /// The namespace's name, and the prefix of the nodes.
    name: String,
    pub(crate) joined: Joined,
    _beside_others: RwLockReadGuard<'static, ()>,
}

impl Scene {
    pub(crate) async fn begin(test: &str, short: &str, faults: &[&str]) -> Option<Self> {
        Self::begin_with(Topology::hybrid(), test, short, faults).await
    }

    pub(crate) async fn begin_with(
        topology: Topology,
        test: &str,
        short: &str,
        faults: &[&str],
    ) -> Option<Self> {
        let (kubeconfig, client) = crate::control_plane(test).await?;
        let beside_others = crate::PLANE.read().await;
        let name = format!("sim-{short}-{}", std::process::id());
        let namespace = json!({"metadata": {"name": name, "labels": {
            "pod-security.kubernetes.io/enforce": "privileged"}}});
        create::<Namespace>(&Api::all(client.clone()), namespace).await;
        let options = options(topology, faults, format!("{name}-"));
        let joined = join(client.clone(), options).await.expect("the nodes join");
        Some(Self {
            client,
            kubeconfig,
            name,
            joined,
            _beside_others: beside_others,
        })
    }

    pub(crate) fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client.clone(), &self.name)
    }

    pub(crate) fn node(&self, name: &str) -> String {
        format!("{}-{name}", self.name)
    }

    pub(crate) fn spec(&self, node: &str, container: &Value) -> Value {
        let mut container = container.clone();
        container["name"] = "main".into();
        json!({
            "containers": [container],
            "nodeSelector": {"kubernetes.io/hostname": self.node(node)},
            "tolerations": [{"operator": "Exists"}],
            "terminationGracePeriodSeconds": 5,
        })
    }

    pub(crate) async fn pod(&self, name: &str, spec: Value) -> Pod {
        let pod = json!({"metadata": {"name": name}, "spec": spec});
        create(&self.api::<Pod>(), pod).await
    }

    /// Creates a pod with one container on a node.
    pub(crate) async fn start(&self, name: &str, node: &str, container: &Value) -> Pod {
        self.pod(name, self.spec(node, container)).await
    }

    pub(crate) async fn pod_until(&self, name: &str, condition: impl Condition<Pod>) -> Pod {
        until(self.api(), name, condition).await
    }

    /// Starts the real kubectl, with its error stream as given.
    fn kubectl_child(&self, args: &[&str], errors: Stdio) -> Child {
        Command::new("kubectl")
            .args(["--kubeconfig", &self.kubeconfig, "--namespace", &self.name])
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(errors)
            .spawn()
            .expect("kubectl starts")
    }

    /// Runs the real kubectl.
    pub(crate) async fn kubectl(&self, args: &[&str], input: &str) -> Output {
        let mut child = self.kubectl_child(args, Stdio::piped());
        let input = input.to_owned();
        let run = move || {
            let mut stdin = child.stdin.take().expect("is piped");
            stdin.write_all(input.as_bytes()).expect("kubectl reads");
            drop(stdin);
            child.wait_with_output().expect("kubectl ends")
        };
        let ran = timeout(DEADLINE, tokio::task::spawn_blocking(run)).await;
        ran.expect("kubectl ends in time").expect("no panic")
    }

    /// Runs the real kubectl until it has printed this many lines, then ends it.
    pub(crate) async fn kubectl_lines(&self, args: &[&str], count: usize) -> Vec<String> {
        let mut child = self.kubectl_child(args, Stdio::inherit());
        let stdout = BufReader::new(child.stdout.take().expect("is piped"));
        let read = move || stdout.lines().take(count).collect::<Result<Vec<_>, _>>();
        let lines = timeout(DEADLINE, tokio::task::spawn_blocking(read)).await;
        // It would go on for ever; an error means that it has already ended
        let _ = child.kill();
        let _ = child.wait();
        let lines = lines.expect("the lines come in time").expect("no panic");
        lines.expect("text")
    }

    /// Leaves, and checks that no node and no pod is left.
    pub(crate) async fn end(self) {
        let names = self.joined.nodes();
        self.joined.leave().await.expect("the nodes leave");
        let params = ListParams::default();
        let left = Api::<Node>::all(self.client.clone()).list(&params).await;
        let mut left = left.expect("a list").into_iter();
        assert!(left.all(|node| !names.contains(&node.name_any())));
        for node in names {
            let bound = ListParams::default().fields(&format!("spec.nodeName={node}"));
            let pods = Api::<Pod>::all(self.client.clone()).list(&bound).await;
            assert_eq!(
                pods.expect("a list").items.len(),
                0,
                "pods are left on {node}"
            );
        }
        let namespaces = Api::<Namespace>::all(self.client);
        let deleted = namespaces
            .delete(&self.name, &DeleteParams::default())
            .await;
        deleted.expect("the namespace goes");
    }
}

pub(crate) fn options(topology: Topology, faults: &[&str], prefix: String) -> JoinOptions {
    let faults = faults
        .iter()
        .map(|fault| fault.parse::<TimedFault>().expect("a fault"));
    JoinOptions {
        topology,
        faults: faults.collect(),
        seed: 7,
        speed: 20.0,
        prefix,
        loopback: Loopback::default(),
    }
}

pub(crate) async fn create<K>(api: &Api<K>, object: Value) -> K
where
    K: Clone + DeserializeOwned + serde::Serialize + Debug,
{
    let object: K = serde_json::from_value(object).expect("the object is whole");
    let created = api.create(&PostParams::default(), &object).await;
    created.expect("the object is taken")
}

/// Waits for a condition, on a watch with a deadline; the panic shows the last state.
pub(crate) async fn until<K>(api: Api<K>, name: &str, condition: impl Condition<K>) -> K
where
    K: kube::Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let Ok(met) = timeout(DEADLINE, await_condition(api.clone(), name, condition)).await else {
        panic!("`{name}` is not so in time: {:?}", api.get_opt(name).await);
    };
    met.expect("the watch goes on")
        .expect("the object is there")
}

pub(crate) fn is_ready(pod: Option<&Pod>) -> bool {
    let conditions = pod.and_then(|pod| pod.status.as_ref()?.conditions.as_ref());
    conditions.is_some_and(|all| all.iter().any(|c| c.type_ == "Ready" && c.status == "True"))
}

/// A condition on a pod's status as JSON: the value at a pointer contains a text.
pub(crate) fn says(pointer: &'static str, text: &'static str) -> impl Condition<Pod> {
    move |pod: Option<&Pod>| {
        let status = pod.map(status).unwrap_or_default();
        let value = status.pointer(pointer).and_then(Value::as_str);
        value.is_some_and(|value| value.contains(text))
    }
}

/// A pod's status as JSON.
pub(crate) fn status(pod: &Pod) -> Value {
    serde_json::to_value(&pod.status).expect("JSON")
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
