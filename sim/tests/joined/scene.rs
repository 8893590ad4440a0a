//! A simulator, a namespace and the looks of one test.

use std::fmt::Debug;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use hybrid_sim::{FaultPlan, JoinOptions, Joined, TimedFault, Topology, join};
use k8s_openapi::api::core::v1::{Namespace, Node, Pod};
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::runtime::wait::{Condition, await_condition};
use kube::{Api, Client, Config};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::timeout;

const VARIABLE: &str = "WINCONFORM_TEST_KUBECONFIG";

/// How long anything here may take.
pub(crate) const DEADLINE: Duration = Duration::from_mins(1);

/// A simulator and a namespace for one test.
pub(crate) struct Scene {
    pub(crate) client: Client,
    kubeconfig: String,
    /// Namespace and prefix of the nodes.
    name: String,
    pub(crate) joined: Joined,
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
        let Ok(kubeconfig) = std::env::var(VARIABLE) else {
            // Not println, which the test runner keeps to itself when a test passes
            writeln!(std::io::stderr(), "not run: {test}: {VARIABLE} is not set")
                .expect("stderr is open");
            return None;
        };
        let _ = rustls::crypto::ring::default_provider().install_default();
        let read = Kubeconfig::read_from(&kubeconfig).expect("the kubeconfig can be read");
        let config = Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await;
        let client = Client::try_from(config.expect("the kubeconfig is whole")).expect("a client");
        let name = format!("sim-{short}-{}", std::process::id());
        let namespace = json!({"metadata": {"name": name, "labels": {
            "pod-security.kubernetes.io/enforce": "privileged"}}});
        create::<Namespace>(&Api::all(client.clone()), namespace).await;
        let options = options(topology, faults, &name);
        let joined = join(client.clone(), options).await.expect("the nodes join");
        Some(Self {
            client,
            kubeconfig,
            name,
            joined,
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
        create(
            &self.api::<Pod>(),
            json!({"metadata": {"name": name}, "spec": spec}),
        )
        .await
    }

    pub(crate) async fn pod_until(&self, name: &str, condition: impl Condition<Pod>) -> Pod {
        until(self.api(), name, condition).await
    }

    /// The real kubectl, not started.
    pub(crate) fn kubectl_command(&self, args: &[&str]) -> Command {
        let mut command = Command::new("kubectl");
        command
            .args(["--kubeconfig", &self.kubeconfig, "--namespace", &self.name])
            .args(args);
        command
    }

    /// Runs the real kubectl.
    pub(crate) async fn kubectl(&self, args: &[&str], input: &str) -> Output {
        let mut command = self.kubectl_command(args);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let input = input.to_owned();
        let run = move || {
            let mut child = command.spawn().expect("kubectl starts");
            child
                .stdin
                .take()
                .expect("is piped")
                .write_all(input.as_bytes())
                .expect("kubectl reads");
            child.wait_with_output().expect("kubectl ends")
        };
        let ran = timeout(DEADLINE, tokio::task::spawn_blocking(run)).await;
        ran.expect("kubectl ends in time").expect("no panic")
    }

    /// Runs the real kubectl until it has told so many lines, and ends it.
    pub(crate) async fn kubectl_lines(&self, args: &[&str], count: usize) -> Vec<String> {
        let mut command = self.kubectl_command(args);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("kubectl starts");
        let stdout = BufReader::new(child.stdout.take().expect("is piped"));
        let read = move || stdout.lines().take(count).collect::<Result<Vec<_>, _>>();
        let lines = timeout(DEADLINE, tokio::task::spawn_blocking(read)).await;
        // It would go on for ever; one that has ended cannot be ended
        let _ = child.kill();
        let _ = child.wait();
        let lines = lines.expect("the lines come in time").expect("no panic");
        lines.expect("text")
    }

    /// Leaves, and looks whether anything is left.
    pub(crate) async fn end(self) {
        let Self {
            client,
            name,
            joined,
            ..
        } = self;
        let nodes = joined.nodes();
        joined.leave().await.expect("the nodes leave");
        let left = Api::<Node>::all(client.clone())
            .list(&ListParams::default())
            .await
            .expect("a list");
        assert!(
            left.iter()
                .all(|node| !nodes.contains(node.metadata.name.as_ref().expect("a name")))
        );
        for node in nodes {
            let bound = ListParams::default().fields(&format!("spec.nodeName={node}"));
            let pods = Api::<Pod>::all(client.clone())
                .list(&bound)
                .await
                .expect("a list");
            assert_eq!(pods.items.len(), 0, "pods are left on {node}");
        }
        let namespaces = Api::<Namespace>::all(client);
        namespaces
            .delete(&name, &DeleteParams::default())
            .await
            .expect("the namespace goes");
    }
}

fn options(topology: Topology, faults: &[&str], name: &str) -> JoinOptions {
    let faults: FaultPlan = faults
        .iter()
        .map(|fault| fault.parse::<TimedFault>().expect("a fault"))
        .collect();
    JoinOptions {
        topology,
        faults,
        seed: 7,
        speed: 20.0,
        prefix: format!("{name}-"),
    }
}

pub(crate) async fn create<K>(api: &Api<K>, object: Value) -> K
where
    K: Clone + DeserializeOwned + serde::Serialize + Debug,
{
    let object: K = serde_json::from_value(object).expect("the object is whole");
    api.create(&PostParams::default(), &object)
        .await
        .expect("the object is taken")
}

/// The one wait: for a condition, on a watch, with a deadline that says what was seen last.
pub(crate) async fn until<K>(api: Api<K>, name: &str, condition: impl Condition<K>) -> K
where
    K: kube::Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    match timeout(DEADLINE, await_condition(api.clone(), name, condition)).await {
        Ok(met) => met
            .expect("the watch goes on")
            .expect("the object is there"),
        Err(elapsed) => panic!(
            "`{name}` is not so, {elapsed}: {:?}",
            api.get_opt(name).await
        ),
    }
}

pub(crate) fn is_ready(pod: Option<&Pod>) -> bool {
    let conditions = pod.and_then(|pod| pod.status.as_ref()?.conditions.as_ref());
    conditions.is_some_and(|all| all.iter().any(|c| c.type_ == "Ready" && c.status == "True"))
}

/// A condition on a pod's status as JSON: at this pointer stands this text.
pub(crate) fn says(pointer: &'static str, text: &'static str) -> impl Condition<Pod> {
    move |pod: Option<&Pod>| {
        let status = serde_json::to_value(pod.and_then(|pod| pod.status.clone())).expect("JSON");
        status
            .pointer(pointer)
            .and_then(Value::as_str)
            .is_some_and(|found| found.contains(text))
    }
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
