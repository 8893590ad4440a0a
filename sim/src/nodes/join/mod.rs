//! Joins the nodes of a topology to a real API server, which takes them for Ready, and removes them again.

pub(crate) mod balancer;
mod bind;
mod error;
mod leave;
mod reach;
mod register;
#[cfg(test)]
mod tests;

pub use error::JoinError;
pub use leave::LeaveError;
pub use reach::Unreached;

use std::collections::BTreeSet;
use std::future::Future;
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Node;
use kube::api::ListParams;
use kube::runtime::wait::await_condition;
use kube::{Api, Client};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::base::clock::Clock;
use crate::fault::{FaultKind, FaultPlan, FaultSwitch};
use crate::nodes::cluster::{Cluster, network};
use crate::nodes::dns;
use crate::nodes::kubelet;
use crate::nodes::traces::Traces;
use crate::pods;
use crate::topology::Topology;
use crate::wire::loopback::Loopback;
use crate::wire::proxy;
pub(crate) use leave::gone;
use leave::{made, refused, remove};

/// The first release whose API server passes exec to a kubelet as WebSocket.
const OLDEST: (u32, u32) = (1, 36);

/// How long the controllers may take to lift a new node's taint; then joining goes on without.
const SETTLING: Duration = Duration::from_secs(15);

/// How long they may take to notice that a node is silent: `--node-monitor-grace-period` and some more.
const SILENCE: Duration = Duration::from_secs(90);

/// The taint of a node that is not Ready.
const NOT_READY: &str = "node.kubernetes.io/not-ready";

/// The taint of a node that sends nothing any more.
const UNREACHABLE: &str = "node.kubernetes.io/unreachable";

/// How many requests of one kind are under way at once.
const AT_ONCE: usize = 16;

/// How long a request that is under way may still take once joining is interrupted.
const HALTING: Duration = Duration::from_secs(15);

/// How long removing everything may take.
const LEAVING: Duration = Duration::from_mins(1);

/// The settings of a simulator.
#[derive(Clone, Debug)]
pub struct JoinOptions {
    /// The nodes.
    pub topology: Topology,
    /// The faults, and when each begins and ends.
    pub faults: FaultPlan,
    /// Seeds every source of chance, except the addresses that differ between simulators.
    pub seed: u64,
    /// Divides the time of what nodes do by themselves: pulls, starts, probes, back-offs, time-outs. Leases,
    /// `activeDeadlineSeconds` and a program's sleep keep their time.
    pub speed: f64,
    /// The prefix of each node's name, so that several simulators can join one cluster.
    pub prefix: String,
    /// Where the nodes listen; that of the API server that they join if that one is in memory.
    pub loopback: Loopback,
}

/// Nodes that have joined; they live until [`Joined::leave`], and go silent when this is dropped.
pub struct Joined {
    cluster: Arc<Cluster>,
    proxy: SocketAddr,
    /// Whether this simulator runs a load balancer.
    balancer: bool,
}

impl Joined {
    /// Does what [`join`] does until `halt` is cancelled: then it removes what it registered and returns
    /// [`JoinError::Interrupted`] or [`JoinError::Abandoned`]. If that is broken off too, the traces list
    /// what is left in the cluster.
    pub async fn unless(
        halt: &CancellationToken,
        traces: &Traces,
        client: Client,
        options: JoinOptions,
    ) -> Result<Self, JoinError> {
        let (topology, loopback) = (&options.topology, &options.loopback);
        let (speed, prefix) = (options.speed, &options.prefix);
        if !(speed.is_finite() && speed > 0.0) {
            return Err(JoinError::Speed(speed));
        }
        let misfits = options.faults.misfits(topology, prefix);
        if !misfits.is_empty() {
            return Err(JoinError::Faults(misfits));
        }
        let version = halt.run_until_cancelled(version(&client)).await;
        let version = version.ok_or(JoinError::Interrupted)??;
        let (nodes, listeners) = bind::bind(loopback, topology, prefix).await?;
        let outside = loopback.listen(Ipv4Addr::LOCALHOST, 0).await;
        let outside = outside.map_err(JoinError::Proxy)?;
        let proxy = outside.local_addr().map_err(JoinError::Proxy)?;
        let tls = kubelet::listen_tls()?;
        let switch = FaultSwitch::new(options.faults.at_start());
        let mut cluster = Cluster::new(client, Clock::new(speed), options.seed, switch, nodes);
        (cluster.traces, cluster.version) = (traces.clone(), version);
        let cluster = Arc::new(cluster);
        cluster.change(|world| {
            let network = Arc::make_mut(&mut world.network);
            network.outside_pings = topology.outside_pings;
            network.between_nodes.clone_from(&topology.between_nodes);
            if !topology.outside {
                network.outside.clear();
            }
        });
        for (name, listener) in listeners {
            let (shared, node) = (Arc::clone(&cluster), Arc::clone(&cluster.nodes[&name]));
            cluster.spawn(kubelet::serve(shared, node, listener, tls.clone()));
        }
        cluster.spawn(proxy::serve(Arc::clone(&cluster), outside));
        network::begin(&cluster);
        let joined = Self {
            cluster,
            proxy,
            balancer: topology.load_balancer,
        };
        // Before the names are known to be free, no node with such a name is ours to remove
        let claiming = Box::pin(register::claim(&joined.cluster, loopback));
        let claimed = halt.run_until_cancelled(claiming).await;
        claimed.ok_or(JoinError::Interrupted)??;
        // Nor are pods on such nodes ours to run
        pods::reporting::watch::begin(&joined.cluster);
        if let Err(error) = Box::pin(joined.arrive(halt)).await {
            // What was registered before the failure is removed again, and the failure is returned
            let Err(left) = Box::pin(joined.leave()).await else {
                return Err(error);
            };
            if matches!(error, JoinError::Interrupted) {
                return Err(JoinError::Abandoned(left));
            }
            tracing::warn!(%left, "nodes may be left behind");
            return Err(error);
        }
        let cluster = Arc::clone(&joined.cluster);
        let going = async move { go_by(&cluster, &options.faults).await };
        joined.cluster.spawn(going);
        Ok(joined)
    }

    /// Registers the nodes, waits until they settle, and starts the load balancer.
    async fn arrive(&self, halt: &CancellationToken) -> Result<(), JoinError> {
        let registering = Box::pin(register::register(&self.cluster, halt));
        unbroken(halt, registering).await??;
        let settled = halt.run_until_cancelled(settle(&self.cluster)).await;
        settled.ok_or(JoinError::Interrupted)?;
        if self.balancer {
            let beginning = Box::pin(balancer::begin(&self.cluster));
            let begun = unbroken(halt, beginning).await?;
            begun.map_err(JoinError::Balancer)?;
        }
        match halt.is_cancelled() {
            true => Err(JoinError::Interrupted),
            false => Ok(()),
        }
    }

    /// The names of the nodes.
    pub fn nodes(&self) -> Vec<String> {
        self.cluster.nodes.keys().cloned().collect()
    }

    /// The URL of the HTTP proxy by which a client outside the cluster reaches node ports and load balancers;
    /// it is the value of `http_proxy`.
    pub fn proxy_url(&self) -> String {
        format!("http://{}", self.proxy)
    }

    /// Sets and lifts faults.
    pub fn faults(&self) -> &FaultSwitch {
        &self.cluster.faults
    }

    /// Waits until the API objects of all nodes show the current faults, and the controllers have noticed the
    /// nodes that are Ready again or silent.
    pub async fn shown(&self) {
        let mut changes = self.cluster.faults.changes();
        loop {
            let faults = changes.borrow_and_update().clone();
            let is_shown = |shown: &Option<_>| shown.as_ref() == Some(&faults);
            let all_shown = async {
                for node in self.cluster.nodes.values() {
                    // The sender lives in the node
                    let _ = node.shown.subscribe().wait_for(is_shown).await;
                }
            };
            // A set of faults that is replaced too early is never shown
            tokio::select! {
                biased;
                () = all_shown => break,
                Ok(()) = changes.changed() => {}
            }
        }
        settle(&self.cluster).await;
        let faults = self.cluster.faults.current();
        for (name, node) in &self.cluster.nodes {
            if node.suffers(FaultKind::NodeVanishes, &faults) {
                let is_silent =
                    |node: Option<&Node>| node.is_some_and(|it| is_tainted(it, UNREACHABLE));
                await_node(&self.cluster, name, SILENCE, is_silent).await;
            }
        }
    }

    /// Whether the API server reaches the kubelets, as far as the simulator can find out.
    pub async fn reached(&self) -> Result<(), Unreached> {
        reach::reached(&self.cluster).await
    }

    /// Removes the nodes from the cluster, with their leases and, without grace, all pods bound to them.
    pub async fn leave(self) -> Result<(), LeaveError> {
        self.cluster.stop.cancel();
        self.cluster.tasks.close();
        let leaving = async {
            self.cluster.tasks.wait().await;
            let nodes = made(&self.cluster).await?;
            remove(&self.cluster, &nodes).await?;
            let names: Vec<String> = nodes.into_keys().collect();
            let removed = dns::remove(&self.cluster, &names).await;
            removed.map_err(refused("the objects of the cluster's DNS"))?;
            if self.balancer {
                let removed = balancer::remove(&self.cluster).await;
                removed.map_err(refused("the Services of the load balancer"))?;
            }
            Ok(())
        };
        let left = timeout(LEAVING, leaving).await;
        left.unwrap_or(Err(LeaveError::TimedOut))
    }
}

impl Drop for Joined {
    fn drop(&mut self) {
        self.cluster.stop.cancel();
    }
}

/// Sets and lifts the plan's faults at their times.
async fn go_by(cluster: &Cluster, plan: &FaultPlan) {
    let mut passed = Duration::ZERO;
    for (moment, fault, sets) in plan.later() {
        cluster.clock.pass(moment.saturating_sub(passed)).await;
        passed = moment;
        match sets {
            true => cluster.faults.set(fault),
            false => cluster.faults.lift(&fault),
        }
    }
}

/// Joins simulated nodes to a cluster; returns once they are registered, Ready and serving.
pub async fn join(client: Client, options: JoinOptions) -> Result<Joined, JoinError> {
    let (halt, traces) = (CancellationToken::new(), Traces::default());
    Joined::unless(&halt, &traces, client, options).await
}

/// Lets work finish that could leave something behind, for a limited time once interrupted: the API server
/// may still execute a request whose answer is no longer awaited.
async fn unbroken<T>(
    halt: &CancellationToken,
    work: impl Future<Output = T>,
) -> Result<T, JoinError> {
    let mut work = pin!(work);
    tokio::select! {
        biased;
        done = &mut work => Ok(done),
        () = halt.cancelled() => timeout(HALTING, work).await.map_err(|_| JoinError::Interrupted),
    }
}

async fn version(client: &Client) -> Result<String, JoinError> {
    let info = client.apiserver_version().await;
    let info = info.map_err(JoinError::Version)?;
    let number = |text: &str| -> u32 {
        let digits: String = text.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().unwrap_or(0)
    };
    if (number(&info.major), number(&info.minor)) < OLDEST {
        return Err(JoinError::TooOld(info.git_version));
    }
    Ok(info.git_version)
}

/// Waits until the controllers have lifted the taint that every new node gets.
async fn settle(cluster: &Cluster) {
    let untainted = |node: Option<&Node>| node.is_some_and(|it| !is_tainted(it, NOT_READY));
    let faults = cluster.faults.current();
    let nodes: Api<Node> = Api::all(cluster.client.clone());
    // One list shows which nodes are done, usually most of them
    let listed = nodes.list(&ListParams::default()).await;
    let listed = listed.map(|list| list.items).unwrap_or_default();
    let done = listed.into_iter().filter(|node| untainted(Some(node)));
    let done: BTreeSet<String> = done.filter_map(|node| node.metadata.name).collect();
    for (name, node) in &cluster.nodes {
        let kinds = [FaultKind::NodeNotReady, FaultKind::PlegUnhealthy];
        let stays = kinds.iter().any(|kind| node.suffers(*kind, &faults));
        if stays || done.contains(name) {
            continue;
        }
        if !await_node(cluster, name, SETTLING, untainted).await {
            let why = "the node keeps its not-ready taint: are there controllers?";
            tracing::warn!(node = name, "{why}");
            return;
        }
    }
}

/// Whether a node meets a condition in time.
async fn await_node(
    cluster: &Cluster,
    name: &str,
    most: Duration,
    condition: impl Fn(Option<&Node>) -> bool,
) -> bool {
    let nodes: Api<Node> = Api::all(cluster.client.clone());
    let came = timeout(most, await_condition(nodes, name, condition)).await;
    matches!(came, Ok(Ok(_)))
}

fn is_tainted(node: &Node, key: &str) -> bool {
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_ref());
    taints.is_some_and(|taints| taints.iter().any(|taint| taint.key == key))
}
