//! The state that the parts of a running simulator share.

pub(crate) mod network;

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Duration;

use jiff::Timestamp;
use ordered_watch as watch;
use tokio::sync::{Notify, OnceCell, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::base::chance::Chance;
use crate::base::clock::{self, Clock, Wall};
use crate::base::lock::locked;
use crate::fault::{FaultKind, FaultSet, FaultSwitch};
use crate::nodes::files::Disks;
use crate::nodes::node;
use crate::nodes::traces::Traces;
use crate::pods::course::run::PodRun;
use crate::program::{Turns, View};
use crate::topology::{NodeSpec, Pool};
use crate::world::{self, Key, World};

/// A running simulator.
pub(crate) struct Cluster {
    pub(crate) client: kube::Client,
    pub(crate) clock: Clock,
    pub(crate) chance: Chance,
    pub(crate) faults: FaultSwitch,
    pub(crate) nodes: BTreeMap<String, Arc<NodeState>>,
    /// The API server's version, such as `v1.37.0`.
    pub(crate) version: String,
    world: world::Shared,
    turns: Turns,
    /// Permits for requests under way.
    under_way: Semaphore,
    events_under_way: Arc<Semaphore>,
    /// The pods that run, by node, with a lock per node: no node waits for another.
    runs: BTreeMap<String, Mutex<BTreeMap<Key, Arc<PodRun>>>>,
    /// The objects that this simulator created in the API server.
    pub(crate) traces: Traces,
    /// The content of the volumes that pods claim.
    pub(crate) disks: Disks,
    pub(crate) tasks: TaskTracker,
    pub(crate) stop: CancellationToken,
}

impl Cluster {
    pub(crate) fn new(
        client: kube::Client,
        clock: Clock,
        seed: u64,
        faults: FaultSwitch,
        nodes: BTreeMap<String, Arc<NodeState>>,
    ) -> Self {
        let world = world::Shared::default();
        world.change(|world| {
            let first = nodes.values().next();
            world.wall = first.map(|node| node.wall).unwrap_or_default();
            let views = nodes.values();
            let views = views.map(|node| (node.name.clone(), node.view.clone()));
            world.nodes = views.collect();
        });
        let runs = nodes.keys().map(|name| (name.clone(), Mutex::default()));
        Self {
            runs: runs.collect(),
            client,
            clock,
            chance: Chance::new(seed),
            faults,
            nodes,
            version: String::new(),
            world,
            turns: Turns::new(seed),
            under_way: Semaphore::new(UNDER_WAY),
            events_under_way: Arc::new(Semaphore::new(EVENTS_UNDER_WAY)),
            traces: Traces::default(),
            disks: Disks::default(),
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
        }
    }

    /// The world with the current faults.
    pub(crate) fn world(&self) -> Arc<World> {
        let faults = self.faults.current();
        let world = self.world.snapshot();
        if world.faults == faults {
            return world;
        }
        drop(world);
        self.world.change(|world| world.faults = faults);
        self.world.snapshot()
    }

    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut World) -> T) -> T {
        self.world.change(change)
    }

    pub(crate) fn view<'a>(&'a self, world: &'a World) -> View<'a> {
        View {
            world,
            turns: &self.turns,
        }
    }

    /// The pods that run on a node, by name.
    pub(crate) fn runs(&self, node: &NodeState) -> MutexGuard<'_, BTreeMap<Key, Arc<PodRun>>> {
        let runs = self.runs.get(&node.name);
        locked(runs.expect("all nodes are there from the beginning"))
    }

    /// Waits until a node is reachable: it has power and has not vanished.
    pub(crate) async fn heard(&self, node: &NodeState) {
        let mut faults = self.faults.changes();
        loop {
            node.up().await;
            let vanished = node.suffers(FaultKind::NodeVanishes, &faults.borrow_and_update());
            if !vanished {
                return;
            }
            // The sender lives in the cluster
            let _ = faults.changed().await;
        }
    }

    /// Waits until a node is no longer reachable.
    pub(crate) async fn unheard(&self, node: &NodeState) {
        let mut faults = self.faults.changes();
        let silent = faults.wait_for(|faults| node.suffers(FaultKind::NodeVanishes, faults));
        tokio::select! {
            biased;
            // The sender lives in the cluster
            gone = silent => drop(gone),
            () = node.down() => {}
        }
    }

    /// Runs a request that is answered at once, unlike a watch, when a permit is free.
    pub(crate) async fn in_turn<T>(&self, request: impl Future<Output = T>) -> T {
        // The semaphore is never closed
        let _turn = self.under_way.acquire().await;
        request.await
    }

    /// Runs a request that creates an event when a permit for events is free.
    pub(crate) fn event_in_turn<F: Future>(
        &self,
        request: F,
    ) -> impl Future<Output = F::Output> + use<F> {
        let under_way = Arc::clone(&self.events_under_way);
        let request = Box::pin(request);
        async move {
            // The semaphore is never closed
            let _turn = under_way.acquire().await;
            request.await
        }
    }

    /// Repeats a request to the API server until it gets a final answer, as a kubelet does.
    ///
    /// A refusal (4xx, except 408 and 429) is final. Otherwise it never ends by itself: the caller's task is
    /// cancelled when its pod or the simulator goes.
    pub(crate) async fn insist<T, F: Future<Output = kube::Result<T>>>(
        &self,
        what: &str,
        mut request: impl FnMut() -> F,
    ) -> kube::Result<T> {
        let mut pause = Duration::from_millis(100);
        loop {
            // Boxed: the future is large, and runs for a small part of its caller's time
            match self.in_turn(Box::pin(request())).await {
                Err(error) if !is_final(&error) => {
                    tracing::debug!(what, %error, "request is repeated");
                    clock::elapse(pause).await;
                    pause = (pause * 2).min(Duration::from_secs(5));
                }
                answered => return answered,
            }
        }
    }

    /// Runs a task until it ends or the simulator stops.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let stop = self.stop.clone();
        // Without a box, both the caller and the spawned task would hold room for the future
        let task = Box::pin(task);
        self.tasks.spawn(async move {
            tokio::select! {
                biased;
                () = stop.cancelled() => {}
                () = task => {}
            }
        });
    }
}

/// A node's state, beyond the part that the network sees.
pub(crate) struct NodeState {
    pub(crate) name: String,
    pub(crate) pool: Pool,
    /// The node's part of the topology, where its name lacks the prefix.
    pub(crate) spec: NodeSpec,
    pub(crate) view: world::Node,
    pub(crate) labels: BTreeMap<String, String>,
    /// The UID of its API object, once created.
    pub(crate) uid: OnceLock<String>,
    /// Set once its API object is known to be deleted.
    pub(crate) deleted: OnceLock<()>,
    addresses: Mutex<Addresses>,
    images: Mutex<BTreeMap<String, Arc<OnceCell<()>>>>,
    readiness: Mutex<Option<Readiness>>,
    /// The faults that the node's API object shows; `None` before it is registered.
    pub(crate) shown: watch::Sender<Option<FaultSet>>,
    /// The content of `hostPath` volumes on this node, and of volumes that programs of the node see.
    pub(crate) disks: Arc<Disks>,
    pub(crate) power: watch::Sender<Power>,
    /// A program of the node has it boot.
    pub(crate) reboots: Arc<Notify>,
    /// Each pod whose sandbox is being made here holds a reference to it.
    pub(crate) makes_sandbox: Arc<()>,
    /// Since when memory has been short.
    pressed: Mutex<Option<Timestamp>>,
    /// The time of day; the node's own clock may be wrong.
    pub(crate) wall: Wall,
}

/// Whether a node is up, and how often it has booted since it joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Power {
    pub(crate) up: bool,
    /// Whether it ends its pods, since it is about to go down.
    pub(crate) stops: bool,
    pub(crate) boots: u32,
}

/// A node's last reported readiness, and since when it has been so.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Readiness {
    pub(crate) ready: bool,
    pub(crate) since: Timestamp,
    /// When the node first reported.
    pub(crate) first: Timestamp,
}

impl NodeState {
    /// Creates the state of a node of a topology, with this time of day.
    pub(crate) fn new(name: String, spec: NodeSpec, view: world::Node, wall: Wall) -> Self {
        Self {
            pool: spec.pool,
            labels: node::labels(&name, &spec),
            name,
            spec,
            view,
            uid: OnceLock::new(),
            deleted: OnceLock::new(),
            addresses: Mutex::default(),
            images: Mutex::default(),
            readiness: Mutex::default(),
            shown: watch::Sender::new(None),
            disks: Arc::default(),
            power: watch::Sender::new(Power {
                up: true,
                stops: false,
                boots: 0,
            }),
            reboots: Arc::default(),
            makes_sandbox: Arc::default(),
            pressed: Mutex::default(),
            wall,
        }
    }

    /// When the node first reported.
    pub(crate) fn started(&self) -> Timestamp {
        locked(&self.readiness).map_or_else(|| self.wall.time(), |readiness| readiness.first)
    }

    /// Notes whether the node is ready at a moment; returns since when that has been so.
    pub(crate) fn ready_at(&self, ready: bool, now: Timestamp) -> Readiness {
        let mut last = locked(&self.readiness);
        let current = match *last {
            Some(last) if last.ready == ready => last,
            before => Readiness {
                ready,
                since: now,
                first: before.map_or(now, |before| before.first),
            },
        };
        *last = Some(current);
        current
    }

    /// Notes whether memory is short at a moment; returns since when it has been.
    pub(crate) fn pressed(&self, is: bool, now: Timestamp) -> Option<Timestamp> {
        let mut since = locked(&self.pressed);
        *since = is.then(|| since.unwrap_or(now));
        *since
    }

    /// Whether a kind of fault holds on the node.
    pub(crate) fn suffers(&self, kind: FaultKind, faults: &FaultSet) -> bool {
        faults.on_node(kind, &self.name, self.pool)
    }

    /// The time on the node's clock, in whole seconds, as statuses carry it.
    pub(crate) fn time(&self, faults: &FaultSet) -> Timestamp {
        match self.suffers(FaultKind::ClockWrong, faults) {
            true => self.wall.now() + clock::WRONG,
            false => self.wall.now(),
        }
    }

    /// Waits until the node has power.
    pub(crate) async fn up(&self) {
        let mut power = self.power.subscribe();
        // The sender lives as long as the node
        let _ = power.wait_for(|power| power.up).await;
    }

    /// Waits until the node loses power.
    pub(crate) async fn down(&self) {
        let mut power = self.power.subscribe();
        let _ = power.wait_for(|power| !power.up).await;
    }

    /// An address for a pod, if one is free.
    pub(crate) fn lease_address(&self) -> Option<Ipv4Addr> {
        let [a, b, c] = self.view.pod_network;
        locked(&self.addresses)
            .lease()
            .map(|last| Ipv4Addr::new(a, b, c, last))
    }

    pub(crate) fn release_address(&self, address: Ipv4Addr) {
        locked(&self.addresses).taken.remove(&address.octets()[3]);
    }

    /// A cell of the node's image store for one image; it is empty until the image is pulled.
    pub(crate) fn image(&self, reference: &str) -> Arc<OnceCell<()>> {
        let mut images = locked(&self.images);
        Arc::clone(images.entry(reference.to_owned()).or_default())
    }

    /// The references of the pulled images.
    pub(crate) fn pulled(&self) -> Vec<String> {
        locked(&self.images)
            .iter()
            .filter(|(_, pulled)| pulled.initialized())
            .map(|(reference, _)| reference.clone())
            .collect()
    }
}

/// The last bytes of pod addresses, which are given out in turn, so that an address is not soon reused.
#[derive(Debug, Default)]
struct Addresses {
    taken: BTreeSet<u8>,
    last: u8,
}

impl Addresses {
    const FIRST: u8 = 4;
    const LAST: u8 = 250;

    fn lease(&mut self) -> Option<u8> {
        let after = (self.last.max(Self::FIRST - 1) + 1)..=Self::LAST;
        let free = after
            .chain(Self::FIRST..=Self::LAST)
            .find(|byte| !self.taken.contains(byte))?;
        self.taken.insert(free);
        self.last = free;
        Some(free)
    }
}

/// How many requests, events excepted, are under way at once: a thousand nodes with something to send must
/// not open a thousand connections.
const UNDER_WAY: usize = 48;

/// How many requests for events are under way at once: they are many, and nothing waits for them. A kubelet,
/// too, has a separate queue for them (`tools/record/event.go`).
const EVENTS_UNDER_WAY: usize = 16;

fn is_final(error: &kube::Error) -> bool {
    let refuses = |code: u16| (400..500).contains(&code) && !matches!(code, 408 | 429);
    matches!(error, kube::Error::Api(status) if refuses(status.code))
}

#[cfg(test)]
pub(crate) mod tests {
    use futures::FutureExt;

    use super::*;

    fn cluster() -> Cluster {
        cluster_of(BTreeMap::new())
    }

    /// A node without a listener.
    pub(crate) fn node_of(spec: NodeSpec) -> NodeState {
        let view = world::Node::new(spec.pool, Ipv4Addr::LOCALHOST, 1, [10, 244, 1]);
        NodeState::new(spec.name.clone(), spec, view, Wall::default())
    }

    /// A cluster of nodes whose API server gives empty answers.
    pub(crate) fn cluster_of(nodes: BTreeMap<String, Arc<NodeState>>) -> Cluster {
        let service = tower::service_fn(|_: http::Request<kube::client::Body>| async {
            Ok::<_, std::convert::Infallible>(http::Response::new(kube::client::Body::empty()))
        });
        let client = kube::Client::new(service, "default");
        let faults = FaultSwitch::new(FaultSet::default());
        Cluster::new(client, Clock::new(1.0), 1, faults, nodes)
    }

    #[tokio::test]
    async fn events_that_wait_keep_nothing_else_waiting() {
        let cluster = cluster();
        let _all = cluster.events_under_way.acquire_many(16).await;
        let event = cluster.event_in_turn(std::future::ready(()));
        assert!(event.now_or_never().is_none());
        let other = cluster.in_turn(std::future::ready(()));
        assert!(other.now_or_never().is_some());
    }

    #[tokio::test]
    async fn a_simulator_waits_for_no_request_of_another() {
        let (busy, idle) = (cluster(), cluster());
        let _all = busy.under_way.acquire_many(48).await;
        let quick = std::future::ready::<()>;
        assert!(busy.in_turn(quick(())).now_or_never().is_none());
        assert!(idle.in_turn(quick(())).now_or_never().is_some());
    }

    #[test]
    fn addresses_are_not_soon_used_again() {
        let mut addresses = Addresses::default();
        assert_eq!(addresses.lease(), Some(4));
        assert_eq!(addresses.lease(), Some(5));
        addresses.taken.remove(&4);
        assert_eq!(addresses.lease(), Some(6));
        for _ in 7..=250 {
            addresses.lease();
        }
        assert_eq!(addresses.lease(), Some(4));
        assert_eq!(addresses.lease(), None);
        addresses.taken.remove(&9);
        assert_eq!(addresses.lease(), Some(9));
    }
}
