//! A real and a simulated node in one cluster, and the life of a pod on both.

use std::collections::BTreeMap;
use std::process::{Command, Output};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::join;
use futures::{StreamExt, TryStreamExt, pin_mut};
use hybrid_sim::{FaultPlan, JoinOptions, Joined, Loopback, NodeSpec, Pool, Topology};
use k8s_openapi::api::core::v1::{ConfigMap, Event, Namespace, Node, Pod, Secret, ServiceAccount};
use kube::api::{
    DeleteParams, ListParams, LogParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams,
};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::runtime::WatchStreamExt;
use kube::runtime::reflector::{self, Store, reflector};
use kube::runtime::wait::await_condition;
use kube::runtime::watcher::{self, watcher};
use kube::{Api, Client, Config};
use ordered_watch as watch;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout, timeout_at};

use super::cases::{Case, Settled, Then};
use super::differences::Known;
use super::record::Names;
use crate::seen::{Difference, Record, between};

/// How long a real pod may take to settle; no case includes four minutes of back-off.
const REAL: Duration = Duration::from_mins(2);

/// How long a simulated pod may take after the real one has settled.
const BEHIND: Duration = Duration::from_secs(20);

/// How long all events and statuses may take to arrive.
const SETTLING: Duration = Duration::from_secs(20);

/// The label of the nodes of all simulators.
const SIMULATED: (&str, &str) = ("app.kubernetes.io/managed-by", "hybrid-sim");

/// All observed versions of each pod in order, by name; some states last only a moment.
type Versions = BTreeMap<String, Vec<Pod>>;

/// A node, and the namespace of its pods.
struct Side {
    names: Names,
    pods: Arc<Mutex<Versions>>,
    events: Store<Event>,
}

/// Both nodes.
pub(crate) struct World {
    client: Client,
    kubeconfig: String,
    joined: Joined,
    real: Side,
    simulated: Side,
    changed: watch::Receiver<()>,
}

impl World {
    pub(crate) async fn begin(kubeconfig: String) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let file = Kubeconfig::read_from(&kubeconfig).expect("the kubeconfig can be read");
        let config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await;
        let client = Client::try_from(config.expect("the kubeconfig is whole")).expect("a client");
        let real = real_node(&client).await;
        let process = std::process::id();
        let options = JoinOptions {
            topology: Topology {
                nodes: vec![NodeSpec::new("linux-a", Pool::Linux)],
                ..Topology::hybrid()
            },
            faults: FaultPlan::default(),
            seed: 7,
            speed: 1.0,
            prefix: format!("compared-{process}-"),
            loopback: Loopback::default(),
        };
        let joined = hybrid_sim::join(client.clone(), options)
            .await
            .expect("the node joins");
        let simulated = joined.nodes().remove(0);
        let (sender, changed) = watch::channel(());
        let real = Side::begin(&client, format!("pods-{process}-real"), real, &sender).await;
        let namespace = format!("pods-{process}-simulated");
        let simulated = Side::begin(&client, namespace, simulated, &sender).await;
        let world = Self {
            client,
            kubeconfig,
            joined,
            real,
            simulated,
            changed,
        };
        world.have_images().await;
        world
    }

    /// Has the simulated node pull the images, which the real node has from the start.
    async fn have_images(&self) {
        let container =
            |name, image| json!({"name": name, "image": image, "command": ["sleep", "9"]});
        let pod = json!({"metadata": {"name": "images"}, "spec": {
            "nodeName": self.simulated.names.node, "restartPolicy": "Never", "containers": [
            container("one", "registry.k8s.io/e2e-test-images/agnhost:2.66.1"),
            container("two", "busybox:1.36")]}});
        let pods = self.api::<Pod>(&self.simulated);
        create(&pods, pod).await;
        let running = |pod: Option<&Pod>| {
            let statuses = pod.and_then(|pod| pod.status.as_ref()?.container_statuses.as_ref());
            statuses.is_some_and(|list| {
                list.iter().all(|one| {
                    let state = one.state.as_ref();
                    state.is_some_and(|state| state.running.is_some() || state.terminated.is_some())
                })
            })
        };
        let had = timeout(REAL, await_condition(pods.clone(), "images", running)).await;
        had.expect("the simulated node pulls in time")
            .expect("the watch goes on");
        let now = DeleteParams::default().grace_period(0);
        pods.delete("images", &now).await.expect("the pod goes");
    }

    fn api<K>(&self, side: &Side) -> Api<K>
    where
        K: kube::Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client.clone(), &side.names.namespace)
    }

    /// Runs a pod on both nodes; returns the differences as soon as they are exactly the known ones, or at
    /// the end, and the number of observations of the real pod.
    pub(crate) async fn compare(&self, case: &Case, known: Known) -> (Vec<Difference>, usize) {
        let (done, real_has_settled) = oneshot::channel::<()>();
        let real = async {
            self.create(case, &self.real).await;
            let (side, limit) = (&self.real, past(REAL));
            let is = self.settle(case, &case.settled, side, limit).await;
            drop(done);
            let looked = self.look(case, side).await;
            (Seen { side, looked }, is)
        };
        let simulated = async {
            self.create(case, &self.simulated).await;
            let limit = async {
                let _ = real_has_settled.await;
                past(BEHIND).await;
            };
            let side = &self.simulated;
            // If it does not settle, that will show as a difference
            self.settle(case, &case.settled, side, limit).await;
            let looked = self.look(case, side).await;
            Seen { side, looked }
        };
        let ((real, is), simulated) = join(real, simulated).await;
        if !is {
            return (vec![unlike(&case.name, "it does not settle")], 0);
        }
        let mut changed = self.changed.clone();
        let deadline = Instant::now() + SETTLING;
        loop {
            let observed = real.all(case);
            let seen = between(&case.name, &observed, &simulated.all(case));
            let last = timeout_at(deadline, changed.changed());
            if known.explain(&seen) || last.await.is_err() {
                return (seen, observed.len());
            }
        }
    }

    async fn create(&self, case: &Case, side: &Side) {
        let mut spec = case.pod.clone();
        let node = side.names.node.as_str();
        // Set the node, and a short grace period
        if case.bound {
            spec.insert("nodeName".to_owned(), node.into());
        } else {
            let selector = json!({"kubernetes.io/hostname": node});
            spec.insert("nodeSelector".to_owned(), selector);
        }
        spec.entry("terminationGracePeriodSeconds".to_owned())
            .or_insert(1.into());
        let mut metadata = case.metadata.clone();
        metadata.insert("name".to_owned(), case.name.as_str().into());
        let pod = json!({"metadata": metadata, "spec": spec});
        create(&self.api::<Pod>(side), pod).await;
    }

    /// Waits until status and events are as expected, or the limit ends; returns whether they are.
    async fn settle(
        &self,
        case: &Case,
        settled: &Settled,
        side: &Side,
        limit: impl Future<Output = ()>,
    ) -> bool {
        let mut changed = self.changed.clone();
        pin_mut!(limit);
        loop {
            let events = case.events.iter().all(|reason| side.had(case, reason));
            if events && side.status(&case.name, settled).1 {
                return true;
            }
            tokio::select! {
                biased;
                more = changed.changed() => more.expect("the world is there"),
                () = &mut limit => return false,
            }
        }
    }

    /// Records what needs a request: exec and logs, and the case's last action.
    async fn look(&self, case: &Case, side: &Side) -> Record {
        let mut record = Record::new();
        for command in &case.exec {
            let ran = self.exec(side, &case.name, command).await;
            let at = format!("exec {}", command.join(" "));
            let code = ran
                .status
                .code()
                .map_or("signal".to_owned(), |c| c.to_string());
            record.insert(format!("{at}: exit code"), code);
            for (stream, bytes) in [("stdout", &ran.stdout), ("stderr", &ran.stderr)] {
                let text = side.names.normal(&String::from_utf8_lossy(bytes));
                record.insert(format!("{at}: {stream}"), text);
            }
        }
        match &case.then {
            None => {}
            Some(Then::Delete { delete }) => {
                let last = self.delete(side, &case.name, *delete).await;
                record.extend(side.names.status(&last));
                return record;
            }
            Some(Then::Debug { ephemeral, settled }) => {
                let patch = json!({"spec": {"ephemeralContainers": [ephemeral]}});
                let pods = self.api::<Pod>(side);
                let (params, patch) = (PatchParams::default(), Patch::Strategic(patch));
                let patched = pods.patch_ephemeral_containers(&case.name, &params, &patch);
                patched.await.expect("the container is taken");
                self.settle(case, settled, side, past(BEHIND)).await;
            }
        }
        for container in case.containers() {
            let params = LogParams {
                container: Some(container.clone()),
                ..LogParams::default()
            };
            let log = match self.api::<Pod>(side).logs(&case.name, &params).await {
                Ok(log) => log,
                Err(kube::Error::Api(status)) => format!("{}: {}", status.code, status.message),
                Err(error) => panic!("no answer for the log of `{}`: {error}", case.name),
            };
            record.insert(format!("log {container}"), side.names.log(&log));
        }
        record
    }

    /// Deletes a pod; returns its last state.
    async fn delete(&self, side: &Side, name: &str, grace: u32) -> Pod {
        let pods = self.api::<Pod>(side);
        let only = format!("metadata.name={name}");
        let listed = pods.list(&ListParams::default().fields(&only)).await;
        let version = listed.expect("a list").metadata.resource_version;
        let params = WatchParams::default().fields(&only);
        let version = version.expect("a list has a version");
        let seen = pods.watch(&params, &version).await.expect("a watch");
        let parameters = DeleteParams::default().grace_period(grace);
        pods.delete(name, &parameters).await.expect("it is deleted");
        let gone = async {
            pin_mut!(seen);
            while let Some(event) = seen.try_next().await.expect("the watch goes on") {
                if let WatchEvent::Deleted(pod) = event {
                    return pod;
                }
            }
            panic!("the watch of `{name}` ended before the pod was gone")
        };
        let Ok(pod) = timeout(REAL, gone).await else {
            panic!("not gone in time: {:?}", pods.get_opt(name).await)
        };
        pod
    }

    /// Runs the real kubectl, to get its texts.
    async fn exec(&self, side: &Side, pod: &str, command: &[String]) -> Output {
        let mut kubectl = Command::new("kubectl");
        kubectl
            .args(["--kubeconfig", &self.kubeconfig])
            .args(["--namespace", &side.names.namespace, "exec", pod, "--"])
            .args(command);
        let ran = tokio::task::spawn_blocking(move || kubectl.output());
        ran.await.expect("no panic").expect("kubectl starts")
    }

    pub(crate) async fn end(self) {
        self.joined.leave().await.expect("the node leaves");
        let namespaces = Api::<Namespace>::all(self.client);
        for side in [&self.real, &self.simulated] {
            let params = DeleteParams::default();
            let deleted = namespaces.delete(&side.names.namespace, &params).await;
            deleted.expect("the namespace goes");
        }
    }
}

impl Side {
    async fn begin(
        client: &Client,
        namespace: String,
        node: String,
        changed: &watch::Sender<()>,
    ) -> Self {
        let metadata = json!({"name": namespace, "labels": {
            "pod-security.kubernetes.io/enforce": "privileged"}});
        create::<Namespace>(&Api::all(client.clone()), json!({"metadata": metadata})).await;
        let accounts = Api::<ServiceAccount>::namespaced(client.clone(), &namespace);
        let there = |account: Option<&ServiceAccount>| account.is_some();
        let account = timeout(REAL, await_condition(accounts, "default", there)).await;
        account
            .expect("the controllers make an account in time")
            .expect("the watch goes on");
        let settings = json!({"metadata": {"name": "settings"}, "data": {"greeting": "hello"}});
        create::<ConfigMap>(&Api::namespaced(client.clone(), &namespace), settings).await;
        let secrets = json!({"metadata": {"name": "secrets"}, "stringData": {"word": "open"}});
        create::<Secret>(&Api::namespaced(client.clone(), &namespace), secrets).await;
        Self {
            pods: remember(Api::namespaced(client.clone(), &namespace), changed.clone()),
            events: follow(Api::namespaced(client.clone(), &namespace), changed.clone()),
            names: Names { namespace, node },
        }
    }

    /// The last version's status that met the expectation and `true`; else the latest status and `false`.
    fn status(&self, name: &str, settled: &Settled) -> (Record, bool) {
        let pods = self.pods.lock().expect("nobody panics with it");
        let versions = pods.get(name).map_or(&[][..], |versions| versions);
        let good = versions.iter().rev().find(|pod| settled.is(pod));
        let pod = good.or(versions.last());
        let status = pod.map(|pod| self.names.status(pod)).unwrap_or_default();
        (status, good.is_some())
    }

    fn events(&self, case: &Case) -> Vec<Arc<Event>> {
        let mut events = self.events.state();
        events.retain(|event| event.involved_object.name.as_deref() == Some(case.name.as_str()));
        events
    }

    fn had(&self, case: &Case, reason: &str) -> bool {
        let events = self.events(case);
        events
            .iter()
            .any(|event| event.reason.as_deref() == Some(reason))
    }
}

/// The records of a pod.
struct Seen<'a> {
    side: &'a Side,
    /// The part that was recorded once.
    looked: Record,
}

impl Seen<'_> {
    fn all(&self, case: &Case) -> Record {
        let mut record = self.side.names.events(&self.side.events(case));
        // `look` has already recorded the last status of a deleted pod
        if !matches!(case.then, Some(Then::Delete { .. })) {
            record.extend(self.side.status(&case.name, &case.settled).0);
        }
        record.extend(self.looked.clone());
        record
    }
}

async fn past(limit: Duration) {
    let _ = timeout(limit, std::future::pending::<()>()).await;
}

/// A difference that is never known: the real pod is not as its case says.
fn unlike(case: &str, why: &str) -> Difference {
    Difference {
        case: case.to_owned(),
        at: format!("the real pod {case}: {why}"),
        real: None,
        simulated: None,
    }
}

/// Collects all versions of all pods.
fn remember(api: Api<Pod>, changed: watch::Sender<()>) -> Arc<Mutex<Versions>> {
    let versions = Arc::new(Mutex::new(Versions::new()));
    let kept = Arc::clone(&versions);
    let seen = watcher(api, watcher::Config::default()).applied_objects();
    tokio::spawn(seen.for_each(move |pod| {
        if let Ok(pod) = pod {
            let name = pod.metadata.name.clone().unwrap_or_default();
            let mut kept = kept.lock().expect("nobody panics with it");
            kept.entry(name).or_default().push(pod);
            changed.send_replace(());
        }
        std::future::ready(())
    }));
    versions
}

/// Follows the objects of a kind with a watch.
fn follow<K>(api: Api<K>, changed: watch::Sender<()>) -> Store<K>
where
    K: kube::Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug,
    K: Send + Sync + 'static,
{
    let (store, writer) = reflector::store();
    let seen = reflector(writer, watcher(api, watcher::Config::default()));
    tokio::spawn(seen.for_each(move |_| {
        changed.send_replace(());
        std::future::ready(())
    }));
    store
}

/// The first Linux node that belongs to no simulator.
async fn real_node(client: &Client) -> String {
    let nodes = Api::<Node>::all(client.clone());
    let real = format!("kubernetes.io/os=linux,{}!={}", SIMULATED.0, SIMULATED.1);
    let listed = nodes.list(&ListParams::default().labels(&real)).await;
    let listed = listed.expect("a list of nodes").items;
    let mut names: Vec<String> = listed
        .into_iter()
        .filter_map(|node| node.metadata.name)
        .collect();
    names.sort();
    assert!(!names.is_empty(), "the cluster has no real Linux node");
    names.remove(0)
}

async fn create<K>(api: &Api<K>, object: Value) -> K
where
    K: Clone + DeserializeOwned + serde::Serialize + std::fmt::Debug,
{
    let object: K = serde_json::from_value(object).expect("the object is whole");
    let created = api.create(&PostParams::default(), &object).await;
    created.expect("the object is taken")
}
