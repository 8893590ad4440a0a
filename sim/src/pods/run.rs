//! A pod that a node of ours has taken: its object, its node, and the book of its state.

use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, MutexGuard};

use k8s_openapi::api::core::v1::{Container, Pod};
use tokio::sync::Notify;

use super::book::Book;
use crate::cluster::{NodeState, locked};
use crate::files::Files;
use crate::image::Image;
use crate::network::Origin;
use crate::program::Place;
use crate::topology::Os;
use crate::world::Key;

/// A pod in the hands of its node.
pub(crate) struct PodRun {
    pub(crate) key: Key,
    pub(crate) uid: String,
    pub(crate) node: Arc<NodeState>,
    pub(crate) pod: Arc<Pod>,
    book: Mutex<Book>,
    /// Wakes the reporter after a change of the book.
    pub(crate) changed: Notify,
}

impl PodRun {
    pub(crate) fn new(key: Key, uid: String, node: Arc<NodeState>, pod: Arc<Pod>) -> Self {
        let book = Mutex::new(Book::new(&pod));
        Self {
            key,
            uid,
            node,
            pod,
            book,
            changed: Notify::new(),
        }
    }

    pub(crate) fn book(&self) -> MutexGuard<'_, Book> {
        locked(&self.book)
    }

    /// Changes the book and has it reported.
    pub(crate) fn note(&self, change: impl FnOnce(&mut Book)) {
        change(&mut self.book());
        self.changed.notify_one();
    }

    /// Whether the container is a `HostProcess` one: its own word, else the pod's.
    pub(crate) fn host_process(&self, container: Option<&Container>) -> bool {
        let own = container.and_then(|container| {
            container
                .security_context
                .as_ref()?
                .windows_options
                .as_ref()?
                .host_process
        });
        let pods = || {
            self.pod
                .spec
                .as_ref()?
                .security_context
                .as_ref()?
                .windows_options
                .as_ref()?
                .host_process
        };
        self.node.pool.os() == Os::Windows && own.or_else(pods).unwrap_or(false)
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

    pub(crate) fn place(&self, container: &Container, image: &Image) -> Place {
        let host_network = self.host_network();
        let spec_name = self
            .pod
            .spec
            .as_ref()
            .and_then(|spec| spec.hostname.clone());
        Place {
            os: self.node.pool.os(),
            family: image.family,
            host_process: self.host_process(Some(container)),
            origin: if host_network {
                Origin::HostPod(self.key.clone())
            } else {
                Origin::Pod(self.key.clone())
            },
            hostname: if host_network {
                self.node.name.clone()
            } else {
                spec_name.unwrap_or_else(|| self.key.name.clone())
            },
            env: Arc::default(),
            files: Files::new(self.node.pool.os()),
            directory: container.working_dir.clone().unwrap_or_default(),
            user: None,
        }
    }

    /// The pod's address, once it has one.
    pub(crate) fn address(&self) -> Option<Ipv4Addr> {
        self.book().address
    }
}
