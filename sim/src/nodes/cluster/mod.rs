//! What the parts of a running simulator share.

pub(crate) mod network;

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Duration;

use jiff::Timestamp;
use ordered_watch as watch;
use tokio::sync::{OnceCell, Semaphore};
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
    /// That of the API server, as it is written: `v1.37.0`.
    pub(crate) version: String,
    world: world::Shared,
    turns: Turns,
    /// Requests under way.
    under_way: Semaphore,
    events_under_way: Arc<Semaphore>,
    /// By node, as `nodes`: no node waits for what is asked of another.
    runs: BTreeMap<String, Mutex<BTreeMap<Key, Arc<PodRun>>>>,
    /// What is in the API server by this simulator.
    pub(crate) traces: Traces,
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
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
        }
    }

    /// The world with the faults of this moment.
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

    /// Until a node can be heard: it has power and has not vanished.
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

    /// Until a node cannot be heard any more.
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

    /// Waits for the turn of a request that answers at once, unlike a watch.
    pub(crate) async fn in_turn<T>(&self, request: impl Future<Output = T>) -> T {
        // It is never closed
        let _turn = self.under_way.acquire().await;
        request.await
    }

    /// Waits for the turn of a request that tells of an event.
    pub(crate) fn event_in_turn<F: Future>(
        &self,
        request: F,
    ) -> impl Future<Output = F::Output> + use<F> {
        let under_way = Arc::clone(&self.events_under_way);
        let request = Box::pin(request);
        async move {
            // It is never closed
            let _turn = under_way.acquire().await;
            request.await
        }
    }

    /// Repeats a request to the API server until it is answered for good, as a kubelet does.
    ///
    /// A refusal (4xx, save 408 and 429) is an answer. It ends never by itself otherwise: the caller's
    /// task is cancelled when its pod or the simulator goes.
    pub(crate) async fn insist<T, F: Future<Output = kube::Result<T>>>(
        &self,
        what: &str,
        mut request: impl FnMut() -> F,
    ) -> kube::Result<T> {
        let mut pause = Duration::from_millis(100);
        loop {
            // Apart: it is large, and under way for a small part of the time of who waits for it
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
        // Else there is room for it twice: where it comes from and where it is waited for
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

/// A node's state beyond what the network sees of it.
pub(crate) struct NodeState {
    pub(crate) name: String,
    pub(crate) pool: Pool,
    /// What the topology says of it; the name there lacks the prefix.
    pub(crate) spec: NodeSpec,
    pub(crate) view: world::Node,
    pub(crate) labels: BTreeMap<String, String>,
    /// Of its object, once that is made.
    pub(crate) uid: OnceLock<String>,
    /// Set once it is known that somebody has deleted the object.
    pub(crate) deleted: OnceLock<()>,
    addresses: Mutex<Addresses>,
    images: Mutex<BTreeMap<String, Arc<OnceCell<()>>>>,
    readiness: Mutex<Option<Readiness>>,
    /// The faults that the node's object shows; `None` before it is registered.
    pub(crate) shown: watch::Sender<Option<FaultSet>>,
    /// What `hostPath` volumes and claims hold on this node.
    pub(crate) disks: Disks,
    pub(crate) power: watch::Sender<Power>,
    /// Since when memory has been short.
    pressed: Mutex<Option<Timestamp>>,
    /// The time of day, which its own clock may have wrong.
    pub(crate) wall: Wall,
}

/// Whether a node is up, and how often it has booted since it joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Power {
    pub(crate) up: bool,
    pub(crate) boots: u32,
}

/// What a node last reported of being ready, and since when.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Readiness {
    pub(crate) ready: bool,
    pub(crate) since: Timestamp,
    /// Since when the node has reported at all.
    pub(crate) first: Timestamp,
}

impl NodeState {
    /// A node as a topology has it, at this time of day.
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
            disks: Disks::default(),
            power: watch::Sender::new(Power { up: true, boots: 0 }),
            pressed: Mutex::default(),
            wall,
        }
    }

    /// Since when the node has been there.
    pub(crate) fn started(&self) -> Timestamp {
        locked(&self.readiness).map_or_else(|| self.wall.time(), |readiness| readiness.first)
    }

    /// Takes down whether the node is ready at a moment; returns since when that has been so.
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

    /// Takes down whether memory is short at a moment; returns since when it has been.
    pub(crate) fn pressed(&self, is: bool, now: Timestamp) -> Option<Timestamp> {
        let mut since = locked(&self.pressed);
        *since = is.then(|| since.unwrap_or(now));
        *since
    }

    /// Whether a kind of fault holds on the node.
    pub(crate) fn suffers(&self, kind: FaultKind, faults: &FaultSet) -> bool {
        faults.on_node(kind, &self.name, self.pool)
    }

    /// The time on the node's clock, in the whole seconds that statuses carry.
    pub(crate) fn time(&self, faults: &FaultSet) -> Timestamp {
        match self.suffers(FaultKind::ClockWrong, faults) {
            true => self.wall.now() + clock::WRONG,
            false => self.wall.now(),
        }
    }

    /// Until the node has power.
    pub(crate) async fn up(&self) {
        let mut power = self.power.subscribe();
        // The sender lives as long as this does
        let _ = power.wait_for(|power| power.up).await;
    }

    /// Until the node loses power.
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

    /// The place in the node's image store for one image: empty until it has been pulled.
    pub(crate) fn image(&self, reference: &str) -> Arc<OnceCell<()>> {
        let mut images = locked(&self.images);
        Arc::clone(images.entry(reference.to_owned()).or_default())
    }

    /// The references of the images that have been pulled.
    pub(crate) fn pulled(&self) -> Vec<String> {
        locked(&self.images)
            .iter()
            .filter(|(_, pulled)| pulled.initialized())
            .map(|(reference, _)| reference.clone())
            .collect()
    }
}

/// The last bytes of pod addresses: given out in turn, so that one is not soon used again.
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

/// How many requests of one kind or another are under way: a thousand nodes that all want to tell
/// something must not open a thousand connections.
const UNDER_WAY: usize = 48;

/// The same of events, which are many and keep nobody waiting: a kubelet, too, has a queue of its own
/// for them (`tools/record/event.go`).
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

    /// A node that nobody has bound to an address.
    pub(crate) fn node_of(spec: NodeSpec) -> NodeState {
        let view = world::Node::new(spec.pool, Ipv4Addr::LOCALHOST, 1, [10, 244, 1]);
        NodeState::new(spec.name.clone(), spec, view, Wall::default())
    }

    /// A cluster of nodes whose API server answers nothing.
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
