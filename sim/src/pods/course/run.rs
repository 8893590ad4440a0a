//! A pod on a simulated node: its object, its node, and the book of its state.

use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, Pod, PodSpec, WindowsSecurityContextOptions};
use ordered_watch as watch;
use serde_json::Value;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::base::lock::locked;
use crate::fault::FaultKind;
use crate::network::Origin;
use crate::nodes::cluster::{Cluster, NodeState};
use crate::nodes::image::Image;
use crate::pods::reporting::book::Book;
use crate::pods::reporting::events::Told;
use crate::pods::spec::resources;
use crate::pods::spec::volumes::Volumes;
use crate::program::windows::pipe::PIPES;
use crate::program::{Limits, Place};
use crate::topology::Os;
use crate::world::{self, Key};

/// A pod that a simulated node runs.
pub(crate) struct PodRun {
    pub(crate) key: Key,
    pub(crate) uid: String,
    pub(crate) node: Arc<NodeState>,
    pub(crate) pod: Arc<Pod>,
    book: Mutex<Book>,
    /// How long the containers have to end, once the pod must end.
    pub(crate) ending: watch::Sender<Option<Duration>>,
    /// The volumes, once they are mounted.
    pub(crate) volumes: OnceLock<Volumes>,
    /// For each init container, then for each container: cancelled once it will not be started again.
    pub(crate) over: Vec<CancellationToken>,
    /// The latest events about the pod, so that a repeated event increments the count of the first.
    pub(crate) told: Mutex<Told>,
    /// Wakes the reporter after a change of the book.
    pub(crate) changed: Notify,
    /// Wakes everything else in the node that waits for a change of the book.
    pub(crate) states: watch::Sender<()>,
}

impl PodRun {
    pub(crate) fn new(key: Key, uid: String, node: Arc<NodeState>, pod: Arc<Pod>) -> Self {
        let book = Book::new(&pod, node.wall);
        let containers = book.init.len() + book.containers.len();
        let book = Mutex::new(book);
        Self {
            key,
            uid,
            node,
            pod,
            over: (0..containers).map(|_| CancellationToken::new()).collect(),
            book,
            ending: watch::Sender::new(None),
            volumes: OnceLock::new(),
            told: Mutex::default(),
            changed: Notify::new(),
            states: watch::Sender::new(()),
        }
    }

    pub(crate) fn book(&self) -> MutexGuard<'_, Book> {
        locked(&self.book)
    }

    /// Changes the book and wakes everything that waits for that.
    pub(crate) fn note(&self, change: impl FnOnce(&mut Book)) {
        change(&mut self.book());
        self.told_of_change();
    }

    /// Wakes the reporter and everything else that waits for a change of the book.
    pub(crate) fn told_of_change(&self) {
        self.states.send_replace(());
        self.changed.notify_one();
    }

    /// Reads a Windows option of the container, or else of the pod; `None` on Linux.
    fn windows_option<T>(
        &self,
        container: Option<&Container>,
        of: impl Fn(&WindowsSecurityContextOptions) -> Option<T>,
    ) -> Option<T> {
        let option = container.and_then(|container| container.security_context.as_ref());
        let option = option.and_then(|context| of(context.windows_options.as_ref()?));
        let pods = self.pod.spec.as_ref();
        let pods = pods.and_then(|spec| spec.security_context.as_ref());
        let pods = || pods.and_then(|pods| of(pods.windows_options.as_ref()?));
        let windows = self.node.pool.os() == Os::Windows;
        option.or_else(pods).filter(|_| windows)
    }

    /// Whether the container is a `HostProcess` container.
    pub(crate) fn host_process(&self, container: Option<&Container>) -> bool {
        let option = self.windows_option(container, |options| options.host_process);
        option.unwrap_or(false)
    }

    /// Whether the pod uses the node's network. On Windows only `HostProcess` pods do: the gate
    /// `WindowsHostNetwork` was withdrawn, and other pods get an address from the CNI in spite of
    /// the field.
    pub(crate) fn host_network(&self) -> bool {
        let Some(spec) = &self.pod.spec else {
            return false;
        };
        let wanted = spec.host_network.unwrap_or(false);
        match self.node.pool.os() {
            Os::Linux => wanted,
            Os::Windows => wanted && spec.containers.iter().any(|c| self.host_process(Some(c))),
        }
    }

    /// Returns the place of a container's programs, still without variables and files.
    pub(crate) fn place(&self, container: &Container, image: &Image) -> Place {
        let host_network = self.host_network();
        let named = self.pod.spec.as_ref().and_then(world::own_name);
        let key = self.key.clone();
        let (origin, hostname) = match host_network {
            true => (Origin::HostPod(key), self.node.name.as_str()),
            false => (Origin::Pod(key), named.unwrap_or(&self.key.name)),
        };
        Place {
            of_2021: image.is_of_2021(),
            host_process: self.host_process(Some(container)),
            directory: container.working_dir.clone().unwrap_or_default(),
            user: self.user(container),
            domain: self.domain(container),
            limits: Limits {
                cpu: resources::stated(container.resources.as_ref(), true, "cpu"),
                memory: resources::stated(container.resources.as_ref(), true, "memory"),
                kills: None,
            },
            reboots: self
                .host_process(Some(container))
                .then(|| Arc::clone(&self.node.reboots)),
            pipes: match self.host_process(Some(container)) {
                true => vec![PIPES.to_owned()],
                false => pipes(self.pod.spec.as_ref(), container),
            },
            ..Place::new(self.node.pool.os(), image.family, origin, hostname)
        }
    }

    /// The container's `runAsUserName`, if it is set.
    pub(crate) fn user(&self, container: &Container) -> Option<String> {
        self.windows_option(Some(container), |options| options.run_as_user_name.clone())
    }

    /// The domain of the container's `gmsaCredentialSpec`, if it has one.
    fn domain(&self, container: &Container) -> Option<String> {
        let spec = self.windows_option(Some(container), |options| {
            options.gmsa_credential_spec.clone()
        })?;
        let spec: Value = serde_json::from_str(&spec).ok()?;
        spec["DomainJoinConfig"]["DnsName"]
            .as_str()
            .map(str::to_owned)
    }

    /// Formats the pod as the kubelet does in its messages (`format.Pod`).
    pub(crate) fn written(&self) -> String {
        format!("{}_{}({})", self.key.name, self.key.namespace, self.uid)
    }

    /// Whether a fault of this kind affects the pod.
    pub(crate) fn suffers(&self, kind: FaultKind, cluster: &Cluster) -> bool {
        let (namespace, node) = (&self.key.namespace, &self.node);
        let faults = cluster.faults.current();
        faults.on_pod(kind, namespace, &node.name, node.pool)
    }

    /// The time on the node's clock.
    pub(crate) fn now(&self, cluster: &Cluster) -> Timestamp {
        self.node.time(&cluster.faults.current())
    }

    /// Ends the pod's containers; a second call can only shorten their grace.
    pub(crate) fn end(&self, grace: Duration) {
        self.ending.send_if_modified(|ending| {
            let shorter = ending.is_none_or(|known| grace < known);
            if shorter {
                *ending = Some(grace);
            }
            shorter
        });
    }

    /// The pod's `terminationGracePeriodSeconds`, or its default.
    pub(crate) fn grace(&self) -> Duration {
        let spec = self.pod.spec.as_ref();
        let period = spec.and_then(|spec| spec.termination_grace_period_seconds);
        seconds(period.unwrap_or(30))
    }

    /// Waits until the pod must end.
    pub(crate) async fn ends(&self) {
        let mut ending = self.ending.subscribe();
        // This cannot fail: the sender lives as long as `self`
        let _ = ending.wait_for(Option::is_some).await;
    }

    /// The pod's address, once it has one.
    pub(crate) fn address(&self) -> Option<Ipv4Addr> {
        self.book().address
    }
}

/// The named pipes of its node that a container mounts at their own paths (containerd, `pkg/oci/mounts_windows.go`).
fn pipes(pod: Option<&PodSpec>, container: &Container) -> Vec<String> {
    let volumes = pod.and_then(|pod| pod.volumes.as_ref());
    let volumes = volumes.into_iter().flatten();
    let mounted = volumes.filter_map(|volume| {
        let path = &volume.host_path.as_ref()?.path;
        let mut mounts = container.volume_mounts.iter().flatten();
        let is_there = mounts.any(|it| it.name == volume.name && it.mount_path == *path);
        (is_there && path.starts_with(PIPES)).then(|| path.clone())
    });
    mounted.collect()
}

/// Converts seconds of the API; a negative number counts as 0.
pub(crate) fn seconds(seconds: i64) -> Duration {
    Duration::from_secs(u64::try_from(seconds).unwrap_or(0))
}
