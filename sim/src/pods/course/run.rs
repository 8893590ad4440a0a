//! A pod that a node of ours has taken: its object, its node, and the book of its state.

use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, Pod, WindowsSecurityContextOptions};
use ordered_watch as watch;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::base::lock::locked;
use crate::fault::FaultKind;
use crate::network::Origin;
use crate::nodes::cluster::{Cluster, NodeState};
use crate::nodes::image::Image;
use crate::pods::reporting::book::Book;
use crate::pods::reporting::events::Told;
use crate::pods::spec::volumes::Volumes;
use crate::program::Place;
use crate::topology::Os;
use crate::world::{self, Key};

/// A pod in the hands of its node.
pub(crate) struct PodRun {
    pub(crate) key: Key,
    pub(crate) uid: String,
    pub(crate) node: Arc<NodeState>,
    pub(crate) pod: Arc<Pod>,
    book: Mutex<Book>,
    /// How long its containers have to end, once they must.
    pub(crate) ending: watch::Sender<Option<Duration>>,
    /// What its volumes hold, once they are mounted.
    pub(crate) volumes: OnceLock<Volumes>,
    /// For each init container, then for each container: it will not be started again.
    pub(crate) over: Vec<CancellationToken>,
    /// The events told of it, so that a repetition counts up the one there is.
    pub(crate) told: Mutex<Told>,
    /// Wakes the reporter after a change of the book.
    pub(crate) changed: Notify,
    /// The same for all who wait inside the node.
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

    /// Changes the book and has it reported.
    pub(crate) fn note(&self, change: impl FnOnce(&mut Book)) {
        change(&mut self.book());
        self.told_of_change();
    }

    /// Wakes who waits for a change of the book.
    pub(crate) fn told_of_change(&self) {
        self.states.send_replace(());
        self.changed.notify_one();
    }

    /// What the container's own words for Windows say of it, or else the pod's.
    fn windows_option<T>(
        &self,
        container: Option<&Container>,
        of: impl Fn(&WindowsSecurityContextOptions) -> Option<T>,
    ) -> Option<T> {
        let own = container.and_then(|container| container.security_context.as_ref());
        let own = own.and_then(|own| of(own.windows_options.as_ref()?));
        let pods = self.pod.spec.as_ref();
        let pods = pods.and_then(|spec| spec.security_context.as_ref());
        let pods = || pods.and_then(|pods| of(pods.windows_options.as_ref()?));
        let windows = self.node.pool.os() == Os::Windows;
        own.or_else(pods).filter(|_| windows)
    }

    /// Whether the container is a `HostProcess` one.
    pub(crate) fn host_process(&self, container: Option<&Container>) -> bool {
        let said = self.windows_option(container, |options| options.host_process);
        said.unwrap_or(false)
    }

    /// Whether the pod uses the node's network. On Windows only `HostProcess` pods do: the gate
    /// `WindowsHostNetwork` was withdrawn, and other pods get an address from the CNI in spite of
    /// the field.
    pub(crate) fn host_network(&self) -> bool {
        let Some(spec) = &self.pod.spec else {
            return false;
        };
        let asked = spec.host_network.unwrap_or(false);
        match self.node.pool.os() {
            Os::Linux => asked,
            Os::Windows => asked && spec.containers.iter().any(|c| self.host_process(Some(c))),
        }
    }

    /// Where the programs of a container find themselves, so far without variables and files.
    pub(crate) fn place(&self, container: &Container, image: &Image) -> Place {
        let host_network = self.host_network();
        let own = self.pod.spec.as_ref().and_then(world::own_name);
        let key = self.key.clone();
        let (origin, hostname) = match host_network {
            true => (Origin::HostPod(key), self.node.name.as_str()),
            false => (Origin::Pod(key), own.unwrap_or(&self.key.name)),
        };
        Place {
            of_2021: image.is_of_2021(),
            host_process: self.host_process(Some(container)),
            directory: container.working_dir.clone().unwrap_or_default(),
            user: self.user(container),
            ..Place::new(self.node.pool.os(), image.family, origin, hostname)
        }
    }

    /// `runAsUserName`.
    pub(crate) fn user(&self, container: &Container) -> Option<String> {
        self.windows_option(Some(container), |options| options.run_as_user_name.clone())
    }

    /// How the kubelet writes a pod in its messages: `format.Pod`.
    pub(crate) fn written(&self) -> String {
        format!("{}_{}({})", self.key.name, self.key.namespace, self.uid)
    }

    /// Whether a kind of fault holds for the pod.
    pub(crate) fn suffers(&self, kind: FaultKind, cluster: &Cluster) -> bool {
        let (namespace, node) = (&self.key.namespace, &self.node);
        let faults = cluster.faults.current();
        faults.on_pod(kind, namespace, &node.name, node.pool)
    }

    /// The time on the node's clock.
    pub(crate) fn now(&self, cluster: &Cluster) -> Timestamp {
        self.node.time(&cluster.faults.current())
    }

    /// Has the pod's containers ended; a second word can only shorten the time they have.
    pub(crate) fn end(&self, grace: Duration) {
        self.ending.send_if_modified(|ending| {
            let shorter = ending.is_none_or(|known| grace < known);
            if shorter {
                *ending = Some(grace);
            }
            shorter
        });
    }

    /// How long its containers have to end where nothing else says so.
    pub(crate) fn grace(&self) -> Duration {
        let spec = self.pod.spec.as_ref();
        let own = spec.and_then(|spec| spec.termination_grace_period_seconds);
        seconds(own.unwrap_or(30))
    }

    /// Until the pod is to end.
    pub(crate) async fn ends(&self) {
        let mut ending = self.ending.subscribe();
        // The sender lives as long as this does
        let _ = ending.wait_for(Option::is_some).await;
    }

    /// The pod's address, once it has one.
    pub(crate) fn address(&self) -> Option<Ipv4Addr> {
        self.book().address
    }
}

/// Seconds of the API, of which a negative number is none.
pub(crate) fn seconds(seconds: i64) -> Duration {
    Duration::from_secs(u64::try_from(seconds).unwrap_or(0))
}
